"""One row per finished micro-batch that had input: how long it took, how far behind it is, what was wrong with its lines.

The rows describe the pipeline itself, so another run of the same logs writes other rows. A process that is killed loses its last ones.
Rows are kept for 30 days.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from schemas.columns import column, occurred_at

SCHEMA: Final = StructType(
    [
        occurred_at("When the micro-batch ended, by the clock of the machine that ran it, UTC."),
        column("query", StringType(), "The streaming query: ingest, ingest-topic, track.", nullable=False),
        column("run_id", StringType(), "Spark's id of this start of the query; a restart gets a new one.", nullable=False),
        column("batch_id", LongType(), "Spark's number of the micro-batch; the rows that it wrote have it too.", nullable=False),
        column("duration_ms", LongType(), "The whole micro-batch (Spark: triggerExecution).", nullable=False),
        column("latest_offset_ms", LongType(), "Part of it: finding new input (latestOffset)."),
        column("planning_ms", LongType(), "Part of it: planning (queryPlanning)."),
        column("add_batch_ms", LongType(), "Part of it: reading, processing, writing the tables (addBatch)."),
        column("commit_ms", LongType(), "Part of it: writing the checkpoint (walCommit and commitOffsets)."),
        column("state_commit_ms", LongType(), "Time of all tasks together to commit the state, within addBatch."),
        column("input_rows", LongType(), "Ingest: lines read, as in input_lines. Track: rows of group_events.", nullable=False),
        column("output_rows", LongType(), "Ingest: lines that became events. Track: rows of its four tables."),
        column("quarantined", LongType(), "Lines that could not be read."),
        column("late_events", LongType(), "Events that came too late: their broker's time had already passed."),
        column("divergences", LongType(), "Findings MODEL_DIVERGENCE."),
        column("event_time", TimestampType(), "The newest event time that track has reached, of all clusters, UTC."),
        column("lag_ms", LongType(), "`occurred_at` less `event_time`. Less than 0: the logs' clock or time zone is ahead."),
        column("lag_events", LongType(), "Rows that still waited at its end: in the topic, in slices, in commits of group_events."),
        column("lag_bytes", LongType(), "Ingest from files: bytes that were in no slice yet when the newest slice was cut."),
        column("groups", LongType(), "Groups that the tracker follows."),
        column("held_events", LongType(), "Events that wait in the reorder buffer."),
        column("state_bytes", LongType(), "The tracker's state, encoded, of all shards."),
        column("driver_memory_bytes", LongType(), "Resident memory of the driver's Python process."),
        column("jvm_memory_bytes", LongType(), "Resident memory of the driver's JVM."),
        column("worker_memory_bytes", LongType(), "Resident memory of the Python workers of that JVM; shared pages count for each."),
    ]
)
