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


def _unproven(rebalance: Rebalance, now_ms: int) -> bool:
    """Whether a line may yet come that says that the assignment was not stored."""
    return rebalance.outcome == COMPLETED and not rebalance.proven and now_ms <= rebalance.ended_ms + STORED_WITHIN_MS


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes the rebalances whose last line has been read. `flush`: the input ended, nothing more will come.

    Of one that goes on, users want to know soon: what began it is decided when nothing more can be expected to show it.
    """
    view = g.view
    if view.named is not None and (flush or view.named[0] < now_ms):
        phases.found_in(g, *view.named)
    if view.open is not None and (flush or _undecided_until(view.open) < now_ms) and view.open.exact and view.open.cause:
        rebalance_rows.write_transitions(g, view.open, final=True)
    while view.closing:
        rebalance = view.closing[0]
        if rebalance.ended_ms < 0 and not _settle_end(g, rebalance, now_ms, flush=flush):
            return
        if any(not flush or wait == DEPARTURE for wait in waits(g, rebalance, now_ms)):
            return
        _write_first(g)


def _write_first(g: Emitter) -> None:
    """Writes the first of the rebalances that have ended."""
    rebalance = g.view.closing[0]
    if rebalance.moves.missing and rebalance.named in g.view.members and (kind := phases.named_end(rebalance)):
        membership.remove(g, rebalance.named, rebalance.started_ms, kind, rebalance.evidence[:1])
    g.view.closing.pop(0)
    phases.prove(g.view, rebalance)
    for lost in [one for one in g.view.lost if one.at_ms <= rebalance.ended_ms]:  # no line has shown how they went
        membership.remove(g, lost.member.member_id, lost.at_ms, lost.kind, lost.signs)
    rebalance_rows.write(g, rebalance)


def waits(g: Emitter, rebalance: Rebalance, now_ms: int) -> Iterator[str]:
    """What has yet to be read, at a time, before a rebalance that has ended is written."""
    if rebalance.ended_ms < 0:
        yield NEXT_REBALANCE
    elif rebalance.ended_ms + g.settings.settle_ms >= now_ms:
        yield ANSWERS
    if _unproven(rebalance, now_ms):
        yield STORAGE
    if _members_still_start(g, rebalance, now_ms):
        yield MEMBERS_START
    if not rebalance.exact and causes.specification_is_behind(g, rebalance.ended_ms, now_ms):
        yield REQUESTS
    if departures.blocks(g, {trigger.member_id for trigger in rebalance.triggers}):
        yield DEPARTURE
    if causes.waits_for_return(g, rebalance):
        yield RETURN


def _settle_end(g: Emitter, rebalance: Rebalance, now_ms: int, *, flush: bool) -> bool:
    """Ends a superseded rebalance as the next one starts. False: when that was may yet show."""
    follower = g.view.closing[1] if len(g.view.closing) > 1 else None
    if follower is None:
        return False
    if not flush:
        followed_ms = follower.ended_ms if follower.ended_ms >= 0 else follower.joined_ms  # it may wait for a follower of its own
        if followed_ms + g.settings.settle_ms >= now_ms:
            return False
        if not follower.exact and causes.specification_is_behind(g, followed_ms, now_ms):
            return False
    rebalance.ended_ms = end_with(g, rebalance, follower)
    return True


def end_with(g: Emitter, rebalance: Rebalance, follower: Rebalance) -> int:
    """When a superseded rebalance ended: at the start of the one that follows it."""
    return max(rebalance_rows.started_ms(causes.with_start(g, follower)), rebalance.joined_ms)


def _members_still_start(g: Emitter, rebalance: Rebalance, now_ms: int) -> bool:
    """Whether a member that got partitions has yet to ask for their offsets. The next rebalance ends the wait."""
    view = g.view
    if not view.fetches or view.open is not None or len(view.closing) > 1 or rebalance.outcome != COMPLETED:
        return False
    if now_ms > rebalance.ended_ms + START_PATIENCE_MS:
        return False
    idle = rebalance.synced.keys() - rebalance.fetched.keys()  # first: of thousands of members few are left
    return any(member_id in view.members and rebalance_rows.is_given_partitions(rebalance, member_id) for member_id in idle)


def _undecided_until(rebalance: Rebalance) -> int:
    """Until when the transition into a rebalance may wait for what began it; NEVER if it is written, or waits for the end."""
    if rebalance.transitions_written or not (rebalance.exact and rebalance.cause):
        return NEVER
    return rebalance.started_ms + departures.DECIDED_MS


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next, as far as known; NEVER if it has none."""
    view = g.view
    dues = [
        r.ended_ms + max(g.settings.settle_ms, STORED_WITHIN_MS if _unproven(r, r.ended_ms) else 0) for r in view.closing if r.ended_ms >= 0
    ]
    if view.open is not None:
        dues.append(_undecided_until(view.open))
    if view.named is not None:
        dues.append(view.named[0])
    due_ms = min(dues, default=NEVER)
    return due_ms + 1 if due_ms < NEVER else NEVER
