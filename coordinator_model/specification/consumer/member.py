"""A member of a consumer group. Kafka: `ConsumerGroupMember`, `MemberState`.

A member is a value: a change makes a new one. Its timers belong to the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.requests import Protocols

Partitions = Mapping[TopicId, frozenset[int]]
"""Partitions by topic. A topic without partitions is not in it."""
OrderedPartitions = tuple[tuple[TopicId, tuple[int, ...]], ...]
"""Partitions in the order in which Kafka's hash maps give them, which an assignor sees."""
NO_PARTITIONS: Final[Partitions] = {}
AssignmentEpochs = Mapping[tuple[TopicId, int], int]
"""The epoch in which a member was given each of its partitions (KIP-1251)."""
NO_EPOCHS: Final[AssignmentEpochs] = {}

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
"""`ConsumerGroupHeartbeatRequest.LEAVE_GROUP_MEMBER_EPOCH`."""
STATIC_LEAVE_EPOCH: Final = -2
"""The epoch of a static member that is away for a while (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


def as_sets(ordered: OrderedPartitions) -> Partitions:
    """Partitions without their order."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in ordered if partitions}


def each_partition(*owned: Iterable[tuple[TopicId, Iterable[int]]]) -> Iterator[tuple[TopicId, int]]:
    """Partitions one by one, in their order."""
    return ((topic_id, number) for partitions in owned for topic_id, numbers in partitions for number in numbers)


def all_in_epoch(epoch: int, *owned: Partitions) -> AssignmentEpochs:
    """The assignment epochs of partitions which were all assigned in one."""
    return dict.fromkeys(each_partition(*(partitions.items() for partitions in owned)), epoch)


def in_order(partitions: Partitions) -> OrderedPartitions:
    """Partitions by topic id and number."""
    return tuple(sorted((topic_id, tuple(sorted(numbers))) for topic_id, numbers in partitions.items()))


class MemberState(str, Enum):
    """How far a member is with its reconciliation. Values are Kafka's names."""

    STABLE = "STABLE"
    """It has what the target says."""
    UNREVOKED_PARTITIONS = "UNREVOKED_PARTITIONS"
    """It was told to give up partitions and has not acknowledged that yet."""
    UNRELEASED_PARTITIONS = "UNRELEASED_PARTITIONS"
    """It waits for partitions that others still have."""
    UNKNOWN = "UNKNOWN"
    """A newer version of Kafka wrote another state."""


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol said in its JoinGroup (`ClassicMemberMetadata`)."""

    session_timeout_ms: int
    protocols: Protocols


class ConsumerGroupMember(NamedTuple):
    """A member of a consumer group. The defaults are those of `ConsumerGroupMember.Builder`."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The names that it subscribes to, in the order of a HashSet."""
    regex: str = ""
    """The regular expression that it subscribes to; "": none."""
    assignor: str | None = None
    assigned: Partitions = NO_PARTITIONS
    pending: Partitions = NO_PARTITIONS
    """`partitionsPendingRevocation`."""
    assignment_epochs: AssignmentEpochs = NO_EPOCHS
    """Of each partition in `assigned` and `pending`."""
    classic: ClassicMetadata | None = None

    def is_same(self, other: ConsumerGroupMember) -> bool:
        """`ConsumerGroupMember.equals`: the order of the names makes no difference."""
        return self._replace(topics=()) == other._replace(topics=()) and frozenset(self.topics) == frozenset(other.topics)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """`ModernGroupMember.isReconciledTo`."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assigned_epochs(self) -> AssignmentEpochs:
        """The assignment epochs of what it has and does not have to give up."""
        return {part: epoch for part, epoch in self.assignment_epochs.items() if part[1] in self.assigned.get(part[0], ())}

    def with_epoch(self, epoch: int) -> ConsumerGroupMember:
        """`Builder.updateMemberEpoch`: the present epoch becomes the previous one."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)
