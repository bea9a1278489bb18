# ruff: noqa: E501 - lines are as long as Kafka writes them
"""What is read of coordinator lines of all releases: kinds, ids, generations, and what stands in a reason."""

from datetime import datetime, timedelta, timezone

import pytest

from coordinator_model import events as e
from jobs.parsing import batch
from tests.parsing.reading import read_lines

M = "web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7"
N = "web-2-827e3983-da7d-4c5e-980f-c42b6caf6699"
U, V = "+czycdsORpaL6mgoKm439A", "PoXy/d3qQpOGkRtEOEpFtQ"
START = datetime(2026, 11, 21, 6, 11, 32, 877_000, tzinfo=timezone.utc)
TIME = "[2026-11-21 06:11:32,877]"


def scala(sentence, level="INFO", name="GroupCoordinator"):
    return f"{TIME} {level} [GroupCoordinator 1]: {sentence} (kafka.coordinator.group.{name})"


def java(sentence, level="INFO", name="GroupMetadataManager"):
    return f"{TIME} {level} [GroupCoordinator id=1 topic=__consumer_offsets partition=48] {sentence} (org.apache.kafka.coordinator.group.{name})"


def runtime(sentence, level):
    return f"{TIME} {level} [GroupCoordinator id=1 topic=__consumer_offsets partition=26] {sentence} (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"


def metadata(instance="None"):
    return (
        f"MemberMetadata(memberId={M}, groupInstanceId={instance}, clientId=web (a), b, clientHost=/10.0.0.1, sessionTimeoutMs=8000, "
        "rebalanceTimeoutMs=12000, supportedProtocols=List(range, sticky))"
    )


PREPARING = "Preparing to rebalance group orders in state PreparingRebalance with old generation 3"

