"""The phases of a rebalance, as far as the logs show them: opened, joined, ended, superseded, emptied, abandoned.

The first evidence moves the estimate, later evidence confirms or corrects it. Where lines are missing, a later one that names the state of
the group shows what it had come to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.states import State
from coordinator_model.tracker import membership, rebalance_rows
from coordinator_model.tracker.hindsight import HANDLED_MS
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter, write_transition
from coordinator_model.view.outcomes import ABANDONED, COMPLETED, EMPTIED, SUPERSEDED
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import Ref
from coordinator_model.view.view import View

GROUP_LOADED: Final = "GROUP_LOADED"
GROUP_REMOVED: Final = "GROUP_REMOVED"
OFFSETS_EXPIRED: Final = "OFFSETS_EXPIRED"
LINES_MISSING: Final = rebalance_rows.LINES_MISSING

TRIGGERS_KEPT: Final = 32
UNCLAIMED_KEPT: Final = 4_096  # triggers without a rebalance yet: all members of a large group may depart at once
ASSIGNED_WITHIN_MS: Final = 10_000
"""How long leaders take to compute an assignment, and a good deal more."""
_REMOVALS: Final = frozenset(
    {reasons.MEMBER_LEFT, reasons.ADMIN_REMOVED, reasons.POLL_TIMEOUT, reasons.SESSION_TIMEOUT, reasons.SYNC_TIMEOUT}
)


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
            _supersede(g, running, at_ms if exact else -1, since_ms=at_ms)
        else:
            running.end_seen = False
            abandon(g, -1)
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
        floor_ms=max([view.last_ok_ms, *(r.ended_ms if r.outcome == EMPTIED else r.joined_ms for r in view.closing[-1:])]),
        triggers=[t for t in view.unclaimed if t is not trigger],
        evidence=list(signs),
    )
    if trigger is not None:
        rebalance.triggers.insert(0, trigger)
    view.begin(rebalance)
    _note_owners(view, rebalance)
    view.open = rebalance
    view.state = State.PREPARING_REBALANCE
    rebalance_rows.write_transitions(g, rebalance)
    return rebalance


def _note_owners(view: View, rebalance: Rebalance) -> None:
    """Notes who owned which partitions before a rebalance."""
    owners = {member.member_id: member.owned_since(view.assigned_ms) for member in view.members.values()}
    gone = [ended for member_id in rebalance.moves.left() if (ended := view.ended_membership(member_id)) is not None]
    owners |= {member.member_id: member.owned_since(view.assigned_ms) for member in gone}
    rebalance.owned_before = {p: member_id for member_id, partitions in owners.items() for p in partitions or ()}
    rebalance.owners_unknown = view.converted_ms > view.completed_ms or (  # consumer groups name partitions otherwise
        rebalance.from_state is not State.EMPTY and not (view.complete and None not in owners.values())
    )


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
    if running is not None and (0 <= running.joined_ms < trigger.at_ms or view.moves.has_left(trigger.member_id)):
        running = None  # after the join phase it begins the next one
    running = next((r for r in view.unfinished() if r.moves.has_left(trigger.member_id)), running)
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
    elif running is not None and 0 <= running.old_generation < generation - 1:
        running = None  # it made another generation, of which lines are missing
    if running is None:
        running = open_rebalance(g, at_ms, exact=False, old_generation=generation - 1, signs=[])
        running.unannounced = view.logged
    running.joined_ms = at_ms
    running.generation = generation
    view.make_generation(at_ms, generation)
    running.exact = running.exact and exact
    running.note(*signs)
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
    _close(view, running, at_ms, COMPLETED, signs)
    view.state = State.STABLE
    view.last_ok_ms = view.completed_ms = at_ms
    rebalance_rows.write_transitions(g, running)


def _close(view: View, running: Rebalance, at_ms: int, outcome: str, signs: Iterable[Ref] = ()) -> None:
    """The rebalance has ended. Its row is written later (closing.py)."""
    running.ended_ms, running.outcome = at_ms, outcome
    running.note(*signs)
    view.open = None
    view.closing.append(running)


def emptied(g: Emitter, at_ms: int, generation: int, *, signs: list[Ref]) -> None:
    """The last member departed: Empty, one generation further. Only a join phase ends so (onCompleteJoin); its line may be lost."""
    view = g.view
    running = view.open
    if running is None or (running.joined_ms >= 0 and running.generation < generation):
        running = open_rebalance(g, at_ms, exact=False, old_generation=generation - 1, signs=[])
        running.unannounced = view.logged
    running.generation = generation
    view.make_generation(at_ms, generation)
    # Whoever the coordinator added in this millisecond or since was added to the empty group, and begins the next rebalance.
    since = [member_id for member_id, member in view.members.items() if member.joined_ms >= at_ms] if view.logged else []
    for member_id in [m for m in view.members if m not in since]:  # the coordinator may log how they left only after this
        kind = named_end(running) if member_id == running.named else ""
        membership.lose(g, member_id, at_ms, kind or reasons.UNKNOWN, signs)
    view.state = State.EMPTY
    view.empty(running, at_ms, since)
    _close(view, running, at_ms, EMPTIED, signs)
    rebalance_rows.write_transitions(g, running)


def _may_have_ended(running: Rebalance, at_ms: int) -> bool:
    """Whether the line of the assignment may be missing: long after the join phase nothing shows that members still wait for it."""
    return 0 <= running.joined_ms < at_ms - ASSIGNED_WITHIN_MS and not (running.joins or running.waits)


def named_end(rebalance: Rebalance) -> str:
    """How the membership ended whose end began a rebalance, by the coordinator's reason; empty if something else began it."""
    return reasons.end_of(rebalance.cause) if rebalance.exact and rebalance.cause in _REMOVALS else ""


