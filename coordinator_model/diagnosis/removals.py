"""Findings about members that lost their place because they did not heartbeat, poll or synchronise in time."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue, silences
from coordinator_model.diagnosis.findings import above, before, current, emit, seconds, since
from coordinator_model.diagnosis.kinds import workers
from coordinator_model.diagnosis.kinds.settings import is_java, of_member
from coordinator_model.events import CLIENT_SOURCE, CONNECT, Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership
from coordinator_model.view.rows import or_none, ref
from coordinator_model.view.view import Silence

_LOST_MS: Final = 60_000  # for so long after its coordinator took partitions over a leader may wait for the broker that had them


def silence_of(g: Emitter, member: EndedMembership) -> Silence:
    """No heartbeat of a member came within its session timeout (onExpireHeartbeat)."""
    is_known = member.seen_ms >= 0 and member.seen_ms > g.view.moved_ms  # else by another clock
    silent_ms = member.at_ms - member.seen_ms if is_known else -1
    told = {"generation": member.generation, "signs": member.signs, "silent_ms": silent_ms, "given_up": member.abandoned}
    return Silence(**member.shared() | told, at_ms=member.at_ms, is_end=True, seen_ms=member.seen_ms)


def session_timeout(g: Emitter, silence: Silence, came_ms: int | None, elected_ms: int) -> None:
    """Reports that a session ended. `came_ms`: when its client was back under a new id, NEVER: it was not; None: that is not known.

    `elected_ms`: when its broker had become the coordinator, at its own start or after another broker's end; -1: long before.
    """
    limit_ms, silent_ms = silence.session_timeout_ms, silence.silent_ms
    details: dict[str, Any] = {"silent_ms": or_none(silent_ms), "longest_gap_before_ms": or_none(silence.longest_gap_ms)}
    then, restarted = "", catalogue.IF_RESTARTED
    settings = of_member(g.view, silence.client_id)
    if came_ms == NEVER:
        then = catalogue.NOT_BACK
    elif came_ms is not None:
        # Else it was heard by another clock; or it may be another process with its client.id, whom no longer session would have kept.
        is_known = silence.seen_ms > g.view.moved_ms and bool(silence.instance_id)
        details |= {"back_ms": came_ms - silence.at_ms, "away_ms": came_ms - silence.seen_ms if is_known else None}
        then = (catalogue.BACK if silence.instance_id else catalogue.NAMESAKE).format(back=seconds(came_ms - silence.at_ms))
        away_ms = came_ms - silence.seen_ms
        if is_known:
            restarted = catalogue.RESTARTED.format(away=seconds(away_ms), least=above(away_ms))
        if is_known and 0 <= silence.rebalance_timeout_ms <= away_ms:
            details["max_poll_interval_ms"] = silence.rebalance_timeout_ms
            restarted += catalogue.POLL_TOO_SHORT.format(now=seconds(silence.rebalance_timeout_ms))
    if elected_ms >= 0:
        details["coordinator_elected_ms_before"] = silence.at_ms - elected_ms
        then += catalogue.ELECTED_BEFORE.format(elected=seconds(silence.at_ms - elected_ms))
    if silence.of_group:
        text, limit = consumer_catalogue.SESSION_TIMEOUT, " (the group's session timeout)" if silent_ms >= 0 else ""
        stop = "" if silence.instance_id else f"{catalogue.CALL_CLOSE} "  # a static one says that it leaves for a while
    else:
        text, old = catalogue.SESSION_TIMEOUT, g.view.ended_membership(silence.member_id)
        if old is not None and old.assigning:
            text, then, details["leader"] = catalogue.SESSION_TIMEOUT_OF_LEADER, catalogue.TO_ASSIGN + then, True
        limit = f" (session.timeout.ms is {seconds(limit_ms)})" if limit_ms >= 0 else ""
        leave = settings.leave if is_java(silence.software) else ""
        stop = catalogue.STATIC_STOP.format(restarted=restarted, leave=leave) if silence.instance_id else settings.stop
        if text is catalogue.SESSION_TIMEOUT and details.get("away_ms") is not None:  # a value is named already
            text = text._replace(advice=f"{catalogue.LOOK} {{stop}}")
        details["session_timeout_ms"] = or_none(limit_ms)
        if g.view.protocol_type == CONNECT and old is not None and (lost := workers.connectors(old.partitions or ())):
            details["connectors"] = lost
    known_ms = silent_ms if silent_ms >= 0 or elected_ms >= 0 else limit_ms  # a new coordinator's timer began when it had read the group
    words = {
        "silence": f"for {seconds(silent_ms)}" if silent_ms >= 0 else "within the session timeout",
        "limit": limit,
        "current": current(limit_ms),
        "stop": stop,
        "session": settings.session,
        "then": then,
        "since": since(silence.at_ms - known_ms) if known_ms >= 0 else before(silence.at_ms),
        "why": why_no_assignment(g, silence.at_ms),
    }
    emit(g, text, silence.at_ms, silence.client(), silence.signs, words, generation=silence.generation, **details)


def why_no_assignment(g: Emitter, at_ms: int) -> str:
    """Why nothing was heard of a leader that had to assign, until its session ended: it may have waited for a broker that was away."""
    lost_ms = max(g.view.loaded_ms if g.view.loaded_ms <= at_ms else -1, g.clock.took_over_between(at_ms - _LOST_MS, at_ms))
    return catalogue.WAITED_FOR_A_BROKER if lost_ms >= 0 and at_ms - lost_ms <= _LOST_MS else catalogue.WHY_NO_ASSIGNMENT


def near_miss(g: Emitter, silence: Silence) -> None:
    """Reports an accepted heartbeat that came just before the session would have ended."""
    limit = seconds(silence.session_timeout_ms)
    details = {"silent_ms": silence.silent_ms, "session_timeout_ms": silence.session_timeout_ms}
    text = catalogue.HEARTBEAT_NEAR_MISS
    if silence.of_group:
        text, details["session_timeout_seen"] = consumer_catalogue.HEARTBEAT_NEAR_MISS, silence.limit_seen
        limit = f"this group removed a member after {limit}" if silence.limit_seen else "the session timeout is 45 s by default"
    words = {"silence": seconds(silence.silent_ms), "limit": limit, "since": since(silence.at_ms - silence.silent_ms)}
    words["session"] = of_member(g.view, silence.client_id).session
    emit(g, text, silence.at_ms, silence.client(), silence.signs, words, generation=silence.generation, **details)


def departure(*, is_static: bool) -> str:
    """What a client does whose application did not poll in time."""
    return "The client, a static member, stopped sending heartbeats" if is_static else "The client left the group"


def poll_timeout(g: Emitter, stalled: EndedMembership, back: Event | None = None) -> None:
    """Reports that poll() was not called within max.poll.interval.ms: a dynamic member leaves, a static one falls silent (KIP-345).

    `back`: the request that shows that the client polls again. It did not for its limit, and since that had passed.
    """
    at_ms, signs, limit_ms = stalled.at_ms, stalled.signs, stalled.rebalance_timeout_ms
    settings = of_member(g.view, stalled.client_id, stalled.software)
    text, why = catalogue.POLL_TIMEOUT, silences.STALLED if stalled.instance_id else silences.why_it_left(stalled, at_ms)
    if g.view.protocol_type == CONNECT:
        text = catalogue.POLL_TIMEOUT_OF_WORKER
    words: dict[str, Any] = {
        "departure": departure(is_static=bool(stalled.instance_id)),
        "limit": f" ({seconds(limit_ms)})" if limit_ms >= 0 else "",
        "current": current(limit_ms),
        "unless": catalogue.UNLESS_PAUSED if why == silences.UNKNOWN else "",
        "less": settings.less_work(),
        "poll": of_member(g.view, stalled.client_id).poll,
        "unstick": settings.unstick,
    }
    details = {"max_poll_interval_ms": or_none(limit_ms)}
    if why == silences.PAUSED:
        silent_ms = at_ms - stalled.heard_until_ms() if stalled.misses_one(at_ms) else silences.gap_ms(stalled)
        text, details["silent_ms"] = catalogue.POLL_TIMEOUT_OF_PAUSED, silent_ms
        words |= {"silence": seconds(silent_ms), "pause": catalogue.PAUSE.format(since=since(at_ms - silent_ms))}
    back_ms = -1 if back is None else back.at_ms if back.source == CLIENT_SOURCE else back.received_ms
    passed_ms = stalled.passed_ms if back is None else min(stalled.passed_ms, back.received_ms)
    if back is not None and limit_ms >= 0 and 0 <= passed_ms < back_ms:
        gap_ms = details["poll_gap_ms"] = limit_ms + back_ms - passed_ms
        text, signs = catalogue.WITH_POLL_GAP if words["less"] else text, [*signs, ref(back)]
        words |= {"gap": seconds(gap_ms), "least": above(gap_ms), "limit": seconds(limit_ms)}
        below = f"if the time grows with the number of records, set {{}} below {max(100 * limit_ms // gap_ms, 1)} % of its present value"
        words["less"] = ", or, ".join(filter(None, [settings.hand_over, settings.fewer_records(below)]))
    emit(g, text, at_ms, stalled.client(), signs, words, generation=stalled.generation, **details)


def sync_timeout(g: Emitter, member: EndedMembership, *, led: bool) -> None:
    """Reports a member that did not ask for its assignment within the rebalance timeout (expirePendingSync, Kafka 2.8+)."""
    limit_ms = member.rebalance_timeout_ms
    remedy = catalogue.SYNC_TIMEOUT_OF_LEADER if led else catalogue.SYNC_TIMEOUT_OF_MEMBER
    words = {
        "role": "leader" if led else "member",
        "then": "the others waited for it, and rejoined without it" if led else "it was removed, and the others rejoined",
        "limit": f" ({seconds(limit_ms)})" if limit_ms >= 0 else "",
        "remedy": remedy.format(current=current(limit_ms)),
    }
    details = {"rebalance_timeout_ms": or_none(limit_ms), "leader": led}
    emit(g, catalogue.SYNC_TIMEOUT, member.at_ms, member.client(), member.signs, words, **details)


def sync_timeout_of_old_id(g: Emitter, ended: EndedMembership, event: Event) -> None:
    """Reports that the coordinator waited for SyncGroup of an id that a static member has no more: Kafka waits on."""
    limit_ms = ended.rebalance_timeout_ms
    words = {"limit": f" ({seconds(limit_ms)})" if limit_ms >= 0 else "", "current": current(limit_ms)}
    words["since"] = since(event.at_ms - max(limit_ms, 0))
    emit(g, catalogue.SYNC_TIMEOUT_OF_OLD_ID, event.at_ms, ended.client(), [ref(event)], words, rebalance_timeout_ms=or_none(limit_ms))
