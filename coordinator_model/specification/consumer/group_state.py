"""The state of one consumer group, and what each record changes in it.

Handlers read the state and return records; nothing else changes it. So a group that was loaded from the log is the group that wrote
it, up to the order of members within a bucket of its hash map. Kafka: `ConsumerGroup`, `ModernGroup`, and `GroupMetadataManager.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from coordinator_model.errors import ServerError
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.member import (
    LEAVE_EPOCH,
    NO_EPOCHS,
    NO_PARTITIONS,
    ConsumerGroupMember,
    OrderedPartitions,
    Partitions,
    all_in_epoch,
    each_partition,
)
from coordinator_model.specification.consumer.records import (
    TIME_UNKNOWN,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    CurrentMemberAssignment,
    MetadataHash,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    Tombstone,
)
from coordinator_model.specification.consumer.subscriptions import (
    SubscriptionCount,
    SubscriptionType,
    count_name,
    count_regex,
    subscription_type,
)
from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.hash_maps import JavaHashMap, TimelineHashMap, hash_set_of

FREE: Final = -1
"""The owner epoch of a partition that nobody owns (`ConsumerGroup.currentPartitionEpoch`)."""


class ConsumerGroupPhase(str, Enum):
    """State of a consumer group. Values are Kafka's names (`ConsumerGroupState`). Dead is never set."""

    EMPTY = "Empty"
    """No members."""
    ASSIGNING = "Assigning"
    """The group epoch moved, and the target was not computed for it yet."""
    RECONCILING = "Reconciling"
    """Some member has not reached the target."""
    STABLE = "Stable"
    """All members have what the target says."""


class ResolvedRegularExpression(NamedTuple):
    """The topics that an expression matched."""

    topics: tuple[str, ...]
    """In the order of a HashSet."""
    version: int
    at_ms: int


