"""What assignments show of the topics: a coordinator knows them, a request log names neither their ids nor how many partitions they have.

A group whose members are all reconciled has every partition of every topic that somebody subscribes to. So the partitions that its members
have are the topics, as far as they matter. Which name an id has follows from who is assigned it: the name is one of those that all of
them subscribe to. Names that no subscription tells apart may be exchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from coordinator_model.specification.consumer.topics import Topic, TopicId
from coordinator_model.specification.hash_maps import capacity_of_copy, hash_set
from coordinator_model.tracker.consumer.comparison import partitions_of
from coordinator_model.view.consumer_view import ConsumerPrediction, ConsumerView


def is_settled(view: ConsumerView) -> bool:
    """Whether all members are known, and have all that they will get."""
    return view.complete and all(
        member.partitions is not None and not member.classic and member.told_ms < 0 and member.away_ms < 0 and member.epoch == view.epoch
        for member in view.members.values()
    )


def learn(p: ConsumerPrediction, view: ConsumerView) -> dict[str, Topic] | None:
    """The topics of a settled group, by name; None if they cannot be told. What it shows of names is kept for the next time."""
    present: dict[TopicId, set[int]] = {}
    for member in view.members.values():
        own = None if member.topics is None or member.regex else note(p, member.topics, member.partitions or ())
        if own is None:
            return None
        for topic_id, numbers in own.items():
            present.setdefault(topic_id, set()).update(numbers)
    return _topics(p, present)


def of_one_member(p: ConsumerPrediction, names: Collection[str], partitions: Collection[str]) -> dict[str, Topic]:
    """The topics of a group with one member, which has all of their partitions. Nothing if they cannot be told."""
    own = note(p, names, partitions) or {}
    return _topics(p, {topic_id: set(numbers) for topic_id, numbers in own.items()}) or {}


def note(p: ConsumerPrediction, names: Collection[str], partitions: Collection[str]) -> Mapping[TopicId, frozenset[int]] | None:
    """Notes which names topics may have, as a member with this subscription is assigned them. Returns its partitions; None: unreadable."""
    assigned = partitions_of(partitions)
    for topic_id in assigned or {}:
        p.names[_text(topic_id)] = tuple(name for name in p.names.get(_text(topic_id), sorted(names)) if name in names)
    return assigned


def _topics(p: ConsumerPrediction, present: Mapping[TopicId, set[int]]) -> dict[str, Topic] | None:
    known = p.topics | (p.settled[-1].topics if p.settled else {})
    sizes = {TopicId(*halves): count for *halves, count in (*p.topics.values(), *known.values())}
    if any(numbers != set(range(max(len(numbers), sizes.get(own, 0)))) for own, numbers in present.items()):
        return None  # a partition of it belongs to a member that is not known
    so_far = {TopicId(*halves): name for name, (*halves, count) in known.items() if count}
    named = _named({topic_id: p.names[_text(topic_id)] for topic_id in present}, so_far)
    if named is None:
        return None
    return {name: Topic(name, topic_id, len(present[topic_id])) for topic_id, name in named.items()}


def renamed(p: ConsumerPrediction, topics: Mapping[str, Topic], present: Mapping[str, Topic] | None = None) -> dict[str, Topic]:
    """Topics by the names that they have by what is known now. Those that are also `present` have their names there."""
    names = {topic.topic_id: name for name, topic in (present or {}).items()}
    so_far = {topic.topic_id: names.get(topic.topic_id, name) for name, topic in topics.items()}
    candidates = {own: (names[own],) if own in names else p.names.get(_text(own), (name,)) for own, name in so_far.items()}
    named = _named(candidates, so_far)
    found = [topic._replace(name=(named or so_far)[topic.topic_id]) for topic in topics.values()]
    return {topic.name: topic for topic in found}


def tells_apart(p: ConsumerPrediction, topics: Iterable[Topic], subscriptions: Collection[frozenset[str]]) -> bool:
    """Whether something depends on which of several names a topic has: what is known of the topics is not enough.

    That is one of the subscriptions, or the order of topics whose ids fall into one bucket of a hash map: the first one put in is first.
    """
    found = list(topics)
    choices = [frozenset(p.names.get(_text(topic.topic_id), ())) for topic in found]
    taken = frozenset(name for names in choices if len(names) == 1 for name in names)
    open_names = [names - taken for names in choices if len(names) > 1]
    unnamed = [topic.topic_id for topic, names in zip(found, choices, strict=True) if len(names - taken) > 1]
    buckets = max([16, *(capacity_of_copy(len(own)) for own in subscriptions)])
    if list(hash_set(unnamed, buckets)) != list(hash_set(unnamed[::-1], buckets)):
        return True
    return any(not (names <= own or names.isdisjoint(own)) for names in open_names if len(names) > 1 for own in subscriptions)


def _named(candidates: Mapping[TopicId, Collection[str]], so_far: Mapping[TopicId, str]) -> dict[TopicId, str] | None:
    """A name for each id: the one it had so far, if it may have it, then those with the fewest choices first; None if one has none left."""
    names = {own: name for own, name in so_far.items() if name in candidates.get(own, ())}
    left = {own: choices for own, choices in candidates.items() if own not in names}
    while left:
        free = {own: [name for name in choices if name not in names.values()] for own, choices in left.items()}
        own = min(left, key=lambda one: (len(free[one]), one))
        if not free[own]:
            return None
        names[own] = min(free[own])
        del left[own]
    return names


def _text(topic_id: TopicId) -> str:
    return f"{topic_id.most_significant} {topic_id.least_significant}"