LINES = [
    # Kafka 0.9 to 0.10.2
    (f"{TIME} INFO [GroupCoordinator 0]: Preparing to restabilize group orders with old generation 3 (kafka.coordinator.GroupCoordinator)",
     {"kind": e.PREPARING_REBALANCE, "group_id": "orders", "generation": 3, "reason": None, "coordinator_id": 0}),
    (f"{TIME} INFO [GroupCoordinator 0]: Group orders generation 3 is dead and removed (kafka.coordinator.GroupCoordinator)",
     {"kind": e.GROUP_DEAD, "group_id": "orders", "generation": 3}),
    (f"{TIME} INFO [Group Metadata Manager on Broker 0]: Group orders transitioned to Dead in generation 3 (kafka.coordinator.GroupMetadataManager)",
     {"kind": e.GROUP_DEAD, "group_id": "orders", "coordinator_id": 0}),
    # 0.11 to 2.0
    (scala("Preparing to rebalance group orders with old generation 3 (__consumer_offsets-9)"),
     {"kind": e.PREPARING_REBALANCE, "group_id": "orders", "generation": 3, "coordinator_partition": 9, "reason": None}),
    (scala("The following groups were deleted: orders"), {"kind": e.GROUPS_DELETED, "group_id": "orders"}),
    # 2.5 to 2.7
    (f"{TIME} INFO Static member {metadata('Some(null)')}.groupInstanceId of group orders loaded with member id {M} at generation 5. (kafka.coordinator.group.GroupMetadata$)",
     {"kind": e.MEMBER_LOADED, "group_id": "orders", "member_id": M, "instance_id": None, "generation": 5, "session_timeout_ms": 8000}),
    # Kafka 2.1
    (
        scala(f"{PREPARING} (__consumer_offsets-9) (reason: Adding new member {M})"),
        {"kind": e.PREPARING_REBALANCE, "group_id": "orders", "generation": 3, "coordinator_partition": 9, "coordinator_id": 1, "member_id": M,
         "reason": f"Adding new member {M}", "state": "PreparingRebalance"},
    ),
    (scala("Stabilized group orders generation 4 (__consumer_offsets-9)"),
     {"kind": e.STABILIZED, "group_id": "orders", "generation": 4, "coordinator_partition": 9, "member_count": None}),
    (scala("Assignment received from leader for group orders for generation 4"), {"kind": e.ASSIGNMENT_RECEIVED, "generation": 4}),
    (scala(f"Member {M} in group orders has left, removing it from the group", "DEBUG"), {"kind": e.MEMBER_LEFT, "member_id": M}),
    # 2.4
    (scala(f"Member[group.instance.id Some(i 1), member.id {M}] in group orders has left, removing it from the group"),
     {"kind": e.MEMBER_LEFT, "member_id": M, "instance_id": "i 1", "group_id": "orders"}),
    (scala(f"given member.id {N} is identified as a known static member i,but not matching the expected member.id {M}", "ERROR", "GroupMetadata"),
     {"kind": e.INSTANCE_FENCED, "member_id": N, "answer_member_id": M, "instance_id": "i", "group_id": None}),
    (scala(f"Static member Some(i) with unknown member id rejoins, assigning new member id {N}, while old member {M} will be removed."),
     {"kind": e.STATIC_MEMBER_REPLACED, "member_id": M, "answer_member_id": N, "instance_id": "i"}),
    # 2.8
    (scala("Assignment received from leader for group orders for generation 4. The group has 3 members, 1 of which are static."),
     {"kind": e.ASSIGNMENT_RECEIVED, "generation": 4, "member_count": 3, "leader_id": None}),
    (scala(f"{PREPARING} (__consumer_offsets-9) (reason: leader {M} re-joining group during Stable)"),
     {"kind": e.PREPARING_REBALANCE, "member_id": M}),
    # 3.2 to 3.9
    (scala(f"Member {metadata('Some(i)')} has left group orders through explicit `LeaveGroup`; client reason: consumer poll timeout has expired."),
     {"kind": e.MEMBER_LEFT, "member_id": M, "instance_id": "i", "client_id": "web (a), b", "client_host": "10.0.0.1",
      "session_timeout_ms": 8000, "rebalance_timeout_ms": 12000, "reason": "consumer poll timeout has expired."}),
    (f"{TIME} INFO Loaded member {metadata()} in group orders with generation 5. (kafka.coordinator.group.GroupMetadata$)",
     {"kind": e.MEMBER_LOADED, "member_id": M, "instance_id": None, "generation": 5, "coordinator_partition": 31, "coordinator_id": None}),
    (scala(f"{PREPARING} (__consumer_offsets-9) (reason: Adding new member {M} with group instance id Some(i (b)); client reason: rebalance (why?))"),
     {"kind": e.PREPARING_REBALANCE, "member_id": M, "instance_id": "i (b)"}),
    (scala(f"{PREPARING} (__consumer_offsets-9) (reason: Removing Set({M}, {N}) on pending sync request expiration)"),
     {"kind": e.PREPARING_REBALANCE, "member_id": M, "members": [M, N]}),
    (scala(f"Group orders removed dynamic members who haven't joined: HashSet({M}, {N})"),
     {"kind": e.MEMBERS_NOT_REJOINED, "members": [M, N], "member_id": None}),
    (scala("Resigned as the group coordinator for partition 46 in epoch OptionalInt[0]"),
     {"kind": e.COORDINATOR_RESIGNED, "coordinator_partition": 46, "group_id": None}),
    # Java
    (java(f"{PREPARING} (reason: removing member {M} on heartbeat expiration.)."),
     {"kind": e.PREPARING_REBALANCE, "coordinator_partition": 48, "coordinator_id": 1, "member_id": M, "reason": f"removing member {M} on heartbeat expiration"}),
    (java(f"{PREPARING} (reason: explicit `LeaveGroup` request for ({M}, {N}) members.)."),
     {"kind": e.PREPARING_REBALANCE, "member_id": M, "members": [M, N]}),
    (java(f"{PREPARING} (reason: Adding new member {M} with group instance id null; client reason: not provided)."),
     {"kind": e.PREPARING_REBALANCE, "member_id": M, "instance_id": None}),
    (java(f"{PREPARING} (reason: a wording of the future)."), {"kind": e.PREPARING_REBALANCE, "member_id": None, "reason": "a wording of the future"}),
    (java(f"[Group orders] Member {M} has left group through explicit `LeaveGroup` request; client reason: the consumer is being closed"),
     {"kind": e.MEMBER_LEFT, "group_id": "orders", "member_id": M, "reason": "the consumer is being closed"}),
    (java(f"Request memberId= for static member with groupInstanceId=i is fenced by existing memberId={M} during operation heartbeat", name="classic.ClassicGroup"),
     {"kind": e.INSTANCE_FENCED, "member_id": None, "answer_member_id": M, "instance_id": "i", "reason": "heartbeat", "coordinator_partition": 48}),
    (java("[GroupId=orders] Unloading group metadata for generation 8."), {"kind": e.GROUP_UNLOADED, "group_id": "orders", "generation": 8}),
    (java(f"[GroupId telemetry] Static member with instance id i-1 re-joins the consumer group using the consumer protocol. Created a new member {U} to replace the existing member {V}."),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "telemetry", "member_id": V, "answer_member_id": U, "instance_id": "i-1"}),
    (java(f"[GroupId telemetry] Member {U} fenced from the group because the member session expired."),
     {"kind": e.CONSUMER_GROUP_LOG, "member_id": U,
      "reason": f"[GroupId telemetry] Member {U} fenced from the group because the member session expired."}),
    (java("[GroupId search] Converted the classic group to a consumer group."), {"kind": e.GROUP_CONVERTED, "state": "consumer"}),
    (java("Cannot upgrade classic group search to consumer group because the online upgrade is disabled."), {"kind": e.COORDINATOR_NOTE}),
    (f"{TIME} INFO [GroupCoordinator id=2] Scheduling loading of metadata from __consumer_offsets-15 with epoch 0 (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)",
     {"kind": e.COORDINATOR_ELECTED, "coordinator_partition": 15, "coordinator_id": 2}),
    (f"{TIME} INFO [GroupMetadataManager brokerId=12] Group orders transitioned to Dead in generation 5 (kafka.coordinator.group.GroupMetadataManager)",
     {"kind": e.GROUP_DEAD, "group_id": "orders", "coordinator_partition": 31, "coordinator_id": 12}),
    (java("The following groups were deleted: orders. A total of 6 offsets were removed."),
     {"kind": e.GROUPS_DELETED, "group_id": "orders", "coordinator_id": 1, "error_code": None}),
    # 4.3 and 4.4. GroupMetadataManager.throwIfClassicMemberCannotJoinConsumerGroup
    (java("Cannot join the consumer group search with the classic protocol because the group migration is disabled."),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "search", "member_id": None, "state": e.REFUSED, "coordinator_partition": 48}),
    # GroupMetadataManager.consumerGroupJoin
    (java(f"{PREPARING} (reason: Downgrade group orders from consumer to classic with stale assignment.)."),
     {"kind": e.PREPARING_REBALANCE, "group_id": "orders", "member_id": None, "reason": "Downgrade group orders from consumer to classic with stale assignment"}),
    # GroupMetadataManager.maybeReconcile, Utils.assignmentWithEpochsToString
    (java(f"[GroupId telemetry] Member {U} new assignment state: epoch=3, previousEpoch=2, state=UNREVOKED_PARTITIONS, assignedPartitions=[{V}-0@3] and revokedPartitions=[{V}-1@2].", "DEBUG"),
     {"kind": e.CONSUMER_GROUP_LOG, "state": e.ASSIGNMENT_STORED, "group_id": "telemetry", "member_id": U, "generation": 3}),
    # CoordinatorRuntime.CoordinatorContext.flushCurrentBatch and completeTransaction: before 4.3 "Writing records to … failed due to: …"
    *((runtime(sentence, level), {"kind": e.COORDINATOR_NOTE, "coordinator_partition": 26, "coordinator_id": 1, "group_id": None, "reason": sentence})
      for level, sentence in (
          ("ERROR", "Writing records to __consumer_offsets-26 failed due to: x."),
          ("ERROR", "Failed to write records to __consumer_offsets-26 due to an unexpected error: x."),
          ("ERROR", "Failed to write a batch of 3 record(s) to __consumer_offsets-26 because it is larger than the maximum batch size of 1048588 bytes. This usually means that a single record is too large. Consider increasing the maximum batch size."),
          ("DEBUG", "Failed to write records to __consumer_offsets-26 because this broker is no longer the leader of the partition."),
          ("ERROR", "Failed to write the transaction marker to __consumer_offsets-26 because it is too large to be persisted. Consider increasing the maximum batch size."),
          ("ERROR", "Failed to write the transaction marker to __consumer_offsets-26 due to an unexpected error: x."),
          ("DEBUG", "Failed to flush the pending records to __consumer_offsets-26: x."),
      )),
    # GroupConfig.clampToRange and checkSessionExceedsHeartbeat, GroupCoordinatorConfig.clampDynamicIntConfig: without a prefix
    *((f"{TIME} WARN {sentence} (org.apache.kafka.coordinator.group.{name})", {"kind": e.COORDINATOR_NOTE, "group_id": group, "reason": sentence, "coordinator_id": None})
      for name, group, sentence in (
          ("GroupConfig", "it's orders",
           "The group config 'consumer.assignment.interval.ms' for group 'it's orders' has value 20000 which exceeds the broker's allowed maximum 15000. The effective value will be capped to 15000."),
          ("GroupConfig", "orders",
           "The group config 'consumer.session.timeout.ms' for group 'orders' has value 1 which is below the broker's allowed minimum 45000. The effective value will be capped to 45000."),
          ("GroupConfig", "orders",
           "The effective consumer.session.timeout.ms (45000) for group 'orders' is not greater than consumer.heartbeat.interval.ms (45000). Check that the broker-level min/max bounds for session timeout and heartbeat interval do not overlap."),
          ("GroupCoordinatorConfig", None,
           "The config 'group.consumer.assignment.interval.ms' has value 20000 which exceeds the allowed maximum 15000. The effective value will be capped to 15000."),
      )),
    # Utils.assignmentFromTopicPartitions, StreamsGroup's TasksTupleWithEpochs: when 4.3 or later reads what 4.2 stored
    (java(f"[GroupId telemetry] Size of assignment epochs 0 is not equal to partitions 6 for topic {V}. Using default epoch 7 for all partitions.", "ERROR"),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "telemetry", "protocol_type": None, "state": None}),
    (java("[GroupId flow] Size of assignment epochs 0 is not equal to partitions 2 for subtopology 0. Using default epoch 7 for all partitions.", "ERROR"),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "protocol_type": e.STREAMS, "state": None}),
    # Static members of streams groups: GroupMetadataManager.streamsGroupHeartbeat and streamsGroupLeave
    *((java(f"[GroupId flow][MemberId {U}] {sentence}"), {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "protocol_type": e.STREAMS, **columns})
      for sentence, columns in (
          (f"Static member {U} with instance id i 1 joins the streams group.", {"state": e.JOINED, "member_id": U, "instance_id": "i 1"}),
          (f"Static member with instance id i 1 re-joins the streams group using the streams protocol. Created a new member {U} to replace the existing member {V}.",
           {"state": e.RETURNED, "member_id": V, "answer_member_id": U, "instance_id": "i 1"}),
          (f"Static member {U} with instance id i 1 left the streams group.", {"state": e.DEPARTED, "member_id": U, "instance_id": "i 1"}),
          (f"Static member {U} with instance id i 1 temporarily left the streams group.", {"state": e.AWAY, "member_id": U, "instance_id": "i 1"}),
      )),
    (java("[GroupId flow] Requested topology description push at topology epoch 1.", name="streams.StreamsGroupTopologyDescriptionManager"),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "protocol_type": e.STREAMS, "state": None, "generation": None}),
    (java("[GroupId flow] The configured task assignor 'mine' is not available; falling back to the default assignor 'sticky'.", "WARN"),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "protocol_type": e.STREAMS, "state": None}),
    (java(f"[GroupId flow][MemberId {U}] Member updated its member metadata to StreamsGroupMember(x)."),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "member_id": U}),
    (java(f"[GroupId flow][MemberId {U}] Valid topic configuration found in 3ms, topology epoch 1 is now initialized.", name="streams.topics.InternalTopicManager"),
     {"kind": e.CONSUMER_GROUP_LOG, "group_id": "flow", "member_id": U}),
    # Hostile ids: fixed words of Kafka's sentences in the places of ids.
    (java(f"Member {M} in group a in group b (c) has failed, removing it from the group."),
     {"kind": e.MEMBER_FAILED, "group_id": "a in group b (c)", "member_id": M}),
    (java(f"Assignment received from leader {M} for group x for group y for generation 9 for generation 7. The group has 3 members, 0 of which are static."),
     {"kind": e.ASSIGNMENT_RECEIVED, "leader_id": M, "group_id": "x for group y for generation 9", "generation": 7}),
    (java("Member in group x-0ec6e36b-3898-4595-96dd-e3531f8ddea7 in group orders has failed, removing it from the group."),
     {"kind": e.MEMBER_FAILED, "member_id": "in group x-0ec6e36b-3898-4595-96dd-e3531f8ddea7", "group_id": "orders"}),
    (scala("Stabilized group $1 \\ (reason: x) generation 3 (__consumer_offsets-1) generation 4 (__consumer_offsets-9) with 3 members"),
     {"kind": e.STABILIZED, "group_id": "$1 \\ (reason: x) generation 3 (__consumer_offsets-1)", "generation": 4}),
    # Bookkeeping is skipped, unless it tells of trouble: GroupMetadataManager.cleanupGroupMetadata, OffsetMetadataManager.cleanupExpiredOffsets
    (f"{TIME} WARN [GroupMetadataManager brokerId=1] Failed to append 3 tombstones to __consumer_offsets-9 for expired/deleted offsets and/or metadata for group orders (kafka.coordinator.group.GroupMetadataManager)",
     {"kind": e.COORDINATOR_NOTE, "reason": "Failed to append 3 tombstones to __consumer_offsets-9 for expired/deleted offsets and/or metadata for group orders"}),
    (java("[GroupId orders] Expired offset for partition=t-0.", "DEBUG", "OffsetMetadataManager"),
     {"kind": e.COORDINATOR_NOTE, "group_id": "orders", "reason": "[GroupId orders] Expired offset for partition=t-0."}),
]  # fmt: skip