def abandon(g: Emitter, at_ms: int, signs: list[Ref] | None = None) -> None:
    """The rebalance ends without a result: the coordinator moved, the group was removed or converted, or the log has a hole."""
    view, running = g.view, g.view.open
    if running is None:
        return
    if running.joined_ms < 0 and view.logged and view.complete and view.size() == len(view.moves.left()) == 0:
        _end_between(g, running, State.EMPTY)
        return
    if _may_have_ended(running, at_ms):
        running.end_seen, at_ms = False, running.joined_ms
        view.store(None)
    _close(view, running, max(at_ms, running.started_ms, running.joined_ms), ABANDONED, signs or ())


def found_in(g: Emitter, at_ms: int, state: State) -> None:
    """Takes the state in which a line says that it found the group. A rebalance that cannot be running then has ended before."""
    running, g.view.named = g.view.open, None
    handled_ms = 0 if running is None or running.exact else HANDLED_MS  # a request may show a rebalance before the coordinator's lines do
    if running is not None and state is State.COMPLETING_REBALANCE:
        running.waits = True
    elif running is not None and running.started_ms + handled_ms < at_ms:
        _end_between(g, running, state)


def _end_between(g: Emitter, running: Rebalance, state: State) -> None:
    """Ends the rebalance with its last line: it ended in this state before the next one."""
    view = g.view
    running.end_seen = False
    if state is State.EMPTY and running.joined_ms < 0:
        emptied(g, max([running.started_ms, *(old.at_ms for old in view.ended)]), running.old_generation + 1, signs=[])
        return
    abandon(g, running.joined_ms)
    if running.joined_ms >= 0 and state is State.STABLE:
        running.outcome = COMPLETED
        prove(view, running)
        view.completed_ms = running.ended_ms
    end_unseen(g, running, state)
    view.state = state


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
        write_transition(g, at_ms, (view.state.value, to.value), view.generation, trigger, signs)
    view.state = to


def prove(view: View, rebalance: Rebalance) -> None:
    """Takes it as shown that the assignment of a rebalance was stored: a coordinator that loads the group finds that generation."""
    if rebalance.outcome != COMPLETED or rebalance.proven:
        return
    rebalance.proven = True
    view.assigned_ms = rebalance.ended_ms
    view.store(rebalance)


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


def loaded(g: Emitter, at_ms: int, signs: list[Ref], *, populated: bool) -> None:
    """A coordinator has loaded the group: it is Stable if it has members, else Empty. Of a group that was never seen neither is known."""
    if populated or g.view.complete:
        change_state(g, at_ms, State.STABLE if populated else State.EMPTY, GROUP_LOADED, signs)
    else:
        g.view.state = None


def _supersede(g: Emitter, running: Rebalance, at_ms: int, since_ms: int) -> None:
    """A new rebalance begins before the assignment came. `at_ms`: when, -1 while that is not settled."""
    running.end_seen = not _may_have_ended(running, since_ms)
    ended_ms, outcome = (at_ms, SUPERSEDED) if running.end_seen else (running.joined_ms, ABANDONED)
    _close(g.view, running, ended_ms, outcome)
    g.view.state = State.COMPLETING_REBALANCE
