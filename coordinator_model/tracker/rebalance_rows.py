"""Rows of `rebalances` and `group_transitions`.

A coordinator's own line is exact, so its transition is written at once. From requests alone the start of a rebalance is known only in
hindsight, so its transitions are written together with its row.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from coordinator_model.diagnosis import bursts, causes, cost, joiners, margins
from coordinator_model.diagnosis.kinds import workers
from coordinator_model.states import State
from coordinator_model.tracker.hindsight import HANDLED_MS
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter, write_transition
from coordinator_model.view.members import worked_until_ms
from coordinator_model.view.outcomes import COMPLETED, EMPTIED
from coordinator_model.view.rebalance import Aftermath, Rebalance, RebalanceTrigger
from coordinator_model.view.rows import REBALANCES, evidence_json, or_none

GROUP_PROTOCOL: Final = "classic"
"""The value of `rebalances.group_protocol`."""
JOIN_PHASE_ENDED: Final = "JOIN_PHASE_ENDED"
ASSIGNMENT_RECEIVED: Final = "ASSIGNMENT_RECEIVED"
ALL_MEMBERS_GONE: Final = "ALL_MEMBERS_GONE"
LINES_MISSING: Final = "LINES_MISSING"
TOGETHER_MS: Final = 5
"""Of 84 pairs of first JoinGroups in recordings, only some that arrived within this time were handled in the other order."""
_REJOINS: Final = frozenset({reasons.LEADER_REJOINED, reasons.MEMBER_REJOINED, reasons.SUBSCRIPTION_CHANGED})


class Account(NamedTuple):
    """What the lines so far tell of a rebalance that has ended."""

    rebalance: Rebalance
    """With the start and the end that follow from all of them."""
    culprit: RebalanceTrigger
    awaited: joiners.Awaited | None
    price: cost.Cost
    aftermath: Aftermath


def account_of(g: Emitter, rebalance: Rebalance, before: Aftermath) -> Account:
    """What the lines so far tell. It changes nothing, so that a rebalance can be told while more lines are waited for.

    `before`: of the rebalance before.
    """
    rebalance = causes.with_start(g, rebalance)
    start_ms = min([started_ms(rebalance), *([rebalance.joined_ms] if rebalance.joined_ms >= 0 else [])])
    unknown = rebalance.owners_unknown or (before.owners_lost and rebalance.from_state is not State.EMPTY)
    rebalance = rebalance.changed(started_ms=start_ms, ended_ms=max(rebalance.ended_ms, start_ms))
    culprit = rebalance.decided or _decide(g, rebalance, before)
    rebalance = cost.with_unowned(rebalance.changed(decided=culprit, owners_unknown=unknown), before)
    unowned, revoked = cost.leaves_unowned(rebalance), causes.revoked(rebalance)
    config_offset = max(rebalance.config_offset, before.config_offset)
    wait = workers.wait_after(g, rebalance, unowned, culprit, before)
    changed_by = culprit.member_id if culprit.cause == reasons.CONNECTOR_CHANGED else ""
    aftermath = Aftermath(unowned, cost.leaves_unknown(rebalance), revoked, rebalance.ended_ms, config_offset, wait, changed_by)
    culprit = culprit.known_as(*g.view.identity(culprit.member_id))  # lines after the trigger may show who it is
    return Account(rebalance, culprit, joiners.awaited(g, rebalance), workers.price(rebalance, culprit), aftermath)


def write(g: Emitter, rebalance: Rebalance) -> None:
    """Writes a rebalance whose last line has been read, with what it means."""
    account = account_of(g, rebalance, g.view.aftermath)
    rebalance, culprit = account.rebalance, account.culprit
    write_transitions(g, rebalance, final=True)
    if (wait := g.view.aftermath.wait) is not None and account.aftermath.wait is None:
        workers.report(g, wait, rebalance)
    g.view.aftermath = account.aftermath
    if account.awaited is not None:
        joiners.report(g, rebalance, account.awaited)
    margins.check_assignment(g, rebalance)
    g.view.settle(rebalance)
    sign = culprit.sign or (rebalance.evidence[0] if rebalance.evidence else None)
    bursts.add(g, bursts.past_of(g, rebalance, culprit, sign, account.price))
    ended = [old for m in rebalance.moves.left() if (old := g.view.ended_membership(m)) is not None]
    stopped = {one.member_id: worked_until_ms(one.kind, one.at_ms, one.alive_ms, one.rebalance_timeout_ms) for one in ended}
    g.emit(REBALANCES, stopped, **columns(account))


def columns(account: Account) -> dict[str, Any]:
    """The row of `rebalances`."""
    rebalance, culprit, awaited, price, _ = account
    open_start = rebalance.bounded and not rebalance.exact
    # Else the log begins in its middle, or its first line is not understood.
    start_seen = not (open_start or _is_unheard(rebalance)) and (rebalance.exact or rebalance.settled or culprit.cause != reasons.UNKNOWN)
    joined_ms = or_none(rebalance.joined_ms)
    if (open_start and rebalance.generation < 0) or _join_phase_ended_unseen(rebalance):
        joined_ms = None  # a poll, or an assignment, shows the end of both phases at once
    first_fetch_ms, first_fetch_member_id = _last_to_start(rebalance)
    return dict(
        generation=or_none(rebalance.generation),
        started_at=rebalance.started_ms,
        joined_at=joined_ms,
        ended_at=rebalance.ended_ms,
        join_ms=joined_ms - rebalance.started_ms if joined_ms is not None and start_seen else None,
        sync_ms=rebalance.ended_ms - joined_ms if joined_ms is not None and rebalance.end_seen else None,
        total_ms=rebalance.ended_ms - rebalance.started_ms if (start_seen or open_start) and rebalance.end_seen else None,
        outcome=rebalance.outcome,
        **culprit.columns(),
        members_before=or_none(rebalance.count_before),
        members_after=or_none(rebalance.count_after),
        joined=sorted(rebalance.moves.joined()),
        left=sorted(rebalance.moves.left()),
        slowest_member_id=(awaited.slowest or None) if awaited is not None else None,
        leader_id=rebalance.leader_id or None,
        protocol=rebalance.protocol or None,
        partitions=price.partitions,
        partitions_moved=price.moved if rebalance.count_before >= 0 else None,  # else nobody knows who had them
        unavailable_partition_ms=price.unavailable_ms if rebalance.count_before >= 0 and not open_start and rebalance.end_seen else None,
        evidence=evidence_json([*rebalance.evidence, *([culprit.sign] if culprit.sign else [])]),
        assignment_ms=_assignment_ms(rebalance),
        first_fetch_ms=first_fetch_ms,
        first_fetch_member_id=first_fetch_member_id,
        joined_unnamed=rebalance.moves.unnamed,
        left_unnamed=rebalance.moves.missing,
        start_seen=start_seen,
        group_protocol=GROUP_PROTOCOL,
        first_epoch=None,
        rounds=None,
        end_seen=rebalance.end_seen,
        interval_wait_ms=None,
    )


def count_open(g: Emitter) -> None:
    """Counts a rebalance that runs: the input ends amid it, or it is part of a trouble that has to be told though it may never end."""
    running = g.view.open
    if running is not None and running.exact and running.cause:
        culprit = _decided(g, running)
        bursts.add(g, bursts.past_of(g, running, culprit, culprit.sign, cost.UNKNOWN))


def tell_who_waits(g: Emitter) -> None:
    """Tells of a scheduled delay of Connect that still runs when the input ends."""
    if (wait := g.view.aftermath.wait) is not None:
        g.view.aftermath.wait = None
        workers.report(g, wait, None)


def write_transitions(g: Emitter, rebalance: Rebalance, *, final: bool = False) -> None:
    """Writes the transitions that are certain: at once where the coordinator logged them and why, else when the rebalance is written.

    `final`: what has yet to be read does not count any more.
    """
    if not final and (
        not (rebalance.exact and rebalance.cause) or (rebalance.decided is None and causes.may_change(g, _culprit(rebalance)))
    ):
        return
    culprit, generation = _decided(g, rebalance), rebalance.generation
    preparing, completing = State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE
    steps = [(started_ms(rebalance), rebalance.from_state, preparing, rebalance.old_generation, culprit.cause)]
    if rebalance.joined_ms >= 0:
        steps.append((rebalance.joined_ms, preparing, completing, generation, JOIN_PHASE_ENDED))
    if rebalance.outcome == COMPLETED and rebalance.end_seen and (rebalance.proven or final):
        steps.append((rebalance.ended_ms, completing, State.STABLE, generation, ASSIGNMENT_RECEIVED))
    elif rebalance.outcome == EMPTIED:
        steps.append((rebalance.ended_ms, preparing, State.EMPTY, generation, ALL_MEMBERS_GONE))
    elif rebalance.next_state:
        made = generation if generation >= 0 else rebalance.old_generation + 1
        steps.append((rebalance.ended_ms, steps[-1][2], State(rebalance.next_state), made, LINES_MISSING))
    for number, step in enumerate(steps):
        if number >= rebalance.transitions_written:
            at_ms, old, new, generation, trigger = step
            client = culprit.columns() if number == 0 else None
            write_transition(g, at_ms, (old.value, new.value), generation, trigger, rebalance.evidence, client)
    rebalance.transitions_written = max(rebalance.transitions_written, len(steps))


def started_ms(rebalance: Rebalance) -> int:
    """When it started: the coordinator's own time, or the earliest trigger or sign of it.

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
    # A JoinGroup may have arrived before the last member was gone, and be handled only afterwards.
    return max(min(candidates), rebalance.floor_ms) if rebalance.from_state is State.EMPTY else min(candidates)