NOT_EVENTS = {
    # GroupCoordinatorShard.onTopicsDeleted, GroupCoordinatorService.handleTopicsDeletion, OffsetMetadataManager.commitTransactionalOffset
    java(
        f"Generated 2 tombstone records in 1 milliseconds while deleting offsets for topics [DeletedTopic[id={V}, name=old]].",
        name="GroupCoordinatorShard",
    ): "skipped",
    f"{TIME} ERROR [GroupCoordinator id=1] Could not delete offsets for deleted topics [DeletedTopic[id={V}, name=old]] due to: x. "
    "(org.apache.kafka.coordinator.group.GroupCoordinatorService)": "skipped",
    java(
        f"[GroupId orders] Committing transactional offsets 9 for partition {V}-t-0 from member {M} with leader epoch 0.",
        "DEBUG",
        "OffsetMetadataManager",
    ): "skipped",
    java(
        "Topology-description cleanup cycle skipped: previous cycle is still in flight.",
        "WARN",
        "streams.StreamsGroupTopologyDescriptionManager",
    ): "skipped",
    java(
        "[GroupId orders] Committing offsets 5 for partition t-0 from member m with leader epoch 0.", "DEBUG", "OffsetMetadataManager"
    ): "skipped",
    scala("Startup complete."): "skipped",
    f"{TIME} INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in 0 milliseconds. (kafka.coordinator.group.GroupMetadataManager)": "skipped",
    f"{TIME} INFO [GroupCoordinator id=1] Shutting down event processor. (org.apache.kafka.coordinator.common.runtime.MultiThreadedEventProcessor)": "skipped",
    f"{TIME} INFO [GroupCoordinator id=1] Event processor closed. (org.apache.kafka.coordinator.common.runtime.MultiThreadedEventProcessor)": "skipped",
    f"{TIME} INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=8] failAll(NotCoordinatorException): failing DeferredEventCollection("
    "events=[CoordinatorWriteEvent(name=consumer-group-heartbeat)]). (org.apache.kafka.deferred.DeferredEventQueue)": "skipped",
    f"{TIME} INFO [ShareCoordinator id=1] Event processor closed. (org.apache.kafka.coordinator.common.runtime.MultiThreadedEventProcessor)": "skipped",
    f"{TIME} INFO [group-coordinator-event-processor-0]: Starting (org.apache.kafka.coordinator.group.runtime.MultiThreadedEventProcessor$EventProcessorThread)": "skipped",
    f"{TIME} INFO [GroupMetadataManager brokerId=1] Scheduling unloading of offsets and group metadata from __consumer_offsets-46 "
    "(kafka.coordinator.group.GroupMetadataManager)": "skipped",
    f"{TIME} INFO [ShareCoordinator id=1] Starting up. (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)": "skipped",
    f"{TIME} INFO KafkaConfig values: (kafka.server.KafkaConfig)": "skipped",
    "java.lang.IllegalStateException: kafka.coordinator.group.GroupCoordinator": "skipped",
    java("Stabilized group orders generation x with 3 members."): "UNKNOWN_TEMPLATE",
    java("Stabilized group orders generation 99999999999 with 3 members."): "UNKNOWN_TEMPLATE",
    java("Stabilized group orders generation 4 with 3 members.")[:-1]: None,  # its sentence is whole
    java("Stabilized group orders generation 4 with 3 members.").partition(" (")[0]: "TRUNCATED",
    java("Stabilized group orders generation 4 with 3 members.").partition(" members")[0]: "TRUNCATED",
    java("Stabilized group orders generation 4 with 3 members.").replace("GroupMetadataManager)", "GroupMetadataManaxer)"): None,
    java("Stabilized group orders generation 4 with 3 members.").replace("apache.kafka", "apache.kafca"): "UNKNOWN_TEMPLATE",
    java("Stabilized group orders generation 4 with 3 members.")[5:]: "MALFORMED",
    java("Stabilized group or\x01ders generation 4 with 3 members."): "CONTROL_CHARACTERS",
}


