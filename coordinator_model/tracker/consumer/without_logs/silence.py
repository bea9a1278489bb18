"""Members of groups of the consumer protocol that no longer send heartbeats: whom the coordinator has removed though no line says so."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import margins
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes, members
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Episode, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

SILENT_MS: Final = 120_000
"""Members that live send a heartbeat in that time, others lose their sessions: the log that had shown them no longer does."""
_SILENT_GAPS: Final = 2  # a member is silent once it has sent nothing for so many times its longest gap
_GOES_ON_MS: Final = 2 * members.HEARTBEAT_INTERVAL_MS
"""A log that showed a heartbeat of anyone within that time shows heartbeats."""
_SEEN_LATE: Final = frozenset({reasons.SESSION_TIMEOUT, reasons.REBALANCE_TIMEOUT, reasons.UNKNOWN})
"""Departures of which requests show only that they have happened."""


def is_silent(member: ConsumerMember, at_ms: int) -> bool:
    """Whether a member has sent nothing for much longer than it ever paused."""
    return has_paused(member, at_ms, gaps=_SILENT_GAPS)


def has_paused(member: ConsumerMember, at_ms: int, *, gaps: int = 1) -> bool:
    """Whether a member has sent nothing for longer than so many times its longest gap, and than a heartbeat interval."""
    silent_ms = at_ms - member.heard_ms
    return member.longest_gap_ms >= 0 and silent_ms > max(gaps * member.longest_gap_ms, members.HEARTBEAT_INTERVAL_MS)


def cause_of(member: ConsumerMember, at_ms: int) -> str:
    """Why a member was removed by then. One that was told to give partitions up may have run out of that time, or of its session.

    Where its heartbeats went on, no session ended.
    """
    may_be_stuck = member.told_ms >= 0 and (member.rebalance_timeout_ms < 0 or at_ms >= member.told_ms + member.rebalance_timeout_ms)
    if is_silent(member, at_ms):
        return reasons.UNKNOWN if may_be_stuck else reasons.SESSION_TIMEOUT
    is_stuck = may_be_stuck and member.rebalance_timeout_ms >= 0 and member.longest_gap_ms >= 0 and not has_paused(member, at_ms)
    return reasons.REBALANCE_TIMEOUT if is_stuck else reasons.UNKNOWN


def removed(g: Emitter, view: ConsumerView, event: Event) -> list[Change]:
    """What explains that the epoch was raised as often as members have sent nothing for long: they were removed.

    One that had partitions counts only if the answer assigns some of them to its receiver. Another one counts only after the usual timeout,
    while the log shows heartbeats and no new coordinator began its session anew. The receiver is a member, so it does not count.
    """
    leaving = {change.member_id for change in view.changes}
    assigned = {partition for one in event.assignments for partition in one.partitions or ()}
    heard_ms = max((member.heard_ms for member in view.members.values()), default=-1)
    begun_ms = max(view.loaded_ms, g.view.moved_ms)

    def is_gone(member: ConsumerMember) -> bool:
        if not is_silent(member, event.at_ms) or member.member_id in leaving or member.member_id == event.member_id:
            return False
        if member.partitions:
            return not assigned.isdisjoint(member.partitions)
        return heard_ms > event.at_ms - _GOES_ON_MS and event.at_ms - max(member.heard_ms, begun_ms) >= margins.SESSION_TIMEOUT_MS

    return [
        Change(event.at_ms, cause_of(member, event.at_ms), member.member_id, member.last_sign, logged=False)
        for member in sorted(view.members.values(), key=lambda member: (member.heard_ms, member.member_id))
        if is_gone(member) and member.last_sign is not None
    ]


def unexplained_since(view: ConsumerView, member_id: str) -> list[Round]:
    """Rounds that no line explains since a member was heard last: any of them may have been its removal."""
    rounds = view.episode.rounds if view.episode is not None else []
    return [one for one in rounds if not one.cause and (one.lost or not one.logged) and one.at_ms > view.members[member_id].heard_ms]


def in_order(view: ConsumerView, changes: list[Change]) -> tuple[list[Change], bool]:
    """Changes that raised the epoch one after the other, and whether their order is known.

    Sessions end in the order of the last heartbeats, but no line says when. So nothing tells whether one ended before or after another
    change, nor whether a member that still sent heartbeats ran out of its rebalance timeout before or after.
    """
    ended = [one for one in changes if one.cause in _SEEN_LATE]
    if len(ended) < len(changes):
        return changes, not ended
    heard_ms = {member_id: member.heard_ms for member_id, member in view.members.items()}
    is_known = len(changes) == 1 or all(one.cause != reasons.REBALANCE_TIMEOUT for one in changes)
    return sorted(changes, key=lambda one: heard_ms.get(one.member_id, -1)), is_known


def forget_vanished(g: Emitter, view: ConsumerView, event: Event, sender: ConsumerMember) -> None:
    """Takes members out of a rebalance that would else wait for them for ever: no session lasts so long without a heartbeat.

    That the sender was heard all the time shows that the log went on. Which round the departure was is not known.
    """
    episode = view.episode
    if episode is None or sender.longest_gap_ms < 0:
        return
    heard_until_ms = event.received_ms - SILENT_MS - sender.longest_gap_ms
    if max(view.loaded_ms, g.view.moved_ms) >= heard_until_ms:
        return  # a new coordinator began their sessions anew
    for member in [one for one in view.members.values() if 0 <= one.heard_ms < heard_until_ms and not one.classic and one is not sender]:
        view.settle(*view.changes_about(member.member_id))
        depart(g, view, Change(event.at_ms, reasons.UNKNOWN, member.member_id, ref(event), logged=False))


def depart(g: Emitter, view: ConsumerView, change: Change) -> None:
    """A member is gone: in the only round since it was heard whose reason no line names, else it is not known in which."""
    rounds = view.episode.rounds if view.episode is not None else []
    since = [one for one in rounds if not one.cause and one.at_ms > view.members[change.member_id].heard_ms]
    if len(since) == 1 and since[0].lost:
        change.at_ms = since[0].at_ms
        causes.tell(g, view, since[0], change)
    elif view.episode is not None:
        take_out(g, view, view.episode, change)
    else:
        members.take_effect(g, view, change)


def take_out(g: Emitter, view: ConsumerView, episode: Episode, change: Change) -> None:
    """A member is gone, and which round of a rebalance that was is not known, nor since when nobody had its partitions."""
    if change.cause in _SEEN_LATE:
        change.at_ms = min(change.at_ms, max((one.at_ms for one in unexplained_since(view, change.member_id)), default=change.at_ms))
    members.take_effect(g, view, change)
    episode.depart(change.member_id)
    episode.unheard.append(change.member_id)
