"""The phases of a rebalance, as far as the logs show them: opened, joined, ended, superseded, emptied, abandoned.

The first evidence moves the estimate, later evidence confirms or corrects it. A rebalance is written `settle_ms` after its end, when
every answer that belongs to it was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.diagnosis import causes, departures
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.tracker import membership, rebalance_rows
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.outcomes import ABANDONED, COMPLETED, EMPTIED, SUPERSEDED
from coordinator_model.view.rows import Ref
from coordinator_model.view.view import Rebalance, RebalanceTrigger, View

GROUP_LOADED: Final = "GROUP_LOADED"
GROUP_REMOVED: Final = "GROUP_REMOVED"
OFFSETS_EXPIRED: Final = "OFFSETS_EXPIRED"

TRIGGERS_KEPT: Final = 32
UNCLAIMED_KEPT: Final = 4_096  # triggers without a rebalance yet: all members of a large group may depart at once
STORED_WITHIN_MS: Final = 5_500
"""How long a broker tries to store an assignment (offsets.commit.timeout.ms, 5 s by default), and a little more."""
START_PATIENCE_MS: Final = 30_000
"""How long after its end a rebalance waits for members that have not asked for offsets yet, in a group where others do."""

ANSWERS: Final = "ANSWERS"
STORAGE: Final = "STORAGE"
MEMBERS_START: Final = "MEMBERS_START"
REQUESTS: Final = "REQUESTS"
DEPARTURE: Final = "DEPARTURE"
NEXT_REBALANCE: Final = "NEXT_REBALANCE"
EARLIER_REBALANCE: Final = "EARLIER_REBALANCE"
WAITS: Final = {
    ANSWERS: "Lines that follow its end, such as the answers with the assignment; 2 s.",
    STORAGE: "A sign that its assignment was stored, without which it did not take effect; up to 5.5 s.",
    MEMBERS_START: "Members that got partitions and have yet to ask for their offsets; up to 30 s.",
    REQUESTS: "The order of the requests that led to it, where only requests show it; up to 15 s.",
    DEPARTURE: "A sign of a client that left without a reason: it closed, or its poll loop stalled; up to 30 s.",
    NEXT_REBALANCE: "The start of the rebalance that superseded it, which is known when that ends.",
    EARLIER_REBALANCE: "The rebalance before it, which waits.",
}
"""What a rebalance that has ended may wait for before its row is written, and how long after its end."""


def open_rebalance(
    g: Emitter,
    at_ms: int,
    *,
    exact: bool,
    old_generation: int = -1,
    trigger: RebalanceTrigger | None = None,
    cause: str = "",
    signs: list[Ref],
) -> Rebalance:
    """The group enters PreparingRebalance (ClassicGroup.transitionTo, prepareRebalance). `cause`: from the coordinator's reason."""
    view = g.view
    for earlier in view.closing:
        prove(view, earlier)  # or its failure had begun this one
        rebalance_rows.write_transitions(g, earlier)
    running = view.open
    if running is not None:
        if running.joined_ms >= 0:
            _supersede(g, running, at_ms if exact else -1)
        else:
            abandon(g, at_ms)
    from_state = view.state
    if from_state not in (State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE):
        # A Dead group starts again as an empty one; of an unknown state, only generation 0 proves that it was Empty.
        from_state = State.EMPTY if old_generation == 0 or from_state is State.DEAD else State.STABLE
    if running is not None and running.joined_ms < 0:
        end_unseen(g, running, from_state)
    rebalance = Rebalance(
        at_ms,
        exact,
        from_state,
        old_generation if old_generation >= 0 else view.generation,
        cause=cause,
        named=trigger.member_id if trigger is not None else "",
        count_before=view.member_count,
        floor_ms=max([view.last_ok_ms, *(r.joined_ms for r in view.closing[-1:])]),
        triggers=[t for t in view.unclaimed if t is not trigger],
        owned_before={p: m.member_id for m in view.members.values() for p in m.partitions or ()},
        evidence=list(signs),
    )
    if trigger is not None:
        rebalance.triggers.insert(0, trigger)
    for member_id in view.gone:
        rebalance.departed.append(member_id)
        ended = view.ended_membership(member_id)
        if ended is not None:  # in a log with holes it may have departed long ago
            rebalance.stopped[member_id] = ended.stopped_ms()
            rebalance.owned_before.update(dict.fromkeys(ended.partitions, member_id))
    rebalance.added = [m for m in view.arrived if m in view.members]
    if from_state is State.EMPTY:
        rebalance.count_before, view.stored, view.stored_generation = 0, [], max(rebalance.old_generation, 0)
    elif view.complete:
        rebalance.count_before = view.size() - len(rebalance.added) + len(rebalance.departed)
    rebalance.owners_unknown = view.converted_ms > view.completed_ms  # consumer groups name partitions otherwise
    view.unclaimed, view.arrived, view.gone = [], [], []
    view.open = rebalance
    view.state = State.PREPARING_REBALANCE
    rebalance_rows.write_transitions(g, rebalance)
    return rebalance


