"""Lines of `kafka.request.logger` as rows: `[time] LEVEL Completed request:{json} (kafka.request.logger)`, Kafka 2.8 to 4.2.

The text of Kafka 1.0 to 2.7 is read as the JSON that request_text.py makes of it.

Shapes: kafka `RequestConvertToJson` and `clients/src/main/resources/common/message/*.json`. The JSON of all group APIs is read once,
with one schema, the union of their versions. Requests of other APIs are recognised by their header and not read.

A line is written when the request is answered, after the answer was sent, so `received_at` is `at` minus `totalTimeMs`. `totalTimeMs`
has microseconds, `at` only milliseconds (cut, not rounded): `received_at` is up to 1 ms early, and its microseconds carry no meaning
beyond the order of requests that were answered in the same millisecond. Where `totalTimeMs` cannot be believed, `received_at` is `at`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model.events import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    REQUEST_SOURCE,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from jobs.parsing import request_checks as checks
from jobs.parsing import request_text
from jobs.parsing.rows import BLOBS, COMMON, GROUP, judged, solid
from schemas.group_events import ASSIGNMENTS, MEMBERS, PROTOCOLS

_MEMBER: Final = "memberId STRING, groupInstanceId STRING"
_PARTITIONS: Final = "topics: ARRAY<STRUCT<partitionIndexes: ARRAY<INT>>>"
JSON_SCHEMA: Final = f"""
    requestHeader STRUCT<
        requestApiKey: INT, requestApiVersion: INT, correlationId: INT, clientId: STRING, requestApiKeyName: STRING>,
    request STRUCT<
        groupId: STRING, memberId: STRING, groupInstanceId: STRING, generationId: INT, generationIdOrMemberEpoch: INT,
        sessionTimeoutMs: INT, rebalanceTimeoutMs: INT, protocolType: STRING, protocolName: STRING, reason: STRING,
        protocols: ARRAY<STRUCT<name: STRING, metadata: STRING>>,
        assignments: ARRAY<STRUCT<memberId: STRING, assignment: STRING>>,
        members: ARRAY<STRUCT<{_MEMBER}, reason: STRING>>,
        memberEpoch: INT, instanceId: STRING, serverAssignor: STRING, subscribedTopicNames: ARRAY<STRING>,
        groupsNames: ARRAY<STRING>, key: STRING, keyType: INT, coordinatorKeys: ARRAY<STRING>,
        {_PARTITIONS},
        groups: ARRAY<STRUCT<groupId: STRING, memberId: STRING, memberEpoch: INT, {_PARTITIONS}>>>,
    response STRUCT<
        errorCode: INT, generationId: INT, protocolType: STRING, protocolName: STRING, leader: STRING, skipAssignment: BOOLEAN,
        memberId: STRING, memberEpoch: INT, assignment: STRING,
        members: ARRAY<STRUCT<{_MEMBER}, metadata: STRING, errorCode: INT>>,
        topics: ARRAY<STRUCT<partitions: ARRAY<STRUCT<errorCode: INT>>>>,
        results: ARRAY<STRUCT<groupId: STRING, errorCode: INT>>,
        groups: ARRAY<STRUCT<groupId: STRING, errorCode: INT>>,
        nodeId: INT, host: STRING, port: INT,
        coordinators: ARRAY<STRUCT<key: STRING, nodeId: INT, host: STRING, port: INT, errorCode: INT>>>,
    connection STRING,
    totalTimeMs DOUBLE, requestQueueTimeMs DOUBLE, localTimeMs DOUBLE, remoteTimeMs DOUBLE, responseQueueTimeMs DOUBLE,
    sendTimeMs DOUBLE,
    clientInformation STRUCT<softwareName: STRING, softwareVersion: STRING>,
    {checks.CORRUPT} STRING
