"""The phases of a rebalance, as far as they are seen: opened, joined, ended, superseded, emptied, abandoned.

Whichever evidence comes first moves the estimate; later evidence confirms or sharpens it. A coordinator's own line is
exact. From requests alone a start is known only in hindsight, so such a rebalance tells its transitions when it is
written, SETTLE after its end, when every answer that bears on it was read.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import bursts, causes, cost, departures, joiners, margins
from coordinator_model.states import State
from coordinator_model.tracker.membership import remove
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import GROUP_TRANSITIONS, REBALANCES, Ref, evidence_json
from coordinator_model.view.view import Rebalance, RebalanceTrigger

COMPLETED: Final = "COMPLETED"
SUPERSEDED: Final = "SUPERSEDED"
EMPTIED: Final = "EMPTIED"
ABANDONED: Final = "ABANDONED"

JOIN_PHASE_ENDED: Final = "JOIN_PHASE_ENDED"
ASSIGNMENT_RECEIVED: Final = "ASSIGNMENT_RECEIVED"
ALL_MEMBERS_GONE: Final = "ALL_MEMBERS_GONE"
GROUP_LOADED: Final = "GROUP_LOADED"
GROUP_REMOVED: Final = "GROUP_REMOVED"
OFFSETS_EXPIRED: Final = "OFFSETS_EXPIRED"

TRIGGERS_KEPT: Final = 32
LOOSE_KEPT: Final = 4_096  # of those that no rebalance has followed yet: all members of a large group may go at once
START_PATIENCE_MS: Final = 30_000
"""How long after its end a rebalance waits for members that do not ask for offsets yet, in a group where others do."""

_REMOVALS: Final = frozenset(
    {reasons.MEMBER_LEFT, reasons.POLL_TIMEOUT, reasons.ADMIN_REMOVED, reasons.SESSION_TIMEOUT, reasons.SYNC_TIMEOUT}
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
    """The group enters PreparingRebalance (ClassicGroup.transitionTo, prepareRebalance). `cause`: the coordinator's word."""
    view = g.view
    running = view.open
    if running is not None:
        if running.joined_ms >= 0:
            _supersede(g, running, at_ms if exact else -1)
        else:
            abandon(g, at_ms)
    from_state = view.state
    if from_state not in (State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE):
        # Dead groups start again as empty ones; where nothing told the state, only generation 0 proves that it was Empty.
        from_state = State.EMPTY if old_generation == 0 or from_state is State.DEAD else State.STABLE
    rebalance = Rebalance(
        at_ms,
        exact,
        from_state,
        old_generation if old_generation >= 0 else view.generation,
        cause=cause,
        named=trigger.member_id if trigger is not None else "",
        count_before=view.member_count,
        floor_ms=view.last_ok_ms,
        triggers=[t for t in view.unclaimed if t is not trigger],
        owned_before={p: m.member_id for m in view.members.values() for p in m.partitions or ()},
        evidence=list(signs),
    )
    if trigger is not None:
        rebalance.triggers.insert(0, trigger)
    departed = {t.member_id: t.at_ms for t in rebalance.triggers if t.cause in _REMOVALS and t.member_id not in view.members}
    for old in view.ended:
        if old.member_id in departed:
            rebalance.departed.append(old.member_id)
            rebalance.stopped[old.member_id] = departed[old.member_id]
            rebalance.owned_before.update(dict.fromkeys(old.partitions, old.member_id))
    rebalance.added = [m for m in view.arrived if m in view.members]
    if from_state is State.EMPTY:
        rebalance.count_before = 0
    elif view.complete:
        rebalance.count_before = len(view.members) - len(rebalance.added) + len(rebalance.departed)
    view.unclaimed, view.arrived = [], []
    view.open = rebalance
    view.state = State.PREPARING_REBALANCE
    tell(g, rebalance)
    return rebalance


def contradicted(g: Emitter, generation: int, at_ms: int) -> bool:
    """Whether an accepted heartbeat shows that there is no join phase: in one it would have been told to rejoin."""
    running = g.view.open
    return (
        running is not None
        and running.joined_ms < 0
        and not (running.exact or running.triggers)
        and 0 <= running.first_sign_ms < at_ms
        and generation == running.old_generation
    )


