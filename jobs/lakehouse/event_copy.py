"""Copies group_events into a new lakehouse in the order in which the model has to see them, however the old files are ordered.

It copies what the table holds, batch by batch as ingest wrote them (`rebalance maintain` mixes batches in its files; the rows tell them
apart), and looks again, until there is nothing new. A commit of the new table is one file of whole batches and notes for each query up to
which batch the copy is, so that a killed copy continues there and nothing is copied twice. The notes are those of ingest itself: after the
swap, the new table recognises a batch that ingest runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.lakehouse import delta_files, opening, tables
from jobs.lakehouse.added_files import AddedFile, AddedFileWriter, BatchFile
from jobs.lakehouse.parquet import rows_of_files
from jobs.lakehouse.tables import arrow_schema
from schemas.names import INGEST, INGEST_TOPIC, REPLAY

EXPIRED_UNTIL: Final = "rebalance-expired-until"
"""Up to when `rebalance maintain` deleted old events, epoch ms: a transaction of the table."""
CHUNK_ROWS: Final = 30_000
"""Rows of a commit, about as many as ingest makes of a slice. A batch is never cut, for its clock must not overtake its events."""
RANGE_ROWS: Final = 1_000_000
"""Rows that are read and sorted at once: a file that holds many batches is read once for all of them."""
_SOURCE: Final = "rebalance-replay-source"
_WHOLE: Final = 1 << 60
"""In the place of that time: the copy has all that was there when it last looked."""
# The origin of shipped lines contains a digest (jobs/kafka/shipper.py). The two ingest queries number their batches independently.
_SHIPPED: Final = r"regexp_matches(origin, '@[0-9a-f]{12}\.[^/]*$')"


@dataclass(frozen=True)
class _Batch:
    shipped: bool
    batch_id: int
    rows: int


class EventCopy:
    """The copy from one table group_events to another, which must exist. UserError: the new one holds other events."""

    def __init__(self, old: Place, new: Place, spill: Path) -> None:
        self._old = old
        self._new = new
        self._spill = spill
        table = opening.opened(new)
        self._schema = arrow_schema(table)
        # The id of the old table tells its events from those of another lakehouse.
        events = opening.opened(old)
        self._source, expired = f"{_SOURCE} {events.metadata().id}", events.transaction_version(EXPIRED_UNTIL) or 0
        known = table.transaction_version(self._source)
        if known is None and table.file_uris():
            raise UserError(f"{new.parent} has events that are not from {old.parent}: give a new folder")
        if known not in {None, _WHOLE, expired}:  # what is deleted after a whole copy is in that copy
            raise UserError(f"`rebalance maintain` deleted events of {old.parent} during the replay: begin again in a new folder")
        if known != expired:
            tables.commit(new, table, [], {self._source: expired})

    def run(self) -> Iterator[tuple[int, int]]:
        """Copies what is missing; yields after each commit how many rows are copied, of how many."""
        while True:
            old, new = opening.opened(self._old), opening.opened(self._new)
            copied = {False: _written(new, INGEST), True: _written(new, INGEST_TOPIC)}
            source = rows_of_files(old, self._old, [file.path for file in delta_files.data_files(old)])
            plan = [batch for batch in _plan(source, self._spill, self._old) if batch.batch_id > copied[batch.shipped]]
            if not plan:
                marks = {app_id: _written(old, app_id) for app_id in (INGEST, INGEST_TOPIC)}
                if any(version > _written(new, app_id) for app_id, version in marks.items()):  # batches of which no event is left
                    self._append(None, marks)
                tables.commit(self._new, opening.opened(self._new), [], {self._source: _WHOLE})
                return
            done = new.count()
            total = done + sum(batch.rows for batch in plan)
            for chunk in self._chunks(self._read(source, plan)):
                taken = plan[: chunk["number"][-1].as_py() + 1]
                self._append(chunk, {INGEST_TOPIC if batch.shipped else INGEST: batch.batch_id for batch in taken})
                done += len(chunk)
                yield done, total

    def _read(self, source: str, plan: Sequence[_Batch]) -> Iterator[pa.Table]:
        """The rows of the plan's batches, in order, each row with the number of its batch in the plan."""
        first, connection = 0, delta_files.connection(self._spill, self._old)
        while first < len(plan):
            last, rows = first, plan[first].rows
            while last + 1 < len(plan) and rows + plan[last + 1].rows <= RANGE_ROWS:
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
            for batch in connection.execute(query).to_arrow_reader(CHUNK_ROWS):
                yield pa.Table.from_batches([batch])
            first = last + 1

    def _chunks(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same rows, whole batches at a time: at least CHUNK_ROWS rows, if there are so many."""
        pending: list[pa.Table] = []
        for table in tables:
            pending.append(table)
            if sum(map(len, pending)) < CHUNK_ROWS:
                continue
            rows = pa.concat_tables(pending)
            # The last batch may continue in the next table.
            last_batch = rows["number"].index(rows["number"][-1]).as_py()
            if last_batch > 0:
                yield rows.slice(0, last_batch)
                pending = [rows.slice(last_batch)]
        if pending:
            yield pa.concat_tables(pending)

    def _append(self, rows: pa.Table | None, marks: Mapping[str, int]) -> None:
        """One commit, one file: a batch is whole in it."""
        table = opening.opened(self._new)
        chunk = _written(table, REPLAY) + 1
        files: list[AddedFile] = []
        if rows is not None:
            writer = AddedFileWriter(self._new, BatchFile(REPLAY, chunk, 0).new_name())
            writer.write(_fitted(rows, self._schema))
            files = [file for file in [writer.close()] if file is not None]
        tables.commit(self._new, table, files, {REPLAY: chunk, **{app_id: version for app_id, version in marks.items() if version >= 0}})


def _written(table: DeltaTable, app_id: str) -> int:
    """The last version that an application wrote; -1: it wrote none."""
    version = table.transaction_version(app_id)
    return -1 if version is None else version


def _plan(source: str, spill: Path, folder: Place) -> list[_Batch]:
    """All batches in the order in which to copy them: those of one ingest query by number, those of both queries by time.

    The time of a batch is the newest time in it and in all batches before it, so that the two orders cannot contradict each other.
    """
    query = (
        "SELECT shipped, batch_id, count(*), max(max(epoch_us(occurred_at))) OVER (PARTITION BY shipped ORDER BY batch_id) reached "  # noqa: S608
        f"FROM (SELECT {_SHIPPED} shipped, batch_id, occurred_at FROM ({source})) "
        "GROUP BY shipped, batch_id ORDER BY reached, shipped, batch_id"
    )
    rows: list[tuple[Any, ...]] = delta_files.connection(spill, folder).execute(query).fetchall()
    return [_Batch(*row[:3]) for row in rows]


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of the new table. Columns that the old one did not have are null."""
    present = set(rows.column_names)
    columns = [rows[field.name].cast(field.type) if field.name in present else pa.nulls(len(rows), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
