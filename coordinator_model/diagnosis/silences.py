"""What kept a client from polling: its process stood still, or only its poll loop. Every finding asks here.

Consumers send heartbeats from a thread of their own, also while a rebalance waits for them (AbstractCoordinator.HeartbeatThread, KIP-62;
rd_kafka_cgrp_join_state_serve). While a poll loop stalls they go on, until max.poll.interval.ms has passed and the client leaves by
itself; a static member falls silent then (AbstractCoordinator.maybeLeaveGroup, KIP-345). Where they stop before, the whole process, or
its network, stood still. It may say all the same that its poll timeout has expired, once it goes on: that is so after any long pause.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.view.members import EndedMembership, ObservedMember

PAUSED: Final = "paused"
STALLED: Final = "stalled"
UNKNOWN: Final = "unknown"

_STALLED_WITHIN_MS: Final = 60_000
"""Before its session ended, where the session timeout is not known."""
_SLACK_MS: Final = 1_000
_INTERVAL_MS: Final = 3_000
"""heartbeat.interval.ms by default."""
_LATE_MS: Final = 500
_COMMIT_INTERVAL_MS: Final = 5_500
"""auto.commit.interval.ms is 5 s by default: a client polls so long after its last commit at most."""


def why(member: ObservedMember, since_ms: int, until_ms: int) -> str:
    """What kept a member from polling until then. `since_ms`: from when on it had reason to poll."""
    if since_ms < member.woke_ms <= until_ms and not member.misses_one(until_ms, member.woke_ms):
        return member.woke_from  # everything came at once
    if member.misses_one(until_ms):
        return _of_silence(member)
    went_on = member.interval_ms() > 0 and any(since_ms < at_ms <= until_ms for at_ms in (member.heard_until_ms(), member.called_ms))
    return STALLED if went_on else UNKNOWN


def why_it_left(member: ObservedMember, left_ms: int) -> str:
    """What kept a member from polling that left because its poll timeout had expired.

    librdkafka sends a heartbeat first when its process goes on (rd_kafka_thread_main). A poll loop that stalls for as long as the silence
    before would have left in its midst; who polled since would have committed.
    """
    limit_ms, commit_ms = member.rebalance_timeout_ms, member.commit_ms
    over_limit = 0 <= limit_ms <= gap_ms(member) <= left_ms - commit_ms and commit_ms >= 0
    return PAUSED if over_limit else why(member, left_ms - limit_ms, left_ms)


def gap_ms(member: ObservedMember) -> int:
    """The longest silence of a member before; -1: the broker may have held its requests back."""
    return member.longest_gap_ms if member.busy_ms <= member.commit_ms else -1


def note(member: ObservedMember, at_ms: int) -> None:
    """Takes a request that arrived while the group rebalanced: it may end a silence."""
    if member.misses_one(at_ms):
        member.woke_ms, member.woke_from = at_ms, _of_silence(member)


def _of_silence(member: ObservedMember) -> str:
    """Some clients stop their heartbeats once an answer calls them to rejoin, static ones when max.poll.interval.ms has passed.

    The heartbeats of a Java leader wait for its assignor, which holds their lock (AbstractCoordinator.JoinGroupResponseHandler).
    """
    assigning = isinstance(member, EndedMembership) and member.assigning
    is_called = member.called_ms >= member.seen_ms  # nothing was heard of it since
    by_itself = is_called or assigning or (bool(member.instance_id) and not stopped_before_limit(member))
    return UNKNOWN if by_itself else PAUSED


def stalled_static(member: ObservedMember, at_ms: int) -> bool:
    """Whether a static member, whose session ended then, fell silent because its application did not poll.

    Its client's log says so; or its heartbeats went on until max.poll.interval.ms after its last commits, and not longer.
    """
    if not member.instance_id:
        return False
    limit = member.session_timeout_ms if member.session_timeout_ms >= 0 else _STALLED_WITHIN_MS
    if member.stalled_ms >= 0 and 0 <= at_ms - member.stalled_ms <= limit + _SLACK_MS:
        return True
    if member.commit_ms < 0 or member.rebalance_timeout_ms < 0:
        return False
    over_ms, interval_ms = member.commit_ms + member.rebalance_timeout_ms, member.interval_ms()
    return over_ms - (interval_ms if interval_ms > 0 else _INTERVAL_MS) - _LATE_MS <= member.beat_ms <= over_ms + _COMMIT_INTERVAL_MS


def stopped_before_limit(member: ObservedMember) -> bool:
    """Whether the heartbeats stopped before max.poll.interval.ms can have passed: a client commits while it polls."""
    limit_ms = member.rebalance_timeout_ms
    return member.commit_ms >= 0 <= limit_ms and member.misses_one(member.commit_ms + limit_ms)


def limit_passed_ms(member: ObservedMember, left_ms: int) -> int:
    """When max.poll.interval.ms had passed for a member whose poll loop stalled; -1 if that is not known.

    It left then, or as much later as its log says. A static member sends no heartbeat any more: it was between the last one and the next.
    """
    over_ms = member.over_ms if member.stalled_ms >= 0 else 0
    if not member.instance_id:
        return -1 if why_it_left(member, left_ms) == PAUSED else left_ms - over_ms
    heard_ms, interval_ms = member.heard_until_ms(), member.interval_ms()
    told_ms = member.stalled_ms - over_ms if member.stalled_ms >= 0 else heard_ms + interval_ms // 2
    return min(max(told_ms, heard_ms), heard_ms + interval_ms) if interval_ms > 0 else -1
