"""Copies group_events into a new lakehouse in the order in which the model has to see them, however the old files are ordered.

First it copies what the table held when the copy began, batch by batch as ingest wrote them (`rebalance maintain` mixes batches in its
files; the rows tell them apart). Then it copies what was appended since, commit by commit. A commit of the new table is one file of
whole batches and records how far the copy is, so that a killed copy continues there and nothing is copied twice.

Commits also carry over the last version that ingest wrote (`SetTransaction`): after the swap, the new table recognises a batch that ingest
runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError

from jobs.common.errors import UserError
from jobs.lakehouse import delta_files, delta_log
from jobs.lakehouse.delta_files import arrow_schema
from jobs.lakehouse.parquet import rows_of_files

_ONE_FILE: Final = 1 << 40  # bytes: no file reaches them, so a commit has one file
_SNAPSHOT: Final = "rebalance-replay-snapshot"  # version of the old table that the copy began with
_BATCHES: Final = "rebalance-replay-batches"  # number of batches of that version that were copied
_COMMITS: Final = "rebalance-replay-commits"  # last version of the old table that was copied
# The origin of shipped lines contains a digest (jobs/kafka/shipper.py). The two ingest queries number their batches independently.
_SHIPPED: Final = r"regexp_matches(origin, '@[0-9a-f]{12}\.[^/]*$')"


@dataclass(frozen=True)
class CopyLimits:
    """How much is copied at once."""

    chunk_rows: int = 30_000
    """Rows of a commit, about as many as ingest makes of a slice. A batch is never cut, for its clock must not overtake its events."""
    range_rows: int = 1_000_000
    """Rows that are read and sorted at once: a file that holds many batches is read once for all of them."""


@dataclass(frozen=True)
class CopyProgress:
    """How many rows are copied."""

    done: int
    total: int


@dataclass(frozen=True)
class _Batch:
    shipped: bool
    batch_id: int
    rows: int


class EventCopy:
    """The copy from one table group_events to another, which must exist. UserError: the new one holds other events."""

    def __init__(self, old: Path, new: Path, spill: Path, limits: CopyLimits | None = None) -> None:
        self._old = old
        self._new = new
        self._spill = spill
        self._limits = limits or CopyLimits()
        table = DeltaTable(str(new))
        self._schema = arrow_schema(table)
        # The id of the old table tells its events from those of another lakehouse.
        table_id = str(DeltaTable(str(old)).metadata().id)
        self._snapshot, self._batches, self._commits = (f"{name} {table_id}" for name in (_SNAPSHOT, _BATCHES, _COMMITS))
        if self._mark(self._snapshot) is None:
            if table.file_uris():
                raise UserError(f"{new.parent} has events that are not from {old.parent}: give a new folder")
            self._append(None, {self._snapshot: DeltaTable(str(old)).version()})

    def run(self) -> Iterator[CopyProgress]:
        """Copies what is missing; yields the progress after each commit."""
        version = self._mark(self._snapshot)
        if self._mark(self._commits) is None and version is not None:
            yield from self._copy_snapshot(version)
        yield from self._copy_commits(self._mark(self._commits) or 0)

    def _copy_snapshot(self, version: int) -> Iterator[CopyProgress]:
        try:
            table = DeltaTable(str(self._old), version=version)
        except DeltaError:
            raise self._too_late() from None
        paths = [file.path for file in delta_files.data_files(table)]
        self._check_files(paths)
        source = rows_of_files(table, self._old, paths)
        plan = _plan(source, self._spill)
        total = sum(batch.rows for batch in plan)
        first = self._mark(self._batches) or 0
        done = sum(batch.rows for batch in plan[:first])
        for chunk in self._chunks(self._read(source, plan, first)):
            self._append(chunk, {self._batches: chunk["number"][-1].as_py() + 1})
            done += len(chunk)
            yield CopyProgress(done, total)
        self._append(None, {**delta_log.transactions(self._old, version), self._commits: version})

    def _read(self, source: str, plan: Sequence[_Batch], first: int) -> Iterator[pa.Table]:
        """The rows of the plan's batches from this one on, in order, each row with the number of its batch in the plan."""
        connection = delta_files.connection(self._spill)
        while first < len(plan):
            last, rows = first, plan[first].rows
            while last + 1 < len(plan) and rows + plan[last + 1].rows <= self._limits.range_rows:
                last += 1
                rows += plan[last].rows
            part = plan[first : last + 1]
            ids = [batch.batch_id for batch in part]
            numbers = pa.table({"shipped": [batch.shipped for batch in part], "batch_id": ids, "number": range(first, last + 1)})
            connection.register("numbers", numbers)
            query = (
                f"SELECT events.*, number FROM ({source}) events JOIN numbers "  # noqa: S608 - nothing in it is typed by a user
                f"ON events.batch_id = numbers.batch_id AND {_SHIPPED} = shipped "
                f"WHERE events.batch_id BETWEEN {min(ids)} AND {max(ids)} ORDER BY number"
            )
            for batch in connection.execute(query).to_arrow_reader(self._limits.chunk_rows):
                yield pa.Table.from_batches([batch])
            first = last + 1

    def _chunks(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same rows, whole batches at a time: at least `chunk_rows` rows, if there are so many."""
        pending: list[pa.Table] = []
        for table in tables:
            pending.append(table)
            if sum(map(len, pending)) < self._limits.chunk_rows:
                continue
            rows = pa.concat_tables(pending)
            # The last batch may continue in the next table.
            last_batch = rows["number"].index(rows["number"][-1]).as_py()
            if last_batch > 0:
                yield rows.slice(0, last_batch)
                pending = [rows.slice(last_batch)]
        if pending:
            yield pa.concat_tables(pending)

    def _copy_commits(self, done: int) -> Iterator[CopyProgress]:
        """Copies what was appended since. Commits that sort rows or delete old ones add nothing."""
        table = DeltaTable(str(self._old))
        present, total = delta_log.versions(self._old), table.count()
        if present[-1] > done and present[0] > done + 1:
            raise self._too_late()
        pending: list[pa.Table] = []
        marks: dict[str, int] = {}
        for commit in delta_log.commits(self._old, done + 1):
            if commit.version > present[-1]:  # came meanwhile: for the next call
                break
            paths = commit.appended
            self._check_files(paths)
            if paths:
                pending.append(pa.Table.from_batches(delta_files.read(table, self._old, paths, self._spill), arrow_schema(table)))
            marks |= commit.transactions | {self._commits: commit.version}
            if sum(map(len, pending)) >= self._limits.chunk_rows or commit.version == present[-1]:
                self._append(pa.concat_tables(pending) if pending else None, marks)
                pending, marks = [], {}
                yield CopyProgress(DeltaTable(str(self._new)).count(), total)

    def _append(self, rows: pa.Table | None, marks: Mapping[str, int]) -> None:
        """One commit, one file: track reads a number of files per batch, and whole commits only if a commit is one file."""
        properties = CommitProperties(app_transactions=[Transaction(name, version) for name, version in marks.items()])
        write_deltalake(
            str(self._new),
            self._schema.empty_table() if rows is None else _fitted(rows, self._schema),
            mode="append",
            target_file_size=_ONE_FILE,
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=properties,
        )

    def _mark(self, name: str) -> int | None:
        return DeltaTable(str(self._new)).transaction_version(name)

    def _check_files(self, paths: Sequence[str]) -> None:
        if not all((self._old / unquote(path)).exists() for path in paths):
            raise self._too_late()

    def _too_late(self) -> UserError:
        return UserError(f"{self._old.parent} was maintained during the replay, which now lacks events: begin again in a new folder")


def _plan(source: str, spill: Path) -> list[_Batch]:
    """All batches in the order in which to copy them: those of one ingest query by number, those of both queries by time.

    The time of a batch is the newest time in it and in all batches before it, so that the two orders cannot contradict each other.
    """
    query = (
        "SELECT shipped, batch_id, count(*), max(max(epoch_us(occurred_at))) OVER (PARTITION BY shipped ORDER BY batch_id) reached "  # noqa: S608
        f"FROM (SELECT {_SHIPPED} shipped, batch_id, occurred_at FROM ({source})) "
        "GROUP BY shipped, batch_id ORDER BY reached, shipped, batch_id"
    )
    rows: list[tuple[Any, ...]] = delta_files.connection(spill).execute(query).fetchall()
    return [_Batch(*row[:3]) for row in rows]


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of the new table. Columns that the old one did not have are null."""
    present = set(rows.column_names)
    columns = [rows[field.name].cast(field.type) if field.name in present else pa.nulls(len(rows), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
