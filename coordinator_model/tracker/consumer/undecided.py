"""Why the answer to a heartbeat of a consumer group is not compared: what the evidence leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeatAnswer
from coordinator_model.tracker.consumer import comparison
from coordinator_model.tracker.consumer.replay import Replayed, Unseen, is_answer
from coordinator_model.tracker.hindsight import ROUNDING_MS
from coordinator_model.view import rules
from coordinator_model.view.consumer_view import ConsumerPrediction, ConsumerView
from coordinator_model.view.emit import Emitter

NOT_FOLLOWED: Final = "the state of the group is not known"
EXPRESSIONS: Final = "the topics of regular expressions are not known"
CROSSED: Final = "requests crossed"
TOPICS: Final = "the topics are not known"
EXPIRY: Final = "a member may have been removed"
ORDER: Final = "the order of the members in the coordinator's memory is not known"
RELEASE: Final = "the release of the broker is not known"
TOO_MANY: Final = "too many requests wait"
SETTINGS: Final = "a setting of the broker decides"

_OF_THE_GONE: Final = frozenset({Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND})
"""Answers to a member that was removed."""
_SHORTEST_SESSION_MS: Final = 5_000
"""A session is longer than the heartbeat interval, whose default this is."""


class Stretch(NamedTuple):
    """Requests that the specification handles at once, and those that follow."""

    ready: Sequence[Event]
    later: Sequence[Event]


def undecided(g: Emitter, view: ConsumerView, stretch: Stretch, done: Replayed, unseen: Unseen, *, topics_known: bool) -> str:
    """Why the evidence does not decide what the first answer that differs should be; empty if it does."""
    p, event, answer = view.prediction, stretch.ready[done.differs], done.answer
    others = [*stretch.ready[: done.differs], *stretch.ready[done.differs + 1 :], *stretch.later, *p.queue]
    epoch_before = not p.born and 0 < event.generation < view.epoch  # whether a member had that epoch
    removable = not g.view.logged and _may_be_gone(view, done.group, stretch.ready, done.differs)
    both_accept = event.error_code == Error.NONE and answer is not None and answer.error is Error.NONE
    ahead = isinstance(answer, ConsumerGroupHeartbeatAnswer) and event.answer_generation > answer.epoch
    release = g.view.release
    reasons = (
        (TOO_MANY, answer is None),
        (RELEASE, len(rules.candidates(g, view)) > 1),
        (SETTINGS, done.unsure),
        (CROSSED, event.received_ms <= p.based_ms or _crosses(event, others)),
        (NOT_FOLLOWED, epoch_before or (done.was_empty and event.error_code == Error.GROUP_ID_NOT_FOUND)),
        (EXPIRY, done.timed_out and not g.view.logged),  # the broker removed the member a moment sooner or later
        ("", answer is not None and comparison.is_right_in_no_state(event, answer)),
        (EXPIRY, unseen.gone_at >= 0),
        (TOPICS, unseen.topics_at >= 0),
        ("", answer is not None and comparison.is_epoch_too_low(event, answer)),
        (EXPIRY, removable and (both_accept or event.error_code in _OF_THE_GONE or event.error_code == Error.NONE)),
        (EXPIRY, not both_accept and not (g.view.logged or p.born)),  # who is a member was concluded from silence
        ("", not both_accept),
        (TOPICS, ahead or not topics_known),
        (ORDER, done.computed and (not p.born or done.reloaded)),
        (RELEASE, done.computed and not rules.has_known_assignors(release)),
    )
    return next((why for why, holds in reasons if holds), "")


def _may_be_gone(view: ConsumerView, group: ConsumerGroup, ready: Sequence[Event], place: int) -> bool:
    """Whether a member of the group may have been removed by then: it was not heard for longer than it ever paused."""
    at_ms, last = ready[place].received_ms, {}
    for event in ready[:place]:
        if event.error_code == Error.NONE:
            last[event.answer_member_id or event.member_id] = event.at_ms
    for member_id in () if group.state is None else group.state.members:
        member = view.members.get(member_id)
        heard_ms = max(last.get(member_id, -1), member.heard_ms if member is not None and member.heard_ms < at_ms else -1)
        if member is None or at_ms - heard_ms > _SHORTEST_SESSION_MS:
            return True
    return False


def _crosses(event: Event, others: Sequence[Event]) -> bool:
    """Whether the broker may have handled another request before this one, or after it, than the lines say."""
    begin, end = event.received_ms - ROUNDING_MS, event.at_ms + ROUNDING_MS
    return any(one is not event and one.received_ms <= end and one.at_ms >= begin and _moves_members(one) for one in others)


def _moves_members(event: Event) -> bool:
    moves = event.generation != event.answer_generation or event.generation < 0
    return event.error_code == Error.NONE and (moves or bool(event.assignments))


def answers(events: Sequence[Event]) -> int:
    """How many requests are among events."""
    return sum(is_answer(event) for event in events)


def count(p: ConsumerPrediction, why: str, number: int) -> None:
    """Notes that so many answers were not compared."""
    if number:
        p.undecided[why] = p.undecided.get(why, 0) + number