"""
"""What is read of the JSON. `response.assignment` is base64 in SyncGroup and an object, kept as its text, in ConsumerGroupHeartbeat."""

_JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": checks.CORRUPT,
    # Kafka writes strict JSON: what is not, is damage.
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}

_MARKS: Final = ("Completed request:", '"requestApiKeyName":"')
_SHAPE: Final = r"(?s)^\[[^\]]*\] [A-Z]+ Completed request:(\{.*\}) \([\w.$]+\)$"
# Quotes inside JSON strings are escaped, so no client id can fake these.
_OF_GROUP_API: Final = (
    rf'"requestApiKey":(?:{"|".join(str(key) for key in checks.API_KEYS.values())})[,}}]'
    rf'|"requestApiKeyName":"(?:{"|".join(checks.API_KEYS)})"'
)
_OF_ANY_API: Final = r'"requestApiKey":\d{1,5}[,}]|"requestApiKeyName":"[A-Z_]+"'

_GROUP_KEY: Final = 0  # keyType of FindCoordinator: CoordinatorType.GROUP

_TOPIC_PARTITIONS: Final = "topicPartitions ARRAY<STRUCT<topicId: STRING, partitions: ARRAY<INT>>>"


def is_request_line(text: Column) -> Column:
    """Whether a line has a mark of the request log. Damaged lines may have one, too."""
    return text.contains(_MARKS[0]) | text.contains(_MARKS[1])


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines for which `is_request_line` holds, as rows of PARSED."""
    text = F.col("text")
    concerns = text.rlike(_OF_GROUP_API) | text.rlike(request_text.OF_GROUP_API)
    names_api = text.rlike(_OF_ANY_API) | text.rlike(request_text.OF_ANY_API)
    printed = text.contains(request_text.MARK)
    marked = lines.select(*COMMON, "text", concerns.alias("concerns"), printed.alias("printed"))
    cut = marked.withColumn("parts", F.when(F.col("concerns") & F.col("printed"), request_text.parts_of(text)))
    json = F.when(F.col("printed"), request_text.as_json(F.col("parts"))).otherwise(F.regexp_extract(text, _SHAPE, 1))
    shaped = cut.withColumn("json", F.when(F.col("concerns"), json).when(~names_api, ""))
    # json is null for another API's line, and empty for one that lacks the shape of a line.
    read = shaped.withColumn("j", F.from_json(F.when(F.col("json") != "", F.col("json")), JSON_SCHEMA, _JSON_OPTIONS))
    checked = read.withColumn("refusal", F.when(F.col("json").isNotNull(), checks.refusal()))
    return judged(checked, REQUEST_SOURCE, ~(F.col("json").isNull() | _of_no_group() | _of_no_member()), _event_columns())


def _of_no_group() -> Column:
    """Whether a request asks for the coordinator of a transaction or a share group. v0 knows only groups."""
    asks = F.col("j.requestHeader.requestApiKeyName") == FIND_COORDINATOR
    return asks & (F.coalesce("j.request.keyType", F.lit(_GROUP_KEY)) != _GROUP_KEY)


def _of_no_member() -> Column:
    """Whether a request for offsets comes from a tool. A member names its one group and the partitions that it was assigned.

    Tools that watch offsets ask for all partitions, or for many groups at once, every few seconds. This says nothing about a group.
    """
    request = F.col("j.request")
    sole = F.get(request.groups, F.lit(0))  # v8+
    of_many = request.groups.isNotNull() & (F.size(request.groups) != 1)
    return (F.col("j.requestHeader.requestApiKeyName") == OFFSET_FETCH) & (of_many | F.coalesce(request.topics, sole.topics).isNull())


def _event_columns() -> dict[str, Column]:
    """The event columns of a request line. For a line that failed its checks they are meaningless, but computing them must not raise."""
    api = F.col("j.requestHeader.requestApiKeyName")
    request, response = F.col("j.request"), F.col("j.response")
    sole = F.when(F.size(request.members) == 1, F.get(request.members, F.lit(0)))  # LeaveGroup v3+ of one member
    errors = checks.commit_errors()
    fetched, offsets = F.get(request.groups, F.lit(0)), F.get(response.groups, F.lit(0))  # OffsetFetch v8+
    micros = F.unix_micros("occurred_at") - F.coalesce(F.round(checks.duration_ms() * 1000).try_cast("bigint"), F.lit(0))
    software = F.concat_ws(" ", "j.clientInformation.softwareName", "j.clientInformation.softwareVersion")
    client_host = checks.client_host()
    is_commit = api.isin(OFFSET_COMMIT, TXN_OFFSET_COMMIT)
    coordinator_id, coordinator_address = _coordinator(response)  # FindCoordinator until v3: of one key, at the top
    return {
        "kind": api,
        "received_at": F.timestamp_micros(micros),
        "group_id": F.coalesce(request.groupId, request["key"], fetched.groupId),
        "coordinator_id": coordinator_id,
        "coordinator_address": coordinator_address,
        "api_version": F.col("j.requestHeader.requestApiVersion"),
        "connection": F.when(client_host.isNotNull(), F.col("j.connection")),
        "correlation_id": F.col("j.requestHeader.correlationId"),
        "client_id": F.col("j.requestHeader.clientId"),
        "client_host": client_host,
        "software": F.when(~software.isin("", "unknown unknown"), software),
        "member_id": F.coalesce(request.memberId, sole.memberId, fetched.memberId),
        "instance_id": F.coalesce(request.groupInstanceId, request.instanceId, sole.groupInstanceId),
        "generation": F.coalesce(request.generationId, request.generationIdOrMemberEpoch, request.memberEpoch, fetched.memberEpoch),
        "error_code": F.when(is_commit, F.coalesce(F.get(F.filter(errors, lambda code: code != 0), F.lit(0)), F.lit(0))).otherwise(
            F.coalesce(response.errorCode, offsets.errorCode)
        ),
        "answer_member_id": response.memberId,
        "answer_generation": F.coalesce(response.generationId, response.memberEpoch),
        "leader_id": response.leader,
        "protocol_type": F.coalesce(request.protocolType, response.protocolType),
        "protocol": F.coalesce(request.protocolName, response.protocolName),
        "skip_assignment": response.skipAssignment,
        "session_timeout_ms": request.sessionTimeoutMs,
        "rebalance_timeout_ms": request.rebalanceTimeoutMs,
        "reason": F.coalesce(request.reason, sole.reason),
        "member_count": F.when(is_commit, F.size(errors)).when(
            api == OFFSET_FETCH, _partition_count(F.coalesce(request.topics, fetched.topics))
        ),
        "protocols": F.when(api == CONSUMER_GROUP_HEARTBEAT, _subscription(request)),
        "members": F.when(api == LEAVE_GROUP, _leavers(request, response)),
        "assignments": F.when(api == CONSUMER_GROUP_HEARTBEAT, _target(response)),
        "blobs": _blobs(api, request, response),
        "groups": F.when(api == DELETE_GROUPS, F.transform(response.results, _deleted)).when(
            api == FIND_COORDINATOR, F.transform(response.coordinators, _coordinator_entry)
        ),
    }


