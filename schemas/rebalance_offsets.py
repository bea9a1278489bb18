"""One row per partition that stopped with a rebalance: what was committed before and after, and what that cost in records."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, int32, int64, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        int32("generation", "Of the row in `rebalances`; null if that has none."),
        time("started_at", "Of that row.", nullable=False),
        time("ended_at", "Of that row: both with `group_id` say which one it is.", nullable=False),
        text("partition", "topic-partition; the topic's id where a line has no name (OffsetCommit v10, Kafka 4.1).", nullable=False),
        text("from_member_id", "Who committed last before; null where a record shows the commit, which names nobody."),
        text("from_client_id", "Its client.id."),
        time("committed_at", "Its last commit.", nullable=False),
        int64("committed_offset", "What it committed.", nullable=False),
        text("to_member_id", "Who committed first after."),
        text("to_client_id", "Its client.id, or that of who asked for the offset."),
        time(
            "resumed_at",
            "When the partition was read again: its new owner asked for the offset (OffsetFetch), else its first commit. Null: not within ten "
            "minutes, or before the next rebalance.",
        ),
        int64("resumed_offset", "From where: the answer to that request; -1 if nothing was committed. Null if no line shows it."),
        time("next_commit_at", "The first commit after."),
        int64("next_commit_offset", "What it committed."),
        int64(
            "unread_ms",
            "How long nobody read it, until `resumed_at`: from the rebalance's start, or a later commit of the old owner. If that was removed "
            "since it had stopped before: from its last commit, so at most one interval of commits too long.",
        ),
        int64("lag_before", "Records between the last commit and the end of the log then; null if no line shows the end."),
        int64("lag_added", "Records that came between the last commit and `resumed_at`; null likewise."),
        time(
            "caught_up_at",
            "The first commit after at which the lag was no larger than at one of the last eight commits before, give or take one record; null if "
            "none was within ten minutes, or before the next rebalance, or no line shows the ends.",
        ),
        int64(
            "reread_min",
            "Records that were read twice, at least: from where it was read again to the highest offset that was committed before.",
        ),
        int64(
            "reread_max",
            "At most: to the end of the log two of the last owner's longest intervals between commits after its last commit, or when the "
            "partition was read again, if that was before; where no line shows the end, as far as it would have read by then at the fastest rate of "
            "its last eight commits. Null where there was one commit, and no line shows the end.",
        ),
        EVIDENCE,
        BATCH_ID,
    ]
)
