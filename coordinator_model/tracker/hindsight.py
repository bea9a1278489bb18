"""Puts observed requests into the order in which they reached the group.

A request is logged when it is answered, so a parked JoinGroup is known only when its phase ends. Each request waits HINDSIGHT_MS after
its answer, and while a phase is open, until the phase ends. The specification then handles them in the order of their arrival.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import Generation, Prediction

HINDSIGHT_MS: Final = 5_000
"""Requests wait so long: the lines of others that the broker handled before may come later."""
CROSSING_MS: Final = 20
"""Requests that arrive within this time of each other may be handled in either order."""

ROUNDING_MS: Final = 2
"""By how much the time of an arrival may differ from that in the log: it is a line's time less a duration."""

HANDLED_MS: Final = 1_000
"""A coordinator handles a request within this time of its arrival. (478 ms were measured on a broker whose machine was busy.)"""

STEP_MS: Final = 2_000
"""Requests are taken at multiples of this time, however the events come in batches."""

CAPACITY: Final = 4_096
"""How many requests of one group may wait. A rebalance with more of them is not followed."""

GENERATIONS_KEPT: Final = 3
REFUSED_KEPT: Final = 32


def enqueue(p: Prediction, event: Event) -> bool:
    """Keeps an answered request until the specification can handle it. False: too many wait."""
    if _joined(event):
        _note_generation(p, event)
    elif event.kind == kinds.JOIN_GROUP and event.error_code != Error.MEMBER_ID_REQUIRED:
        p.refused.append(event.member_id)
        del p.refused[:-REFUSED_KEPT]
    p.queue.append(event)
    p.ripe_ms = min(p.ripe_ms, event.at_ms + HINDSIGHT_MS + 1)
    p.oldest_ms = min(p.oldest_ms, event.received_ms)
    if p.group is None and p.since_ms < 0 and (event.kind == kinds.JOIN_GROUP or 1 in p.generations):
        # Whether the group had no members before shows only in the answers of its first generation.
        p.ripe_ms = p.generations[1].joined_ms + HINDSIGHT_MS + 1 if 1 in p.generations else NEVER
    return len(p.queue) <= CAPACITY


def next_ms(g: Emitter) -> int:
    """When `take_ready` has something next, unless an event comes first; NEVER if only an event can change that."""
    p = g.view.prediction
    if not p.queue:
        return NEVER
    step_ms = step_from(p.ripe_ms)
    while p.oldest_ms >= _complete_until_ms(g, step_ms):
        answered = [r.joined_ms + HINDSIGHT_MS for r in g.view.unfinished() if r.joined_ms >= 0]  # by then the lines of the answers came
        later = [at_ms for at_ms in answered if at_ms >= step_ms]
        if not later:
            return NEVER
        step_ms = step_from(min(later) + 1)
    return step_ms