def retract(g: Emitter) -> None:
    """What looked like the sign of a join phase was none, as where the line that told it is damaged."""
    g.view.open = None
    g.view.state = State.STABLE


def add_trigger(g: Emitter, trigger: RebalanceTrigger) -> None:
    """Something that starts a rebalance: of the open one, or of the one that must follow."""
    view = g.view
    known = view.open.triggers if view.open is not None else view.unclaimed
    if not any(t.member_id == trigger.member_id and t.cause == trigger.cause and trigger.member_id for t in known):
        known.append(trigger)
        if view.open is None:
            del known[:-LOOSE_KEPT]
        else:
            del known[TRIGGERS_KEPT:-1]  # what began it came first


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
    running.generation = view.generation = generation
    running.exact = running.exact and exact
    running.evidence += signs
    running.vacant_ms = -1
    view.state = State.COMPLETING_REBALANCE
    view.unclaimed, view.arrived = [], []
    tell(g, running)
    return running


def ended(g: Emitter, at_ms: int, *, signs: list[Ref]) -> None:
    """The leader's assignment is in: Stable (propagateAssignment)."""
    view = g.view
    running = view.open
    assert running is not None
    running.ended_ms = at_ms
    running.outcome = COMPLETED
    running.evidence += signs
    view.state = State.STABLE
    view.open = None
    view.last_ok_ms = view.completed_ms = at_ms
    running.count_after = len(view.members) if running.listed else view.member_count
    view.closing.append(running)
    tell(g, running)


def emptied(g: Emitter, at_ms: int, generation: int, *, signs: list[Ref]) -> None:
    """Nobody is left: Empty, one generation further."""
    view = g.view
    running = view.open
    if running is None:
        running = open_rebalance(g, at_ms, exact=False, old_generation=generation - 1, signs=[])
    running.ended_ms = at_ms
    running.generation = view.generation = generation
    running.outcome = EMPTIED
    running.count_after = 0
    running.evidence += signs
    for member_id in list(view.members):
        remove(g, member_id, at_ms, reasons.GROUP_GONE, signs)
    view.state = State.EMPTY
    view.open = None
    view.complete = True
    view.member_count = 0
    view.pending.clear()
    view.closing.append(running)
    tell(g, running)


def abandon(g: Emitter, at_ms: int, signs: list[Ref] | None = None) -> None:
    """The rebalance ends without a result: its coordinator moved, the group was removed or converted, or the log has a hole."""
    running = g.view.open
    if running is None:
        return
    running.ended_ms = max(at_ms, running.started_ms)
    running.outcome = ABANDONED
    running.evidence += signs or []
    g.view.open = None
    g.view.closing.append(running)


def change_state(g: Emitter, at_ms: int, to: State, trigger: str, signs: list[Ref]) -> None:
    """A change of state outside a rebalance: the group was removed, or its coordinator moved."""
    view = g.view
    if view.state is to:
        return
    if view.state is not None:
        _transition(g, at_ms, view.state, to, view.generation, trigger, None, "", signs)
    view.state = to


def _supersede(g: Emitter, running: Rebalance, at_ms: int) -> None:
    """A new rebalance begins before the assignment came. `at_ms` is -1 while its start is not settled."""
    running.outcome = SUPERSEDED
    running.ended_ms = at_ms
    running.count_after = len(g.view.members) if running.listed else g.view.member_count
    g.view.state = State.COMPLETING_REBALANCE
    g.view.closing.append(running)
    g.view.open = None


