"""What a consumer group writes to `__consumer_offsets`, and how the log keeps it.

The state of a group changes through these records only: whoever reads them has the group. Kafka: the records of
`GroupCoordinatorRecordHelpers`, with the names of their schemas.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.specification.consumer.member import AssignmentEpochs, ClassicMetadata, MemberState, OrderedPartitions, Partitions
from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.member import StoredGroup

MetadataHash = tuple[tuple[str, int, int, int], ...]
"""Name, both halves of the id, and number of partitions of each subscribed topic that exists. Kafka hashes this; () is its 0."""


TIME_UNKNOWN: Final = -1
"""The target was not computed for its epoch, or nobody knows when. Kafka writes 0, which a clock of traces may show."""


class ConsumerGroupMetadata(NamedTuple):
    """ConsumerGroupMetadata: the group epoch moved."""

    epoch: int
    metadata_hash: MetadataHash = ()


class PartitionMetadata(NamedTuple):
    """ConsumerGroupPartitionMetadata, of which there are only tombstones. Kafka up to 4.0 wrote values."""


class ConsumerGroupMemberMetadata(NamedTuple):
    """ConsumerGroupMemberMetadata: what a member said about itself."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    """Sorted."""
    regex: str
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMetadata | None


class TargetAssignmentMetadata(NamedTuple):
    """ConsumerGroupTargetAssignmentMetadata: the target was computed for this epoch."""

    epoch: int
    at_ms: int | None = None
    """When it was computed, or TIME_UNKNOWN. None: the release does not say."""


class TargetAssignmentMember(NamedTuple):
    """ConsumerGroupTargetAssignmentMember: the share of a member."""

    member_id: str
    partitions: OrderedPartitions


class CurrentMemberAssignment(NamedTuple):
    """ConsumerGroupCurrentMemberAssignment: how far a member is."""

    member_id: str
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions
    pending: Partitions
    assignment_epochs: AssignmentEpochs | None = None
    """Since 4.3. None: not written."""


class RegularExpression(NamedTuple):
    """ConsumerGroupRegularExpression: the topics whose names an expression matches, sorted."""

    regex: str
    topics: tuple[str, ...]
    version: int
    """Of the topic image."""
    at_ms: int


class Tombstone(NamedTuple):
    """What the records of one type said of the group, a member or an expression is gone."""

    of: type
    key: str = ""
    """The member id or the expression; "": there is one of the group."""


class OffsetCommitted(NamedTuple):
    """OffsetCommit. Without an offset: a tombstone."""

    topic: str
    partition: int
    offset: int | None
    committed_ms: int
    topic_id: TopicId | None = None
    """None: the topic was not known."""


class ClassicGroupWritten(NamedTuple):
    """GroupMetadata of a classic group; None: a tombstone."""

    stored: StoredGroup | None


ConsumerGroupRecord = (
    ConsumerGroupMetadata
    | ConsumerGroupMemberMetadata
    | TargetAssignmentMetadata
    | TargetAssignmentMember
    | CurrentMemberAssignment
    | RegularExpression
    | Tombstone
)
LogRecord = ConsumerGroupRecord | OffsetCommitted | ClassicGroupWritten
