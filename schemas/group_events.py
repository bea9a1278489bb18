"""The replayable record: one row per request or coordinator-log line that concerns a group.

A new model version is re-run from this table. Successful heartbeats of one member in one batch share a row; `beats` keeps each of them, so
that the tracker sees the same heartbeats wherever rows are cut.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from schemas.columns import BATCH_ID, CLUSTER, column, int32, int64, text, time

STRINGS: Final = ArrayType(StringType(), containsNull=False)

PROTOCOLS: Final = ArrayType(
    StructType(
        [
            StructField("name", StringType()),
            StructField("topics", STRINGS),  # subscription, null if the blob is not a consumer's or unreadable
            StructField("owned", STRINGS),  # owned partitions as topic-partition
            StructField("digest", StringType()),  # of the metadata bytes: equality is what the coordinator compares
        ]
    )
)
MEMBERS: Final = ArrayType(
    StructType(
        [
            StructField("member_id", StringType()),
            StructField("instance_id", StringType()),
            StructField("error_code", IntegerType()),
            StructField("reason", StringType()),
            StructField("topics", STRINGS),
        ]
    )
)
ASSIGNMENTS: Final = ArrayType(
    StructType(
        [
            StructField("member_id", StringType()),
            StructField("partitions", STRINGS),  # topic-partition
            StructField("digest", StringType()),
        ]
    )
)
READS: Final = ArrayType(
    StructType(
        [
            StructField("partition", StringType()),  # topic-partition; the topic's id where the request does not name it
            StructField("first_ms", IntegerType()),  # since `received_at`: the first request
            StructField("last_ms", IntegerType()),  # ... the last
            StructField("end_ms", IntegerType()),  # ... the answer that told `end`
            StructField("position", LongType()),  # from which it read on first
            StructField("reached", LongType()),  # ... last
            StructField("end", LongType()),  # of the partition's log, as an answer told last; -2: the position is none of the log
        ]
    )
)
OFFSETS: Final = ArrayType(
    StructType(
        [
            StructField("partition", StringType()),  # topic-partition; the topic's id where the line does not name it
            StructField("offset", LongType()),  # committed; -1: none
            StructField("end", LongType()),  # of the partition's log, if the line tells it
            StructField("topic_id", StringType()),  # beside the topic's name, if the line tells both
        ]
    )
)

SCHEMA: Final = StructType(
    [
        CLUSTER,
        text("broker", "Broker whose log this is; clients, offsets or poll where it is no broker's word.", nullable=False),
        text("source", "request, coordinator, broker, client, offsets, poll or clock.", nullable=False),
        text("origin", "File or topic-partition.", nullable=False),
        int64("position", "Line number or offset of the (first) line.", nullable=False),
        time("occurred_at", "Time of the line, UTC. For a request: when it was answered.", nullable=False),
        time(
            "received_at",
            "Arrival at the broker: occurred_at - totalTimeMs; `occurred_at` where that time cannot be believed. GROUP_STORED: when the group entered the state it is stored in. OFFSETS_POLLED: the poll before; until then all was as it had been told. CLIENT_POLL_TIMEOUT: when max.poll.interval.ms had passed, if the line says by how much it is exceeded. Otherwise as `occurred_at`.",
            nullable=False,
        ),
        text(
            "kind",
            "Request: name of the API. Coordinator log and broker: which template (coordinator_model/events.py). clock, followed, end.",
            nullable=False,
        ),
        text("group_id", "Consumer group; null where the line names none."),
        int32("coordinator_partition", "Partition of __consumer_offsets: by the group id, or as the line says."),
        int32(
            "coordinator_id",
            "Node id of a coordinator: the one that FIND_COORDINATOR answered; in the coordinator log the broker's own, where the line has it. Source broker: the node that the line is about.",
        ),
        text(
            "coordinator_address",
            "FIND_COORDINATOR: host:port of that coordinator, as advertised. Where it is an IP address, `connection` in that broker's log begins with it.",
        ),
        int32("api_version", "Version of the request."),
        text(
            "connection", "Connection id, as logged. In a client's log: librdkafka's name of the client, or the library if it writes none."
        ),
        int32("correlation_id", "Number of the request on its connection."),
        text("client_id", "client.id of the sender; or of the member, as the coordinator logs it."),
        text("client_host", "Host of the client, without port."),
        text(
            "software",
            "Client software and version, as the client reported it to the broker. BROKER_RELEASE: the release of Kafka that the broker runs. In a client's log: connect, of a worker of Connect.",
        ),
        text("member_id", "Member id in the request (empty: unknown), or the member the line is about."),
        text("instance_id", "group.instance.id."),
        int32("generation", "Generation (or member epoch) in the request, or in the line."),
        int32("error_code", "Error code of the answer; for commits the first one that is not 0."),
        text("answer_member_id", "Member id in the answer; or the new id of a replaced member."),
        int32("answer_generation", "Generation (or member epoch) in the answer."),
        text("leader_id", "Leader in the JoinGroup answer or the line."),
        text(
            "protocol_type",
            "Protocol type of a classic group: consumer, connect, sr and others; of a coordinator's line: share or streams, where only such a group has it.",
        ),
        text("protocol", "Selected protocol (assignor). CONSUMER_GROUP_HEARTBEAT: the assignor that the member asks for."),
        column("skip_assignment", "JoinGroup v9+: the returning static leader need not assign.", BooleanType()),
        int32("session_timeout_ms", "session.timeout.ms of the member."),
        int32("rebalance_timeout_ms", "Rebalance timeout (max.poll.interval.ms) of the member."),
        int32("heartbeat_interval_ms", "CONSUMER_GROUP_HEARTBEAT: the interval in the answer."),
        text("reason", "Reason that the client gave, or the coordinator's reason text."),
        text(
            "state",
            "Group state that the line names. In a client's log: its new state (CLIENT_STATE), or the error by which it learned of its removal.",
        ),
        int32("member_count", "Number of members that the line names; of partitions for a commit."),
        column("protocols", "JoinGroup: what the member offers, decoded.", PROTOCOLS),
        column("members", "JoinGroup answer to the leader, LeaveGroup, or the members a line or record lists.", MEMBERS),
        column(
            "assignments",
            "SyncGroup: the leader's assignments; else the member's own, from the answer. GROUP_STORED, GROUP_DESCRIBED: those of all members. CURRENT_STORED: what the member has, then what it has to give up.",
            ASSIGNMENTS,
        ),
        text(
            "subscribed_regex",
            "CONSUMER_GROUP_HEARTBEAT, MEMBER_STORED: regular expression (RE2) that the member subscribes to; empty if it has none, null if it says nothing, so that all is as before.",
        ),
        column(
            "owned",
            "CONSUMER_GROUP_HEARTBEAT: partitions that the member says it owns, as topic id and number; null if it says nothing, so that it owns what it was assigned.",
            STRINGS,
        ),
        column(
            "offsets",
            "OFFSET_COMMIT, TXN_OFFSET_COMMIT: what was accepted. OFFSET_FETCH: the committed offsets in the answer. OFFSETS_STORED, OFFSETS_POLLED: committed offsets of the group. An offset of -1: none is committed. `topic_id`: of the topic that `partition` names, if the line has both. TOPIC_NAMED: a topic and its id.",
            OFFSETS,
        ),
        column(
            "reads",
            "FETCH: what the connection read, by partition and span of 5 s, and apart where it went back or paused; LIST_OFFSETS: ends that it asked for. `position`, `reached`: the offset from which it read on first and last. `end`: that of the log, as an answer told last; -2: the position is none of the log. Times in ms since `received_at`.",
            READS,
        ),
        time("last_at", "Heartbeats: arrival of the last of the row."),
        int32("beat_count", "Heartbeats: how many."),
        int64("longest_gap_ms", "Heartbeats: longest time between two of the row."),
        column(
            "beats",
            "Heartbeats: ms since received_at, ascending. Clock: seconds since received_at in which lines stand, as first, last, first, last, …",
            ArrayType(IntegerType(), containsNull=False),
        ),
        column("positions", "Heartbeats: line or offset of each of `beats`.", ArrayType(LongType(), containsNull=False)),
        int32("lines", "Input lines that the row stands for.", nullable=False),
        BATCH_ID,
    ]
)
