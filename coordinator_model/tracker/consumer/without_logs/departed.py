"""Departures that records show. They do not show why: a line of a log may, until the row of the membership is written.

A member that had paused before lost its session, if the request log goes on and does not show that it left. A request of anyone shows that,
once the member has been silent for as long as requests alone must show it (silence.py). In a group of which nobody is left, the first one
may be the member's own, long after: it is told then that it is none any more.
"""

from __future__ import annotations

from coordinator_model.diagnosis import consumer_findings
from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker.consumer import members
from coordinator_model.tracker.consumer.members import HEARTBEAT_INTERVAL_MS
from coordinator_model.tracker.consumer.without_logs import silence
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref


def explain(g: Emitter, view: ConsumerView, member_id: str, cause: str, sign: Ref) -> None:
    """A line shows why a member departed, of which records show only that it did."""
    member = next((one for one in reversed(view.gone) if one.member_id == member_id and one.gone_signs), None)
    if member is None or member.end_kind != reasons.UNKNOWN:
        return
    episodes = view.unfinished()
    for one in [one for episode in episodes for one in episode.rounds if (one.cause, one.member_id) == (reasons.UNKNOWN, member_id)]:
        one.cause = cause
        one.note(sign)
    for told in [
        told for episode in episodes for told in episode.revocations if (told.member_id, told.end) == (member_id, member.end_kind)
    ]:
        told.end = reasons.end_of(cause)
    member.end_kind = reasons.end_of(cause)
    member.gone_signs.append(sign)
    consumer_findings.removed(g, view, member, Change(member.gone_ms, cause, member_id, sign, logged=True))


def fell_silent(view: ConsumerView) -> list[ConsumerMember]:
    """Members that departed after a pause longer than any before, which nothing else explains."""
    unexplained = (one for one in view.gone if one.gone_signs and one.end_kind == reasons.UNKNOWN)
    return [one for one in unexplained if silence.has_paused(one, one.gone_ms) and not 0 <= one.revoke_by_ms <= one.gone_ms]


def next_ms(g: Emitter, view: ConsumerView) -> int:
    """When the next row of a departure is written; NEVER if there is none."""
    until_ms = view.episode.rounds[0].at_ms if view.heard and view.episode is not None else NEVER  # its end waits for heartbeats
    return min((_due_ms(g, view, one) for one in view.gone if one.gone_signs and one.gone_ms < until_ms), default=NEVER)


def settled_ms(g: Emitter, view: ConsumerView, since_ms: int, until_ms: int) -> int:
    """When it is settled why members departed in a time; -1 if it is."""
    return max((_due_ms(g, view, one) for one in view.gone if one.gone_signs and since_ms <= one.gone_ms <= until_ms), default=-1)


def _due_ms(g: Emitter, view: ConsumerView, member: ConsumerMember) -> int:
    if not view.heard:
        return member.gone_ms + g.settings.settle_ms
    waits_ms = silence.SILENT_MS if member in fell_silent(view) else g.settings.settle_ms + HEARTBEAT_INTERVAL_MS
    return member.gone_ms + waits_ms


def settle(g: Emitter, view: ConsumerView, now_ms: int, *, flush: bool) -> None:
    """Writes the rows of departures, once no other line can show why."""
    while flush or next_ms(g, view) <= now_ms:
        member = min((one for one in view.gone if one.gone_signs), key=lambda one: _due_ms(g, view, one), default=None)
        if member is None:
            return
        members.session(g, member, member.gone_ms, member.end_kind, member.gone_signs)
        member.gone_signs = []
