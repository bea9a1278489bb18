"""Lets the specification handle the requests of a stretch as the broker did, and finds the first answer that differs.

What no request shows may lie between two of them: a topic changed, or a member was removed because it was silent. How the group is
afterwards shows that it happened, not when. So it is tried where the answers begin to differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.core import Operation
from coordinator_model.specification.consumer.effects import BumpCause, GroupEpochBumped, TargetComputed
from coordinator_model.specification.consumer.group import ConsumerGroup, ConsumerGroupAnswer, ConsumerGroupOutcome
from coordinator_model.specification.consumer.handlers.removal import fence_members
from coordinator_model.specification.consumer.topics import Topic, TopicImage
from coordinator_model.tracker.consumer import comparison

NO_TIMER_MS: Final = 1 << 50
UNIFORM_FIRST, RANGE_FIRST = ("uniform", "range"), ("range", "uniform")
COMPUTES, WAITS = (GroupOverrides(assignment_interval_ms=pause_ms) for pause_ms in (0, NO_TIMER_MS))
SHARES_AT_MOST: Final = 100_000
"""Shares of members that the specification computes for one stretch. A group that needs more of them is not compared then."""


REMOVALS: Final = frozenset({kinds.EXPIRED, kinds.STUCK})
RELOADS: Final = frozenset({kinds.READ_BACK, kinds.GIVEN_UP})
"""What lines of the coordinator tell."""
_NOT_IN_CHARGE: Final = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR})


def is_answer(event: Event) -> bool:
    """Whether an event is a request that the group answered; the others tell of removals and reloads."""
    return event.kind == kinds.CONSUMER_GROUP_HEARTBEAT and event.error_code not in _NOT_IN_CHARGE


@dataclass
class Unseen:
    """What may have happened between two requests, and before which of them it is taken to have happened."""

    topics: Mapping[str, Topic]  # as they are after the stretch
    gone: Sequence[str] = ()  # members that no request took away
    topics_at: int = -1  # -1: they did not change
    gone_at: int = -1
    range_first: bool = False


@dataclass
class Replayed:
    """How far the specification gave the broker's answers."""

    group: ConsumerGroup
    agreed: int = 0  # requests
    differs: int = -1  # the first whose answer differs, by its place; -1: none
    answer: ConsumerGroupAnswer | None = None  # the specification's to that one
    computed: bool = False  # a target was computed by then
    was_empty: bool = False  # the group had no members before that one
    timed_out: bool = False  # the specification removed a member because it gave nothing up
    unsure: bool = False  # whether a target was computed with a request, which decides about later ones
    reloaded: bool = False  # a coordinator read the group back: what was said of the order of its members no longer holds
    subscriptions: frozenset[frozenset[str]] = frozenset()  # of the members before the stretch


def settings(release: str) -> ConsumerGroupConfig:
    """The broker's settings that a request log does not show: sessions never end by themselves, since their length is unknown."""
    return replace(ConsumerGroupConfig.of(release), session_timeout_ms=NO_TIMER_MS, max_assignment_interval_ms=NO_TIMER_MS)


def replayed(group: ConsumerGroup, queue: Sequence[Event], unseen: Unseen, *, logged: bool) -> Replayed:
    """Handles the requests one after the other, until an answer differs. `logged`: the coordinator's log shows whom it removed."""
    group.config = replace(group.config, assignors=RANGE_FIRST if unseen.range_first else UNIFORM_FIRST)
    timeout_ms = NO_TIMER_MS if logged else None
    members = () if group.state is None else group.state.members.values()
    done, shares = Replayed(group, subscriptions=frozenset(frozenset(member.topics) for member in members)), 0
    for place, event in enumerate(queue):
        if place == unseen.gone_at:
            _remove(group, unseen.gone, event.at_ms)
        if place == unseen.topics_at:
            group.take_topics(group.image.changed(_changes(group.image, unseen.topics)))
        if not is_answer(event):
            if event.state in REMOVALS:
                _remove(group, [event.member_id], event.at_ms)
            else:
                done.reloaded = True
            continue
        done.was_empty = group.state is None or not group.state.members
        group, outcome, sure = _handled(group, event, timeout_ms)
        done.group, done.unsure = group, done.unsure or not sure
        for effect in outcome.effects:
            done.timed_out |= isinstance(effect, GroupEpochBumped) and effect.cause is BumpCause.REBALANCE_TIMEOUT
            if isinstance(effect, TargetComputed):
                done.computed = True
                shares += len(group.state.members) if group.state is not None else 0
        if outcome.answer is None or not comparison.agrees(event, outcome.answer):
            done.differs, done.answer = place, outcome.answer
            return done
        done.agreed += 1
        if shares > SHARES_AT_MOST:
            done.differs = place
            return done
    return done


def _handled(group: ConsumerGroup, event: Event, timeout_ms: int | None) -> tuple[ConsumerGroup, ConsumerGroupOutcome, bool]:
    """The group after a request, what it did, and whether it is sure that it computed a target then, or that it did not.

    The assignment interval is a setting that no request shows. So a target that waits is computed if that makes the answer the broker's.
    """
    request, at_ms = comparison.request_of(event, timeout_ms=timeout_ms), max(event.at_ms, group.now_ms)
    state = group.state
    if (
        not group.release.assignment_interval
        or state is None
        or not (state.group_epoch > state.target_epoch or comparison.asks_for_more(event))
    ):
        return group, group.handle(request, at_ms), True
    waits = group.copy()
    group.overrides, waits.overrides = COMPUTES, WAITS
    computed, waited = group.handle(request, at_ms), waits.handle(request, at_ms)
    agree = [one.answer is not None and comparison.agrees(event, one.answer) for one in (computed, waited)]
    same = all(agree) and not any(isinstance(effect, TargetComputed) for effect in computed.effects)
    return (waits, waited, same or not all(agree)) if agree[1] else (group, computed, True)


def image_of(topics: Mapping[str, Topic]) -> TopicImage:
    """The topics as a coordinator sees them."""
    return TopicImage(topics.values())


def _changes(image: TopicImage, topics: Mapping[str, Topic]) -> dict[str, Topic | None]:
    return {name: topics.get(name) for name in sorted({*image.names(), *topics}) if image.named(name) != topics.get(name)}


def _remove(group: ConsumerGroup, member_ids: Sequence[str], at_ms: int) -> None:
    """Removes members one after the other, as timers do."""
    group.advance(max(at_ms, group.now_ms))
    for member_id in member_ids:
        member = None if group.state is None else group.state.members.get(member_id)
        if group.state is not None and member is not None:
            operation = Operation()
            fence_members(group, group.state, [member], BumpCause.SESSION_EXPIRED, operation)
            group.write(operation)