def step_from(at_ms: int) -> int:
    """The first time since then at which requests are taken."""
    return -(-at_ms // STEP_MS) * STEP_MS


def step(now_ms: int) -> int:
    """The last time up to now at which requests are taken."""
    return now_ms // STEP_MS * STEP_MS


def take_ready(g: Emitter, now_ms: int, *, flush: bool) -> list[tuple[int, Event]]:
    """Takes the requests that have waited long enough, each with its arrival at the group. `flush`: nothing more will come."""
    p = g.view.prediction
    step_ms = NEVER if flush else step(now_ms)
    if not p.queue or p.ripe_ms > step_ms:
        return []
    until = _complete_until_ms(g, step_ms)
    if p.oldest_ms >= until:
        return []
    queue = _in_order(p)
    count = 0
    for arrival_ms, event in queue:
        if arrival_ms >= until or event.at_ms + HINDSIGHT_MS >= step_ms:
            break
        count += 1
    keep(p, [event for _, event in queue[count:]])
    for arrival_ms, event in queue[count : count + 1]:  # the others wait behind it
        p.oldest_ms, p.ripe_ms = arrival_ms, event.at_ms + HINDSIGHT_MS + 1
    return queue[:count]


def keep(p: Prediction, queue: list[Event]) -> None:
    """Lets only these requests wait."""
    p.queue = queue
    p.ripe_ms = min((event.at_ms for event in queue), default=NEVER) + HINDSIGHT_MS + 1
    p.oldest_ms = min((event.received_ms for event in queue), default=NEVER)


def _note_generation(p: Prediction, event: Event) -> None:
    made = p.generations.get(event.answer_generation)
    if made is None or event.at_ms < made.joined_ms:
        made = p.generations.setdefault(event.answer_generation, Generation(event.at_ms, event.leader_id))
        made.joined_ms = min(made.joined_ms, event.at_ms)
        keep(p, p.queue)  # the order of arrival may change
    if event.answer_member_id not in made.answered:
        made.answered.append(event.answer_member_id)
    if event.members:
        made.listed = [m.member_id for m in event.members]
    while len(p.generations) > GENERATIONS_KEPT:
        del p.generations[min(p.generations)]


def _complete_until_ms(g: Emitter, now_ms: int) -> int:
    """The time from which on a request may be parked whose answer was not read yet.

    The end of a phase answers the requests that it parked; their lines may come until HINDSIGHT_MS later.
    """
    until = NEVER
    for r in g.view.unfinished():
        if r.joined_ms < 0 or now_ms <= r.joined_ms + HINDSIGHT_MS:
            until = min(until, r.started_ms if r.exact or r.triggers else r.floor_ms)
        elif r.ended_ms < 0 and not r.outcome:  # if it was superseded, the next one has its own limit
            until = min(until, r.joined_ms)
    return until


def _in_order(p: Prediction) -> list[tuple[int, Event]]:
    """The queue in the order of arrival at the group.

    Requests that arrive together are handled in any order, and the first of several new members becomes the leader: so the leader's
    JoinGroup was handled before those of the others.
    """
    answered = {event.connection: event.at_ms for event in p.queue if _joined(event)}
    queue = [(_arrival_ms(p, event, answered.get(event.connection, -1)), event) for event in p.queue]
    queue.sort(key=lambda a: (a[0], a[1].at_ms, a[1].connection, a[1].correlation_id, a[1].kind, a[1].member_id))
    for number, (arrival_ms, event) in enumerate(queue):
        if _joined(event) and event.answer_member_id == event.leader_id:
            first = number
            while first and queue[first - 1][0] >= arrival_ms - CROSSING_MS and _may_follow(queue[first - 1][1], event):
                first -= 1
            if first < number:
                queue[first : number + 1] = [(queue[first][0], event), *queue[first:number]]
    return queue


def _joined(event: Event) -> bool:
    return event.kind == kinds.JOIN_GROUP and event.error_code == Error.NONE


def _may_follow(other: Event, leader: Event) -> bool:
    """Whether the leader's JoinGroup may have been handled before this one: it is of another member, about another id."""
    if other.kind != kinds.JOIN_GROUP or (other.instance_id and other.instance_id == leader.instance_id):
        return False
    if _joined(other):
        return other.answer_generation == leader.answer_generation
    return other.answer_member_id != leader.member_id or not leader.member_id


def _arrival_ms(p: Prediction, event: Event, answered_ms: int) -> int:
    """When a request reached the group: not before the generation that its answer presumes.

    `answered_ms`: when the last JoinGroup of its connection was answered. A broker reads nothing from a connection before it has answered
    the last request (SocketServer.Processor.processCompletedReceives mutes the channel): who leaves in the millisecond of its answer has
    joined. Logged times are rounded.
    """
    if event.kind == kinds.LEAVE_GROUP and event.received_ms < answered_ms <= event.received_ms + ROUNDING_MS:
        return answered_ms
    if event.error_code not in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        return event.received_ms
    presumed = p.generations.get(event.answer_generation - 1 if event.kind == kinds.JOIN_GROUP else event.generation)
    return max(event.received_ms, min(presumed.joined_ms, event.at_ms) if presumed is not None else -1)
