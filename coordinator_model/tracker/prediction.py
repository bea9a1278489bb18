"""The specification beside the broker: every request is told to both, and their answers are compared.

The specification is exact, a log is not. Its times are those of the network threads, in milliseconds; a broker's timers
fire late; answers that cross are logged in either order. So an answer counts as predicted if the specification gives it
at any moment at which the request can have been handled: between its arrival and its answer. What the broker alone
knows is taken from it: when an initial delay ended (group.initial.rebalance.delay.ms is a setting), how many members it
allows (group.max.size), and that a timer was late, are read from the answers themselves.

Where the two still differ, the broker is right. The difference is told, unless something that no request shows explains
it: a broker that stalled, or a JoinGroup that was never answered, since its sender died. In any case the specification
then waits for the end of the next rebalance, whose answers name every member, and follows the group again from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from coordinator_model import events as kinds
from coordinator_model.diagnosis import divergences
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification import codec
from coordinator_model.specification.config import MAX_INT, CoordinatorConfig
from coordinator_model.specification.effects import MemberRemoved, Outcome, Transition
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.requests import Answer, JoinAnswer, Reply
from coordinator_model.specification.timers import INITIAL_DELAY_KEY, NEVER
from coordinator_model.states import State
from coordinator_model.tracker import comparison, hindsight, rebase
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import Prediction

LATE_MS: Final = 1_000
"""A broker's timers fire late by this much at most, unless the broker itself stalls."""

QUEUED_MS: Final = 100
"""A request that is parked had to wait for its handling by this much at most."""

ROUNDING_MS: Final = 2
CROSSING_AT_MOST: Final = 16
STALL_MS: Final = 5_000
"""A broker that writes no line for so long, among clients that heartbeat every 3 s, did nothing else either."""

_CHANGING: Final = frozenset({kinds.JOIN_GROUP, kinds.SYNC_GROUP, kinds.LEAVE_GROUP, kinds.DELETE_GROUPS})


class Step(NamedTuple):
    """What the specification was told last, and the group as it was before."""

    event: Event
    now_ms: int
    ticket: int
    before: ClassicGroup
    waiting: dict[int, Event]  # told and not answered by then, by ticket
    crossing: Sequence[Event]  # what came so soon after that it may have been handled before


def observe(g: Emitter, event: Event) -> None:
    """Takes an answered request, which waits until the specification can be told."""
    if comparison.concerns_group(event) and not hindsight.wait(g.view.prediction, event):
        drop(g, event.at_ms)


def drop(g: Emitter, at_ms: int) -> None:
    """Something happened that no request tells: follow the group again once a rebalance ended since."""
    g.view.prediction = Prediction(since_ms=at_ms, release=g.view.prediction.release)


def advance(g: Emitter, now_ms: int, clock: BrokerClock | None, *, flush: bool = False) -> None:
    """Tells the specification what has waited long enough. `flush`: the input ended, nothing more will come."""
    p = g.view.prediction
    told = hindsight.ready(g, now_ms, flush=flush)
    for number, (_, event) in enumerate(told):
        if p.group is None:
            _begin(g, event, [e for _, e in told[number:]])
        if p.group is not None:
            _tell(g, told, number, clock)
        if g.view.prediction is not p:  # they differ: what waits is part of what it begins from
            return
    if told and p.group is None:
        p.group = rebase.begun(g)
        if p.group is not None:
            p.queue.clear()
            p.based_ms = hindsight.step(now_ms)


def _begin(g: Emitter, event: Event, told: list[Event]) -> None:
    """A group that makes its first generation had no members before: it can be followed from its first JoinGroup.

    Provided that the log shows all of them, and how they came to their ids.
    """
    p = g.view.prediction
    first = p.generations.get(1)
    if p.since_ms >= 0 or event.kind != kinds.JOIN_GROUP or first is None or event.received_ms > first.joined_ms:
        return
    joins = [e for e in told if e.kind == kinds.JOIN_GROUP and e.error_code == Error.NONE and e.answer_generation == 1]
    listed = {m.member_id for e in joins for m in e.members}
    issued = {e.answer_member_id for e in told if e.error_code == Error.MEMBER_ID_REQUIRED or not e.member_id}
    if listed and listed == {e.answer_member_id for e in joins} and listed <= issued:
        p.group = ClassicGroup(g.view.group_id, rebase.rules(g.settings, p), event.received_ms)
        p.born = True