def contradicted(g: Emitter, generation: int, at_ms: int) -> bool:
    """Whether an accepted heartbeat shows that there is no join phase: in one its answer would be REBALANCE_IN_PROGRESS."""
    running = g.view.open
    return (
        running is not None
        and running.joined_ms < 0
        and not (running.exact or running.triggers)
        and 0 <= running.first_sign_ms < at_ms
        and generation == running.old_generation
    )


def retract(g: Emitter) -> None:
    """Drops a join phase whose only sign was wrong, such as a damaged line."""
    g.view.open = None
    g.view.state = State.STABLE


def add_trigger(g: Emitter, trigger: RebalanceTrigger) -> None:
    """Adds a trigger to the rebalance that it belongs to: the one in which the member departed, the open one, or the next."""
    view = g.view
    running = view.open
    if running is not None and (0 <= running.joined_ms < trigger.at_ms or trigger.member_id in view.gone):
        running = None  # after the join phase it begins the next one
    running = next((r for r in view.unfinished() if trigger.member_id and trigger.member_id in r.departed), running)
    triggers = running.triggers if running is not None else view.unclaimed
    if not any(t.member_id == trigger.member_id and t.cause == trigger.cause and trigger.member_id for t in triggers):
        triggers.append(trigger)
        if running is None:
            del triggers[:-UNCLAIMED_KEPT]
        else:
            del triggers[TRIGGERS_KEPT:-1]  # the first ones began it
            rebalance_rows.write_transitions(g, running)


def joined(g: Emitter, at_ms: int, generation: int, *, exact: bool, signs: list[Ref]) -> Rebalance:
    """The join phase ended: a new generation, CompletingRebalance (completeClassicGroupJoin, onCompleteJoin)."""
    view = g.view
    running = view.open
    if running is not None and running.joined_ms >= 0:
        if running.generation == generation:
            return running
        running = None
    if running is None:
        running = open_rebalance(g, at_ms, exact=False, old_generation=generation - 1, signs=[])
    running.joined_ms = at_ms
    running.generation = generation
    view.make_generation(at_ms, generation)
    running.exact = running.exact and exact
    running.evidence += signs
    running.vacant_ms = -1
    view.state = State.COMPLETING_REBALANCE
    rebalance_rows.write_transitions(g, running)
    return running


def ended(g: Emitter, at_ms: int, *, signs: list[Ref]) -> None:
    """The leader's assignment came: Stable (propagateAssignment)."""
    view = g.view
    running = view.open
    assert running is not None
    at_ms = max(at_ms, running.joined_ms)  # the leader's SyncGroup may arrive in the millisecond before its JoinGroup's answer is logged
    running.ended_ms = at_ms
    running.outcome = COMPLETED
    running.evidence += signs
    view.state = State.STABLE
    view.open = None
    view.last_ok_ms = view.completed_ms = at_ms
    if running.count_after < 0:
        running.count_after = view.member_count
    view.closing.append(running)
    rebalance_rows.write_transitions(g, running)


def emptied(g: Emitter, at_ms: int, generation: int, *, signs: list[Ref]) -> None:
    """The last member departed: Empty, one generation further."""
    view = g.view
    running = view.open
    if running is None:
        running = open_rebalance(g, at_ms, exact=False, old_generation=generation - 1, signs=[])
    running.ended_ms = at_ms
    running.generation = generation
    view.make_generation(at_ms, generation)
    running.outcome = EMPTIED
    running.count_after = 0
    running.evidence += signs
    # Whoever the coordinator added in this millisecond was added to the empty group, and begins the next rebalance.
    since = [member_id for member_id, member in view.members.items() if member.joined_ms == at_ms] if view.logged else []
    if since:
        view.arrived = since
        running.added = [member_id for member_id in running.added if member_id not in since]
    for member_id in [m for m in view.members if m not in since]:  # the coordinator may log how they left only after this
        membership.lose(g, member_id, at_ms, reasons.GROUP_GONE, signs)
    view.state = State.EMPTY
    view.open = None
    view.stored, view.stored_generation = [], generation
    view.members_are_known()
    view.member_count = 0
    view.pending.clear()
    view.closing.append(running)
    rebalance_rows.write_transitions(g, running)


def abandon(g: Emitter, at_ms: int, signs: list[Ref] | None = None) -> None:
    """The rebalance ends without a result: the coordinator moved, the group was removed or converted, or the log has a hole."""
    running = g.view.open
    if running is None:
        return
    running.ended_ms = max(at_ms, running.started_ms)
    running.outcome = ABANDONED
    running.evidence += signs or []
    g.view.open = None
    g.view.closing.append(running)


