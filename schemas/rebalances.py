"""One row per rebalance, written when it ends."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, BooleanType, StringType, StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column, int32, int64, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        int32("generation", "Generation it made, or the group epoch that it ended with (consumer protocol); null if none."),
        time(
            "started_at",
            "The group entered PreparingRebalance, or its epoch was raised (consumer protocol); the first sign of it where `start_seen` is false.",
            nullable=False,
        ),
        time("joined_at", "The join phase ended; null if it did not."),
        time("ended_at", "The group was Stable again, or another event ended the rebalance.", nullable=False),
        int64("join_ms", "started_at to joined_at; null unless `start_seen`."),
        int64("sync_ms", "joined_at to ended_at."),
        int64("total_ms", "started_at to ended_at; null unless `start_seen`. A lower bound if only records or polls show it."),
        text("outcome", "How it ended (docs/tables.md lists the outcomes).", nullable=False),
        text("cause", "What started it (docs/tables.md lists the causes).", nullable=False),
        text("reason", "The coordinator's or the client's own words."),
        text("member_id", "Culprit: the member that started it."),
        text("instance_id", "Its group.instance.id."),
        text("client_id", "Its client.id."),
        text("client_host", "Its host."),
        int32("members_before", "Members when it started; null if unknown."),
        int32("members_after", "Members when it ended; null if unknown."),
        column("joined", "Member ids that came.", ArrayType(StringType(), containsNull=False)),
        column("left", "Member ids that went.", ArrayType(StringType(), containsNull=False)),
        text(
            "slowest_member_id",
            "Member that the join phase waited for longest: it was alive, and rejoined (or left) last, was dropped, or is static and did not come.",
        ),
        text("leader_id", "Leader of the new generation."),
        text("protocol", "Selected protocol (assignor)."),
        int32("partitions", "Partitions assigned; null if unknown."),
        int32("partitions_moved", "Partitions that changed owner; null if unknown."),
        int64("unavailable_partition_ms", "Sum over partitions of the time without an owner at work; null if unknown."),
        EVIDENCE,
        BATCH_ID,
        int64(
            "assignment_ms",
            "From the leader's JoinGroup answer to its SyncGroup: what its assignor took, and the way there and back; null without a request log.",
        ),
        int64(
            "first_fetch_ms",
            "From the assignment (SyncGroup answer) to the first OffsetFetch of the member that took longest to begin; null if none was seen.",
        ),
        text("first_fetch_member_id", "That member."),
        int32("joined_unnamed", "Members that came, by the coordinator's count, and that no line names: `joined` lacks them."),
        int32("left_unnamed", "Members that went, by the coordinator's count, and that no line names: `left` lacks them."),
        column(
            "start_seen",
            "Whether a line shows what began it. False where the log begins in its middle, where the coordinator's line about its beginning "
            "is missing, and where only polls, or records of a classic group, show it.",
            BooleanType(),
        ),
        text("group_protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)."),
        int32(
            "first_epoch",
            "Consumer protocol: the group epoch with which it began; `generation` is the one with which it ended. Null if classic, and where "
            "only polls show it.",
        ),
        int32(
            "rounds",
            "Consumer protocol: how often the epoch was raised (`rebalance_rounds` has each). Null if classic, and where only polls show it.",
        ),
        column(
            "end_seen",
            "Whether a line shows when it ended. False where the coordinator's log alone is there, which names no acknowledgement (consumer "
            "protocol), and where lines are missing: `ended_at` is then its last line.",
            BooleanType(),
        ),
        int32(
            "interval_wait_ms",
            "Consumer protocol, Kafka 4.3 and later: how long the group waited for the assignment interval, while nobody held it up: from "
            "the heartbeat that raised the epoch until the target was computed. Null if classic, and where the release is not known.",
        ),
    ]
)
