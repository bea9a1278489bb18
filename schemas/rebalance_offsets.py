"""One row per partition that stopped with a rebalance: what was committed before and after, and what that cost in records."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        column("generation", IntegerType(), "Of the row in `rebalances`; null if that has none."),
        column("started_at", TimestampType(), "Of that row.", nullable=False),
        column("ended_at", TimestampType(), "Of that row: both with `group_id` say which one it is.", nullable=False),
        column(
            "partition",
            StringType(),
            "topic-partition; the topic's id where a line has no name (OffsetCommit v10, Kafka 4.1).",
            nullable=False,
        ),
        column("from_member_id", StringType(), "Who committed last before; null where a record shows the commit, which names nobody."),
        column("from_client_id", StringType(), "Its client.id."),
        column("committed_at", TimestampType(), "Its last commit.", nullable=False),
        column("committed_offset", LongType(), "What it committed.", nullable=False),
        column("to_member_id", StringType(), "Who committed first after."),
        column("to_client_id", StringType(), "Its client.id, or that of who asked for the offset."),
        column(
            "resumed_at",
            TimestampType(),
            "When the partition was read again: its new owner asked for the offset (OffsetFetch), else its first commit. Null: not within ten "
            "minutes, or before the next rebalance.",
        ),
        column(
            "resumed_offset", LongType(), "From where: the answer to that request; -1 if nothing was committed. Null if no line shows it."
        ),
        column("next_commit_at", TimestampType(), "The first commit after."),
        column("next_commit_offset", LongType(), "What it committed."),
        column(
            "unread_ms",
            LongType(),
            "How long nobody read it, until `resumed_at`: from the rebalance's start, or a later commit of the old owner. If that was removed "
            "since it had stopped before: from its last commit, so at most one interval of commits too long.",
        ),
        column("lag_before", LongType(), "Records between the last commit and the end of the log then; null if no line shows the end."),
        column("lag_added", LongType(), "Records that came between the last commit and `resumed_at`; null likewise."),
        column(
            "caught_up_at",
            TimestampType(),
            "The first commit after at which the lag was no larger than at one of the last eight commits before, give or take one record; null if "
            "none was within ten minutes, or before the next rebalance, or no line shows the ends.",
        ),
        column(
            "reread_min",
            LongType(),
            "Records that were read twice, at least: from where it was read again to the highest offset that was committed before.",
        ),
        column(
            "reread_max",
            LongType(),
            "At most: to the end of the log two of the last owner's longest intervals between commits after its last commit, or when the "
            "partition was read again, if that was before; where no line shows the end, as far as it would have read by then at the fastest rate of "
            "its last eight commits. Null where there was one commit, and no line shows the end.",
        ),
        EVIDENCE,
        BATCH_ID,
    ]
)
