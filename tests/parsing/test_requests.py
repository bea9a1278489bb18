# ruff: noqa: E501 - a line and what is read of it side by side
"""Request lines of every API and version, and the damage that their checks find."""

import base64
import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as e
from jobs.parsing import batch
from tests.parsing.reading import read_lines

START = datetime(2026, 11, 21, 5, 10, 7, 99_000, tzinfo=timezone.utc)
SUBSCRIPTION = "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="
ASSIGNMENT = "AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAACAAAAAA=="
PARTITIONS = ["orders-0", "orders-1", "orders-2"]
KEYS = {
    e.JOIN_GROUP: 11, e.SYNC_GROUP: 14, e.HEARTBEAT: 12, e.LEAVE_GROUP: 13, e.OFFSET_COMMIT: 8, e.TXN_OFFSET_COMMIT: 28,
    e.OFFSET_FETCH: 9, e.DELETE_GROUPS: 42, e.FIND_COORDINATOR: 10, e.CONSUMER_GROUP_HEARTBEAT: 68, e.SHARE_GROUP_HEARTBEAT: 76, e.STREAMS_GROUP_HEARTBEAT: 88, "FETCH": 1,
}  # fmt: skip
MEMBER = {"groupId": "g", "generationId": 4, "memberId": "m-1"}
TXN_4_4 = {
    "transactionalId": "t", "groupId": "g", "producerId": 7, "producerEpoch": 1, "generationIdOrMemberEpoch": 4,
    "memberId": "m-1", "groupInstanceId": None,
}  # fmt: skip


def line(api, version, body, answer, *, level="DEBUG", header=None, **top):
    envelope = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": KEYS[api], "requestApiVersion": version, "correlationId": 3, "clientId": "b1",
                          "requestApiKeyName": api, **(header or {})},
        "request": body, "response": answer, "connection": "127.0.0.1:19092-10.0.0.9:53676-0-2", "totalTimeMs": 5.305,
        "requestQueueTimeMs": 1.105, "localTimeMs": 2.2, "remoteTimeMs": 1.9, "throttleTimeMs": 0, "responseQueueTimeMs": 0.05,
        "sendTimeMs": 0.049, "securityProtocol": "PLAINTEXT", "principal": "User:ANONYMOUS", "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "3.6.0"}, **top,
    }  # fmt: skip
    text = json.dumps(envelope, separators=(",", ":"), ensure_ascii=False)
    return f"[2026-11-21 05:10:07,099] {level} Completed request:{text} (kafka.request.logger)"


def commit(codes, *, topic=None):
    partitions = [{"partitionIndex": place, "errorCode": code} for place, code in enumerate(codes)]
    return {"throttleTimeMs": 0, "topics": [{**(topic or {"name": "t"}), "partitions": partitions}]}


def sync(version, assignments, **more):
    return {**MEMBER, "assignments": assignments, **({"groupInstanceId": None} if version >= 3 else {}), **more}


def find_one(version, key="orders", key_type=0, **answer):
    """FindCoordinator until v3: one key."""
    body = {"key": key, **({"keyType": key_type} if version >= 1 else {})}
    told = {"throttleTimeMs": 0, "errorMessage": "NONE"} if version >= 1 else {}
    return line(e.FIND_COORDINATOR, version, body, {**told, "errorCode": 0, "nodeId": 2, "host": "10.0.0.2", "port": 9092, **answer})


def find_many(version, *answers, key_type=0):
    """FindCoordinator since v4: a list of keys, each with its own answer."""
    coordinator = {"nodeId": 2, "host": "10.0.0.2", "port": 9092, "errorCode": 0, "errorMessage": ""}
    body = {"keyType": key_type, "coordinatorKeys": [answer["key"] for answer in answers]}
    return line(e.FIND_COORDINATOR, version, body, {"throttleTimeMs": 0, "coordinators": [{**coordinator, **answer} for answer in answers]})


