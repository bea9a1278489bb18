"""One row per rebalance, written when it ends."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructType, TimestampType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        column("generation", IntegerType(), "Generation it made, or the group epoch that it ended with (consumer protocol); null if none."),
        column(
            "started_at",
            TimestampType(),
            "The group entered PreparingRebalance, or its epoch was raised (consumer protocol); the first sign of it where `start_seen` is false.",
            nullable=False,
        ),
        column("joined_at", TimestampType(), "The join phase ended; null if it did not."),
        column(
            "ended_at",
            TimestampType(),
            "The group was Stable again, or another event ended the rebalance.",
            nullable=False,
        ),
        column("join_ms", LongType(), "started_at to joined_at; null unless `start_seen`."),
        column("sync_ms", LongType(), "joined_at to ended_at."),
        column("total_ms", LongType(), "started_at to ended_at; null unless `start_seen`. A lower bound if only records or polls show it."),
        column("outcome", StringType(), "How it ended (docs/tables.md lists the outcomes).", nullable=False),
        column("cause", StringType(), "What started it (docs/tables.md lists the causes).", nullable=False),
        column("reason", StringType(), "The coordinator's or the client's own words."),
        column("member_id", StringType(), "Culprit: the member that started it."),
        column("instance_id", StringType(), "Its group.instance.id."),
        column("client_id", StringType(), "Its client.id."),
        column("client_host", StringType(), "Its host."),
        column("members_before", IntegerType(), "Members when it started; null if unknown."),
        column("members_after", IntegerType(), "Members when it ended; null if unknown."),
        column("joined", ArrayType(StringType(), containsNull=False), "Member ids that came."),
        column("left", ArrayType(StringType(), containsNull=False), "Member ids that went."),
        column(
            "slowest_member_id",
            StringType(),
            "Member that the join phase waited for longest: it was alive, and rejoined (or left) last, was dropped, or is static and did not come.",
        ),
        column("leader_id", StringType(), "Leader of the new generation."),
        column("protocol", StringType(), "Selected protocol (assignor)."),
        column("partitions", IntegerType(), "Partitions assigned; null if unknown."),
        column("partitions_moved", IntegerType(), "Partitions that changed owner; null if unknown."),
        column(
            "unavailable_partition_ms",
            LongType(),
            "Sum over partitions of the time without an owner at work; null if unknown.",
        ),
        EVIDENCE,
        BATCH_ID,
        column(
            "assignment_ms",
            LongType(),
            "From the leader's JoinGroup answer to its SyncGroup: what its assignor took, and the way there and back; null without a request log.",
        ),
        column(
            "first_fetch_ms",
            LongType(),
            "From the assignment (SyncGroup answer) to the first OffsetFetch of the member that took longest to begin; null if none was seen.",
        ),
        column("first_fetch_member_id", StringType(), "That member."),
        column(
            "joined_unnamed", IntegerType(), "Members that came, by the coordinator's count, and that no line names: `joined` lacks them."
        ),
        column("left_unnamed", IntegerType(), "Members that went, by the coordinator's count, and that no line names: `left` lacks them."),
        column(
            "start_seen",
            BooleanType(),
            "Whether a line shows what began it. False where the log begins in its middle, where the coordinator's line about its beginning "
            "is missing, and where only polls, or records of a classic group, show it.",
        ),
        column(
            "group_protocol",
            StringType(),
            "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071).",
        ),
        column(
            "first_epoch",
            IntegerType(),
            "Consumer protocol: the group epoch with which it began; `generation` is the one with which it ended. Null if classic, and where "
            "only polls show it.",
        ),
        column(
            "rounds",
            IntegerType(),
            "Consumer protocol: how often the epoch was raised (`rebalance_rounds` has each). Null if classic, and where only polls show it.",
        ),
        column(
            "end_seen",
            BooleanType(),
            "Whether a line shows when it ended. False where the coordinator's log alone is there, which names no acknowledgement (consumer "
            "protocol), and where lines are missing: `ended_at` is then its last line.",
        ),
        column(
            "interval_wait_ms",
            IntegerType(),
            "Consumer protocol, Kafka 4.3 and later: how long the group waited for the assignment interval, while nobody held it up: from "
            "the heartbeat that raised the epoch until the target was computed. Null if classic, and where the release is not known.",
        ),
    ]
)