def started_ms(rebalance: Rebalance) -> int:
    """When it started: the coordinator's own time, or the earliest of what was seen of it.

    An expiry is silent: its computed deadline counts no earlier than the last proof that the group was still stable.
    """
    if rebalance.exact or rebalance.settled:
        return rebalance.started_ms
    candidates = [rebalance.started_ms]
    if rebalance.first_sign_ms >= 0:
        candidates.append(rebalance.first_sign_ms)
    for trigger in rebalance.triggers:
        silent = trigger.cause in (reasons.SESSION_TIMEOUT, reasons.SYNC_TIMEOUT)
        candidates.append(max(trigger.at_ms, rebalance.floor_ms) if silent else trigger.at_ms)
    return min(candidates)


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes the rebalances whose last word has been read. `flush`: the input ended, nothing more will come."""
    view = g.view
    while view.closing:
        rebalance = view.closing[0]
        if rebalance.ended_ms < 0:  # superseded by one that has not told its start yet
            follower = view.closing[1] if len(view.closing) > 1 else None
            if follower is None or not (flush or follower.ended_ms + g.settings.settle_ms < now_ms):
                return
            rebalance.ended_ms = max(started_ms(follower), rebalance.joined_ms)
        elif not flush and rebalance.ended_ms + g.settings.settle_ms >= now_ms:
            return
        if not flush and _members_still_start(g, rebalance, now_ms):
            return
        if not flush and not rebalance.exact and causes.specification_is_behind(g, rebalance.ended_ms, now_ms):
            return
        if departures.blocks(g, {trigger.member_id for trigger in rebalance.triggers}):
            return
        view.closing.pop(0)
        _write(g, rebalance)


def _given(rebalance: Rebalance) -> list[str]:
    """Members that were given partitions which they had not kept: clients ask for the offsets of those."""
    return sorted(m for m, given in (rebalance.assigned or {}).items() if set(given) - set(rebalance.kept.get(m, ())))


def _members_still_start(g: Emitter, rebalance: Rebalance, now_ms: int) -> bool:
    """Whether a member that got partitions may yet be seen to begin with them. The next rebalance ends the wait."""
    view = g.view
    if not view.fetches or view.open is not None or len(view.closing) > 1 or rebalance.outcome != COMPLETED:
        return False
    waiting = [m for m in _given(rebalance) if m in rebalance.synced and m not in rebalance.fetched and m in view.members]
    return bool(waiting) and now_ms <= rebalance.ended_ms + START_PATIENCE_MS


def _last_to_start(rebalance: Rebalance) -> tuple[int, str] | None:
    """How long the slowest member took from its assignment to its first OffsetFetch, and which one it is."""
    took = [(rebalance.fetched[m] - rebalance.synced[m], m) for m in _given(rebalance) if m in rebalance.fetched]
    return max(took, default=None)


def next_close_ms(g: Emitter) -> int | None:
    """When close_due has work next, as far as known."""
    ends = [r.ended_ms for r in g.view.closing if r.ended_ms >= 0]
    return min(ends) + g.settings.settle_ms + 1 if ends else None


def _culprit(rebalance: Rebalance) -> RebalanceTrigger:
    """The first trigger; the coordinator's own reason counts before anything inferred."""
    named = [t for t in rebalance.triggers if t.cause == rebalance.cause]
    if named:
        return next((t for t in reversed(named) if t.member_id == rebalance.named), named[-1])
    first = started_ms(rebalance)
    early = [t for t in rebalance.triggers if t.at_ms <= first or rebalance.first_sign_ms < 0 or t.at_ms <= rebalance.first_sign_ms]
    if not early:
        return RebalanceTrigger(first, reasons.UNKNOWN)
    return min(early, key=lambda t: (t.at_ms, t.cause, t.member_id))


