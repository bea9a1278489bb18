"""Lets the specification handle every request that the broker handled, and compares their answers.

The specification is exact, a log is not. Its times are those of the network threads, in milliseconds; a broker's timers fire late;
answers that cross are logged in either order. So an answer counts as predicted if the specification gives it at any moment at which the
broker can have handled the request: between its arrival and its answer. The answers themselves show what only the broker knows: when
an initial delay ended (group.initial.rebalance.delay.ms is a setting), how many members it allows (group.max.size), and that a timer
was late.

Where the two still differ, the broker is right. The difference is reported if the broker's release is known, unless something that no
request shows explains it: a broker that stalled, or that may have handled requests long after they arrived, or a JoinGroup that was never
answered because its sender died. In any case the specification then waits for the end of the next rebalance, whose answers list every
member, and follows the group again from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from coordinator_model import events as kinds
from coordinator_model.diagnosis import divergences, incidents
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification import codec
from coordinator_model.specification.config import MAX_INT, CoordinatorConfig
from coordinator_model.specification.effects import MemberRemoved, Outcome, Transition
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.releases import is_known
from coordinator_model.specification.requests import Answer, JoinAnswer, Reply
from coordinator_model.specification.timers import INITIAL_DELAY_KEY, NEVER
from coordinator_model.states import State
from coordinator_model.tracker import comparison, hindsight, rebase
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import Prediction

LATE_MS: Final = 1_000
"""A broker's timers fire late by this much at most, unless the broker itself stalls."""

CROSSING_AT_MOST: Final = 16
STALL_MS: Final = 5_000
"""A broker whose log is silent for so long, with clients that heartbeat every 3 s, had stalled."""

_SIGNS_OF_LIFE: Final = frozenset({kinds.HEARTBEAT, kinds.OFFSET_COMMIT})
_NEVER_PARKED: Final = frozenset({kinds.HEARTBEAT, kinds.OFFSET_COMMIT, kinds.LEAVE_GROUP})
_CHANGING: Final = frozenset({kinds.JOIN_GROUP, kinds.SYNC_GROUP, kinds.LEAVE_GROUP, kinds.DELETE_GROUPS})


class Step(NamedTuple):
    """The request that the specification handled last, and the group as it was before."""

    event: Event
    now_ms: int
    ticket: int
    before: ClassicGroup
    parked: dict[int, Event]  # by ticket: requests without an answer by then
    following: Sequence[tuple[int, Event]]  # requests that were ready behind it
    crossing_ms: int  # those that arrived by then may have been handled before it


def observe(g: Emitter, event: Event) -> None:
    """Takes an answered request, which waits until the specification can handle it."""
    if event.kind in _NEVER_PARKED and event.at_ms - event.received_ms > hindsight.HANDLED_MS:
        g.view.prediction.held_ms = max(g.view.prediction.held_ms, event.at_ms)
    if comparison.concerns_group(event) and not (comparison.is_whole(event) and hindsight.enqueue(g.view.prediction, event)):
        drop(g, event.at_ms)


