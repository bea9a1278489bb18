"""Sessions that ran out unseen.

A session expiry writes nothing to a request log. It is claimed when the coordinating broker is known to have lived, and
to have been read, past the deadline; when the coordinator's own log speaks of the group, that log says it instead.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.states import State
from coordinator_model.tracker import phases
from coordinator_model.tracker.membership import remove, trigger_of
from coordinator_model.view import reasons
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import ObservedMember

TIMER_SLACK_MS: Final = 500  # a broker's timer fires late by this much at most, unless the broker itself stalls


def next_check_ms(g: Emitter) -> int | None:
    """When the next session could be claimed, as far as seen."""
    view = g.view
    if view.logged or view.consumer_protocol:
        return None
    due = [deadline for m in view.members.values() if (deadline := m.deadline_ms()) >= 0]
    if view.open is not None and view.open.vacant_ms >= 0:
        due.append(view.open.vacant_ms)
    return min(due) + g.settings.grace_ms + 1 if due else None


def claim_due(g: Emitter, now_ms: int, clock: BrokerClock | None) -> None:
    """Claims the sessions whose deadline is far enough behind, in the order of their deadlines."""
    view = g.view
    if view.logged or view.consumer_protocol:
        return
    grace = g.settings.grace_ms
    overdue = [m for m in view.members.values() if 0 <= m.deadline_ms() < now_ms - grace]
    for member in sorted(overdue, key=lambda m: (m.deadline_ms(), m.member_id)):
        _claim(g, member, clock)
    running = view.open
    if running is not None and 0 <= running.vacant_ms < now_ms - grace:
        phases.emptied(g, running.vacant_ms, max(view.generation, 0) + 1, signs=[])


def _claim(g: Emitter, member: ObservedMember, clock: BrokerClock | None) -> None:
    view = g.view
    deadline = member.deadline_ms()
    member.renewed_ms = -1  # this deadline is judged once; the next sign of life starts another
    if clock is None or not clock.lived_through(deadline, g.settings.max_silence_ms):
        return
    running = view.open
    if running is None:
        if view.state is not State.STABLE or view.last_ok_ms > deadline + TIMER_SLACK_MS:
            return  # others were told that all is well after this session should have ended it
    elif running.joined_ms >= 0 or running.first_sign_ms >= 0 or member.seen_ms >= running.started_ms:
        return  # members live and rejoin: it may be parked in JoinGroup or SyncGroup, where no session runs out
    signs = [member.last_sign] if member.last_sign else []
    gone = remove(g, member.member_id, deadline, reasons.SESSION_TIMEOUT, signs)
    assert gone is not None
    if not member.abandoned:  # else its client's JoinGroup for a new id was first
        phases.add_trigger(g, trigger_of(gone, reasons.SESSION_TIMEOUT, "", deadline))
    if running is None:
        phases.open_rebalance(g, max(deadline, view.last_ok_ms), exact=False, signs=signs)
    note_vacant(g, deadline)


def note_vacant(g: Emitter, at_ms: int) -> None:
    """Nobody is left that we know of: the group is Empty, unless somebody's parked JoinGroup shows up."""
    view = g.view
    if view.open is not None and view.open.joined_ms < 0 and view.complete and not view.members:
        view.open.vacant_ms = at_ms
