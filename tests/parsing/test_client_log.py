# ruff: noqa: E501 - lines are as long as clients write them
"""Lines of client logs as they are read: what becomes an event, what is passed over, what is refused."""

import re
from datetime import datetime, timedelta, timezone

import pytest

from tests.parsing.reading import read_lines

START = datetime(2026, 11, 21, 6, tzinfo=timezone.utc)
MEMBER = "pay-1-0a1b2c3d-0000-4000-8000-00000000abcd"
JAVA = "[2026-11-21 06:00:00,000] INFO [Consumer clientId=pay-1, groupId=payments] {} (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
STATIC = "2026-11-21 06:00:00.000  WARN 1 --- [ntainer#0-0-C-1] o.a.k.c.c.internals.ConsumerCoordinator : [Consumer instanceId=i 1, clientId=pay-1, groupId=payments] {}"
RD = "%7|1795240800.000|{}|pay-1#consumer-2| [thrd:main]: {}"

EVENTS = [
    (JAVA.format("Request joining group due to: group is already rebalancing"), None,
     {"kind": "CLIENT_REJOINS", "group_id": "payments", "client_id": "pay-1", "reason": "group is already rebalancing", "connection": None}),
    (JAVA.format(f"Member {MEMBER} sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null) due to the consumer is being closed"), None,
     {"kind": "CLIENT_LEAVES", "member_id": MEMBER, "reason": "the consumer is being closed"}),
    (STATIC.format("consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than"), None,
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "instance_id": "i 1", "client_id": "pay-1"}),
    (JAVA.format(f"Successfully joined group with generation Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"), None,
     {"kind": "CLIENT_JOINED", "generation": 7, "member_id": MEMBER}),
    (JAVA.replace("Consumer", "Worker").format("Request joining group due to: connect worker requested rejoin"), None,
     {"kind": "CLIENT_REJOINS", "reason": "connect worker requested rejoin"}),
    (JAVA.replace("Consumer", "Worker").format("Connector pg-orders-source config updated"), None,
     {"kind": "CLIENT_REJOINS", "reason": "pg-orders-source", "state": "CONNECTOR_CHANGED"}),
    (JAVA.replace("Consumer", "Worker").format("Tasks [pg-orders-source-1, pg-orders-source-0] configs updated"), None,
     {"kind": "CLIENT_REJOINS", "reason": "pg-orders-source-1, pg-orders-source-0", "state": "CONNECTOR_CHANGED"}),
    (RD.format("MAXPOLL", "Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms for long-running message processing): leaving group"), "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "client_id": "pay-1", "connection": "pay-1#consumer-2", "rebalance_timeout_ms": 8_000}),
    (RD.format("SESSTMOUT", "Consumer group session timed out (in join-state steady) after 8004 ms without a successful response from the group coordinator (broker -1, last error was Local: Broker transport failure): revoking assignment and rejoining group"), "payments",
     {"kind": "CLIENT_SESSION_TIMEOUT", "session_timeout_ms": 8_004, "reason": "Local: Broker transport failure"}),
    (RD.format("JOINGROUP", f"JoinGroup response: GenerationId 3, Protocol range, LeaderId {MEMBER} (me), my MemberId {MEMBER}, member metadata count 2: (no error)"), "payments",
     {"kind": "CLIENT_JOINED", "generation": 3, "member_id": MEMBER}),
    (RD.format("REBALANCE", 'Group "pay "x" ments" initiating rebalance (EAGER) in state up (join-state steady) with 2 assigned partition(s): Metadata for subscribed topic(s) has changed'), None,
     {"kind": "CLIENT_REJOINS", "group_id": 'pay "x" ments', "reason": "Metadata for subscribed topic(s) has changed"}),
    (RD.format("SUBSCRIBE", 'Group "payments": subscribe to new subscription of 2 topics (join-state steady)'), None,
     {"kind": "CLIENT_REJOINS", "reason": "subscribe to new subscription"}),
    # Java 2.1; Connect's pattern, `[%d] %p %m (%c:%L)`; a reason that ends in brackets, where no logger follows
    (JAVA.format("Sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null)"), None,
     {"kind": "CLIENT_LEAVES", "group_id": "payments", "member_id": None, "reason": None}),
    ("[2026-11-21 06:00:00,000] INFO [Worker clientId=connect-1, groupId=connect] Request joining group due to: group is already rebalancing (org.apache.kafka.connect.runtime.distributed.WorkerCoordinator:1068)", None,
     {"kind": "CLIENT_REJOINS", "group_id": "connect", "reason": "group is already rebalancing"}),
    ("[2026-11-21 06:00:00,000] INFO [sink|task-0] [Consumer clientId=connector-consumer-sink-0, groupId=connect-sink] Request joining group due to: rebalance failed due to 'The group is rebalancing, so a rejoin is needed.' (RebalanceInProgressException) (org.apache.kafka.X:1068)", None,
     {"kind": "CLIENT_REJOINS", "client_id": "connector-consumer-sink-0", "reason": "rebalance failed due to 'The group is rebalancing, so a rejoin is needed.' (RebalanceInProgressException)"}),
    (STATIC.format("Request joining group due to: rebalance failed due to 'The group is rebalancing' (RebalanceInProgressException)"), None,
     {"kind": "CLIENT_REJOINS", "reason": "rebalance failed due to 'The group is rebalancing' (RebalanceInProgressException)"}),
    ("2026-11-21 06:00:00,000 |WARN|main| [Worker clientId=connect-1, groupId=connect] worker poll timeout has expired. The last known action being performed by the worker is : x", None,
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "connect", "client_id": "connect-1"}),
    (JAVA.format("Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded approximately by 3 ms. Member aSd-x will rejoin the group now."), None,
     {"kind": "CLIENT_POLL_TIMEOUT", "member_id": "aSd-x"}),
    # librdkafka through its bindings, and other libraries (jobs/logs/clients/envelopes.py)
    ("2026-11-21T06:00:00Z %|MAXPOLL|pay-1#consumer-2| [thrd:main]: Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms): leaving group", "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "client_id": "pay-1", "connection": "pay-1#consumer-2", "rebalance_timeout_ms": 8_000}),
    ("2026-11-21 06:00:00.000 +0000 %||| [thrd:main]: Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms): leaving group", "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "client_id": None, "connection": None, "rebalance_timeout_ms": 8_000}),
    ("2026-11-21 06:00:00,000 %||kafka-python| Heartbeat poll expired, leaving group", "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "client_id": None, "connection": "kafka-python", "reason": "Heartbeat poll expired"}),
    (f"2026-11-21 06:00:00,000 %||kafka-python| Successfully joined group pay ments <Generation 3 (member_id: {MEMBER}, protocol: range)>", None,
     {"kind": "CLIENT_JOINED", "group_id": "pay ments", "member_id": MEMBER, "generation": 3}),
    (f"2026-11-21 06:00:00.000 %||franz-go| joined, balancing group; group: payments, member_id: {MEMBER}, instance_id: <nil>, generation: 3, balance_protocol: range, leader: true", None,
     {"kind": "CLIENT_JOINED", "group_id": "payments", "member_id": MEMBER, "generation": 3, "connection": "franz-go"}),
    ("2026/11/21 06:00:00 %||sarama| consumergroup/payments loop check partition number goroutine find partitions in topics [orders] changed from 6 to 8", None,
     {"kind": "CLIENT_REJOINS", "group_id": "payments", "reason": "partitions in topics [orders] changed from 6 to 8"}),
    (f"2026/11/21 06:00:00.000000 %||kafka-go| Leaving group payments, member {MEMBER}", None,
     {"kind": "CLIENT_LEAVES", "group_id": "payments", "member_id": MEMBER, "reason": "Leaving group"}),
    # put out, by release: AbstractCoordinator's HeartbeatResponseHandler, JoinGroupResponseHandler, SyncGroupResponseHandler
    (JAVA.format(f"Attempt to heartbeat failed for since member id {MEMBER} is not valid."), None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "member_id": MEMBER}),  # 2.0 to 2.5
    (JAVA.format("Attempt to heartbeat failed since generation 7 is not current"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "ILLEGAL_GENERATION", "generation": 7}),
    (JAVA.format("Attempt to heartbeat failed since group is rebalancing"), None,
     {"kind": "CLIENT_REJOINS", "reason": "group is already rebalancing"}),  # 2.0 to 2.8
    (JAVA.format(f"Attempt to heartbeat with Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}} and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "member_id": MEMBER, "generation": 7}),  # 2.6 to 4.4
    (JAVA.format(f"JoinGroup failed: The coordinator is not aware of this member. Need to re-join the group. Sent generation was Generation{{generationId=-1, memberId='{MEMBER}', protocol='null'}}"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "generation": -1}),
    (JAVA.format(f"SyncGroup failed: The group began another rebalance. Need to re-join the group. Sent generation was Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"), None,
     {"kind": "CLIENT_ROUND_FAILED", "member_id": MEMBER, "generation": 7}),
    (JAVA.format(f"SyncGroup failed: Specified group generation id is not valid. Need to re-join the group. Sent generation was Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "ILLEGAL_GENERATION", "generation": 7}),
    (STATIC.format(f"SyncGroup failed: The group instance id Optional[i 1] has been fenced by another instance. Sent generation was Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_INSTANCE_ID", "instance_id": "i 1"}),
    (STATIC.format("Caught fenced group.instance.id Optional[i 1] error in heartbeat thread"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_INSTANCE_ID", "instance_id": "i 1"}),
    (STATIC.format("Received fatal exception: group.instance.id gets fenced"), None, {"kind": "CLIENT_PUT_OUT", "state": "FENCED_INSTANCE_ID"}),
    (JAVA.format("Group coordinator h:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause: session timed out without receiving a heartbeat response.isDisconnected: false. Rediscovery will be attempted."), None,
     {"kind": "CLIENT_SESSION_TIMEOUT"}),  # 2.7 to 3.2; with a blank from 3.3 on
    (JAVA.format("Group coordinator h:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause: coordinator unavailable. isDisconnected: false. Rediscovery will be attempted."), None,
     {"kind": "CLIENT_NOTE"}),
    (JAVA.format("Member c-x sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null) due to consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms"), None,
     {"kind": "CLIENT_LEAVES", "reason": "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms"}),
    (JAVA.format("(Re-)joining group"), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format("JoinGroup failed due to fatal error: The consumer group has reached its max size."), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format("Attempt to join group failed due to fatal error: The consumer group has reached its max size."), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format("Consumer has been disconnected from the group coordinator for 45000ms"), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format("Giving away all assigned partitions as lost since generation/memberID has been reset,indicating that consumer is in old state or no longer part of the group"), None, {"kind": "CLIENT_NOTE"}),
    # commits that are refused: ConsumerCoordinator
    (JAVA.format("Offset commit failed on partition orders-3 at offset 17: The coordinator is not aware of this member."), None, {"kind": "CLIENT_COMMIT_REFUSED"}),
    (JAVA.format("Offset commit failed on partition orders-3 at offset 17: The request timed out."), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format(f"OffsetCommit failed with Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}: Specified group generation id is not valid."), None, {"kind": "CLIENT_COMMIT_REFUSED", "generation": 7}),
    (JAVA.format("Failing OffsetCommit request since the consumer is not part of an active group"), None, {"kind": "CLIENT_COMMIT_REFUSED"}),
    (JAVA.format("Synchronous auto-commit of offsets {orders-3=OffsetAndMetadata{offset=17, leaderEpoch=0, metadata=''}} failed: Offset commit cannot be completed since the consumer is not part of an active group for auto partition assignment; it is likely that the consumer was kicked out of the group."), None, {"kind": "CLIENT_COMMIT_REFUSED"}),
    ("2026-11-21 06:00:00,000 %||java| Commit cannot be completed since the group has already rebalanced and assigned the partitions to another member. This means", "payments", {"kind": "CLIENT_COMMIT_REFUSED", "group_id": "payments"}),
    # the consumer protocol: AbstractMembershipManager, AbstractHeartbeatRequestManager, ConsumerHeartbeatRequestManager, CommitRequestManager
    (JAVA.format("Member oCpRdkCgQGWK7Rq-kJ2BVw with epoch 2 transitioned from STABLE to RECONCILING."), None,
     {"kind": "CLIENT_STATE", "member_id": "oCpRdkCgQGWK7Rq-kJ2BVw", "generation": 2, "reason": "STABLE", "state": "RECONCILING"}),
    (JAVA.format("Member <no ID> with epoch 0 transitioned from UNSUBSCRIBED to JOINING."), None, {"kind": "CLIENT_STATE", "generation": 0, "state": "JOINING"}),
    (JAVA.format("ConsumerGroupHeartbeatRequest failed for member oCpRdkCgQGWK7Rq-kJ2BVw because epoch 5 is fenced. in 0ms: The member epoch is fenced by the group coordinator."), None,
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_MEMBER_EPOCH", "member_id": "oCpRdkCgQGWK7Rq-kJ2BVw", "generation": 5}),
    (JAVA.format("GroupHeartbeatRequest failed because member oCpRdkCgQGWK7Rq-kJ2BVw is unknown. in 0ms: null"), None, {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID"}),
    (STATIC.format("ConsumerGroupHeartbeatRequest failed due to unreleased instance id i 1: Static member x with instance id i 1 cannot join"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNRELEASED_INSTANCE_ID", "instance_id": "i 1"}),
    # Connect: WorkerCoordinator, DistributedHerder
    (JAVA.replace("Consumer clientId", "Worker clientId").format("Rebalance started"), None, {"kind": "CLIENT_NOTE", "software": "connect"}),
    (JAVA.replace("Consumer clientId", "Worker clientId").format("Joined group at generation 7 with protocol version 2 and got assignment: Assignment{error=0, leader='w1'} with rebalance delay: 300000"), None,
     {"kind": "CLIENT_ASSIGNED", "generation": 7, "software": "connect", "rebalance_timeout_ms": 300_000}),
    (JAVA.format("Member aSdF with epoch 4 transitioned to fatal state"), None, {"kind": "CLIENT_NOTE", "reason": "Member aSdF with epoch 4 transitioned to fatal state"}),
    (JAVA.format("OffsetFetch failed with STALE_MEMBER_EPOCH. The member is still in the group, so the request can be retried with the latest member epoch as long as it has not expired."), None,
     {"kind": "CLIENT_NOTE"}),
    (RD.format("JOINGROUP", "JoinGroup response: GenerationId -1, Protocol , LeaderId , my MemberId , member metadata count 0: Broker: Not coordinator"), "payments", {"kind": "CLIENT_NOTE"}),
    # No template has it, and nothing may be called healthy over it.
    (JAVA.format("Error while fetching metadata with correlation id 7 : {orders=LEADER_NOT_AVAILABLE}"), None,
     {"kind": "CLIENT_NOTE", "reason": "Error while fetching metadata with correlation id 7 : {orders=LEADER_NOT_AVAILABLE}"}),
    (JAVA.format("ConsumerGroupHeartbeatRequest failed due to unsupported protocol field while sending request: x"), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format("ConsumerGroupHeartbeatRequest failed due to GROUP_MAX_SIZE_REACHED: The consumer group has reached its maximum capacity"), None, {"kind": "CLIENT_NOTE"}),
    (JAVA.format(f"SyncGroup with Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}} failed: Specified group generation id is not valid., would request re-join"), None,
     {"kind": "CLIENT_PUT_OUT", "state": "ILLEGAL_GENERATION"}),  # 2.6
    # librdkafka with debug=cgrp: rdkafka_cgrp.c
    (RD.format("LEAVE", 'Group "pay "x" ments": leave (in state up)'), None, {"kind": "CLIENT_LEAVES", "group_id": 'pay "x" ments', "client_id": "pay-1"}),
    (RD.format("REBALANCE", 'Group "payments" is rebalancing in state up (join-state started) with assignment: max.poll.interval.ms exceeded'), None,
     {"kind": "CLIENT_REJOINS", "reason": "max.poll.interval.ms exceeded"}),  # to 1.5
    (RD.format("REBALANCE", 'Group "payments" is rebalancing (EAGER) in state up (join-state steady) with 2 assigned partition(s) (lost): max.poll.interval.ms exceeded'), None,
     {"kind": "CLIENT_REJOINS", "reason": "max.poll.interval.ms exceeded"}),  # 1.6 on
    (RD.format("HEARTBEAT", 'Group "payments" heartbeat error response in state up (join-state steady, 2 partition(s) assigned): Broker: Unknown member'), None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "group_id": "payments"}),
    (RD.format("GRPSYNC", 'Group "payments": synchronization failed: Broker: Group rebalance in progress: rejoining'), None, {"kind": "CLIENT_ROUND_FAILED"}),
    (RD.format("COMMITFAIL", "Offset commit (manual) failed for 1/1 partition(s) in join-state wait-join: Broker: Unknown member: orders[3]@17(Broker: Unknown member)"), "payments",
     {"kind": "CLIENT_COMMIT_REFUSED", "reason": "Unknown member"}),
    (RD.format("HEARTBEAT", "ConsumerGroupHeartbeat failed due to: Broker: The member epoch is fenced by the group coordinator: will rejoin the group"), "payments",
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_MEMBER_EPOCH"}),
    (RD.format("COMMITFAIL", "Offset commit (manual) failed for 1/1 partition(s) in join-state steady: Broker: Group rebalance in progress: t[0]@17"), "payments", {"kind": "CLIENT_NOTE"}),
    (RD.format("HEARTBEAT", 'Group "payments" heartbeat error response in state up (join-state steady, 1 partition(s) assigned): Broker: Group rebalance in progress'), None, {"kind": "CLIENT_NOTE"}),
    (RD.format("HEARTBEAT", "ConsumerGroupHeartbeat failed: Broker: Group authorization failed"), "payments", {"kind": "CLIENT_NOTE"}),
    (RD.format("FATAL", "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id: Fatal consumer error: Broker: Static consumer fenced"), "payments",
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_INSTANCE_ID"}),
    ('2026-11-21 06:00:00,000 %||librdkafka| Application maximum poll interval (300000ms) exceeded by 352ms"}', "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "rebalance_timeout_ms": 300_000, "connection": "librdkafka"}),
    # other libraries
    ("2026-11-21 06:00:00,000 %||kafka-python| Heartbeat: local member_id was not recognized; this consumer needs to re-join", "payments",
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID"}),
    ("2026-11-21 06:00:00,000 %||kafka-python| Auto offset commit failed for group pay ments: CommitFailedError: Commit cannot be completed since the group has already", None,
     {"kind": "CLIENT_COMMIT_REFUSED", "group_id": "pay ments"}),
    ("2026-11-21 06:00:00,000 %||kafka-python| Marking the coordinator dead (node 0) for group pay ments: Heartbeat session expired.", None, {"kind": "CLIENT_NOTE", "group_id": "pay ments"}),
    ("2026-11-21 06:00:00,000 %||aiokafka| Heartbeat failed: local member_id was not recognized; resetting and re-joining group", "payments",
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID"}),
    ("2026-11-21 06:00:00,000 %||franz-go| heartbeat errored; group: payments, err: UNKNOWN_MEMBER_ID: The coordinator is not aware of this member.", None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "group_id": "payments"}),
    ("2026-11-21 06:00:00,000 %||franz-go| sync failed with RebalanceInProgress, rejoining; group: payments", None, {"kind": "CLIENT_ROUND_FAILED", "group_id": "payments"}),
    ("2026-11-21 06:00:00,000 %||franz-go| consumer group heartbeat error, abandoning assignment and rejoining with new member id; group: payments, member_id: aSdF, generation: 4, err: UNKNOWN_MEMBER_ID: x", None,
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "member_id": "aSdF", "generation": 4}),
    ("2026/11/21 06:00:00 %||kafka-go| Failed to sync group payments: [27] Rebalance In Progress: the coordinator has begun rebalancing the group", None, {"kind": "CLIENT_ROUND_FAILED", "group_id": "payments"}),
    ("2026/11/21 06:00:00 %||kafka-go| Failed to join group payments: [25] Unknown Member ID: the member id is not in the current generation", None, {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID"}),
    ("2026-11-21 06:00:00,000 %||sarama| JoinGroup failed: group instance id i-1 has been fenced", "payments", {"kind": "CLIENT_PUT_OUT", "instance_id": "i-1"}),
    ("2026-11-21 06:00:00,000 %||kafkajs| Response Heartbeat(key: 12, version: 3); clientId: pay-1, error: The coordinator is not aware of this member", "payments",
     {"kind": "CLIENT_PUT_OUT", "state": "UNKNOWN_MEMBER_ID", "client_id": "pay-1"}),
    ("2026-11-21 06:00:00,000 %||kafkajs| Response SyncGroup(key: 14, version: 3); clientId: pay-1, error: The group is rebalancing, so a rejoin is needed", "payments", {"kind": "CLIENT_ROUND_FAILED", "client_id": "pay-1"}),
    ("2026-11-21 06:00:00,000 %||franz-go| join group failed; group: payments, err: FENCED_INSTANCE_ID: another consumer has registered", None,
     {"kind": "CLIENT_PUT_OUT", "state": "FENCED_INSTANCE_ID", "group_id": "payments"}),
    ("2026-11-21 06:00:00,000 %||franz-go| join and sync loop errored; group: payments, err: GROUP_MAX_SIZE_REACHED: full", None, {"kind": "CLIENT_NOTE", "group_id": "payments"}),
    ("2026-11-21 06:00:00,000 %||librdkafka| Maximum application poll interval (max.poll.interval.ms) exceeded", "payments", {"kind": "CLIENT_POLL_TIMEOUT"}),
    ("2026-11-21T06:00:00.000Z %||kafkajs| Crash: KafkaJSNumberOfRetriesExceeded: The coordinator is not aware of this member; groupId: payments", None,
     {"kind": "CLIENT_LEAVES", "group_id": "payments", "reason": "KafkaJSNumberOfRetriesExceeded: The coordinator is not aware of this member"}),
]  # fmt: skip
SKIPPED = [
    RD.format("JOINGROUP", 'I am elected leader for group "payments" with 2 member(s)'),
    RD.format("SUBSCRIBE", 'Group "payments": subscribe to new subscription of 2 topics (join-state init)'),
    RD.format("REBALANCE", 'Group "payments" initiating rebalance (EAGER) in state up (join-state wait-metadata) with 0 assigned partition(s): Metadata for subscribed topic(s) has changed'),
    "2026-11-21 06:00:00,000 INFO com.acme.Billing - Request joining group due to: my own words, groupId=payments",
    JAVA.format("Subscribed to topic(s): orders"),
    # 4.3 and 4.4: ClassicKafkaConsumer, whose first line is empty; AbstractHeartbeatRequestManager; ConsumerHeartbeatRequestManager; CommitRequestManager
    "[2026-11-21 06:00:00,000] INFO [Consumer clientId=pay-1, groupId=payments] ",
    "* The consumer rebalance protocol (KIP-848) is production-ready!",
    "**************************************************************** (org.apache.kafka.clients.consumer.internals.ClassicKafkaConsumer)",
    JAVA.format("ConsumerGroupHeartbeatRequest received GROUP_ID_NOT_FOUND for group payments while unsubscribed."),
    JAVA.format("Member aSd-x received heartbeat interval 5000ms from the group coordinator"),
    JAVA.format("Dynamic member aSd-x closed with REMAIN_IN_GROUP. No leave heartbeat will be sent, the member will be removed by the coordinator after session timeout."),
    RD.format("MAXPOLL", "h:9092/1: Broker does not support KIP-62 (requires Apache Kafka >= v0.10.1.0): consumer configuration `max.poll.interval.ms` (300000) is effectively limited"),
]  # fmt: skip
REFUSED = [
    (RD.format("MAXPOLL", "Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms): leaving group"), "NO_GROUP"),
    (RD.format("MAXPOLL", "Application maximum pole interval"), "UNKNOWN_TEMPLATE"),
    ("2026-11-21 06:00:00,000 %||kafka-python| Heartbeat poll expired, leaving group", "NO_GROUP"),
    (JAVA.format("Request joining group due to: \x1b[31mred"), "CONTROL_CHARACTERS"),
    (JAVA.format("Request joining group due to: " + "x" * 70_000), "TOO_LONG"),
]  # fmt: skip


@pytest.fixture(scope="module")
def told():
    lines = [*EVENTS, *((text, "payments") for text in SKIPPED), *((text, None) for text, _ in REFUSED)]
    rows = [
        ("c", "clients", "line", "clients/app.log", n, START + timedelta(milliseconds=n), text, None, 1, context, None)
        for n, (text, context, *_) in enumerate(lines)
    ]
    return read_lines(rows).to_pylist()


@pytest.mark.parametrize("place", range(len(EVENTS)), ids=[f"{e[2]['kind']} {e[0][:12]}" for e in EVENTS])
def test_events(told, place):
    row, expected = told[place], EVENTS[place][2]
    assert (row["verdict"], row["source"], row["refusal"]) == ("event", "client", None)
    assert {name: row[name] for name in expected} == expected
    exceeded = re.search(r"exceeded (?:approximately )?by (\d+) ?ms", EVENTS[place][0])
    assert row["occurred_at"] - row["received_at"] == timedelta(milliseconds=int(exceeded[1]) if exceeded else 0)


def test_what_says_nothing_is_skipped(told):
    rows = told[len(EVENTS) : len(EVENTS) + len(SKIPPED)]
    assert [(row["verdict"], row["refusal"]) for row in rows] == [("skipped", None)] * len(SKIPPED)


def test_what_is_damaged_is_refused(told):
    rows = told[len(EVENTS) + len(SKIPPED) :]
    assert [(row["verdict"], row["refusal"]) for row in rows] == [("quarantine", reason) for _, reason in REFUSED]