def _write(g: Emitter, rebalance: Rebalance) -> None:
    causes.settle_start(g, rebalance)
    rebalance.started_ms = started_ms(rebalance)
    if rebalance.joined_ms >= 0:
        rebalance.started_ms = min(rebalance.started_ms, rebalance.joined_ms)
    rebalance.ended_ms = max(rebalance.ended_ms, rebalance.started_ms)
    tell(g, rebalance, final=True)
    culprit = _culprit(rebalance)
    causes.correct(g, rebalance, culprit)
    slowest = joiners.slowest(g, rebalance)
    margins.check_assignment(g, rebalance)
    known = g.view.identity(culprit.member_id)  # who it is may have been told after what it did
    culprit.instance_id, culprit.client_id = known[0] or culprit.instance_id, known[1] or culprit.client_id
    culprit.client_host = known[2] or culprit.client_host
    open_start = rebalance.bounded and not rebalance.exact
    joined_ms = rebalance.joined_ms if rebalance.joined_ms >= 0 else None
    if open_start and rebalance.generation < 0:
        joined_ms = None  # a poll shows the end of both phases at once
    g.view.unowned = cost.carry(g.view.unowned, rebalance)
    moved = cost.of(rebalance)
    bursts.add(g, rebalance, culprit, culprit.sign or (rebalance.evidence[0] if rebalance.evidence else None), moved)
    assigned_in = (
        rebalance.leader_ready_ms - rebalance.leader_answered_ms if rebalance.leader_answered_ms >= 0 <= rebalance.leader_ready_ms else -1
    )
    start = _last_to_start(rebalance)
    g.emit(
        REBALANCES,
        generation=rebalance.generation if rebalance.generation >= 0 else None,
        started_at=rebalance.started_ms,
        joined_at=joined_ms,
        ended_at=rebalance.ended_ms,
        join_ms=joined_ms - rebalance.started_ms if joined_ms is not None and not open_start else None,
        sync_ms=rebalance.ended_ms - joined_ms if joined_ms is not None else None,
        total_ms=rebalance.ended_ms - rebalance.started_ms,
        outcome=rebalance.outcome,
        cause=culprit.cause,
        reason=culprit.reason or None,
        member_id=culprit.member_id or None,
        instance_id=culprit.instance_id or None,
        client_id=culprit.client_id or None,
        client_host=culprit.client_host or None,
        members_before=rebalance.count_before if rebalance.count_before >= 0 else None,
        members_after=rebalance.count_after if rebalance.count_after >= 0 else None,
        joined=sorted(rebalance.added),
        left=sorted(rebalance.departed),
        slowest_member_id=slowest or None,
        leader_id=rebalance.leader_id or None,
        protocol=rebalance.protocol or None,
        partitions=moved.partitions,
        partitions_moved=moved.moved,
        unavailable_partition_ms=moved.unavailable_ms if not open_start else None,
        evidence=evidence_json([*rebalance.evidence, *([culprit.sign] if culprit.sign else [])]),
        assignment_ms=assigned_in if assigned_in >= 0 else None,
        first_fetch_ms=start[0] if start is not None else None,
        first_fetch_member_id=start[1] if start is not None else None,
    )


def tell(g: Emitter, rebalance: Rebalance, *, final: bool = False) -> None:
    """Writes the transitions that are certain: at once where the coordinator gave them, else when the rebalance is written."""
    if not (rebalance.exact or final):
        return
    culprit = _culprit(rebalance)
    steps = [
        (
            started_ms(rebalance),
            rebalance.from_state,
            State.PREPARING_REBALANCE,
            rebalance.old_generation,
            culprit.cause,
        )
    ]
    if rebalance.joined_ms >= 0:
        steps.append(
            (
                rebalance.joined_ms,
                State.PREPARING_REBALANCE,
                State.COMPLETING_REBALANCE,
                rebalance.generation,
                JOIN_PHASE_ENDED,
            )
        )
    if rebalance.outcome == COMPLETED:
        steps.append((rebalance.ended_ms, State.COMPLETING_REBALANCE, State.STABLE, rebalance.generation, ASSIGNMENT_RECEIVED))
    elif rebalance.outcome == EMPTIED:
        steps.append((rebalance.ended_ms, State.PREPARING_REBALANCE, State.EMPTY, rebalance.generation, ALL_MEMBERS_GONE))
    for number, (at_ms, from_state, to_state, generation, trigger) in enumerate(steps):
        if number >= rebalance.transitions_written:
            who = culprit if number == 0 else None
            _transition(
                g,
                at_ms,
                from_state,
                to_state,
                generation,
                trigger,
                who,
                culprit.reason if who else "",
                rebalance.evidence,
            )
    rebalance.transitions_written = max(rebalance.transitions_written, len(steps))


def _transition(
    g: Emitter,
    at_ms: int,
    from_state: State,
    to_state: State,
    generation: int,
    trigger: str,
    who: RebalanceTrigger | None,
    reason: str,
    signs: list[Ref],
) -> None:
    g.emit(
        GROUP_TRANSITIONS,
        at=at_ms,
        from_state=from_state.value,
        to_state=to_state.value,
        generation=generation if generation >= 0 else None,
        trigger=trigger,
        member_id=(who.member_id or None) if who else None,
        client_id=(who.client_id or None) if who else None,
        client_host=(who.client_host or None) if who else None,
        reason=reason or None,
        evidence=evidence_json(signs),
    )
