"""Writes `pipeline_health`: rows gathered for some time make one commit, old ones go, and no failure here stops anything.

A row a micro-batch would be a commit and a file every few seconds: some 500,000 in a month. A commit every 30 s, made into few files
after each 120 of them, and 30 days of rows leave hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.common.text import printable
from jobs.health.batch_health import BatchHealth
from jobs.lakehouse import tables
from schemas import names, pipeline_health

COMMIT_MS: Final = 30_000
KEEP: Final = timedelta(days=30)
TIDY_COMMITS: Final = 120  # about an hour of them

_BUFFERED: Final = 10_000  # rows that are kept while the table cannot be written: half a day
_TARGET_BYTES: Final = 4 << 20  # of a file: larger ones are not made anew by each tidying
_READERS_HOURS: Final = 1  # that a reader may go on with the files it found
_CONFIGURATION: Final = {
    "delta.checkpointInterval": "100",
    # Nobody reads this table commit by commit.
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": f"interval {_READERS_HOURS} hours",
}
_COLOURS: Final = re.compile(r"\x1b\[[\d;]*m|↳")
_HOOKS: Final = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=True)


class HealthTable:
    """The table of one lakehouse. Times are epoch ms. `problem`: why the last attempt to write it failed, in one line."""

    def __init__(self, lakehouse: Path, *, keep: timedelta = KEEP) -> None:
        self._lakehouse = lakehouse
        self._keep = keep
        self._rows: list[BatchHealth] = []
        self._tried_ms: int | None = None
        self.problem: str | None = None
        self.failures = 0

    def add(self, row: BatchHealth) -> None:
        """Takes a row for the next commit."""
        self._rows.append(row)
        del self._rows[:-_BUFFERED]

    def flush(self, now_ms: int, *, at_once: bool = False) -> None:
        """Writes what was gathered, if it is time or `at_once`. A failure is noted, and the rows are kept for the next time."""
        if self._tried_ms is None:
            self._tried_ms = now_ms
        if not at_once and now_ms - self._tried_ms < COMMIT_MS:
            return
        self._tried_ms = now_ms
        if not self._rows:
            return
        try:
            path = tables.ensure_table(self._lakehouse, names.PIPELINE_HEALTH, pipeline_health.SCHEMA, _CONFIGURATION)
            table = DeltaTable(str(path))
            turn = table.version() // TIDY_COMMITS
            rows = list(self._rows)  # another thread may be adding some
            write_deltalake(table, to_arrow(rows), mode="append", post_commithook_properties=_HOOKS)
            del self._rows[: len(rows)]
            table.update_incremental()
            if table.version() // TIDY_COMMITS != turn:
                self._tidy(table, now_ms)
        except Exception as error:  # noqa: BLE001 - whatever it is: the pipeline does not need this table
            self.problem = _in_one_line(error)
            self.failures += 1
        else:
            self.problem = None

    def _tidy(self, table: DeltaTable, now_ms: int) -> None:
        """Deletes rows that are too old, makes few files of many, and removes those that nobody needs."""
        oldest = datetime.fromtimestamp(now_ms / 1_000, tz=timezone.utc) - self._keep
        table.delete(f"at < '{oldest.isoformat(timespec='milliseconds')}'")
        table.optimize.compact(target_size=_TARGET_BYTES, post_commithook_properties=_HOOKS)
        table.vacuum(retention_hours=_READERS_HOURS, dry_run=False, enforce_retention_duration=False)


def _in_one_line(error: Exception) -> str:
    """delta-rs tells the chain of causes on several lines, in colours."""
    lines = (line.strip() for line in _COLOURS.sub("", str(error)).splitlines())
    return printable(f"{type(error).__name__}: {': '.join(line for line in lines if line)}", 400)


def to_arrow(rows: Sequence[BatchHealth]) -> pa.Table:
    """Rows typed by the table's schema."""
    columns = [asdict(row) for row in rows]
    for values in columns:
        for name in ("at", "event_time"):
            if values[name] is not None:
                values[name] *= 1_000  # milliseconds to microseconds
    return pa.Table.from_pylist(columns, schema=to_arrow_schema(pipeline_health.SCHEMA))
