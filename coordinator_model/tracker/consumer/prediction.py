"""Lets the specification handle every heartbeat that the broker handled in a consumer group, and compares their answers.

The coordinator knows what no request shows: the topics, when a session ends, its settings. How a group is once a rebalance has ended shows
most of that. So requests wait until then, and the specification handles the whole stretch at once (replay.py). While no rebalance runs, a
steady heartbeat changes nothing, and is compared as it comes.

Where an answer differs, the broker is right. The difference is reported unless the evidence leaves open what the answer should be. In any
case the specification then follows the group again from what its members have, once all of them are reconciled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker.consumer import comparison, images
from coordinator_model.tracker.consumer.replay import RELOADS, REMOVALS, image_of
from coordinator_model.tracker.consumer.settling import begin_again, remembered, settle, topics_of
from coordinator_model.tracker.consumer.undecided import EXPRESSIONS, NOT_FOLLOWED, SETTINGS, TOO_MANY, answers, count
from coordinator_model.tracker.hindsight import CAPACITY, HINDSIGHT_MS, ROUNDING_MS, step_from
from coordinator_model.view.consumer_view import ConsumerView, SettledGroup
from coordinator_model.view.emit import Emitter

_ENDS_AT_MOST: Final = 64
_OF_CLASSIC_MEMBERS: Final = frozenset({kinds.JOIN_GROUP, kinds.SYNC_GROUP, kinds.HEARTBEAT, kinds.LEAVE_GROUP})
_OF_COMMITS: Final = frozenset({kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT})
_CHANGES: Final = frozenset({*REMOVALS, *RELOADS})


def observe(view: ConsumerView, event: Event) -> None:
    """Takes an event of the group, before the view does."""
    p = view.prediction
    if view.episode is not None:
        p.busy_ms = event.at_ms
    if event.kind == kinds.CONSUMER_GROUP_HEARTBEAT:
        _take(view, event)
    elif event.kind == kinds.CONSUMER_GROUP_LOG and event.state in _CHANGES:
        _wait(view, event)
    elif event.kind in _OF_CLASSIC_MEMBERS and event.error_code in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        drop(view, NOT_FOLLOWED)
    elif event.state == kinds.REGEX_RESOLVED:
        drop(view, EXPRESSIONS)


def not_in_charge(view: ConsumerView, event: Event) -> None:
    """Takes an answer of a broker that does not coordinate the group, or not yet: a coordinator reads all that was stored of the group."""
    if event.kind in _OF_COMMITS:
        return
    if event.error_code == Error.COORDINATOR_NOT_AVAILABLE or (
        event.error_code == Error.NOT_COORDINATOR and comparison.asks_for_more(event)
    ):
        drop(view, NOT_FOLLOWED)  # whether it was stored before the coordinator went is not known
    else:
        _wait(view, event)


def note_reload(view: ConsumerView, event: Event) -> None:
    """Another broker coordinates the group from now on: it has read what was stored of it."""
    _wait(view, event._replace(kind=kinds.CONSUMER_GROUP_LOG, state=kinds.READ_BACK))


def note_end(view: ConsumerView, event: Event) -> None:
    """Keeps what the end of a rebalance shows, if an event was it. Is called after the view has taken the event."""
    p = view.prediction
    if view.episode is None and view.epoch != p.epoch and p.queue:
        p.epoch = view.epoch
        topics = images.learn(p, view) if images.is_settled(view) else None
        if topics is not None and len(p.settled) < _ENDS_AT_MOST:
            p.settled.append(SettledGroup(event.at_ms, sorted(view.members), remembered(view, image_of(topics))))


def _take(view: ConsumerView, event: Event) -> None:
    p = view.prediction
    if event.error_code in comparison.NOT_OF_THE_GROUP:
        return
    if event.subscribed_regex or event.error_code == Error.INVALID_REGULAR_EXPRESSION:
        drop(view, EXPRESSIONS)
        count(p, EXPRESSIONS, 1)
    elif event.error_code == Error.GROUP_MAX_SIZE_REACHED:
        count(p, SETTINGS, 1)
    elif event.error_code < 0:
        drop(view, NOT_FOLLOWED)
        count(p, NOT_FOLLOWED, 1)
    elif view.episode is None and _is_steady(view, event):
        take_steady(view, 1)
    else:
        _wait(view, event)
        _learn_names(view, event)


def _wait(view: ConsumerView, event: Event) -> None:
    view.prediction.queue.append(event)
    if len(view.prediction.queue) > CAPACITY:
        drop(view, TOO_MANY)


def _learn_names(view: ConsumerView, event: Event) -> None:
    """An answer assigns only topics that its member subscribes to."""
    member = view.members.get(event.member_id)
    names = topics_of(event) or (member.topics if member is not None else None)
    assigned = comparison.assigned_by(event)
    if names is not None and assigned:
        images.note(view.prediction, names, assigned)


def take_steady(view: ConsumerView, number: int) -> None:
    """Takes steady heartbeats of members while no rebalance runs: each has the epoch that its member has."""
    p = view.prediction
    if p.group:
        p.compared += number
    else:
        count(p, NOT_FOLLOWED, number)


def drop(view: ConsumerView, why: str) -> None:
    """Stops following the group until all members are reconciled: something happened that no request shows."""
    p = view.prediction
    count(p, why, answers(p.queue))
    p.lose_sight()
    p.queue, p.settled = [], []


def next_ms(g: Emitter) -> int:
    """When requests have waited long enough, unless an event comes first; NEVER if only an event can change that."""
    view = g.view.consumer
    if view is None or not view.prediction.queue or view.episode is not None:
        return NEVER
    p = view.prediction
    return step_from(max(p.queue[0].at_ms, p.busy_ms) + HINDSIGHT_MS + 1)


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Lets the specification handle what has waited long enough. `flush`: the input ended, nothing more will come."""
    view = g.view.consumer
    while view is not None and view.prediction.queue and (flush or next_ms(g) <= now_ms):
        p = view.prediction
        until = NEVER if flush else next_ms(g) - HINDSIGHT_MS
        ready = [event for event in p.queue if event.at_ms < until]
        p.queue = [event for event in p.queue if event.at_ms >= until]
        ends = [end for end in p.settled if end.at_ms < until]
        p.settled = [end for end in p.settled if end.at_ms >= until]
        ready = _in_order(ready)
        for end in (*ends, None):
            size = len(ready) if end is None else 1 + max((n for n, event in enumerate(ready) if event.at_ms <= end.at_ms), default=-1)
            if ready[:size]:
                settle(g, view, ready[:size], end, ready[size:])
            ready = ready[size:]
        if not p.group:
            begin_again(g, view)


def _is_steady(view: ConsumerView, event: Event) -> bool:
    """Whether a heartbeat says nothing new, and is answered as long as its member has all that it will get."""
    member = view.members.get(event.member_id)
    if member is None or event.instance_id not in ("", member.instance_id) or member.told_ms >= 0 or member.away_ms >= 0:
        return False
    if comparison.asks_for_more(event) or event.error_code != Error.NONE or event.assignments or event.heartbeat_interval_ms == 0:
        return False
    return event.generation == event.answer_generation == member.epoch == view.epoch


def _in_order(ready: Sequence[Event]) -> list[Event]:
    """Requests in the order in which the broker handled them: that of their lines, but of two that crossed the lower epoch comes first."""
    queue: list[Event] = []
    for event in ready:
        place = len(queue)
        while place and _goes_before(event, queue[place - 1]):
            place -= 1
        queue.insert(place, event)
    return queue


def _goes_before(event: Event, other: Event) -> bool:
    if any(one.error_code != Error.NONE or one.answer_generation <= max(one.generation, 0) for one in (event, other)):
        return False
    return event.received_ms <= other.at_ms + ROUNDING_MS and event.answer_generation < other.answer_generation
