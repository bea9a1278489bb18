"""Session expiries that no line shows.

An expiry writes nothing to a request log. It is concluded once the log of the coordinator was read past the deadline and shows that the
broker was alive then. Where the coordinator's own log has lines about the group, that log reports the expiry instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.tracker import phases
from coordinator_model.tracker.membership import remove, trigger_of
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember

TIMER_SLACK_MS: Final = 500  # a broker's timer fires late by this much at most, unless the broker itself stalls


def next_ms(g: Emitter) -> int:
    """When `claim_due` has work next, as far as known; NEVER if it has none."""
    return next_of(g, g.view.members)


def next_of(g: Emitter, member_ids: Iterable[str]) -> int:
    """The same, if it has none because of other members."""
    view = g.view
    if view.logged or view.consumer_protocol:
        return NEVER
    members = (member for member_id in member_ids if (member := view.members.get(member_id)) is not None)
    due = [deadline for m in members if (deadline := m.deadline_ms()) >= 0]
    if view.open is not None and view.open.vacant_ms >= 0:
        due.append(view.open.vacant_ms)
    return min(due) + g.settings.grace_ms + 1 if due else NEVER


def claim_due(g: Emitter, now_ms: int) -> None:
    """Ends the sessions whose deadline is `grace_ms` behind, in the order of their deadlines."""
    view = g.view
    grace = g.settings.grace_ms
    overdue = [m for m in view.members.values() if 0 <= m.deadline_ms() < now_ms - grace]
    for member in sorted(overdue, key=lambda m: (m.deadline_ms(), m.member_id)):
        _claim(g, member)
    running = view.open
    if running is not None and 0 <= running.vacant_ms < now_ms - grace:
        phases.emptied(g, running.vacant_ms, max(view.generation, 0) + 1, signs=[])


def claim_all(g: Emitter, now_ms: int) -> None:
    """Ends the sessions of all members, if all ran out before: an answer shows that a generation without members came in between."""
    view = g.view
    if view.open is not None and view.open.vacant_ms >= 0:
        phases.emptied(g, view.open.vacant_ms, view.generation + 1, signs=[])
        return
    members = sorted(view.members.values(), key=lambda m: (m.expiry_ms(), m.member_id))
    if view.logged or not view.complete or not members or (view.open is None and view.state is not State.STABLE):
        return
    if not all(0 <= member.expiry_ms() <= now_ms for member in members):
        return
    emptied_ms = max([members[-1].expiry_ms(), *(old.at_ms for old in view.ended)])
    for member in members:
        _end(g, member, member.expiry_ms())
    assert view.open is not None
    phases.emptied(g, max(emptied_ms, view.open.first_sign_ms), view.generation + 1, signs=[])


def _claim(g: Emitter, member: ObservedMember) -> None:
    view = g.view
    deadline = member.deadline_ms()
    member.renewed_ms = -1  # a deadline is judged once; the next sign of life sets a new one
    if not g.clock.lived_through(deadline, g.settings.max_silence_ms):
        return
    running = view.open
    if running is None:
        if view.state is not State.STABLE or view.last_ok_ms > deadline + TIMER_SLACK_MS:
            return  # others had good answers after this expiry should have started a rebalance
    elif running.joined_ms >= 0 or running.first_sign_ms >= 0 or member.seen_ms >= running.started_ms:
        member.overdue_ms = deadline
        return  # the member may be parked in JoinGroup or SyncGroup, where no session runs out
    _end(g, member, deadline)
    note_vacant(g, deadline)


def _end(g: Emitter, member: ObservedMember, deadline: int) -> None:
    """The session ran out: the member is gone, and the group rebalances if it does not already."""
    view = g.view
    begins = view.open is None or view.open.joined_ms >= 0
    signs = [member.last_sign] if member.last_sign else []
    ended = remove(g, member.member_id, deadline, reasons.SESSION_TIMEOUT, signs)
    assert ended is not None
    if not member.abandoned:  # else the client's JoinGroup for a new id came first
        phases.add_trigger(g, trigger_of(ended, reasons.SESSION_TIMEOUT, "", deadline))
    if begins:
        phases.open_rebalance(g, max(deadline, view.last_ok_ms), exact=False, signs=signs)


def note_vacant(g: Emitter, at_ms: int) -> None:
    """Notes when the last known member departed: the group is Empty then, unless a parked JoinGroup shows up."""
    view = g.view
    if view.open is not None and view.open.joined_ms < 0 and view.complete and not view.members:
        view.open.vacant_ms = max([at_ms, *(old.at_ms for old in view.ended)])  # lines of an earlier departure may come later