def given_partitions(rebalance: Rebalance) -> list[str]:
    """Members that got partitions which they had not kept: clients ask for the offsets of those."""
    return sorted(member_id for member_id in rebalance.assigned or () if is_given_partitions(rebalance, member_id))


def is_given_partitions(rebalance: Rebalance, member_id: str) -> bool:
    """Whether a member is one of them."""
    assigned = (rebalance.assigned or {}).get(member_id, ())
    return bool(set(assigned) - set(rebalance.kept.get(member_id, ())))


def _assignment_ms(rebalance: Rebalance) -> int | None:
    """How long the leader took from the answer to its JoinGroup to its SyncGroup; None where one of them is not logged."""
    if rebalance.leader_answered_ms < 0 or rebalance.leader_ready_ms < 0:
        return None
    return max(rebalance.leader_ready_ms - rebalance.leader_answered_ms, 0)  # an answer is logged after it was sent


def _last_to_start(rebalance: Rebalance) -> tuple[int, str] | tuple[None, None]:
    """How long the slowest member took from its assignment to its first OffsetFetch, and which member that is."""
    took = [(rebalance.fetched[m] - rebalance.synced[m], m) for m in given_partitions(rebalance) if m in rebalance.fetched]
    return max(took) if took else (None, None)


def _decided(g: Emitter, rebalance: Rebalance) -> RebalanceTrigger:
    """What began it. It is decided once: the transition, the rebalance and the end of the culprit's membership say the same."""
    if rebalance.decided is None:
        rebalance.decided = _decide(g, rebalance, g.view.aftermath)
    return rebalance.decided


