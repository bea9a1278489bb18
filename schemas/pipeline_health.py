"""One row per finished micro-batch that had input: how long it took, how far behind it is, what was wrong with its lines.

The rows describe the pipeline itself, so another run of the same logs writes other rows. A process that is killed loses its last ones.
Rows are kept for 30 days.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import int64, occurred_at, text, time

SCHEMA: Final = StructType(
    [
        occurred_at("When the micro-batch ended, by the clock of the machine that ran it, UTC."),
        text("query", "The streaming query: ingest, ingest-topic, track.", nullable=False),
        text("run_id", "Spark's id of this start of the query; a restart gets a new one.", nullable=False),
        int64("batch_id", "Spark's number of the micro-batch; the rows that it wrote have it too.", nullable=False),
        int64("duration_ms", "The whole micro-batch (Spark: triggerExecution).", nullable=False),
        int64("latest_offset_ms", "Part of it: finding new input (latestOffset)."),
        int64("planning_ms", "Part of it: planning (queryPlanning)."),
        int64("add_batch_ms", "Part of it: reading, processing, writing the tables (addBatch)."),
        int64("commit_ms", "Part of it: writing the checkpoint (walCommit and commitOffsets)."),
        int64("state_commit_ms", "Time of all tasks together to commit the state, within addBatch."),
        int64("input_rows", "Ingest: lines read, as in input_lines. Track: rows of group_events.", nullable=False),
        int64("output_rows", "Ingest: lines that became events. Track: rows of its four tables."),
        int64("quarantined", "Lines that could not be read."),
        int64("late_events", "Events that came too late: their broker's time had already passed."),
        int64("divergences", "Findings MODEL_DIVERGENCE."),
        time("event_time", "The newest event time that track has reached, of all clusters, UTC."),
        int64("lag_ms", "`occurred_at` less `event_time`. Less than 0: the logs' clock or time zone is ahead."),
        int64("lag_events", "Rows that still waited at its end: in the topic, in slices, in commits of group_events."),
        int64("lag_bytes", "Ingest from files: bytes that were in no slice yet when the newest slice was cut."),
        int64("groups", "Groups that the tracker follows."),
        int64("held_events", "Events that wait in the reorder buffer."),
        int64("state_bytes", "The tracker's state, encoded, of all shards."),
        int64("driver_memory_bytes", "Resident memory of the driver's Python process."),
        int64("jvm_memory_bytes", "Resident memory of the driver's JVM."),
        int64("worker_memory_bytes", "Resident memory of the Python workers of that JVM; shared pages count for each."),
    ]
)