def fetch_offsets(version, *groups, partitions=(0, 2), topic=None, answer=None):
    """OffsetFetch: of one group until v7, of several since."""
    topics = None if partitions is None else [{**(topic or {"name": "t"}), "partitionIndexes": list(partitions)}]
    told = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 7, "metadata": "", "errorCode": 0}]}]
    if version < 8:
        top = {"errorCode": 0} if version >= 2 else {}
        return line(e.OFFSET_FETCH, version, {"groupId": groups[0], "topics": topics}, {"topics": told, **top, **(answer or {})})
    who = {"memberId": None, "memberEpoch": -1} if version >= 9 else {}
    body = {"groups": [{"groupId": group, **who, "topics": topics} for group in groups], "requireStable": True}
    answers = [{"groupId": group, "topics": told, "errorCode": 0, **(answer or {})} for group in groups]
    return line(e.OFFSET_FETCH, version, body, {"throttleTimeMs": 0, "groups": answers})


NO_COORDINATOR = {"errorCode": 15, "errorMessage": "The coordinator is not available.", "nodeId": -1, "host": "", "port": -1}
FOUND = {"group_id": "orders", "error_code": 0, "coordinator_id": 2, "coordinator_address": "10.0.0.2:9092"}
OK = {"throttleTimeMs": 0, "errorCode": 0}
BEAT = line(e.HEARTBEAT, 4, {**MEMBER, "groupInstanceId": None}, OK)