def _partition_count(topics: Column) -> Column:
    """The number of partitions that an OffsetFetch names."""
    return F.size(F.flatten(topics.partitionIndexes))


def _deleted(result: Column) -> Column:
    """An entry of GROUPS: the answer for one group of DeleteGroups."""
    return F.struct(result.groupId, result.errorCode, F.lit(None), F.lit(None)).cast(GROUP)


def _coordinator_entry(answer: Column) -> Column:
    """An entry of GROUPS: the answer for one group of FindCoordinator v4+."""
    return F.struct(answer["key"], answer.errorCode, *_coordinator(answer)).cast(GROUP)


def _coordinator(answer: Column) -> tuple[Column, Column]:
    """Node id and address that an answer of FindCoordinator names; null where it names none, which is node -1."""
    named = answer.nodeId >= 0
    return F.when(named, answer.nodeId), F.when(named, F.concat_ws(":", answer.host, answer.port.cast("string")))


def _subscription(request: Column) -> Column:
    """The subscription of a KIP-848 member, in the shape of a classic protocol; null when it is unchanged."""
    entry = F.struct(
        F.coalesce(request.serverAssignor, F.lit("consumer")).alias("name"),
        solid(request.subscribedTopicNames).alias("topics"),
        F.lit(None).alias("owned"),
        F.lit(None).alias("digest"),
    )
    return F.when(request.subscribedTopicNames.isNotNull(), F.array(entry)).cast(PROTOCOLS)


def _target(response: Column) -> Column:
    """The assignment in the answer to a KIP-848 member, as topic id and partition: no name of a topic is in it."""
    topics = F.from_json(response.assignment, _TOPIC_PARTITIONS).topicPartitions
    partitions = F.flatten(
        F.transform(topics, lambda t: F.transform(t.partitions, lambda p: F.concat_ws("-", t.topicId, p.cast("string"))))
    )
    entry = F.struct(response.memberId.alias("member_id"), solid(partitions).alias("partitions"), F.lit(None).alias("digest"))
    return F.when(response.assignment.isNotNull(), F.array(entry)).cast(ASSIGNMENTS)


def _leavers(request: Column, response: Column) -> Column:
    """The members that leave: one at the top (v0-2) or a list (v3+), each with its own answer."""

    def of_list(member: Column, index: Column) -> Column:
        return _member(member.memberId, member.groupInstanceId, F.get(response.members.errorCode, index), member.reason)

    alone = F.array(_member(request.memberId, F.lit(None), response.errorCode, F.lit(None)))
    return F.when(request.members.isNull(), alone.cast(MEMBERS)).otherwise(F.transform(request.members, of_list).cast(MEMBERS))


def _member(member_id: Column, instance_id: Column, error_code: Column, reason: Column) -> Column:
    return F.struct(
        member_id.alias("member_id"),
        instance_id.alias("instance_id"),
        error_code.alias("error_code"),
        reason.alias("reason"),
        F.lit(None).alias("topics"),
    )


def _blobs(api: Column, request: Column, response: Column) -> Column:
    """Encoded subscriptions and assignments. A SyncGroup has those of the leader, or else the one in the answer to the member."""
    none = F.lit(None)
    members = F.transform(response.members, lambda m: F.struct(m.memberId, m.groupInstanceId, m.metadata))
    own = F.array(F.struct(request.memberId.alias("memberId"), response.assignment.alias("assignment")))
    assignments = F.when(F.size(request.assignments) > 0, request.assignments).when(response.errorCode == 0, own)
    return F.when(
        api == JOIN_GROUP,
        F.struct(request.protocols.alias("protocols"), members.alias("members"), none.alias("assignments")).cast(BLOBS),
    ).when(api == SYNC_GROUP, F.struct(none.alias("protocols"), none.alias("members"), assignments.alias("assignments")).cast(BLOBS))