def drop(g: Emitter, at_ms: int) -> None:
    """Stops following the group until a rebalance has ended: something happened that no request shows."""
    g.view.prediction = Prediction(since_ms=at_ms, release=g.view.prediction.release)


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Lets the specification handle what has waited long enough. `flush`: the input ended, nothing more will come."""
    p = g.view.prediction
    ready = hindsight.take_ready(g, now_ms, flush=flush)
    for number, (arrival_ms, event) in enumerate(ready):
        if p.group is None:
            _begin(g, ready, number)
        if p.group is not None and _is_routine(p, p.group, event, arrival_ms):
            take_signs_of_life(p, p.group, [(event.member_id, arrival_ms)], 1)
        elif p.group is not None:
            handle(g, ready, number)
        if g.view.prediction is not p:  # the answers differ: the next beginning includes what waits
            return
    if ready and p.group is None:
        p.group = rebase.begun(g)
        if p.group is not None:
            p.queue.clear()
            p.based_ms = hindsight.step(now_ms)


def _begin(g: Emitter, ready: Sequence[tuple[int, Event]], number: int) -> None:
    """Follows a group from its first JoinGroup, if that leads to generation 1: then the group had no members before.

    The log must show all members of that generation, and how they got their ids.
    """
    p = g.view.prediction
    event = ready[number][1]
    first = p.generations.get(1)
    if p.since_ms >= 0 or event.kind != kinds.JOIN_GROUP or first is None or event.received_ms > first.joined_ms:
        return
    following = [e for _, e in ready[number:]]
    joins = [e for e in following if e.kind == kinds.JOIN_GROUP and e.error_code == Error.NONE and e.answer_generation == 1]
    listed = {m.member_id for e in joins for m in e.members}
    issued = {e.answer_member_id for e in following if e.error_code == Error.MEMBER_ID_REQUIRED or not e.member_id}
    if listed and listed == {e.answer_member_id for e in joins} and listed <= issued:
        p.group = ClassicGroup(g.view.group_id, rebase.rules(g.view), event.received_ms)
        p.born = True


def handle(g: Emitter, ready: Sequence[tuple[int, Event]], number: int) -> None:
    """Lets the specification handle request `number` of those that are ready, and compares what it answers."""
    p = g.view.prediction
    arrival_ms, event = ready[number]
    group = p.group
    assert group is not None
    if event.kind in _CHANGING and (event.received_ms < p.based_ms or arrival_ms < group.now_ms - hindsight.CROSSING_MS):
        drop(g, event.at_ms)  # it was parked, while the group seemed to be stable
        return
    if _has_unknown_id(g, group, event):
        return
    now_ms = max(arrival_ms, group.now_ms)
    due_ms = group.timers.next_due(now_ms)
    if now_ms - LATE_MS < due_ms < NEVER and _came_before(group, event, now_ms):
        now_ms = max(due_ms - 1, group.now_ms)
    if event.error_code == Error.GROUP_MAX_SIZE_REACHED and p.max_size == MAX_INT:
        p.max_size = len(group.awaiting_join if group.state is State.PREPARING_REBALANCE else group.members)
        group.config = replace(group.config, group_max_size=p.max_size)
    timers_due = due_ms <= now_ms
    if timers_due:
        p.crossed = [crossed for crossed in p.crossed if not _answers_after_timers(group, crossed, now_ms)]
    before = group.copy() if timers_due or event.kind in _CHANGING else group
    p.ticket += 1
    p.parked[p.ticket] = event
    parked = dict(p.parked) if before is not group else {p.ticket: event}
    handled_ms = min(event.at_ms, now_ms + hindsight.HANDLED_MS)
    crossing_ms = max(handled_ms, now_ms + hindsight.CROSSING_MS)
    step = Step(event, now_ms, p.ticket, before, parked, ready[number + 1 : number + 1 + CROSSING_AT_MOST], crossing_ms)
    outcome = group.handle(comparison.request_of(event), now_ms, p.ticket)
    p.handled_ms = now_ms
    _note_starts(p, outcome)
    if (before.state, before.generation) != (group.state, group.generation):
        p.earlier.append((now_ms + LATE_MS if timers_due else handled_ms + hindsight.ROUNDING_MS, before))
    p.earlier = [(until, old) for until, old in p.earlier if until >= now_ms]
    _learn_initial_delay(p, group)
    if any(not _agrees(g, reply, step) for reply in outcome.replies):
        return
    moved = before is not group  # a sign of life gives no other request another answer
    for crossed in list(p.crossed):
        if (moved or crossed is event) and _answers_so(group, crossed, now_ms):
            p.crossed.remove(crossed)
        elif now_ms > crossed.at_ms + hindsight.ROUNDING_MS:
            _differ(g, crossed, None, step)
            return
    overdue = next((parked for parked in p.parked.values() if now_ms > parked.at_ms + LATE_MS), None)
    if overdue is not None:
        _differ(g, overdue, None, step)
    elif group.state is State.DEAD:
        drop(g, event.at_ms)  # it was deleted: a new group of the same name starts afresh


def take_signs_of_life(p: Prediction, group: ClassicGroup, last: Sequence[tuple[str, int]], count: int) -> None:
    """Lets the specification handle many heartbeats and commits, which it accepts as the broker did: see `renew_sessions`."""
    group.renew_sessions(last)
    p.ticket += count
    p.handled_ms = group.now_ms
    p.earlier = [(until, old) for until, old in p.earlier if until >= p.handled_ms]


def _is_routine(p: Prediction, group: ClassicGroup, event: Event, arrival_ms: int) -> bool:
    """Whether a request is a sign of life that the specification accepts as the broker did, while no timer is due and nothing waits."""
    return (
        event.kind in _SIGNS_OF_LIFE
        and event.error_code == Error.NONE
        and group.state is State.STABLE
        and event.generation == group.generation
        and arrival_ms < group.timers.earliest
        and group.now_ms <= event.at_ms + LATE_MS
        and not p.crossed
        and not p.parked
        and group.validate_member(event.member_id, event.instance_id or None) is Error.NONE
        and group.version.one_session_timer_per_member
    )


def _has_unknown_id(g: Emitter, group: ClassicGroup, event: Event) -> bool:
    """Whether the broker accepted a member id that no JoinGroup and no list had: the line is damaged, or others are missing."""
    if event.kind == kinds.JOIN_GROUP or event.error_code not in (Error.NONE, Error.REBALANCE_IN_PROGRESS) or not event.member_id:
        return False
    known = event.member_id in group.members or event.member_id in group.pending_members
    return not known and all(old.member_id != event.member_id for old in g.view.ended)


def _note_starts(p: Prediction, outcome: Outcome) -> None:
    """Notes what rebalances start with, by the specification: a request log does not show it."""
    removed = ""
    for effect in outcome.effects:
        if isinstance(effect, MemberRemoved) and not effect.pending:
            removed = removed or effect.member_id
        elif isinstance(effect, Transition) and effect.to_state is State.PREPARING_REBALANCE:
            p.starts[effect.generation] = (effect.at_ms, effect.trigger.name, effect.member_id or removed)
            removed = ""
    while len(p.starts) > hindsight.GENERATIONS_KEPT:
        del p.starts[min(p.starts)]


def _crossing(p: Prediction, step: Step) -> list[Event]:
    """Requests that arrived so soon after one that they may have been handled before it."""
    soon = (*(event for _, event in step.following), *p.queue[:CROSSING_AT_MOST])
    return [event for event in soon if event.kind in _CHANGING and event.received_ms <= step.crossing_ms]


def _came_before(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    """Whether the answer shows that a timer which is due had not fired yet."""
    fired = group.copy()
    fired.advance(now_ms)
    if event.kind != kinds.JOIN_GROUP:
        return not _answers(fired, event, now_ms) and _answers(group.copy(), event, group.now_ms)
    known = event.member_id in group.members or event.member_id in group.pending_members
    removed = known and event.member_id not in fired.members and event.member_id not in fired.pending_members
    ended = group.state is State.PREPARING_REBALANCE and fired.generation > group.generation == event.answer_generation - 1
    return event.error_code == Error.NONE and (ended or removed)


def _answers(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    outcome = group.handle(comparison.request_of(event), now_ms, -1)
    return any(a.ticket == -1 and comparison.agrees(event, a.answer) for a in outcome.replies)


def _learn_initial_delay(p: Prediction, group: ClassicGroup) -> None:
    """Ends the initial delay when the broker ended it: its length is a setting of the broker."""
    made = p.generations.get(group.generation + 1)
    if made is not None and INITIAL_DELAY_KEY in group.timers.deadlines:
        group.timers.set(INITIAL_DELAY_KEY, max(made.joined_ms, group.now_ms))
        group.new_member_added = False
        group.initial_remaining_ms = 0


def _agrees(g: Emitter, reply: Reply, step: Step) -> bool:
    """Whether the broker gave this answer too, or can have handled the request a moment earlier or later."""
    p = g.view.prediction
    event = p.parked.pop(int(reply.ticket), None)
    if event is None or _same(event, reply) or _elected_otherwise(g, event, reply):
        return True
    if any(_answers_so(old, event, until) for until, old in reversed(p.earlier) if until >= event.received_ms):
        return True
    if event.kind in _CHANGING:
        _differ(g, event, reply.answer, step)
        return False
    p.crossed.append(event)
    return True


def _same(event: Event, reply: Reply) -> bool:
    """Whether it is the same answer at the same time: the line may be written long after the broker decided on the answer."""
    return comparison.agrees(event, reply.answer) and event.received_ms - LATE_MS <= reply.at_ms <= event.at_ms + LATE_MS


def _elected_otherwise(g: Emitter, event: Event, reply: Reply) -> bool:
    """Whether only the leader differs and a new one had to be elected: which member a hash map yields depends on the release."""
    p, answer = g.view.prediction, reply.answer
    group, last = p.group, p.generations.get(event.answer_generation - 1)
    if (is_known(g.view.release) and p.born) or group is None or last is None or not isinstance(answer, JoinAnswer):
        return False
    if answer.leader == last.leader or event.leader_id not in group.members:
        return False
    if not comparison.agrees(event._replace(leader_id=answer.leader, members=()), answer._replace(members=())):
        return False
    group.leader = event.leader_id
    return True


def _answers_so(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    """Whether this earlier or later state of the group gives the broker's answer."""
    if event.generation > group.generation:
        return False  # no client knows a generation before it is made
    other = group.copy()
    return _answers(other, event, min(now_ms, other.timers.next_due(now_ms) - 1))