# What a line says, and what is read of it: (name, line, columns of its first row, number of rows)
GOOD = [
    ("heartbeat", BEAT,
     {"kind": e.HEARTBEAT, "generation": 4, "member_id": "m-1", "error_code": 0, "beat_count": 1, "beats": [0], "lines": 1,
      "software": "apache-kafka-java 3.6.0", "client_host": "10.0.0.9", "longest_gap_ms": None}, 1),
    ("heartbeat v0, deprecated: INFO", line(e.HEARTBEAT, 0, MEMBER, {"errorCode": 27}, level="INFO", header={"requestApiVersionDeprecated": True}),
     {"api_version": 0, "error_code": 27}, 1),
    ("no client id, unknown software",
     line(e.HEARTBEAT, 4, MEMBER, OK, header={"clientId": None}, clientInformation={"softwareName": "unknown", "softwareVersion": "unknown"}),
     {"client_id": None, "software": None}, 1),
    ("ids with any character", line(e.HEARTBEAT, 3, {"groupId": 'a "b" {c} 😀', "generationId": 1, "memberId": "/+_\\", "groupInstanceId": "ß"}, OK),
     {"group_id": 'a "b" {c} 😀', "member_id": "/+_\\", "instance_id": "ß"}, 1),
    ("link-local client", line(e.HEARTBEAT, 4, MEMBER, OK, connection="fe80:0:0:0:0:0:0:1%br-1:9092-fe80:0:0:0:0:0:0:2%br-1:40000-7"),
     {"client_host": "fe80:0:0:0:0:0:0:2%br-1"}, 1),
    *((f"client at {connection}", line(e.SYNC_GROUP, 5, sync(5, []), {**OK, "assignment": ""}, connection=connection), {"client_host": host}, 1)
      for connection, host in (
          ("127.0.0.1:9092-10.1.2.3:5000-7", "10.1.2.3"),
          ("127.0.0.1:9092-10.1.2.3:5000-0-7", "10.1.2.3"),
          ("0:0:0:0:0:0:0:1:9092-2001:db8:0:0:0:0:0:5:5000-0-7", "2001:db8:0:0:0:0:0:5"))),
    ("answered before its handler returned", line(e.HEARTBEAT, 4, MEMBER, OK, remoteTimeMs=0.0, localTimeMs=5.0, totalTimeMs=5.3), {"kind": e.HEARTBEAT}, 1),
    ("throttled", line(e.HEARTBEAT, 4, MEMBER, OK, throttleTimeMs=5000), {"kind": e.HEARTBEAT}, 1),
    ("sync of the leader", line(e.SYNC_GROUP, 5, sync(5, [{"memberId": "m-2", "assignment": ASSIGNMENT}], protocolType="consumer", protocolName="range"),
                                {**OK, "protocolType": "consumer", "protocolName": "range", "assignment": ""}),
     {"protocol": "range", "assignments": [("m-2", PARTITIONS)]}, 1),
    ("sync of another, before its protocol type was told", line(e.SYNC_GROUP, 3, sync(3, []), {**OK, "assignment": ASSIGNMENT}),
     {"protocol_type": None, "assignments": [("m-1", PARTITIONS)]}, 1),
    ("sync of a connect worker", line(e.SYNC_GROUP, 5, sync(5, [], protocolType="connect"), {**OK, "assignment": ASSIGNMENT}),
     {"assignments": [("m-1", None)]}, 1),
    ("sync refused", line(e.SYNC_GROUP, 5, sync(5, []), {**OK, "errorCode": 27, "assignment": ""}), {"error_code": 27, "assignments": None}, 1),
    ("join v9 with a reason", line(e.JOIN_GROUP, 9, {"groupId": "g", "sessionTimeoutMs": 9000, "rebalanceTimeoutMs": 12000, "memberId": "m-1",
                                                     "groupInstanceId": "i", "protocolType": "consumer", "reason": "rebalance enforced by user",
                                                     "protocols": [{"name": "range", "metadata": SUBSCRIPTION}]},
                                   {**OK, "generationId": 5, "protocolType": "consumer", "protocolName": "range", "leader": "m-1", "skipAssignment": True,
                                    "memberId": "m-1", "members": []}),
     {"answer_generation": 5, "skip_assignment": True, "reason": "rebalance enforced by user", "instance_id": "i", "members": []}, 1),
    ("join v0", line(e.JOIN_GROUP, 0, {"groupId": "g", "sessionTimeoutMs": 9000, "memberId": "", "protocolType": "connect",
                                       "protocols": [{"name": "sessioned", "metadata": SUBSCRIPTION}]},
                     {"errorCode": 0, "generationId": 1, "protocolName": "sessioned", "leader": "m", "memberId": "m", "members": []}),
     {"rebalance_timeout_ms": None, "protocol_type": "connect"}, 1),
    ("leave of one with a reason", line(e.LEAVE_GROUP, 5, {"groupId": "g", "members": [{"memberId": "m-1", "groupInstanceId": None, "reason": "closed"}]},
                                        {**OK, "members": [{"memberId": "m-1", "groupInstanceId": None, "errorCode": 25}]}),
     {"member_id": "m-1", "reason": "closed", "error_code": 0}, 1),
    ("commit v10 by topic id", line(e.OFFSET_COMMIT, 10, {"groupId": "g", "generationIdOrMemberEpoch": 4, "memberId": "m-1", "topics": []},
                                    commit([0, 0, 25], topic={"topicId": "ZiIvh65vQPOxTeW80lTaIA"})),
     {"error_code": 25, "member_count": 3, "generation": 4}, 1),
    *((f"commit v{version}", line(e.OFFSET_COMMIT, version, {
        "groupId": "g", field: 4, "memberId": "m-1", "groupInstanceId": None,
        "topics": [{"name": "t", "partitions": [{"partitionIndex": p, "committedOffset": 7, "committedMetadata": ""} for p in (0, 1)]}],
    }, commit([0, 22])),
       {"error_code": 22, "member_count": 2, "generation": 4}, 1)
      for field, version in (("generationId", 8), ("generationIdOrMemberEpoch", 9))),
    ("commit v0 without a member", line(e.OFFSET_COMMIT, 0, {"groupId": "g", "topics": []}, commit([0])), {"generation": None, "member_id": None}, 1),
    ("commit of a transaction", line(e.TXN_OFFSET_COMMIT, 3, {**MEMBER, "transactionalId": "t", "producerId": 0, "producerEpoch": 0, "topics": []}, commit([22])),
     {"kind": e.TXN_OFFSET_COMMIT, "error_code": 22, "generation": 4}, 1),
    # Written by TxnOffsetCommitRequestDataJsonConverter and DeleteGroupsResponseDataJsonConverter of Kafka 4.4.0.
    *((f"commit of a transaction, v{version} of 4.4", line(e.TXN_OFFSET_COMMIT, version,
                                                           {**TXN_4_4, "topics": [{**topic, "partitions": [{"partitionIndex": 0, "committedOffset": 9}]}]},
                                                           commit([113], topic=topic)),
       {"kind": e.TXN_OFFSET_COMMIT, "error_code": 113, "generation": 4, "member_id": "m-1", "member_count": 1, "api_version": version}, 1)
      for version, topic in ((3, {"name": "t"}), (5, {"name": "t"}), (6, {"topicId": "PoXy_d3qQpOGkRtEOEpFtQ"}))),
    ("commit of a transaction, v0", line(e.TXN_OFFSET_COMMIT, 0, {"groupId": "g", "transactionalId": "t", "topics": []}, commit([])), {"generation": None}, 1),
    ("two groups deleted, v3", line(e.DELETE_GROUPS, 3, {"groupsNames": ["a", "orders"]},
                                    {"throttleTimeMs": 0, "results": [{"groupId": "a", "errorCode": 68, "errorMessage": "The group is not empty."},
                                                                      {"groupId": "orders", "errorCode": 0, "errorMessage": None}]}),
     {"group_id": "a", "error_code": 68, "reason": None}, 2),
    ("an error of 4.4", line(e.DELETE_GROUPS, 3, {"groupsNames": ["a"]}, {"results": [{"groupId": "a", "errorCode": 134, "errorMessage": "x"}]}),
     {"group_id": "a", "error_code": 134}, 1),
    ("two groups deleted", line(e.DELETE_GROUPS, 2, {"groupsNames": ["a", "orders"]},
                                {"throttleTimeMs": 0, "results": [{"groupId": "a", "errorCode": 68}, {"groupId": "orders", "errorCode": 0}]}),
     {"group_id": "a", "error_code": 68, "lines": 1, "coordinator_partition": 47}, 2),
    *((f"offsets fetched, v{version}", fetch_offsets(version, "orders"),
       {"kind": e.OFFSET_FETCH, "group_id": "orders", "coordinator_partition": 31, "member_id": None, "member_count": 2, "error_code": None if version < 2 else 0}, 1)
      for version in (0, 1, 2, 7, 8, 9, 10)),
    ("offsets not fetched", fetch_offsets(9, "orders", answer={"errorCode": 16, "topics": []}), {"group_id": "orders", "error_code": 16}, 1),
    *((f"coordinator found, v{version}", find_one(version), {**FOUND, "kind": e.FIND_COORDINATOR, "coordinator_partition": 31}, 1) for version in range(4)),
    *((f"coordinators found, v{version}", find_many(version, {"key": "orders"}, {"key": "b", **NO_COORDINATOR}, {"key": "c"}), FOUND, 3) for version in (4, 5, 6)),
    ("no coordinator", find_one(2, **NO_COORDINATOR), {"group_id": "orders", "error_code": 15, "coordinator_id": None, "coordinator_address": None}, 1),
    ("no coordinator, v4", find_many(4, {"key": "orders", **NO_COORDINATOR}),
     {"group_id": "orders", "error_code": 15, "coordinator_id": None, "coordinator_address": None, "lines": 1}, 1),
    ("coordinator at an IPv6 address", find_one(3, host="2001:db8:0:0:0:0:0:5"), {"coordinator_address": "2001:db8:0:0:0:0:0:5:9092"}, 1),
    ("KIP-848 join", line(e.CONSUMER_GROUP_HEARTBEAT, 1,
                          {"groupId": "g", "memberId": "WR0lBCwrTxSoqM5Yd3xUww", "memberEpoch": 0, "instanceId": "i", "rackId": None, "rebalanceTimeoutMs": 12000,
                           "subscribedTopicNames": ["orders"], "subscribedTopicRegex": "", "serverAssignor": None, "topicPartitions": []},
                          {**OK, "errorMessage": None, "memberId": "WR0lBCwrTxSoqM5Yd3xUww", "memberEpoch": 2, "heartbeatIntervalMs": 2000,
                           "assignment": {"topicPartitions": [{"topicId": "ZiI", "partitions": [0, 1]}]}}),
     {"generation": 0, "answer_generation": 2, "instance_id": "i", "rebalance_timeout_ms": 12000,
      "assignments": [("WR0lBCwrTxSoqM5Yd3xUww", ["ZiI-0", "ZiI-1"])], "subscribed_regex": "", "owned": []}, 1),
    ("KIP-848 expression", line(e.CONSUMER_GROUP_HEARTBEAT, 1,
                                {"groupId": "g", "memberId": "m", "memberEpoch": 2, "subscribedTopicNames": None, "subscribedTopicRegex": "orders.*",
                                 "topicPartitions": [{"topicId": "ZiI", "partitions": [0, 2]}, {"topicId": "PoX", "partitions": [1]}]},
                                {**OK, "memberId": "m", "memberEpoch": 2, "assignment": None}),
     {"protocols": None, "subscribed_regex": "orders.*", "owned": ["ZiI-0", "ZiI-2", "PoX-1"]}, 1),
    ("KIP-848 beat", line(e.CONSUMER_GROUP_HEARTBEAT, 1, {"groupId": "g", "memberId": "m", "memberEpoch": 2, "subscribedTopicNames": None},
                          {**OK, "memberId": "m", "memberEpoch": 2, "assignment": None}),
     {"protocols": None, "assignments": None, "subscribed_regex": None, "owned": None}, 1),
    ("KIP-932 join", line(e.SHARE_GROUP_HEARTBEAT, 1, {"groupId": "g", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["orders"]},
                          {**OK, "memberId": "m", "memberEpoch": 3, "assignment": None}),
     {"member_id": "m", "client_id": "b1", "generation": 0, "answer_generation": 3}, 1),
    ("KIP-1071 leave", line(e.STREAMS_GROUP_HEARTBEAT, 0, {"groupId": "g", "memberId": "m", "memberEpoch": -1, "rebalanceTimeoutMs": -1},
                            {**OK, "memberId": "m", "memberEpoch": -1}), {"member_id": "m", "generation": -1}, 1),
    ("a field twice: the last counts", BEAT.replace('"generationId":4', '"generationId":3,"gener\\u0061tionId":4'), {"generation": 4}, 1),
    ("escaped characters", BEAT.replace('"g"', r'"\u0000\n\/\ud83d\ude00"'), {"group_id": "\x00\n/😀"}, 1),
    ("commit of no partition", line(e.OFFSET_COMMIT, 9, {"groupId": "g", "generationId": 1, "memberId": "m", "topics": []}, commit([])),
     {"error_code": 0, "member_count": 0}, 1),
]  # fmt: skip

