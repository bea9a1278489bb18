"""Groups that change their protocol while they have members (KIP-848: online upgrade and downgrade).

A consumer that joins a classic group turns it into a consumer group; when the last consumer leaves, the group is classic again.
Kafka: `validateOnlineUpgrade`, `ConsumerGroup.fromClassicGroup`, `convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator_model.errors import Error
from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.consumer_protocol import (
    PROTOCOL_TYPE,
    TopicPartitions,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from coordinator_model.specification.consumer.core import ConsumerGroupCore
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.records_of import assignment_record, subscription_record, target_record
from coordinator_model.specification.consumer.member import (
    ClassicMetadata,
    ConsumerGroupMember,
    Partitions,
    all_in_epoch,
    as_sets,
    in_order,
)
from coordinator_model.specification.consumer.records import (
    TIME_UNKNOWN,
    ClassicGroupWritten,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    LogRecord,
    TargetAssignmentMember,
)
from coordinator_model.specification.consumer.subscriptions import metadata_hash
from coordinator_model.specification.consumer.topics import TopicImage
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.handlers.sessions import restart_session
from coordinator_model.specification.hash_maps import hash_set_of
from coordinator_model.specification.member import Member
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.states import State


def check_upgrade(group: ClassicGroup, config: ConsumerGroupConfig) -> None:
    """`validateOnlineUpgrade`: whether the settings let a consumer upgrade the group."""
    if not config.migration_policy.upgrades:
        reason = "online upgrade is disabled."
    elif group.protocol_type != PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol."
    elif len(group.members) > config.max_size:
        reason = "the group size exceeds the consumer group maximum size."
    else:
        return
    raise _cannot_upgrade(group.group_id, reason)


def _cannot_upgrade(group_id: str, reason: str) -> RefusedRequestError:
    return RefusedRequestError(Error.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group because {reason}")


def upgraded(group: ClassicGroup, image: TopicImage, release: KafkaVersion) -> tuple[ConsumerGroupState, list[LogRecord]]:
    """The state of the consumer group that follows a classic one, and the records that say so.

    Every member is Stable in an epoch that is the generation, with its last assignment.
    """
    records: list[LogRecord] = [ClassicGroupWritten(None)]
    members = [_upgraded_member(group, member, image) for member in group.members_in_map_order()]
    state = ConsumerGroupState(release, group.generation, group.generation)
    for member in members:
        state.replay(TargetAssignmentMember(member.member_id, in_order(member.assigned)))
        state.update_member(member)
    state.metadata_hash = metadata_hash(state.names, image)
    replayed = state.members.values()
    written: list[ConsumerGroupRecord] = [
        *map(subscription_record, replayed),
        ConsumerGroupMetadata(state.group_epoch, state.metadata_hash),
        *(TargetAssignmentMember(member.member_id, state.target[member.member_id]) for member in replayed),
        target_record(state.group_epoch, TIME_UNKNOWN, release),
        *(assignment_record(member, release) for member in replayed),
    ]
    return state, records + written


def _upgraded_member(group: ClassicGroup, member: Member, image: TopicImage) -> ConsumerGroupMember:
    malformed = "the embedded consumer protocol is malformed."
    custom = (
        "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor before "
        "re-attempting the upgrade."
    )
    try:
        subscription = read_subscription(member.metadata(group.protocol or ""))
        assignment = read_assignment(member.assignment)
    except UnreadableError:
        raise _cannot_upgrade(group.group_id, malformed) from None
    if assignment.user_data:
        raise _cannot_upgrade(group.group_id, custom)
    assigned = partitions_by_id(assignment.partitions, image)
    return ConsumerGroupMember(
        member.member_id,
        group.generation,
        group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(hash_set_of(subscription.topics)),
        assigned=assigned,
        assignment_epochs=all_in_epoch(group.generation, assigned),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
    )


def partitions_by_id(partitions: TopicPartitions, image: TopicImage) -> Partitions:
    """Partitions by the ids of their topics. Topics that do not exist are left out (`toTopicPartitionMap`)."""
    return {topic.topic_id: frozenset(numbers) for name, numbers in partitions if (topic := image.named(name)) is not None}


def partitions_by_name(partitions: Partitions, image: TopicImage) -> TopicPartitions:
    """Partitions by the names of their topics (`toConsumerProtocolAssignment`)."""
    named = ((image.with_id(topic_id), numbers) for topic_id, numbers in partitions.items())
    return tuple(sorted((topic.name, tuple(sorted(numbers))) for topic, numbers in named if topic is not None))


def classic_assignment(classic: ClassicMetadata, partitions: Partitions, image: TopicImage) -> bytes:
    """Partitions as a member reads them from SyncGroup (`prepareAssignment`)."""
    (_, metadata), *_ = classic.protocols
    return write_assignment(partitions_by_name(partitions, image), version_of(metadata))


def can_downgrade(
    state: ConsumerGroupState, leaving: Collection[ConsumerGroupMember], config: ConsumerGroupConfig, joining: int = 0
) -> bool:
    """Whether only members of the classic protocol stay, and they may.

    `validateOnlineDowngradeWithFencedMembers`, `validateOnlineDowngradeWithReplacedMember`.
    """
    staying = len(state.members) - len(leaving) + joining
    classic = state.classic_members - sum(member.classic is not None for member in leaving) + joining
    return classic == staying > 0 and config.migration_policy.downgrades and staying <= config.classic.group_max_size


def downgraded(
    group: ConsumerGroupCore,
    state: ConsumerGroupState,
    leaving: Collection[ConsumerGroupMember],
    joining: ConsumerGroupMember | None = None,
) -> ClassicGroup:
    """The classic group that follows a consumer group, Stable still.

    Its generation is the group epoch, and its assignments are the targets. `joining`: a static member in the place of the one that leaves.
    """
    gone = {member.member_id for member in leaving}
    staying = [(member, member.member_id) for member_id, member in state.members.items() if member_id not in gone]
    if joining is not None:
        staying += [(joining, member_id) for member_id in gone]
    successor = ClassicGroup(group.group_id, group.config.classic, group.now_ms)
    successor.state = State.STABLE
    successor.generation = state.group_epoch
    successor.protocol_type = PROTOCOL_TYPE
    for member, share_of in staying:
        assert member.classic is not None
        who = (member.member_id, member.instance_id, member.client_id, member.client_host)
        timeouts = (member.classic.session_timeout_ms, member.rebalance_timeout_ms)
        assignment = classic_assignment(member.classic, as_sets(state.target.get(share_of, ())), group.image)
        successor.add(Member(*who, *timeouts, member.classic.protocols, assignment), None)
    successor.protocol = successor.select_protocol()
    for classic_member in successor.members_in_map_order():
        restart_session(successor, classic_member)
    return successor
