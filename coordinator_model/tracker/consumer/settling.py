"""Compares the answers of a stretch of requests after which no rebalance runs, and follows the group on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator_model.diagnosis import divergences
from coordinator_model.errors import Error, ServerError
from coordinator_model.events import Event
from coordinator_model.specification.consumer.codec import decode_consumer_group, encode_consumer_group
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.core import REFRESH_NEVER_MS
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.handlers.records_of import subscription_record
from coordinator_model.specification.consumer.member import JOIN_EPOCH, NO_PARTITIONS, ConsumerGroupMember, MemberState, in_order
from coordinator_model.specification.consumer.records import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    MetadataHash,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeatAnswer
from coordinator_model.specification.consumer.subscriptions import metadata_hash
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from coordinator_model.tracker.consumer import comparison, images
from coordinator_model.tracker.consumer.comparison import partitions_of
from coordinator_model.tracker.consumer.replay import Replayed, Unseen, image_of, is_answer, replayed, settings
from coordinator_model.tracker.consumer.undecided import NOT_FOLLOWED, Stretch, answers, count, undecided
from coordinator_model.view import rules
from coordinator_model.view.consumer_view import ConsumerPrediction, ConsumerView, SettledGroup, TopicSize
from coordinator_model.view.emit import Emitter


def settle(g: Emitter, view: ConsumerView, ready: Sequence[Event], end: SettledGroup | None, later: Sequence[Event]) -> None:
    """Compares the answers of a stretch. `end`: what is known of the group after it; `later`: the requests that follow."""
    p = view.prediction
    if not p.group:
        first = next((place for place, event in enumerate(ready) if rules.founds(g, view, event) and _is_first(ready[place:])), None)
        count(p, NOT_FOLLOWED, answers(ready[:first]))
        if first is None:
            return
        p.born, p.topics, ready = True, {}, ready[first:]
    now = None if end is None else images.renamed(p, _existing(end.topics))
    known = images.renamed(p, _existing(p.topics), now or {})
    founder = {} if p.group else images.renamed(p, _shown_by(p, ready[0]), now or {})
    asked = frozenset(p.topics) if p.group else frozenset(topics_of(ready[0]) or ())
    before = {name: topic for name, topic in (now or {}).items() if name not in asked} | known | founder
    after = {name: topic for name, topic in before.items() if end is None or name not in end.topics} | (now or {})
    first_choice, *others = rules.candidates(g, view)
    done, unseen = _fitted(g, p, first_choice, ready, end, before, after)
    for release in others if done.differs >= 0 else ():
        other = _fitted(g, p, release, ready, end, before, after)
        if other[0].differs < 0:
            done, unseen = other
            break
    p.compared += done.agreed
    if done.differs >= 0 and rules.founds(g, view, ready[done.differs]) and done.was_empty and (p.group or done.differs):
        p.lose_sight()  # it was deleted meanwhile: this is a new group of the same name
        settle(g, view, ready[done.differs :], end, later)
        return
    if done.differs < 0 and _waits(done.group):
        p.lose_sight()
        return
    if done.differs < 0:
        p.group, p.range_first = encode_consumer_group(done.group), unseen.range_first
        p.born = p.born and not done.reloaded and unseen.gone_at < 0
        image = done.group.image
        p.topics = dict.fromkeys(p.topics if end is None else end.topics, (0, 0, 0))
        p.topics |= {name: (*topic.topic_id, topic.partitions) for name in image.names() if (topic := image.named(name)) is not None}
        return
    subscriptions = {*done.subscriptions, *(frozenset(protocol.topics or ()) for event in ready for protocol in event.protocols)}
    certain = end is not None and before == after and frozenset().union(*subscriptions) <= asked & end.topics.keys()
    certain = certain and not images.tells_apart(p, after.values(), subscriptions)
    event = ready[done.differs]
    why = undecided(g, view, Stretch(ready, later), done, unseen, topics_known=bool(certain))
    if not why and isinstance(done.answer, ConsumerGroupHeartbeatAnswer):
        divergences.consumer_divergence(g, event, done.answer, done.group.release.name)
        p.compared += 1
        count(p, NOT_FOLLOWED, answers(ready[done.differs + 1 :]))
    else:
        count(p, why or NOT_FOLLOWED, answers(ready[done.differs :]))
    p.lose_sight()


def begin_again(g: Emitter, view: ConsumerView) -> None:
    """Follows the group from what its members have, if that is known of all of them."""
    p = view.prediction
    topics = images.learn(p, view) if view.episode is None and not view.changes and images.is_settled(view) else None
    if topics is None or not view.members:
        return
    image = image_of(topics)
    group = _rebuilt(g.view.group_id, view, image, settings(rules.candidates(g, view)[0]))
    if group is None:
        return
    count(p, NOT_FOLLOWED, answers(p.queue))
    p.based_ms = max([-1, *(member.heard_ms for member in view.members.values()), *(event.at_ms for event in p.queue)])
    p.queue, p.settled, p.epoch = [], [], view.epoch
    p.topics = remembered(view, image)
    p.group = encode_consumer_group(group)


def _rebuilt(group_id: str, view: ConsumerView, image: TopicImage, config: ConsumerGroupConfig) -> ConsumerGroup | None:
    """A group whose members are all reconciled. What their epochs were before is not known.

    None: two members have the same partition, since the line in which one of them gave it up is missing.
    """
    at_ms = max((member.heard_ms for member in view.members.values()), default=0)
    group = ConsumerGroup(group_id, config, at_ms, image=image)
    names = {name for member in view.members.values() for name in member.topics or ()}
    records: list[LogRecord] = [ConsumerGroupMetadata(view.epoch, metadata_hash(names, image))]
    for member in view.members.values():
        assigned = partitions_of(member.partitions or ()) or NO_PARTITIONS
        said = ConsumerGroupMember(member.member_id, instance_id=member.instance_id or None, topics=member.topics or ())
        records += [
            subscription_record(said._replace(rebalance_timeout_ms=member.rebalance_timeout_ms)),
            TargetAssignmentMember(member.member_id, in_order(assigned)),
            CurrentMemberAssignment(member.member_id, view.epoch, view.epoch - 1, MemberState.STABLE, assigned, NO_PARTITIONS),
        ]
    try:
        group.load([*records, TargetAssignmentMetadata(view.epoch, at_ms)])
    except ServerError:
        return None
    assert group.state is not None
    group.state.refresh_at_ms, group.state.refresh_epoch = at_ms + REFRESH_NEVER_MS, view.epoch
    return group


def remembered(view: ConsumerView, image: TopicImage) -> dict[str, TopicSize]:
    """The topics that members subscribe to."""
    names = {name for member in view.members.values() for name in member.topics or ()}
    topics = {name: image.named(name) for name in sorted(names)}
    return {name: (0, 0, 0) if topic is None else (*topic.topic_id, topic.partitions) for name, topic in topics.items()}


def topics_of(event: Event) -> tuple[str, ...] | None:
    """The topics that a request subscribes to, by name; None if it does not say."""
    return next((protocol.topics for protocol in event.protocols), None)


def _fitted(
    g: Emitter,
    p: ConsumerPrediction,
    release: str,
    ready: Sequence[Event],
    end: SettledGroup | None,
    before: dict[str, Topic],
    after: dict[str, Topic],
) -> tuple[Replayed, Unseen]:
    """The stretch with what no request shows, where that makes the answers those of the broker."""
    unseen = Unseen(after, range_first=p.range_first)
    done = _replayed(g, p, release, ready, before, unseen)
    while True:  # it ends: each turn decides one of three things, and none of them twice
        if done.differs < 0 or done.answer is None or comparison.is_right_in_no_state(ready[done.differs], done.answer):
            return done, unseen
        if unseen.gone_at < 0 and unseen.topics_at < 0 and comparison.is_epoch_too_low(ready[done.differs], done.answer):
            return done, unseen
        gone = _vanished(end, done.group, ready[done.differs :]) if unseen.gone_at < 0 and not g.view.logged else []
        if gone:
            unseen.gone, unseen.gone_at = gone, done.differs
        elif unseen.topics_at < 0 and before != after:
            unseen.topics_at = done.differs
        elif done.computed and not unseen.range_first and p.born:
            ranged = replace(unseen, range_first=True)
            other = _replayed(g, p, release, ready, before, ranged)
            if 0 <= other.differs <= done.differs:
                return done, unseen
            done, unseen = other, ranged
            continue
        else:
            return done, unseen
        done = _replayed(g, p, release, ready, before, unseen)


def _is_first(since: Sequence[Event]) -> bool:
    """Whether nobody was a member before the first of these requests.

    Since 4.3 a static member that comes back gets the first target, too, while the next one waits.
    """
    accepted = [event for event in since if is_answer(event) and event.error_code == Error.NONE]
    joined: set[str] = set()
    for event in accepted:
        joined |= {event.answer_member_id} if event.generation == JOIN_EPOCH else set()
        if event.generation != JOIN_EPOCH and event.member_id not in joined:
            return False
    return True


def _waits(group: ConsumerGroup) -> bool:
    """Whether an epoch has no target yet, though the group is at rest: what raised it depends on a setting, or it was not raised."""
    return group.release.assignment_interval and group.state is not None and group.state.group_epoch > group.state.target_epoch


def _replayed(
    g: Emitter, p: ConsumerPrediction, release: str, ready: Sequence[Event], topics: dict[str, Topic], unseen: Unseen
) -> Replayed:
    config, image = settings(release), image_of(topics)
    if p.group:
        group = decode_consumer_group(p.group, config, image)
        if group.state is not None:
            group.state.metadata_hash = _rehashed(group.state.metadata_hash, image)
    else:
        group = ConsumerGroup(g.view.group_id, config, ready[0].received_ms, image=image)
    return replayed(group, ready, unseen, logged=g.view.logged)


def _rehashed(known: MetadataHash, image: TopicImage) -> MetadataHash:
    """What the group knew of its topics, by the names that became known later."""
    topics = [(image.with_id(TopicId(high, low)), name, high, low, count) for name, high, low, count in known]
    return tuple(sorted((name if topic is None else topic.name, high, low, count) for topic, name, high, low, count in topics))


def _vanished(end: SettledGroup | None, group: ConsumerGroup, left: Sequence[Event]) -> list[str]:
    """Members of the specification's group that are gone after the stretch though no request took them away, silent from here on."""
    if end is None or group.state is None:
        return []
    heard = {*end.members, *(event.answer_member_id or event.member_id for event in left if event.error_code == Error.NONE)}
    return [member_id for member_id in group.state.members if member_id not in heard]


def _existing(topics: Mapping[str, TopicSize]) -> dict[str, Topic]:
    return {name: Topic(name, TopicId(*halves), count) for name, (*halves, count) in topics.items() if count}


def _shown_by(p: ConsumerPrediction, founder: Event) -> dict[str, Topic]:
    """The topics that the first member of a group subscribes to: it has all of their partitions."""
    return images.of_one_member(p, topics_of(founder) or (), comparison.assigned_by(founder) or ())