JOIN = next(text for name, text, *_ in GOOD if name == "join v9 with a reason")

# Doubt about a number costs that number: (name, line, columns of its row). BEAT took 5.305 ms; `duration_us` is `at` minus `received_at`.
DOUBTFUL = [
    ("a total above its parts: another part is measured", BEAT.replace("5.305", "7.305"), {"duration_us": 7305}),
    ("a total below its parts", BEAT.replace("5.305", "3.305"), {"duration_us": 0}),
    ("a negative total", BEAT.replace("5.305", "-5.305"), {"duration_us": 0}),
    ("a total of an age", BEAT.replace("5.305", "1e300"), {"duration_us": 0}),
    ("no total", BEAT.replace('"totalTimeMs"', '"elapsedMs"'), {"duration_us": 0}),
    ("a negative part", BEAT.replace("0.049", "-0.049"), {"duration_us": 0}),
    ("a part of another name", BEAT.replace('"sendTimeMs"', '"writeTimeMs"'), {"duration_us": 5305}),
    ("a connection of another shape", BEAT.replace("10.0.0.9:53676-0-2", "10.0.0.9:5x676-0-2"), {"connection": None, "client_host": None}),
    ("no connection", BEAT.replace('"connection"', '"channel"'), {"connection": None, "client_host": None}),
    ("no correlation id", BEAT.replace('"correlationId"', '"sequence"'), {"correlation_id": None}),
    ("a JoinGroup without timeouts", JOIN.replace('"sessionTimeoutMs"', '"sessionMs"').replace('"rebalanceTimeoutMs"', '"rebalanceMs"'),
     {"session_timeout_ms": None, "rebalance_timeout_ms": None, "api_version": 9}),
]  # fmt: skip

