"""Rebalances that have ended, until their rows are written.

A rebalance is written `settle_ms` after its end, when every answer that belongs to it was read, and what else it may wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.diagnosis import causes, departures
from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker import membership, phases, rebalance_rows
from coordinator_model.view.emit import Emitter
from coordinator_model.view.outcomes import COMPLETED
from coordinator_model.view.rebalance import Rebalance

STORED_WITHIN_MS: Final = 5_500
"""How long a broker tries to store an assignment (offsets.commit.timeout.ms, 5 s by default), and a little more."""
START_PATIENCE_MS: Final = 30_000
"""How long after its end a rebalance waits for members that have not asked for offsets yet, in a group where others do."""

ANSWERS: Final = "ANSWERS"
STORAGE: Final = "STORAGE"
MEMBERS_START: Final = "MEMBERS_START"
REQUESTS: Final = "REQUESTS"
DEPARTURE: Final = "DEPARTURE"
RETURN: Final = "RETURN"
NEXT_REBALANCE: Final = "NEXT_REBALANCE"
EARLIER_REBALANCE: Final = "EARLIER_REBALANCE"
WAITS: Final = {
    ANSWERS: "Lines that follow its end, such as the answers with the assignment; 2 s.",
    STORAGE: "A sign that its assignment was stored, without which it did not take effect; up to 5.5 s.",
    MEMBERS_START: "Members that got partitions and have yet to ask for their offsets; up to 30 s.",
    REQUESTS: "The order of the requests that led to it, where only requests show it; up to 15 s.",
    DEPARTURE: "A sign of a client that left without a reason: it closed, or its poll loop stalled; up to 30 s.",
    RETURN: "A sign of a client whose session ended after the group had moved: it comes back, or had died; up to 10 s.",
    NEXT_REBALANCE: "The start of the rebalance that superseded it, which is known when that ends.",
    EARLIER_REBALANCE: "The rebalance before it, which waits.",
}
"""What a rebalance that has ended may wait for before its row is written, and how long after its end."""


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes the rebalances whose last line has been read. `flush`: the input ended, nothing more will come.

    Of one that goes on, users want to know soon: what began it is decided when nothing more can be expected to show it.
    """
    view = g.view
    if view.named is not None and (flush or view.named[0] < now_ms):
        phases.found_in(g, *view.named)
    if view.open is not None and view.open.exact and view.open.cause:
        rebalance_rows.write_transitions(g, view.open, final=flush or _undecided_until(view.open) < now_ms)
    while view.closing:
        rebalance = view.closing[0]
        if rebalance.ended_ms < 0:
            if len(view.closing) == 1 or (not flush and _follower_until(g) >= now_ms):
                break
            rebalance.ended_ms = end_with(g, rebalance, view.closing[1])
        if any(not flush or wait == DEPARTURE for wait in waits(g, rebalance, now_ms)):
            break
        _write_first(g)
    if flush:
        rebalance_rows.count_open(g)
        rebalance_rows.tell_who_waits(g)


def _write_first(g: Emitter) -> None:
    """Writes the first of the rebalances that have ended."""
    rebalance = g.view.closing[0]
    if rebalance.moves.missing and rebalance.named in g.view.members and (kind := phases.named_end(rebalance)):
        membership.remove(g, rebalance.named, rebalance.started_ms, kind, rebalance.evidence[:1])
    g.view.closing.pop(0)
    phases.prove(g.view, rebalance)
    for lost in [one for one in g.view.lost if one.at_ms <= rebalance.ended_ms]:  # no line has shown how they went
        membership.remove(g, lost.member_id, lost.at_ms, lost.kind, lost.signs)
    rebalance_rows.write(g, rebalance)


def waits(g: Emitter, rebalance: Rebalance, now_ms: int) -> list[str]:
    """What has yet to be read, at a time, before a rebalance that has ended is written."""
    return [wait for wait, until_ms in _waits(g, rebalance) if until_ms >= now_ms]


def _waits(g: Emitter, rebalance: Rebalance) -> Iterator[tuple[str, int]]:
    """What may have yet to be read, and until when it is waited for; NEVER: until something else is decided."""
    ended_ms = rebalance.ended_ms
    if ended_ms < 0:
        yield NEXT_REBALANCE, _follower_until(g) if rebalance is g.view.closing[0] else NEVER
    else:
        yield ANSWERS, ended_ms + g.settings.settle_ms
    if rebalance.outcome == COMPLETED and not rebalance.proven:
        yield STORAGE, ended_ms + STORED_WITHIN_MS
    if _members_still_start(g, rebalance):
        yield MEMBERS_START, ended_ms + START_PATIENCE_MS
    if not rebalance.exact and causes.specification_is_behind(g, ended_ms):
        yield REQUESTS, ended_ms + causes.PATIENCE_MS
    if departures.blocks(g, {trigger.member_id for trigger in rebalance.triggers}):
        yield DEPARTURE, NEVER
    if causes.waits_for_return(g, rebalance):
        yield RETURN, NEVER


def _follower_until(g: Emitter) -> int:
    """Until when the start of the second of the rebalances that have ended may yet show; NEVER: there is none."""
    if len(g.view.closing) == 1:
        return NEVER
    follower = g.view.closing[1]
    followed_ms = follower.ended_ms if follower.ended_ms >= 0 else follower.joined_ms  # it may wait for a follower of its own
    is_behind = not follower.exact and causes.specification_is_behind(g, followed_ms)
    return followed_ms + max(g.settings.settle_ms, causes.PATIENCE_MS if is_behind else 0)


def end_with(g: Emitter, rebalance: Rebalance, follower: Rebalance) -> int:
    """When a superseded rebalance ended: at the start of the one that follows it."""
    return max(rebalance_rows.started_ms(causes.with_start(g, follower)), rebalance.joined_ms)


def _members_still_start(g: Emitter, rebalance: Rebalance) -> bool:
    """Whether a member that got partitions has yet to ask for their offsets. The next rebalance ends the wait."""
    view = g.view
    if not view.fetches or view.open is not None or len(view.closing) > 1 or rebalance.outcome != COMPLETED:
        return False
    idle = (member_id for member_id in rebalance.synced if member_id not in rebalance.fetched)  # of thousands the first one will do
    return any(member_id in view.members and rebalance_rows.is_given_partitions(rebalance, member_id) for member_id in idle)


def _undecided_until(rebalance: Rebalance) -> int:
    """Until when the transition into a rebalance may wait for what began it; NEVER if it is written, or waits for the end."""
    if rebalance.transitions_written or not (rebalance.exact and rebalance.cause):
        return NEVER
    return rebalance.started_ms + departures.DECIDED_MS


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next if no event comes; NEVER if it has none."""
    view = g.view
    dues = [max(until_ms for _, until_ms in _waits(g, view.closing[0]))] if view.closing else []
    if view.open is not None:
        dues.append(_undecided_until(view.open))
    if view.named is not None:
        dues.append(view.named[0])
    due_ms = min(dues, default=NEVER)
    return due_ms + 1 if due_ms < NEVER else NEVER
