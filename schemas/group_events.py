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
    TimestampType,
)

from schemas.columns import BATCH_ID, CLUSTER, column

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
        column("broker", StringType(), "Broker whose log this is; clients, offsets or poll where it is no broker's word.", nullable=False),
        column("source", StringType(), "request, coordinator, broker, client, offsets, poll or clock.", nullable=False),
        column("origin", StringType(), "File or topic-partition.", nullable=False),
        column("position", LongType(), "Line number or offset of the (first) line.", nullable=False),
        column("occurred_at", TimestampType(), "Time of the line, UTC. For a request: when it was answered.", nullable=False),
        column(
            "received_at",
            TimestampType(),
            "Arrival at the broker: occurred_at - totalTimeMs; `occurred_at` where that time cannot be believed. GROUP_STORED: when the group entered the state it is stored in. OFFSETS_POLLED: the poll before; until then all was as it had been told. Otherwise as `occurred_at`.",
            nullable=False,
        ),
        column(
            "kind",
            StringType(),
            "Request: name of the API. Coordinator log and broker: which template (coordinator_model/events.py). clock, followed, end.",
            nullable=False,
        ),
        column("group_id", StringType(), "Consumer group; null where the line names none."),
        column(
            "coordinator_partition",
            IntegerType(),
            "Partition of __consumer_offsets: by the group id, or as the line says.",
        ),
        column(
            "coordinator_id",
            IntegerType(),
            "Node id of a coordinator: the one that FIND_COORDINATOR answered; in the coordinator log the broker's own, where the line has it. Source broker: the node that the line is about.",
        ),
        column(
            "coordinator_address",
            StringType(),
            "FIND_COORDINATOR: host:port of that coordinator, as advertised. Where it is an IP address, `connection` in that broker's log begins with it.",
        ),
        column("api_version", IntegerType(), "Version of the request."),
        column(
            "connection",
            StringType(),
            "Connection id, as logged. In a client's log: librdkafka's name of the client, or the library if it writes none.",
        ),
        column("correlation_id", IntegerType(), "Number of the request on its connection."),
        column("client_id", StringType(), "client.id of the sender; or of the member, as the coordinator logs it."),
        column("client_host", StringType(), "Host of the client, without port."),
        column(
            "software",
            StringType(),
            "Client software and version, as the client reported it to the broker. BROKER_RELEASE: the release of Kafka that the broker runs. In a client's log: connect, of a worker of Connect.",
        ),
        column("member_id", StringType(), "Member id in the request (empty: unknown), or the member the line is about."),
        column("instance_id", StringType(), "group.instance.id."),
        column("generation", IntegerType(), "Generation (or member epoch) in the request, or in the line."),
        column("error_code", IntegerType(), "Error code of the answer; for commits the first one that is not 0."),
        column("answer_member_id", StringType(), "Member id in the answer; or the new id of a replaced member."),
        column("answer_generation", IntegerType(), "Generation (or member epoch) in the answer."),
        column("leader_id", StringType(), "Leader in the JoinGroup answer or the line."),
        column(
            "protocol_type",
            StringType(),
            "Protocol type of a classic group: consumer, connect, sr and others; of a coordinator's line: share or streams, where only such a group has it.",
        ),
        column("protocol", StringType(), "Selected protocol (assignor). CONSUMER_GROUP_HEARTBEAT: the assignor that the member asks for."),
        column("skip_assignment", BooleanType(), "JoinGroup v9+: the returning static leader need not assign."),
        column("session_timeout_ms", IntegerType(), "session.timeout.ms of the member."),
        column("rebalance_timeout_ms", IntegerType(), "Rebalance timeout (max.poll.interval.ms) of the member."),
        column("heartbeat_interval_ms", IntegerType(), "CONSUMER_GROUP_HEARTBEAT: the interval in the answer."),
        column("reason", StringType(), "Reason that the client gave, or the coordinator's reason text."),
        column(
            "state",
            StringType(),
            "Group state that the line names. In a client's log: its new state (CLIENT_STATE), or the error by which it learned of its removal.",
        ),
        column("member_count", IntegerType(), "Number of members that the line names; of partitions for a commit."),
        column("protocols", PROTOCOLS, "JoinGroup: what the member offers, decoded."),
        column("members", MEMBERS, "JoinGroup answer to the leader, LeaveGroup, or the members a line or record lists."),
        column(
            "assignments",
            ASSIGNMENTS,
            "SyncGroup: the leader's assignments; else the member's own, from the answer. GROUP_STORED, GROUP_DESCRIBED: those of all members. CURRENT_STORED: what the member has, then what it has to give up.",
        ),
        column(
            "subscribed_regex",
            StringType(),
            "CONSUMER_GROUP_HEARTBEAT, MEMBER_STORED: regular expression (RE2) that the member subscribes to; empty if it has none, null if it says nothing, so that all is as before.",
        ),
        column(
            "owned",
            STRINGS,
            "CONSUMER_GROUP_HEARTBEAT: partitions that the member says it owns, as topic id and number; null if it says nothing, so that it owns what it was assigned.",
        ),
        column(
            "offsets",
            OFFSETS,
            "OFFSET_COMMIT, TXN_OFFSET_COMMIT: what was accepted. OFFSET_FETCH: the committed offsets in the answer. OFFSETS_STORED, OFFSETS_POLLED: committed offsets of the group. An offset of -1: none is committed. `topic_id`: of the topic that `partition` names, if the line has both. TOPIC_NAMED: a topic and its id.",
        ),
        column(
            "reads",
            READS,
            "FETCH: what the connection read, by partition and span of 5 s, and apart where it went back or paused; LIST_OFFSETS: ends that it asked for. `position`, `reached`: the offset from which it read on first and last. `end`: that of the log, as an answer told last; -2: the position is none of the log. Times in ms since `received_at`.",
        ),
        column("last_at", TimestampType(), "Heartbeats: arrival of the last of the row."),
        column("beat_count", IntegerType(), "Heartbeats: how many."),
        column("longest_gap_ms", LongType(), "Heartbeats: longest time between two of the row."),
        column(
            "beats",
            ArrayType(IntegerType(), containsNull=False),
            "Heartbeats: ms since received_at, ascending. Clock: seconds since received_at in which lines stand, as first, last, first, last, …",
        ),
        column("positions", ArrayType(LongType(), containsNull=False), "Heartbeats: line or offset of each of `beats`."),
        column("lines", IntegerType(), "Input lines that the row stands for.", nullable=False),
        BATCH_ID,
    ]
)