DAMAGED = [
    ("NO_TIME", BEAT),
    ("TRUNCATED", BEAT[:-3]),
    ("TRUNCATED", BEAT[:60]),
    ("MALFORMED", BEAT.replace("DEBUG", "DEB\x08G")),
    ("MALFORMED", BEAT[3:]),
    ("OLD_FORMAT", "[2026-11-21 05:10:07,099] DEBUG Completed request:{api_key=12,api_version=1} -- {group_id=a} from connection a:1-b:2 (kafka.request.logger)"),
    ("MALFORMED", "[2026-11-21 05:10:07,099] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT) -- {} (kafka.request.logger)"),
    ("LOGGED_WITHOUT_BODY", line(e.HEARTBEAT, 4, "", "")),
    ("LOGGED_WITHOUT_BODY", line(e.HEARTBEAT, 4, MEMBER, "")),
    ("LOGGED_WITHOUT_BODY", line(e.HEARTBEAT, 4, None, None)),  # of 4.4
    ("LOGGED_WITHOUT_BODY", line(e.HEARTBEAT, 4, MEMBER, None)),
    ("UNSUPPORTED_VERSION:7", line(e.TXN_OFFSET_COMMIT, 7, TXN_4_4, commit([0]))),
    ("MISSING_FIELD:request.generationIdOrMemberEpoch", line(e.TXN_OFFSET_COMMIT, 5, {"groupId": "g", "memberId": "m", "topics": []}, commit([0]))),
    ("INVALID_JSON", BEAT.replace('"generationId":4', '"generationId":"4"')),
    ("INVALID_JSON", BEAT.replace('"generationId":4', '"generationId":4.5')),
    ("INVALID_JSON", BEAT.replace('"generationId":4', '"generationId":99999999999')),
    ("INVALID_JSON", BEAT.replace('"groupId":"g"', '"groupId":5')),
    ("INVALID_JSON", BEAT.replace('"g"', '"g\x02"')),
    ("INVALID_JSON", BEAT.replace("5.305", "NaN")),
    ("INVALID_JSON", BEAT.replace('"request":{', '"request":[{', 1)),
    ("API_MISMATCH", BEAT.replace('"HEARTBEAT"', '"HEARTBEAU"')),
    ("API_MISMATCH", BEAT.replace('"requestApiKey":12', '"requestApiKey":13')),
    ("UNSUPPORTED_VERSION:5", line(e.HEARTBEAT, 5, MEMBER, OK)),
    ("UNSUPPORTED_VERSION:-1", line(e.HEARTBEAT, -1, MEMBER, OK)),
    ("MISSING_FIELD:request.groupId", BEAT.replace('"groupId":"g",', "")),
    ("MISSING_FIELD:request.groupId", BEAT.replace('"groupId"', '"grnupId"')),
    ("MISSING_FIELD:response.errorCode", line(e.HEARTBEAT, 4, MEMBER, {"throttleTimeMs": 0})),
    ("MISSING_FIELD:request.generationIdOrMemberEpoch", line(e.OFFSET_COMMIT, 9, {"groupId": "g", "memberId": "m"}, commit([0]))),
    ("MISSING_FIELD:response.topics.partitions.errorCode", line(e.OFFSET_COMMIT, 9, {"groupId": "g", "memberId": "m", "generationId": 1}, commit([None]))),
    ("MISSING_FIELD:request.members", line(e.LEAVE_GROUP, 3, {"groupId": "g", "memberId": "m"}, {**OK, "members": []})),
    ("MISSING_FIELD:request.memberId", line(e.LEAVE_GROUP, 2, {"groupId": "g"}, OK)),
    ("UNSUPPORTED_VERSION:7", find_many(7, {"key": "g"})),
    ("INVALID_JSON", find_one(2, key=5)),
    ("INVALID_JSON", find_one(2, host=True)),
    ("INVALID_JSON", find_many(4, {"key": "g", "nodeId": "1"})),
    ("MISSING_FIELD:request.key", find_one(3, key=None)),
    ("MISSING_FIELD:request.keyType", find_one(1, key_type=None)),
    ("MISSING_FIELD:response.nodeId", find_one(0, nodeId=None)),
    ("MISSING_FIELD:request.coordinatorKeys", find_one(4)),
    ("MISSING_FIELD:response.coordinators", find_many(4).replace('"coordinators"', '"coordinatprs"')),
    ("MISSING_FIELD:response.coordinators.nodeId", find_many(4, {"key": "g"}, {"key": "h", "port": None})),
    ("UNKNOWN_ERROR_CODE", find_many(5, {"key": "g"}, {"key": "h", "errorCode": 9999})),
    ("MISSING_FIELD:response.host", find_one(2, key_type=1, host=None)),
    ("UNSUPPORTED_VERSION:11", fetch_offsets(11, "g")),
    ("INVALID_JSON", fetch_offsets(9, "g", partitions=("x",))),
    ("MISSING_FIELD:request.groupId", fetch_offsets(7, None)),
    ("MISSING_FIELD:request.groups", fetch_offsets(9, "g").replace('"groups"', '"grnups"', 1)),
    ("MISSING_FIELD:response.groups", fetch_offsets(9, "g").replace('"throttleTimeMs":0,"groups"', '"throttleTimeMs":0,"grnups"')),
    ("MISSING_FIELD:response.groups.errorCode", fetch_offsets(9, "g", answer={"errorCode": None})),
    ("MISSING_FIELD:request.groups.groupId", fetch_offsets(9, "g", None)),
    ("UNKNOWN_ERROR_CODE", fetch_offsets(9, "g", answer={"errorCode": 9999})),
    ("UNKNOWN_ERROR_CODE", line(e.HEARTBEAT, 4, MEMBER, {**OK, "errorCode": 4096})),
    ("UNKNOWN_ERROR_CODE", line(e.OFFSET_COMMIT, 9, {"groupId": "g", "memberId": "m", "generationId": 1}, commit([0, -7]))),
    ("INVALID_BASE64", line(e.SYNC_GROUP, 3, sync(3, []), {**OK, "assignment": ASSIGNMENT.replace("B", "*", 1)})),
    ("INVALID_BASE64", line(e.SYNC_GROUP, 3, sync(3, []), {**OK, "assignment": {"topicPartitions": []}})),
    ("INVALID_BASE64", JOIN.replace(SUBSCRIPTION, SUBSCRIPTION[:-2] + "\\n")),
    ("INVALID_JSON", BEAT.replace("}} (", '}},"connection":"x"} (')),  # more after the end: the rest of a second line would be lost
    ("INVALID_JSON", BEAT + BEAT),
    ("INVALID_JSON", BEAT.replace('"g"', '"\\ud83d"')),  # half of a character
    ("INVALID_JSON", BEAT.replace('"User:ANONYMOUS"', '"\\ud83d"')),
    ("INVALID_JSON", BEAT.replace('"g"', '"\\q"')),
    ("INVALID_JSON", BEAT.replace("5.305", "1e999")),
    ("INVALID_JSON", BEAT.replace('"generationId":4', '"generationId":04')),
    ("INVALID_JSON", BEAT.replace('"isForwarded":false', '"isForwarded":' + "[" * 100_000)),
    ("INVALID_JSON", find_many(4, {"key": "g"}).replace('["g"]', '["g",5]')),
    ("INVALID_JSON", BEAT.replace('"generationId":4', '"generationId":"4","generationId":4')),
    ("MISSING_FIELD:request.generationId", BEAT.replace('"generationId":4', '"generationId":4,"generationId":null')),
    ("MISSING_FIELD:request", BEAT.replace('"request":{', '"r":{')),
    ("MISSING_FIELD:response", BEAT.replace('"response":{', '"r":{')),
    ("MISSING_FIELD:requestHeader.requestApiKey", BEAT.replace('"requestApiKey":12,', "")),
]  # fmt: skip

