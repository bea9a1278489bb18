"""The `uniform` assignor for members with different subscriptions. Kafka: `UniformHeterogeneousAssignmentBuilder`.

Members keep what they have. What nobody has goes to the subscribers with the least, topic by topic; then partitions move from the
subscribers of a topic that have the most to those that have the least.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.specification.consumer.assignors.group_spec import GroupSpec, Share
from coordinator_model.specification.consumer.member import OrderedPartitions
from coordinator_model.specification.consumer.topics import TopicId

NOBODY: Final = -1
MOST_ROUNDS: Final = 16
"""`MAX_ITERATION_COUNT`."""


def assign_evenly(spec: GroupSpec) -> dict[str, OrderedPartitions]:
    """The share of each member."""
    assignment = _HeterogeneousAssignment(spec)
    return assignment.shares() if assignment.subscribers else {}


class _Levels:
    """The subscribers of one topic by their load (`MemberAssignmentBalancer`).

    `least` goes through the members with the lowest load again and again; those of the next load join them after each pass, when the
    others have caught up. `most` does the same from the other end.
    """

    high_load: int
    """The load of the members that `most` goes through, from its first call on."""

    def __init__(self, members: list[int], loads: list[int]) -> None:
        self.loads = loads
        self.members = sorted(members, key=lambda member: (loads[member], member))
        self.low_load = loads[self.members[0]] - 1
        self.low_end = 0
        self.next_low = 0
        self.high_start = self.high_end = len(self.members)
        self.next_high = len(self.members) - 1

    @property
    def balanced(self) -> bool:
        """Whether no two loads differ by more than one."""
        return self.high_load - self.low_load <= 1

    def least(self) -> int:
        """The next member of the least loaded ones."""
        if self.next_low >= self.low_end:
            self.low_load += 1
            while self.low_end < len(self.members) and self.loads[self.members[self.low_end]] == self.low_load:
                self.low_end += 1
            self.next_low = 0
        self.next_low += 1
        return self.members[self.next_low - 1]

    def most(self) -> int | None:
        """The next member of the most loaded ones; None: all are left out."""
        if self.next_high < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                self.high_load = self.loads[self.members[self.high_start - 1]]
            else:
                self.high_load -= 1
            while self.high_start > 0 and self.loads[self.members[self.high_start - 1]] == self.high_load:
                self.high_start -= 1
            self.next_high = self.high_end - 1
        if self.next_high < 0:
            return None
        self.next_high -= 1
        return self.members[self.next_high + 1]

    def leave_out(self) -> None:
        """The member that `most` just gave has nothing to give (`excludeMostLoadedMember`)."""
        at, last = self.next_high + 1, self.high_end - 1
        self.members[at], self.members[last] = self.members[last], self.members[at]
        self.high_end = last


class _HeterogeneousAssignment:
    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.ids = list(spec.members)
        self.loads = [0] * len(self.ids)
        self.subscribers: dict[TopicId, list[int]] = {}
        for member, member_id in enumerate(self.ids):
            for topic_id in spec.members[member_id].topic_ids(spec.image):
                self.subscribers.setdefault(topic_id, []).append(member)
        self.owners = {topic_id: [NOBODY] * spec.partitions_of(topic_id) for topic_id in self.subscribers}
        self.kept = [self._keep(member) for member in range(len(self.ids))]

    def shares(self) -> dict[str, OrderedPartitions]:
        topic_ids = self._sorted()
        for topic_id in topic_ids:
            self._assign_rest(topic_id)
        self._balance(topic_ids)
        return {member_id: share.in_order() for member_id, share in zip(self.ids, self.kept, strict=True)}

    def _sorted(self) -> list[TopicId]:
        """`topicComparator`: most partitions for each subscriber first."""

        def rank(topic_id: TopicId) -> tuple[float, int, TopicId]:
            subscribers = len(self.subscribers[topic_id])
            return -self.spec.partitions_of(topic_id) / subscribers, subscribers, topic_id

        return sorted(self.subscribers, key=rank)

    def _keep(self, member: int) -> Share:
        """`maybeRevokePartitions`: what the member keeps of its old share."""
        spec = self.spec.members[self.ids[member]]
        share = Share(spec.share)
        for topic_id, partitions in spec.share:
            if spec.subscribes_to(topic_id, self.spec.image):
                self.loads[member] += len(partitions)
                for partition in partitions:
                    self.owners[topic_id][partition] = member
            else:
                share.working().remove(topic_id)
        return share

    def _assign_rest(self, topic_id: TopicId) -> None:
        """`assignRemainingPartitions`, for one topic."""
        rest = [partition for partition, owner in enumerate(self.owners[topic_id]) if owner == NOBODY]
        if rest:
            levels = _Levels(self.subscribers[topic_id], self.loads)
            for partition in rest:
                self._give(topic_id, partition, levels.least())

    def _balance(self, topic_ids: list[TopicId]) -> None:
        """`balance`, `balanceTopics`: topic by topic, until nothing moves in a full round."""
        for _ in range(MOST_ROUNDS):
            moved = [self._balance_topic(topic_id) for topic_id in topic_ids]
            if not any(moved):
                return

    def _balance_topic(self, topic_id: TopicId) -> bool:
        """`balanceTopic`: whether a partition of the topic moved."""
        levels = _Levels(self.subscribers[topic_id], self.loads)
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            held.setdefault(owner, []).append(partition)
        moved = False
        for giver in self._givers(levels, held):
            partition = held[giver].pop()
            taker = levels.least()
            if levels.balanced:
                break
            self._give(topic_id, partition, taker)
            moved = True
        return moved

    def _givers(self, levels: _Levels, held: dict[int, list[int]]) -> Iterator[int]:
        """The most loaded members that had partitions of the topic when its turn began and still have one of those."""
        while True:
            giver = levels.most()
            while giver is not None and not held.get(giver):
                levels.leave_out()
                giver = levels.most()
            if giver is None:
                return
            yield giver

    def _give(self, topic_id: TopicId, partition: int, member: int) -> None:
        """`assignPartition`."""
        owner = self.owners[topic_id][partition]
        if owner != NOBODY:
            self.kept[owner].take(topic_id, partition)
            self.loads[owner] -= 1
        subscribers = len(self.subscribers[topic_id])
        expected = -(-self.spec.partitions_of(topic_id) // subscribers)
        self.kept[member].give(topic_id, partition, int(expected / 0.75 + 1))
        self.owners[topic_id][partition] = member
        self.loads[member] += 1