def _decide(g: Emitter, rebalance: Rebalance, before: Aftermath) -> RebalanceTrigger:
    return causes.corrected(g, rebalance, _who_came_first(rebalance, _culprit(rebalance)), before)


def _culprit(rebalance: Rebalance) -> RebalanceTrigger:
    """The first trigger; the coordinator's own reason counts before anything inferred."""
    named = [t for t in rebalance.triggers if t.cause == rebalance.cause]
    if named:
        return next((t for t in reversed(named) if t.member_id == rebalance.named), named[-1])
    first = started_ms(rebalance)
    if rebalance.exact:
        return _without_reason(rebalance)
    triggers = [t for t in rebalance.triggers if not _was_called(rebalance, t)]
    early = [t for t in triggers if t.at_ms <= first or rebalance.first_sign_ms < 0 or t.at_ms <= rebalance.first_sign_ms]
    culprit = min(early, key=lambda t: (t.at_ms, t.cause, t.member_id), default=None)
    if culprit is None or (_is_unheard(rebalance) and culprit.cause != reasons.MEMBER_JOINED):
        return RebalanceTrigger(first, reasons.UNKNOWN)
    return culprit


def _who_came_first(rebalance: Rebalance, culprit: RebalanceTrigger) -> RebalanceTrigger:
    """The culprit, where only requests show that members joined: the one whose JoinGroup was handled first.

    The first member of a group leads it (ClassicGroup.add). Else nothing tells the order of those that arrived together: nobody is named.
    """
    if rebalance.exact or culprit.cause != reasons.MEMBER_JOINED:
        return culprit
    joined = {t.member_id: t for t in rebalance.triggers if t.cause == reasons.MEMBER_JOINED and t.member_id}
    led_by = rebalance.leader_id if rebalance.from_state is State.EMPTY else ""
    if led_by in joined:
        return joined[led_by]
    if led_by or any(m != culprit.member_id and abs(t.at_ms - culprit.at_ms) <= TOGETHER_MS for m, t in joined.items()):
        return RebalanceTrigger(culprit.at_ms, culprit.cause, sign=culprit.sign)
    return culprit


def _is_unheard(rebalance: Rebalance) -> bool:
    """Whether nothing shows when it began: the coordinator's line is missing, and there are no requests.

    A member that departed may have done so while it ran. Only of one that joined the coordinator says that it found the group at rest.
    """
    return rebalance.unannounced and not rebalance.exact and not rebalance.joins and rebalance.first_sign_ms < 0


def _was_called(rebalance: Rebalance, trigger: RebalanceTrigger) -> bool:
    """Whether a member only rejoined because an answer had told it that a rebalance runs. Arrivals are up to 1 ms early."""
    return trigger.cause in _REJOINS and 0 <= rebalance.called.get(trigger.member_id, -1) <= trigger.at_ms + 1


def _without_reason(rebalance: Rebalance) -> RebalanceTrigger:
    """What began a rebalance of which the coordinator logged when, and not why (Kafka 0.9 to 2.0).

    A request did so that arrived just before. Where several did, none is named, and there is a cause only if all of them have it.
    """
    at_ms = rebalance.started_ms
    near = [t for t in rebalance.triggers if at_ms - HANDLED_MS <= t.at_ms <= at_ms]
    if len({t.member_id for t in near}) == 1:
        return near[0]
    causes_seen = {t.cause for t in near}
    if not near and rebalance.from_state is State.EMPTY:
        causes_seen = {reasons.MEMBER_JOINED}  # nothing else begins a rebalance of an empty group
    return RebalanceTrigger(at_ms, causes_seen.pop() if len(causes_seen) == 1 else reasons.UNKNOWN)


def _join_phase_ended_unseen(rebalance: Rebalance) -> bool:
    """Whether only the assignment shows that the join phase had ended: the line that says so is before the log, or lost."""
    no_request = rebalance.leader_answered_ms < 0 and not rebalance.joins
    return rebalance.outcome == COMPLETED and rebalance.joined_ms == rebalance.ended_ms and not rebalance.exact and no_request