SKIPPED = [
    BEAT.replace('"requestApiKey":12', '"requestApiKey":1').replace('"HEARTBEAT"', '"FETCH"'),
    BEAT.replace('"requestApiKey":12', '"requestApiKey":1').replace('"HEARTBEAT"', '"FETCH"')[:300],  # cut, but no group's
    *(
        BEAT.replace('"requestApiKey":12,"requestApiVersion":4', f'"requestApiKey":{key},"requestApiVersion":{version}').replace(
            '"HEARTBEAT"', f'"{name}"'
        )
        for key, version, name in (
            (18, 5, "API_VERSIONS"),
            (89, 1, "STREAMS_GROUP_DESCRIBE"),
            (93, 0, "STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE"),
            (94, 0, "UNREGISTER_CONTROLLER"),
        )
    ),
    line(e.SHARE_GROUP_HEARTBEAT, 1, {"groupId": "g", "memberId": "m", "memberEpoch": 2}, {"errorCode": 0, "memberEpoch": 2}),  # it goes on
    find_one(2, key="transaction", key_type=1),
    fetch_offsets(9, "g", partitions=None),  # of a tool: all partitions
    fetch_offsets(5, "g", partitions=None),
    fetch_offsets(9, "g", "h"),  # of a tool: several groups
    fetch_offsets(9),
    find_many(6, {"key": "g:ZiIvh65vQPOxTeW80lTaIA:0"}, {"key": "g:ZiIvh65vQPOxTeW80lTaIA:1"}, key_type=2),  # of a share group
]