def end_unseen(g: Emitter, rebalance: Rebalance, state: State) -> None:
    """Notes in which state the next line finds a group whose rebalance was abandoned, since the lines in between are missing."""
    rebalance.next_state = state.value
    rebalance_rows.write_transitions(g, rebalance)


def change_state(g: Emitter, at_ms: int, to: State, trigger: str, signs: list[Ref]) -> None:
    """A change of state outside a rebalance: the group was removed, or its coordinator moved."""
    view = g.view
    if view.state is to:
        return
    if view.state is not None:
        rebalance_rows.write_transition(g, at_ms, view.state, to, view.generation, trigger, signs)
    view.state = to


def prove(view: View, rebalance: Rebalance) -> None:
    """Takes it as shown that the assignment of a rebalance was stored: a coordinator that loads the group finds that generation."""
    if rebalance.outcome != COMPLETED or rebalance.proven:
        return
    rebalance.proven = True
    since = [m for m in view.gone if (ended := view.ended_membership(m)) is not None and ended.at_ms >= rebalance.ended_ms]
    view.stored = [*(m for m in view.members if m not in view.arrived), *since, *view.unnamed] if view.complete else None
    view.stored_generation = rebalance.generation


def read_back(g: Emitter, at_ms: int, signs: list[Ref]) -> None:
    """A coordinator loads the group. An assignment of which no line says that it was not stored was stored."""
    for rebalance in g.view.closing:
        prove(g.view, rebalance)
    membership.read_back(g, at_ms, signs)


def take_back(g: Emitter, generation: int) -> bool:
    """The assignment of this generation came, but was not stored: the group is still in CompletingRebalance. False: it is not known."""
    view = g.view
    done = view.closing[-1] if view.closing and view.open is None else None
    if done is not None and done.generation == generation and done.outcome == COMPLETED and not done.proven:
        view.closing.pop()
        done.outcome, done.ended_ms = "", -1
        view.open, view.state, view.completed_ms = done, State.COMPLETING_REBALANCE, done.joined_ms
    return view.open is not None and view.open.generation == generation


def not_stored(g: Emitter, trigger: RebalanceTrigger, generation: int) -> None:
    """An answer shows that the assignment of this generation was not stored (GroupCoordinator.doSyncGroup, classicGroupSync)."""
    if take_back(g, generation) and g.view.open is not None and g.view.open.joined_ms >= 0:
        open_rebalance(g, trigger.at_ms, exact=False, trigger=trigger, cause=trigger.cause, signs=[trigger.sign] if trigger.sign else [])


def _unproven(rebalance: Rebalance, now_ms: int) -> bool:
    """Whether a line may yet come that says that the assignment was not stored."""
    return rebalance.outcome == COMPLETED and not rebalance.proven and now_ms <= rebalance.ended_ms + STORED_WITHIN_MS


def _supersede(g: Emitter, running: Rebalance, at_ms: int) -> None:
    """A new rebalance begins before the assignment came. `at_ms`: when, -1 while that is not settled."""
    running.outcome = SUPERSEDED
    running.ended_ms = at_ms
    g.view.state = State.COMPLETING_REBALANCE
    g.view.closing.append(running)
    g.view.open = None


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes the rebalances whose last line has been read. `flush`: the input ended, nothing more will come.

    Of one that goes on, users want to know soon: what began it is decided when nothing more can be expected to show it.
    """
    view = g.view
    if view.open is not None and (flush or _undecided_until(view.open) < now_ms) and view.open.exact and view.open.cause:
        rebalance_rows.write_transitions(g, view.open, final=True)
    while view.closing:
        rebalance = view.closing[0]
        if rebalance.ended_ms < 0 and not _settle_end(g, rebalance, now_ms, flush=flush):
            return
        if any(not flush or wait == DEPARTURE for wait in waits(g, rebalance, now_ms)):
            return
        write_first(g)


def write_first(g: Emitter) -> None:
    """Writes the first of the rebalances that have ended."""
    rebalance = g.view.closing.pop(0)
    prove(g.view, rebalance)
    membership.give_up_lost(g, rebalance.ended_ms)
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
    end_with(g, rebalance, follower)
    return True


def end_with(g: Emitter, rebalance: Rebalance, follower: Rebalance) -> None:
    """Ends a superseded rebalance with the start of the one that follows it."""
    causes.settle_start(g, follower)
    rebalance.ended_ms = max(rebalance_rows.started_ms(follower), rebalance.joined_ms)


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
    open_until = _undecided_until(g.view.open) if g.view.open is not None else NEVER
    ends = [
        r.ended_ms + max(g.settings.settle_ms, STORED_WITHIN_MS if _unproven(r, r.ended_ms) else 0)
        for r in g.view.closing
        if r.ended_ms >= 0
    ]
    return min([*ends, open_until]) + 1 if ends or open_until < NEVER else NEVER
