"""Copies group_events into a new lakehouse in the order in which the model has to see them, however they lie in the old one.

First what the table held when the copy began, its batches in the order in which ingest made them (files that `rebalance maintain` put in
order mix batches; the rows tell them apart), then what was appended since, commit by commit. A commit of the new table is a file of
whole batches, and bears how far the copy is, so that a copy that was killed goes on there, and nothing is copied twice.

It also bears what ingest wrote last (`SetTransaction`): when the new table takes the place of the old one, a batch that ingest runs
again is known there too.
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
from jobs.lakehouse.parquet import rows_of_files

CHUNK_ROWS: Final = 30_000
"""Of a commit, about: what ingest makes of a slice. A batch is never cut, for its clock must not overtake its events."""
_RANGE_ROWS: Final = 1_000_000
"""Read and sorted at once: files that hold many batches are read once for all of them."""
_SNAPSHOT: Final = "rebalance-replay-snapshot"  # version of the old table that the copy began with
_BATCHES: Final = "rebalance-replay-batches"  # of that version copied
_COMMITS: Final = "rebalance-replay-commits"  # last version of the old table that was copied
# Lines that a shipper sent bear a digest in their origin (jobs/kafka/shipper.py). Two ingest queries number their batches each for itself.
_SHIPPED: Final = r"regexp_matches(origin, '@[0-9a-f]{12}\.[^/]*$')"


@dataclass(frozen=True)
class Copied:
    """How far the copy is, in rows."""

    done: int
    total: int


@dataclass(frozen=True)
class _Chunk:
    rows: pa.Table
    marks: Mapping[str, int]


class EventCopy:
    """The copy from one table group_events to another, which must be there. UserError: the new one holds something else."""

    def __init__(self, old: Path, new: Path, spill: Path) -> None:
        self._old = old
        self._new = new
        self._spill = spill
        self._schema = pa.schema(DeltaTable(str(new)).schema().to_arrow())
        # Of this very table: another lakehouse's events must not be taken for it.
        table_id = str(DeltaTable(str(old)).metadata().id)
        self._snapshot, self._batches, self._commits = (f"{name} {table_id}" for name in (_SNAPSHOT, _BATCHES, _COMMITS))
        if self._mark(self._snapshot) is None:
            if DeltaTable(str(new)).file_uris():
                raise UserError(f"{new.parent} has events of its own, not those of {old.parent}: give a new folder")
            self._append(_Chunk(self._schema.empty_table(), {self._snapshot: DeltaTable(str(old)).version()}))

    def run(self) -> Iterator[Copied]:
        """Copies what is not there yet; tells how far it is after each commit."""
        if self._mark(self._commits) is None:
            yield from self._copy_snapshot()
        yield from self._copy_commits()

    def _copy_snapshot(self) -> Iterator[Copied]:
        version = self._mark(self._snapshot)
        assert version is not None
        try:
            table = DeltaTable(str(self._old), version=version)
        except DeltaError:
            raise self._too_late() from None
        paths = [file.path for file in delta_files.data_files(table)]
        if not all((self._old / unquote(path)).exists() for path in paths):
            raise self._too_late()
        plan = _plan(table, self._old, paths, self._spill)
        total = sum(batch.rows for batch in plan)
        first = self._mark(self._batches) or 0
        done = sum(batch.rows for batch in plan[:first])
        for chunk in _chunks(self._read(table, paths, plan, first)):
            number = chunk["number"][-1].as_py() + 1
            self._append(_Chunk(_without_number(chunk, self._schema), {self._batches: number}))
            done += len(chunk)
            yield Copied(done, total)
        written = delta_log.transactions(self._old, version)
        self._append(_Chunk(self._schema.empty_table(), {**written, self._commits: version}))

    def _read(self, table: DeltaTable, paths: Sequence[str], plan: Sequence[_Batch], first: int) -> Iterator[pa.Table]:
        """The rows of the plan's batches from this one on, in order, each with the number of its batch in the plan."""
        source = rows_of_files(table, [self._old / unquote(path) for path in paths])
        connection = delta_files.connection(self._spill)
        while first < len(plan):
            last, rows = first, plan[first].rows
            while last + 1 < len(plan) and rows + plan[last + 1].rows <= _RANGE_ROWS:
                last += 1
                rows += plan[last].rows
            part = plan[first : last + 1]
            numbers = pa.table(
                {
                    "shipped": [batch.shipped for batch in part],
                    "batch_id": [batch.batch_id for batch in part],
                    "number": range(first, last + 1),
                }
            )
            connection.register("numbers", numbers)
            bounds = min(batch.batch_id for batch in part), max(batch.batch_id for batch in part)
            query = (
                f"SELECT events.*, number FROM ({source}) events JOIN numbers "  # noqa: S608 - of our own
                f"ON events.batch_id = numbers.batch_id AND {_SHIPPED} = shipped "
                f"WHERE events.batch_id BETWEEN {bounds[0]} AND {bounds[1]} ORDER BY number"
            )
            for batch in connection.execute(query).to_arrow_reader(CHUNK_ROWS):
                yield pa.Table.from_batches([batch])
            connection.unregister("numbers")
            first = last + 1

    def _copy_commits(self) -> Iterator[Copied]:
        """What was appended since. Commits that put rows in order, or take old ones away, have nothing new."""
        done = self._mark(self._commits)
        assert done is not None
        present = delta_log.versions(self._old)
        total = DeltaTable(str(self._old)).count()
        if present[-1] > done and present[0] > done + 1:
            raise self._too_late()
        table = DeltaTable(str(self._old))
        pending: list[pa.Table] = []
        marks: dict[str, int] = {}
        for commit in delta_log.commits(self._old, done + 1):
            paths = commit.appended
            if not all((self._old / unquote(path)).exists() for path in paths):
                raise self._too_late()
            if paths:
                pending.append(pa.Table.from_batches(delta_files.read(table, self._old, paths, self._spill), self._schema_of(table)))
            marks |= commit.transactions | {self._commits: commit.version}
            if sum(map(len, pending)) >= CHUNK_ROWS:
                self._append(_Chunk(_fitted(pa.concat_tables(pending), self._schema), marks))
                pending, marks = [], {}
                yield Copied(self._copied(), total)
        if marks:
            rows = _fitted(pa.concat_tables(pending), self._schema) if pending else self._schema.empty_table()
            self._append(_Chunk(rows, marks))
            yield Copied(self._copied(), total)

    @staticmethod
    def _schema_of(table: DeltaTable) -> pa.Schema:
        return pa.schema(table.schema().to_arrow())

    def _copied(self) -> int:
        return int(DeltaTable(str(self._new)).count())

    def _append(self, chunk: _Chunk) -> None:
        """One commit, one file: track reads so many files a batch, and whole commits only if a commit is a file."""
        properties = CommitProperties(app_transactions=[Transaction(name, version) for name, version in chunk.marks.items()])
        write_deltalake(
            str(self._new),
            chunk.rows,
            mode="append",
            target_file_size=1 << 40,
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=properties,
        )

    def _mark(self, name: str) -> int | None:
        return DeltaTable(str(self._new)).transaction_version(name)

    def _too_late(self) -> UserError:
        return UserError(f"{self._old.parent} was maintained since the replay began, which now lacks events: begin again in a new folder")