FIRST_DAMAGED = len(GOOD) + len(DOUBTFUL)


@pytest.fixture(scope="module")
def read():
    """Rows of events by position, and (verdict, refusal) by position."""
    texts = [entry[1] for entry in (*GOOD, *DOUBTFUL)] + [text for _, text in DAMAGED] + SKIPPED
    # An hour apart and of files of their own: no two beats are one run.
    rows = [("c", "b", "line", f"f{n}", n, START + timedelta(hours=n), text, None, 1, None, None) for n, text in enumerate(texts)]
    no_time = FIRST_DAMAGED
    rows[no_time] = (*rows[no_time][:5], None, *rows[no_time][6:])
    told = read_lines(rows)
    verdicts = {row["position"]: (row["verdict"], row["refusal"]) for row in told.to_pylist()}
    events = {}
    for row in batch.events(told, 0).to_pylist():
        events.setdefault(row["position"], []).append(row)
    return events, verdicts


@pytest.mark.parametrize("place", range(len(GOOD)), ids=[entry[0] for entry in GOOD])
def test_what_a_line_says(read, place):
    _, _, expected, rows = GOOD[place]
    assert read[1][place] == ("event", None)
    events = sorted(read[0][place], key=lambda event: -event["lines"])
    assert len(events) == rows
    assert sum(event["lines"] for event in events) == 1
    found = {name: events[0][name] for name in expected}
    if expected.get("assignments"):
        found["assignments"] = [(entry["member_id"], entry["partitions"]) for entry in found["assignments"]]
    assert found == expected