@dataclass(slots=True, eq=False)
class ConsumerGroupState:
    """What a group keeps in its log, and what follows from that."""

    release: KafkaVersion
    group_epoch: int
    target_epoch: int
    """`assignmentEpoch`: the group epoch for which the target was last computed."""
    target_at_ms: int | None = None
    """When it was computed; None: not known. Since 4.3."""
    metadata_hash: MetadataHash = ()
    members: TimelineHashMap[str, ConsumerGroupMember] = field(default_factory=TimelineHashMap)
    target: dict[str, OrderedPartitions] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id => member id. An entry can outlive its member: `remove_member`."""
    names: dict[str, SubscriptionCount] = field(default_factory=dict)
    """`subscribedTopicNames`."""
    regexes: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    """`subscribedRegularExpressions`: expression => number of members."""
    resolved: TimelineHashMap[str, ResolvedRegularExpression] = field(default_factory=TimelineHashMap)
    assignors: TimelineHashMap[str, int] = field(default_factory=TimelineHashMap)
    """`serverAssignors`: assignor => number of members that prefer it."""
    owner_epochs: dict[tuple[TopicId, int], int] = field(default_factory=dict)
    """`currentPartitionEpoch`: partition => epoch of the member that has it."""
    classic_members: int = 0
    classic_protocols: dict[str, int] = field(default_factory=dict)
    """How many members of the classic protocol support each of its protocols."""
    subscription: SubscriptionType = SubscriptionType.HOMOGENEOUS
    """Changes with a member only, not when an expression is resolved."""
    refresh_at_ms: int = 0
    """When a heartbeat has to look at the topics again (`metadataRefreshDeadline`). Neither in the log nor reverted."""
    refresh_epoch: int = 0
    """A group below this epoch looks at them at once: the write of its bump failed."""

    @classmethod
    def new(cls, release: KafkaVersion) -> ConsumerGroupState:
        """A group of which nothing was written yet."""
        return cls(release, release.first_group_epoch, release.first_group_epoch)

    # Questions.

    @property
    def phase(self) -> ConsumerGroupPhase:
        """`ConsumerGroup.maybeUpdateGroupState`."""
        if not self.members:
            return ConsumerGroupPhase.EMPTY
        if self.group_epoch > self.target_epoch:
            return ConsumerGroupPhase.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupPhase.STABLE
        return ConsumerGroupPhase.RECONCILING

    def owner_epoch(self, topic_id: TopicId, partition: int) -> int:
        """`currentPartitionEpoch`: the epoch of the member that has the partition, or FREE."""
        return self.owner_epochs.get((topic_id, partition), FREE)

    def target_of(self, member_id: str, instance_id: str | None) -> OrderedPartitions:
        """`targetAssignment`: of a static member, that of the member which has its instance id."""
        if instance_id is None:
            return self.target.get(member_id, ())
        owner = self.static_members.get(instance_id)
        return () if owner is None else self.target.get(owner, ())

    # Records.

    def replay(self, record: ConsumerGroupRecord) -> None:
        """`GroupMetadataManager.replay`. A tombstone takes away what earlier records of its key said; one of the group ends this state."""
        if not isinstance(record, Tombstone):
            _REPLAYS[type(record)](self, record)
        elif record.of in _REMOVALS:
            _REMOVALS[record.of](self, record.key)

    def commit(self) -> None:
        """The records since the last commit are in the log."""
        for table in (self.members, self.regexes, self.resolved, self.assignors):
            table.commit()

    def replay_in_vain(self, records: Iterable[ConsumerGroupRecord]) -> None:
        """Take `records` and revert them, because they could not be written. The order of members may be another one afterwards."""
        before = {name: getattr(self, name) for name in _REVERTED}
        copies = {name: value.copy() if isinstance(value, dict) else value for name, value in before.items()}
        for record in records:
            self.replay(record)
        for table in (self.members, self.regexes, self.resolved, self.assignors):
            table.revert()
        for name, value in copies.items():
            setattr(self, name, value)

    def group_metadata(self, record: ConsumerGroupMetadata) -> None:
        """The epoch and the hash."""
        self.group_epoch, self.metadata_hash = record.epoch, record.metadata_hash

    def target_metadata(self, record: TargetAssignmentMetadata) -> None:
        """The target epoch."""
        self.target_epoch, self.target_at_ms = record.epoch, None if record.at_ms == TIME_UNKNOWN else record.at_ms

    def target_member(self, record: TargetAssignmentMember) -> None:
        """The share of a member, in the order of new hash maps (`Assignment.fromRecord`)."""
        topics: JavaHashMap[TopicId, tuple[int, ...]] = JavaHashMap()
        for topic_id, partitions in record.partitions:
            topics.put(topic_id, tuple(hash_set_of(partitions)))
        self.target[record.member_id] = tuple(topics.items())

    def member_metadata(self, record: ConsumerGroupMemberMetadata) -> None:
        """What a member says about itself (`Builder.updateWith`)."""
        member = self.members.get(record.member_id) or ConsumerGroupMember(record.member_id)
        self.update_member(member._replace(**record._asdict() | {"topics": tuple(hash_set_of(record.topics))}))

    def current_assignment(self, record: CurrentMemberAssignment) -> None:
        """How far a member is. Where the record has no assignment epochs, they are the member's (`Utils.assignmentFromTopicPartitions`)."""
        member = self.members.get(record.member_id) or ConsumerGroupMember(record.member_id)
        epochs = record.assignment_epochs
        if epochs is None:
            epochs = all_in_epoch(max(record.epoch, 0), record.assigned, record.pending)
        self.update_member(member._replace(**record._asdict() | {"assignment_epochs": epochs}))

    def nothing_owned(self, member_id: str) -> None:
        """The partitions of the member are free."""
        member = self.members.get(member_id)
        if member is not None:
            left = member._replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_PARTITIONS, pending=NO_PARTITIONS)
            self.update_member(left._replace(assignment_epochs=NO_EPOCHS))

    def regular_expression(self, record: RegularExpression) -> None:
        """`updateResolvedRegularExpression`."""
        self.expression_gone(record.regex)
        topics = tuple(hash_set_of(record.topics))
        self.resolved.put(record.regex, ResolvedRegularExpression(topics, record.version, record.at_ms))
        for topic in topics:
            count_regex(self.names, topic, 1)

    def expression_gone(self, regex: str) -> None:
        """`removeResolvedRegularExpression`."""
        old = self.resolved.get(regex)
        if old is not None:
            self.resolved.remove(regex)
            for topic in old.topics:
                count_regex(self.names, topic, -1)

    # Members.

    def update_member(self, member: ConsumerGroupMember) -> None:
        """`ConsumerGroup.updateMember`."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        self._count(old, member)
        if old is not None:
            self._release(old)
        self._own(member.assigned, member.epoch)
        self._own(member.pending, member.epoch)
        if old is not None and old.instance_id is not None and self.release.changed_instance_frees_old:
            self.static_members.pop(old.instance_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._update_subscription_type()

    def remove_member(self, member_id: str) -> None:
        """`ConsumerGroup.removeMember`. Up to 4.3, an instance id that the member gave up before keeps pointing to it."""
        old = self.members.get(member_id)
        if old is None:
            return
        self.members.remove(member_id)
        self._count(old, None)
        self._release(old)
        if old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        self._update_subscription_type()

    def _update_subscription_type(self) -> None:
        self.subscription = subscription_type(self.regexes.values(), self.names, len(self.members))

    def _count(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        """`maybeUpdateSubscribedTopicNames`, `maybeUpdateServerAssignors`, `maybeUpdateSubscribedRegularExpression` and more."""
        for member, change in ((old, -1), (new, 1)):
            if member is None:
                continue
            for topic in member.topics:
                count_name(self.names, topic, change)
            if member.assignor is not None:
                _count_in_table(self.assignors, member.assignor, change)
            if member.regex:
                _count_in_table(self.regexes, member.regex, change)
            if member.classic is not None:
                self.classic_members += change
                for name, _ in member.classic.protocols:
                    self.classic_protocols[name] = self.classic_protocols.get(name, 0) + change

    def _release(self, member: ConsumerGroupMember) -> None:
        """`removePartitionEpochs`: what another epoch took over meanwhile stays."""
        for partition in each_partition(member.assigned.items(), member.pending.items()):
            if self.owner_epochs.get(partition) == member.epoch:
                del self.owner_epochs[partition]

    def _own(self, owned: Partitions, epoch: int) -> None:
        """`addPartitionEpochs`: a partition has one owner."""
        for partition in each_partition(owned.items()):
            if self.owner_epochs.get(partition, epoch - 1) >= epoch:
                raise ServerError("IllegalStateException")
            self.owner_epochs[partition] = epoch

    def count_resolved(self) -> None:
        """Count the topics of all resolved expressions, where only members are counted yet."""
        for resolved in self.resolved.values():
            for topic in resolved.topics:
                count_regex(self.names, topic, 1)

    def copy(self) -> ConsumerGroupState:
        """An independent state with the same contents."""
        other = ConsumerGroupState.new(self.release)
        for name in _STATE_FIELDS:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, (dict, TimelineHashMap)) else value)
        return other


def _count_in_table(table: TimelineHashMap[str, int], key: str, change: int) -> None:
    """`compute` with `Utils.incValue` or `decValue`: the last one takes the entry away."""
    count = (table.get(key) or 0) + change
    if count == 0:
        table.remove(key)
    else:
        table.put(key, count)


_STATE_FIELDS: Final = tuple(ConsumerGroupState.__dataclass_fields__)
_NOT_REVERTED: Final = frozenset({"members", "regexes", "resolved", "assignors", "refresh_at_ms", "refresh_epoch"})
_REVERTED: Final = tuple(name for name in _STATE_FIELDS if name not in _NOT_REVERTED)

_REPLAYS: Final[dict[type, Callable[[ConsumerGroupState, Any], None]]] = {
    ConsumerGroupMetadata: ConsumerGroupState.group_metadata,
    ConsumerGroupMemberMetadata: ConsumerGroupState.member_metadata,
    TargetAssignmentMetadata: ConsumerGroupState.target_metadata,
    TargetAssignmentMember: ConsumerGroupState.target_member,
    CurrentMemberAssignment: ConsumerGroupState.current_assignment,
    RegularExpression: ConsumerGroupState.regular_expression,
}
_REMOVALS: Final[dict[type, Callable[[ConsumerGroupState, str], Any]]] = {
    ConsumerGroupMemberMetadata: ConsumerGroupState.remove_member,
    TargetAssignmentMetadata: lambda state, _: state.target_metadata(TargetAssignmentMetadata(-1)),
    TargetAssignmentMember: lambda state, member_id: state.target.pop(member_id, None),
    CurrentMemberAssignment: ConsumerGroupState.nothing_owned,
    RegularExpression: ConsumerGroupState.expression_gone,
}


def replay_all(
    state: ConsumerGroupState | None, records: Iterable[ConsumerGroupRecord], release: KafkaVersion
) -> ConsumerGroupState | None:
    """The state of a group after its `records`; None: there is no group. Tombstones without a group are passed over."""
    for record in records:
        if state is None:
            if isinstance(record, Tombstone):
                continue
            state = ConsumerGroupState.new(release)
        state.replay(record)
        if record == Tombstone(ConsumerGroupMetadata):
            state = None
    if state is not None:
        state.commit()
    return state