def _answers_after_timers(group: ClassicGroup, event: Event, now_ms: int) -> bool:
    """Whether the group gives the broker's answer once the timers have fired that were due before that answer was logged.

    The line of a prompt heartbeat counts at its arrival, and was logged up to PROMPT_MS later.
    """
    is_prompt = event.kind == kinds.HEARTBEAT and event.at_ms == event.received_ms
    fired = group.copy()
    fired.advance(min(now_ms, event.at_ms + kinds.PROMPT_MS if is_prompt else event.at_ms))
    return _answers(fired, event, fired.now_ms)


def _differ(g: Emitter, event: Event, answer: Answer | None, step: Step) -> None:
    """Reports a difference unless it has a reason that no request shows. The broker is right in any case."""
    p = g.view.prediction
    stalled = g.clock.longest_silence_ms(event.received_ms - 2 * STALL_MS, event.at_ms) >= STALL_MS
    # The broker was down, or its clock was set forward: which sessions ended meanwhile shows later.
    stalled = stalled or g.clock.longest_silence_ms(event.received_ms - incidents.SPAN_MS, event.at_ms) > g.settings.max_silence_ms
    held_up = p.held_ms >= 0 and event.received_ms <= p.held_ms + incidents.SPAN_MS  # which sessions it renewed in time is not known
    release = "" if is_known(g.view.release) else _release_of(p, event, step)
    unseen = stalled or held_up or _request_is_missing(p, step.before) or _may_have_crossed(p, event, step)
    if is_known(g.view.release or p.release) and not release and not unseen:
        divergences.model_divergence(g, event, answer, step.before.version.name)
    drop(g, event.at_ms)
    g.view.prediction.release = release or p.release


