"""Findings about members that lost their place because they did not heartbeat, poll or synchronise in time."""

from __future__ import annotations

import json
from typing import Any

from coordinator_model.diagnosis import catalogue, silences
from coordinator_model.diagnosis.findings import current, details_json, emit, row, seconds
from coordinator_model.events import Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember
from coordinator_model.view.rows import Ref, or_none, ref
from coordinator_model.view.view import PollStall


def session_timeout(g: Emitter, member: ObservedMember, at_ms: int, signs: list[Ref]) -> dict[str, Any]:
    """The finding that no heartbeat came within the session timeout (onExpireHeartbeat), unless a broker turns out to be the reason."""
    limit_ms, gap_ms = member.session_timeout_ms, member.longest_gap_ms
    silent_ms = at_ms - member.seen_ms if member.seen_ms >= 0 and member.seen_ms > g.view.moved_ms else None  # else by another clock
    words = {
        "limit": f" (session.timeout.ms {limit_ms})" if limit_ms >= 0 else "",
        "current": current(limit_ms),
        "stop": catalogue.STATIC_STOP if member.instance_id else catalogue.CALL_CLOSE,
        "silence": silence(silent_ms),
    }
    details = {"session_timeout_ms": or_none(limit_ms), "silent_ms": silent_ms, "longest_gap_before_ms": or_none(gap_ms)}
    return row(g, catalogue.SESSION_TIMEOUT, at_ms, member.client(), signs, words, **details)


def silence(silent_ms: int | None) -> str:
    """How long a member was silent until it was removed, in words."""
    return f"for {seconds(silent_ms)}" if silent_ms is not None else "within the session timeout"


def departure(*, is_static: bool) -> str:
    """What a client does whose application did not poll in time."""
    return "The client, a static member, stopped its heartbeats" if is_static else "The client left the group"


def with_election(finding: dict[str, Any], elected_ms_before: int) -> dict[str, Any]:
    """A finding of `session_timeout` whose coordinator had been elected, at its own start or after another broker's end, so long before."""
    details = json.loads(finding["details"])
    return {
        **finding,
        "message": finding["message"] + catalogue.ELECTED_BEFORE.format(elected=seconds(elected_ms_before)),
        "details": details_json({**details, "coordinator_elected_ms_before": elected_ms_before}),
    }


def poll_timeout(g: Emitter, stall: PollStall, back: Event | None = None) -> None:
    """Reports that poll() was not called within max.poll.interval.ms: a dynamic member leaves, a static one falls silent (KIP-345).

    `back`: the request that shows that the client polls again. It did not for its limit, and since that had passed.
    """
    member, at_ms, signs = stall.member, stall.at_ms, stall.signs
    limit_ms, quiet, text = member.rebalance_timeout_ms, silences.quiet(member), catalogue.POLL_TIMEOUT
    why = silences.STALLED if member.instance_id else silences.why_it_left(quiet, at_ms)
    words: dict[str, Any] = {
        "departure": departure(is_static=bool(member.instance_id)),
        "limit": f" (max.poll.interval.ms {limit_ms})" if limit_ms >= 0 else "",
        "current": current(limit_ms),
        "unless": catalogue.UNLESS_PAUSED if why == silences.UNKNOWN else "",
    }
    details = {"max_poll_interval_ms": or_none(limit_ms)}
    if why == silences.PAUSED:
        silent_ms = at_ms - quiet.heard_ms if quiet.misses_one(at_ms) else quiet.gap_ms
        text, details["silent_ms"] = catalogue.POLL_TIMEOUT_OF_PAUSED, silent_ms
        words |= {"silence": seconds(silent_ms), "pause": catalogue.PAUSE}
    if back is not None and limit_ms >= 0 and 0 <= stall.passed_ms < back.received_ms:
        gap_ms = details["poll_gap_ms"] = limit_ms + back.received_ms - stall.passed_ms
        text, signs = catalogue.WITH_POLL_GAP, [*signs, ref(back)]
        words |= {"gap": seconds(gap_ms), "gap_ms": gap_ms, "limit_ms": limit_ms, "share": max(100 * limit_ms // gap_ms, 1)}
    emit(g, text, at_ms, member.client(), signs, words, generation=stall.generation, **details)


def sync_timeout(g: Emitter, member: ObservedMember, at_ms: int, signs: list[Ref], *, led: bool) -> None:
    """Reports a member that did not ask for its assignment within the rebalance timeout (expirePendingSync, Kafka 2.8+)."""
    limit_ms = member.rebalance_timeout_ms
    remedy = catalogue.SYNC_TIMEOUT_OF_LEADER if led else catalogue.SYNC_TIMEOUT_OF_MEMBER
    words = {
        "role": "leader" if led else "member",
        "then": "all members waited for it, then joined again" if led else "it was removed, and the others joined again",
        "limit": f" ({seconds(limit_ms)})" if limit_ms >= 0 else "",
        "remedy": remedy.format(current=current(limit_ms)),
    }
    emit(g, catalogue.SYNC_TIMEOUT, at_ms, member.client(), signs, words, rebalance_timeout_ms=or_none(limit_ms), leader=led)