def _tell(g: Emitter, told: Sequence[tuple[int, Event]], number: int, clock: BrokerClock | None) -> None:
    p = g.view.prediction
    arrival_ms, event = told[number]
    group = p.group
    assert group is not None
    if event.kind in _CHANGING and (event.received_ms < p.based_ms or arrival_ms < group.now_ms - hindsight.CROSSING_MS):
        drop(g, event.at_ms)  # it was parked, unseen, while the group seemed to be stable
        return
    if _is_nobodys(g, group, event):
        return
    now_ms = max(arrival_ms, group.now_ms)
    due_ms = group.timers.next_due(now_ms)
    if now_ms - LATE_MS < due_ms < NEVER and _came_before(group, event, now_ms):
        now_ms = max(due_ms - 1, group.now_ms)
    if event.error_code == Error.GROUP_MAX_SIZE_REACHED and p.max_size == MAX_INT:
        p.max_size = len(group.awaiting_join if group.state is State.PREPARING_REBALANCE else group.members)
        group.config = replace(group.config, group_max_size=p.max_size)
    timers_due = due_ms <= now_ms
    before = group.copy() if timers_due or event.kind in _CHANGING else group
    p.ticket += 1
    p.parked[p.ticket] = event
    waiting = dict(p.parked) if before is not group else {p.ticket: event}
    step = Step(event, now_ms, p.ticket, before, waiting, _crossing(told, number, p.queue, now_ms + hindsight.CROSSING_MS))
    outcome = group.handle(comparison.request_of(event), now_ms, p.ticket)
    p.handled_ms = now_ms
    _note_starts(p, outcome)
    if (before.state, before.generation) != (group.state, group.generation):
        handled_ms = now_ms if timers_due else min(event.at_ms, now_ms + QUEUED_MS)
        p.earlier.append((handled_ms + (LATE_MS if timers_due else ROUNDING_MS), before))
    p.earlier = [(until, old) for until, old in p.earlier if until >= now_ms]
    _learn_initial_delay(p, group)
    if any(not _agreed(g, reply, step, clock) for reply in outcome.replies):
        return
    for crossed in list(p.crossed):
        if _otherwise(group, crossed, now_ms):
            p.crossed.remove(crossed)
        elif now_ms > crossed.at_ms + ROUNDING_MS:
            _differ(g, crossed, None, step, clock)
            return
    overdue = next((parked for parked in p.parked.values() if now_ms > parked.at_ms + LATE_MS), None)
    if overdue is not None:
        _differ(g, overdue, None, step, clock)
    elif group.state is State.DEAD:
        drop(g, event.at_ms)  # it was deleted: one of the same name has nothing of it


def _is_nobodys(g: Emitter, group: ClassicGroup, event: Event) -> bool:
    """Whether a member id was accepted that no JoinGroup and no list ever had: the line is damaged, or others are missing."""
    if event.kind == kinds.JOIN_GROUP or event.error_code not in (Error.NONE, Error.REBALANCE_IN_PROGRESS) or not event.member_id:
        return False
    known = event.member_id in group.members or event.member_id in group.pending_members
    return not known and all(old.member_id != event.member_id for old in g.view.ended)


def _note_starts(p: Prediction, outcome: Outcome) -> None:
    """What a rebalance starts with, by the specification: the one thing that a request log does not show."""
    removed = ""
    for effect in outcome.effects:
        if isinstance(effect, MemberRemoved) and not effect.pending:
            removed = removed or effect.member_id
        elif isinstance(effect, Transition) and effect.to_state is State.PREPARING_REBALANCE:
            p.starts[effect.generation] = (effect.at_ms, effect.trigger.name, effect.member_id or removed)
            removed = ""
    while len(p.starts) > hindsight.GENERATIONS_KEPT:
        del p.starts[min(p.starts)]


def _crossing(told: Sequence[tuple[int, Event]], number: int, asked_later: Sequence[Event], until_ms: int) -> list[Event]:
    soon = [event for _, event in told[number + 1 : number + 1 + CROSSING_AT_MOST]]
    return [event for event in (*soon, *asked_later[:CROSSING_AT_MOST]) if event.kind in _CHANGING and event.received_ms <= until_ms]