@dataclass(frozen=True)
class _Batch:
    shipped: bool
    batch_id: int
    rows: int


def _plan(table: DeltaTable, folder: Path, paths: Sequence[str], spill: Path) -> list[_Batch]:
    """All batches in the order in which to copy them: those of each ingest query by their number, the two by their time.

    A batch's time is the newest of it and of all before it, so that the two orders cannot contradict each other.
    """
    source = rows_of_files(table, [folder / unquote(path) for path in paths])
    query = (
        'SELECT shipped, batch_id, count(*), max(max(epoch_us("at"))) OVER (PARTITION BY shipped ORDER BY batch_id) reached '  # noqa: S608
        f'FROM (SELECT {_SHIPPED} shipped, batch_id, "at" FROM ({source})) '
        "GROUP BY shipped, batch_id ORDER BY reached, shipped, batch_id"
    )
    found: list[tuple[Any, ...]] = delta_files.connection(spill).execute(query).fetchall()
    return [_Batch(shipped, batch_id, rows) for shipped, batch_id, rows, _ in found]


def _chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, whole batches at a time: at least CHUNK_ROWS rows, if there are so many."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) < CHUNK_ROWS:
            continue
        rows = pa.concat_tables(held)
        # The last batch may go on in the next table.
        open_from = rows["number"].index(rows["number"][-1]).as_py()
        if open_from > 0:
            yield rows.slice(0, open_from)
            held = [rows.slice(open_from)]
    if held:
        yield pa.concat_tables(held)


def _without_number(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return _fitted(rows.drop_columns(["number"]), schema)


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of the new table; what an older version did not know is null."""
    known = set(rows.column_names)
    columns = [rows[field.name].cast(field.type) if field.name in known else pa.nulls(len(rows), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
