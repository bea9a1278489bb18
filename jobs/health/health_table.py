"""Writes `pipeline_health`: gathers rows for some time into one commit, and deletes old ones. A failure does not stop the pipeline.

A commit per micro-batch would make a file every few seconds, some 500,000 in a month. With a commit every 30 s, a compaction after
every 120 commits and 30 days of rows there are hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.health.batch_health import BatchHealth
from jobs.lakehouse import opening, tables
from schemas import names
from schemas.tables import arrow_schema_of, schema_of

COMMIT_MS: Final = 30_000
KEEP: Final = timedelta(days=30)
TIDY_COMMITS: Final = 120  # about an hour of commits
LOG_CHECKPOINT_COMMITS: Final = 100
READER_HOURS: Final = 1  # for which a reader may use the files of its version
BUFFERED_ROWS: Final = 10_000  # while the table cannot be written: half a day

_TARGET_BYTES: Final = 4 << 20  # of a file: tidying does not rewrite larger ones
_COLOURS: Final = re.compile(r"\x1b\[[\d;]*m|↳")
_HOOKS: Final = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=True)


class HealthTable:
    """The table of one lakehouse. Times are epoch ms. `problem`: why the last attempt to write it failed, in one line."""

    def __init__(self, lakehouse: Place) -> None:
        self._lakehouse = lakehouse
        self._rows: list[BatchHealth] = []
        self._tried_ms: int | None = None
        self.problem: str | None = None
        self.failures = 0

    def add(self, row: BatchHealth) -> None:
        """Keeps a row for the next commit."""
        self._rows.append(row)
        del self._rows[:-BUFFERED_ROWS]

    def flush(self, now_ms: int, *, at_once: bool = False) -> None:
        """Writes the rows, if it is time or `at_once`. After a failure, notes it and keeps the rows for the next time."""
        if self._tried_ms is None:
            self._tried_ms = now_ms
        if not at_once and now_ms - self._tried_ms < COMMIT_MS:
            return
        self._tried_ms = now_ms
        if not self._rows:
            return
        try:
            properties = {
                "delta.checkpointInterval": str(LOG_CHECKPOINT_COMMITS),
                "delta.logRetentionDuration": "interval 1 days",  # no reader follows this table commit by commit
                "delta.deletedFileRetentionDuration": f"interval {READER_HOURS} hours",
            }
            table = opening.opened(
                tables.ensure_table(self._lakehouse, names.PIPELINE_HEALTH, schema_of(names.PIPELINE_HEALTH), properties)
            )
            turn = table.version() // TIDY_COMMITS
            rows = list(self._rows)  # another thread may add some meanwhile
            write_deltalake(table, to_arrow(rows), mode="append", post_commithook_properties=_HOOKS)
            del self._rows[: len(rows)]
            table.update_incremental()
            if table.version() // TIDY_COMMITS != turn:
                self._tidy(table, now_ms)
        except Exception as error:  # noqa: BLE001 - the pipeline does not need this table
            self.problem = _in_one_line(error)
            self.failures += 1
        else:
            self.problem = None

    def _tidy(self, table: DeltaTable, now_ms: int) -> None:
        """Deletes rows that are too old, merges small files, and removes files that no reader needs."""
        oldest = datetime.fromtimestamp(now_ms / 1_000, tz=timezone.utc) - KEEP
        table.delete(f"occurred_at < '{oldest.isoformat(timespec='milliseconds')}'")
        table.optimize.compact(target_size=_TARGET_BYTES, post_commithook_properties=_HOOKS)
        table.vacuum(retention_hours=READER_HOURS, dry_run=False, enforce_retention_duration=False)


def _in_one_line(error: Exception) -> str:
    """The chain of causes, which delta-rs writes on several lines, in colours."""
    lines = (line.strip() for line in _COLOURS.sub("", str(error)).splitlines())
    return printable(f"{type(error).__name__}: {': '.join(line for line in lines if line)}", 400)


def to_arrow(rows: Sequence[BatchHealth]) -> pa.Table:
    """Rows typed by the table's schema."""
    columns = [asdict(row) for row in rows]
    for values in columns:
        for name in ("occurred_at", "event_time"):
            if values[name] is not None:
                values[name] *= 1_000  # milliseconds to microseconds
    return pa.Table.from_pylist(columns, schema=arrow_schema_of(names.PIPELINE_HEALTH))