@pytest.fixture(scope="module")
def read():
    """Events by position, and (verdict, refusal) by position."""
    texts = [line for line, _ in LINES] + list(NOT_EVENTS)
    rows = [("c", "b", "line", "f", n, START + timedelta(milliseconds=n), text, None, 1, None, None) for n, text in enumerate(texts)]
    told = read_lines(rows)
    verdicts = {row["position"]: (row["verdict"], row["refusal"]) for row in told.to_pylist()}
    return {row["position"]: row for row in batch.events(told, 0).to_pylist()}, verdicts


@pytest.mark.parametrize("place", range(len(LINES)), ids=[line[25:110] for line, _ in LINES])
def test_fields(read, place):
    event = read[0][place]
    expected = LINES[place][1]
    found = {name: event[name] for name in expected}
    if expected.get("members"):
        found["members"] = [member["member_id"] for member in event["members"]]
    assert found == expected
    assert event["received_at"] == event["occurred_at"]


@pytest.mark.parametrize("place", range(len(NOT_EVENTS)), ids=[line[:90].replace("\x01", "?") for line in NOT_EVENTS])
def test_lines_that_are_no_events(read, place):
    verdict, refusal = read[1][len(LINES) + place]
    expected = list(NOT_EVENTS.values())[place]
    if expected == "skipped":
        assert (verdict, refusal) == ("skipped", None)
    elif expected is None:  # a logger of the package that is not known by name: read all the same
        assert verdict == "event"
    else:
        assert (verdict, refusal) == ("quarantine", expected)