def _release_of(p: Prediction, event: Event, step: Step) -> str:
    """The other release whose rules give the broker's answer; empty if there is none, or one was chosen before."""
    for release in rebase.RELEASES[1:] if not p.release else ():
        config = replace(CoordinatorConfig.of(release), group_max_size=p.max_size)
        group = codec.decode(codec.encode(step.before), config)
        outcome = group.handle(comparison.request_of(step.event), step.now_ms, step.ticket)
        if any(step.parked.get(int(a.ticket)) is event and comparison.agrees(event, a.answer) for a in outcome.replies):
            return release
    return ""


def _may_have_crossed(p: Prediction, event: Event, step: Step) -> bool:
    """Whether the broker's answer is right if one, or all, of the crossing requests were handled before the last one."""
    crossing = _crossing(p, step)
    for firsts in (*([first] for first in crossing), crossing):
        group, parked = step.before.copy(), dict(step.parked)
        answers = []
        for ticket, first in enumerate(firsts, -len(firsts)):
            parked[ticket] = first
            answers += group.handle(comparison.request_of(first), step.now_ms, ticket).replies
        answers += group.handle(comparison.request_of(step.event), step.now_ms, step.ticket).replies
        if any(parked.get(int(a.ticket)) is event and comparison.agrees(event, a.answer) for a in answers):
            return True
    return False


def _request_is_missing(p: Prediction, group: ClassicGroup) -> bool:
    """Whether a JoinGroup or SyncGroup is missing in the log: a request whose sender died is never answered.

    The answer to its leader lists the members of a generation. If one of them has no answer, or no answer has the list, then there were
    requests that the log does not show.
    """
    for made in (p.generations[n] for n in (group.generation, group.generation + 1) if n in p.generations):
        if made.listed is None or not {*made.answered, *p.refused}.issuperset(made.listed):
            return True
    return group.state is State.STABLE and bool(group.pending_sync_members)