@pytest.mark.parametrize("place", range(len(DOUBTFUL)), ids=[entry[0] for entry in DOUBTFUL])
def test_doubt_about_a_number_costs_that_number(read, place):
    _, _, expected = DOUBTFUL[place]
    assert read[1][len(GOOD) + place] == ("event", None)
    (event,) = read[0][len(GOOD) + place]
    event["duration_us"] = (event["occurred_at"] - event["received_at"]) // timedelta(microseconds=1)
    assert {name: event[name] for name in expected} == expected
    assert event["group_id"] == "g"


@pytest.mark.parametrize("place", range(len(DAMAGED)), ids=[f"{n} {code}" for n, (code, _) in enumerate(DAMAGED)])
def test_damage_is_found_and_named(read, place):
    assert read[1][FIRST_DAMAGED + place] == ("quarantine", DAMAGED[place][0])
    assert FIRST_DAMAGED + place not in read[0]


def test_requests_of_other_matters_are_skipped(read):
    for place in range(FIRST_DAMAGED + len(DAMAGED), len(read[1])):
        assert read[1][place] == ("skipped", None)
        assert place not in read[0]


def test_each_group_of_a_batched_request_has_its_own_answer(read):
    place = [entry[0] for entry in GOOD].index("coordinators found, v6")
    answers = {event["group_id"]: (event["error_code"], event["coordinator_id"], event["coordinator_address"]) for event in read[0][place]}
    assert answers == {"orders": (0, 2, "10.0.0.2:9092"), "b": (15, None, None), "c": (0, 2, "10.0.0.2:9092")}


def test_the_digest_tells_equal_metadata_by_its_bytes(read):
    place = [entry[0] for entry in GOOD].index("join v9 with a reason")
    (protocol,) = read[0][place][0]["protocols"]
    assert protocol["topics"] == ["orders"]
    assert len(base64.b64decode(SUBSCRIPTION)) > len(protocol["digest"]) == 16


@given(st.data())
def test_no_damage_stops_the_reader_or_hides_a_line(data):
    """Pieces of lines are cut out, doubled, or replaced."""
    text = data.draw(st.sampled_from([text for _, text, *_ in GOOD]))
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        text = text[:start] + data.draw(st.sampled_from(["", "{", '"', "\\", "0", text[start:end] * 2]) | st.text(max_size=9)) + text[end:]
    (row,) = read_lines([("c", "b", "line", "f", 1, START, text, None, 1, None, None)]).to_pylist()
    assert (row["verdict"], row["refusal"] is None, row["raw"] is None, row["kind"] in KEYS) in {
        ("event", True, True, True), ("skipped", True, True, False), ("quarantine", False, False, False)
    }  # fmt: skip


def test_arrival_is_the_line_time_minus_the_total(read):
    event = read[0][0][0]
    assert event["occurred_at"] - event["received_at"] == timedelta(microseconds=5305)