def _came_before(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    """Whether the answer shows that a timer which is due had not fired yet."""
    fired = group.copy()
    fired.advance(now_ms)
    if event.kind != kinds.JOIN_GROUP:
        return not _answers(fired, event, now_ms) and _answers(group.copy(), event, group.now_ms)
    known = event.member_id in group.members or event.member_id in group.pending_members
    gone = known and event.member_id not in fired.members and event.member_id not in fired.pending_members
    ended = group.state is State.PREPARING_REBALANCE and fired.generation > group.generation == event.answer_generation - 1
    return event.error_code == Error.NONE and (ended or gone)


def _answers(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    outcome = group.handle(comparison.request_of(event), now_ms, -1)
    return any(a.ticket == -1 and comparison.agrees(event, a.answer) for a in outcome.replies)


def _learn_initial_delay(p: Prediction, group: ClassicGroup) -> None:
    """The initial delay ends when the broker ended it: how long it is, is a setting of the broker."""
    made = p.generations.get(group.generation + 1)
    if made is not None and INITIAL_DELAY_KEY in group.timers.deadlines:
        group.timers.set(INITIAL_DELAY_KEY, max(made.joined_ms, group.now_ms))
        group.new_member_added = False
        group.initial_remaining_ms = 0


def _agreed(g: Emitter, reply: Reply, step: Step, clock: BrokerClock | None) -> bool:
    """Whether the broker gave this answer too, or may have handled the request a moment earlier or later."""
    p = g.view.prediction
    event = p.parked.pop(int(reply.ticket), None)
    if event is None or _same(event, reply) or _elected_otherwise(g, event, reply):
        return True
    if any(_otherwise(old, event, until) for until, old in reversed(p.earlier) if until >= event.received_ms):
        return True
    if event.kind in _CHANGING:
        _differ(g, event, reply.answer, step, clock)
        return False
    p.crossed.append(event)
    return True


def _same(event: Event, reply: Reply) -> bool:
    """The same answer at the same time: a log tells when it was written, which may be long after it was decided."""
    return comparison.agrees(event, reply.answer) and event.received_ms - LATE_MS <= reply.at_ms <= event.at_ms + LATE_MS


def _elected_otherwise(g: Emitter, event: Event, reply: Reply) -> bool:
    """Only the leader differs, and a new one had to be elected: whom a hash map yields depends on the release."""
    p, answer = g.view.prediction, reply.answer
    group, last = p.group, p.generations.get(event.answer_generation - 1)
    if (g.settings.kafka_version and p.born) or group is None or last is None or not isinstance(answer, JoinAnswer):
        return False
    if answer.leader == last.leader or event.leader_id not in group.members:
        return False
    if not comparison.agrees(event._replace(leader_id=answer.leader, members=()), answer._replace(members=())):
        return False
    group.leader = event.leader_id
    return True


def _otherwise(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    """Whether the group, as it was or has become, gives the broker's answer."""
    if event.generation > group.generation:
        return False  # nobody knows a generation before it is made
    other = group.copy()
    return _answers(other, event, min(now_ms, other.timers.next_due(now_ms) - 1))


def _differ(g: Emitter, event: Event, answer: Answer | None, step: Step, clock: BrokerClock | None) -> None:
    """The broker is right; what it did is told unless it has a reason that no request shows."""
    p = g.view.prediction
    stalled = clock is not None and clock.longest_silence_ms(event.received_ms - 2 * STALL_MS, event.at_ms) >= STALL_MS
    release = "" if g.settings.kafka_version else _release_of(p, event, step)
    if not (stalled or release or _request_is_missing(p, step.before) or _crossed(event, step)):
        divergences.model_divergence(g, event, answer, step.before.version.name)
    drop(g, event.at_ms)
    g.view.prediction.release = release or p.release


def _release_of(p: Prediction, event: Event, step: Step) -> str:
    """The other release by whose rules the broker's answer is right; empty if there is none, or one was chosen before."""
    for release in rebase.RELEASES[1:] if not p.release else ():
        config = replace(CoordinatorConfig.of(release), group_max_size=p.max_size)
        group = codec.decode(codec.encode(step.before), config)
        outcome = group.handle(comparison.request_of(step.event), step.now_ms, step.ticket)
        if any(step.waiting.get(int(a.ticket)) is event and comparison.agrees(event, a.answer) for a in outcome.replies):
            return release
    return ""


def _crossed(event: Event, step: Step) -> bool:
    """Whether the broker's answer is right if one, or all, of the requests that came together went before the one told last."""
    for firsts in (*((first,) for first in step.crossing), step.crossing):
        group, waiting = step.before.copy(), dict(step.waiting)
        answers = []
        for ticket, first in enumerate(firsts, -len(firsts)):
            waiting[ticket] = first
            answers += group.handle(comparison.request_of(first), step.now_ms, ticket).replies
        answers += group.handle(comparison.request_of(step.event), step.now_ms, step.ticket).replies
        if any(waiting.get(int(a.ticket)) is event and comparison.agrees(event, a.answer) for a in answers):
            return True
    return False


def _request_is_missing(p: Prediction, group: ClassicGroup) -> bool:
    """Whether a JoinGroup or SyncGroup was sent that the log does not show: one whose sender died is never answered.

    A generation lists its members to its leader. If one of them was not answered, or nobody was told the list, then
    there were other requests than the log shows.
    """
    for made in (p.generations[n] for n in (group.generation, group.generation + 1) if n in p.generations):
        if made.listed is None or not {*made.answered, *p.refused}.issuperset(made.listed):
            return True
    return group.state is State.STABLE and bool(group.pending_sync_members)
