"""`group_events` as a stream: tasks read the files of ingest's micro-batches and pack their events for the shards.

The offset is a place in the table (jobs/lakehouse/followers.py): the last file of each query that writes events. It holds no path and no
version of the table, so `rebalance maintain` may merge what was read, and a lakehouse may be moved. Within a micro-batch of ingest the file
with clocks is the last: a clock that overtook events would turn them into late ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from jobs.common.stores import Place, place_of
from jobs.pipeline.tracking.spread import Spread

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.lakehouse.followers import NewFile, Reached

_LEAST_BYTES: Final = 64 << 10
"""Of a task, about: a task costs as much as to pack so many."""
BYTES_PER_BATCH: Final = 128 << 20
"""Of files, about. It bounds memory, as the number of files does."""


@dataclass
class EventShare(InputPartition):
    """Files that one task reads, in order."""

    files: list[str]


class EventSource(DataSource):
    """Options: `table`, its folder; `shards` and `state_tasks`, the spread; `files`, of a micro-batch at most; `tasks` that read them."""

    @classmethod
    def name(cls) -> str:
        """The format of `readStream`."""
        return "rebalance-events"

    def schema(self) -> str:
        """The rows that come out."""
        from jobs.pipeline.tracking.packets import PACKETS

        return PACKETS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 - Spark's name
        """The reader."""
        shards, state_tasks, files, tasks = (int(self.options[name]) for name in ("shards", "state_tasks", "files", "tasks"))
        return EventReader(place_of(self.options["table"]), Spread(shards, state_tasks), files, tasks)


class EventReader(DataSourceStreamReader):
    """Plans in a process beside the driver, and reads in tasks on executors, which have no deltalake."""

    def __init__(self, table: Place, spread: Spread, files: int, tasks: int) -> None:
        self._table, self._spread, self._most, self._tasks = table, spread, files, tasks
        self._reached: Reached = {}

    def initialOffset(self) -> Reached:  # noqa: N802
        """Before all files."""
        return {}

    def latestOffset(self) -> Reached:  # noqa: N802
        """The place after the next files."""
        from jobs.lakehouse import opening
        from jobs.lakehouse.followers import behind, files_after

        taken: list[NewFile] = []
        size = 0
        with opening.kept(self._table).current() as table:
            files = files_after(table, self._reached)
        for new in files:
            if taken and (len(taken) >= self._most or size + new.size > BYTES_PER_BATCH):
                break
            taken.append(new)
            size += new.size
        return behind(self._reached, taken)

    def partitions(self, start: Reached, end: Reached) -> list[InputPartition]:
        """What tasks read. Spark also calls it when a query goes on, with the offset up to which it had read, twice."""
        self._reached = end
        if start == end:
            return []
        new = self._between(start, end)
        return list(_evenly(new, min(self._tasks, max(1, sum(one.size for one in new) // _LEAST_BYTES)), self._table))

    def read(self, partition: EventShare) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The packets of a share."""
        from jobs.pipeline.tracking.packets import packets_of  # a process that plans does without

        return packets_of(self._spread, map(place_of, partition.files))

    def _between(self, start: Reached, end: Reached) -> list[NewFile]:
        """The files up to an offset: mostly the one that `latestOffset` has just given, so the table need not be looked at again."""
        from jobs.lakehouse import opening
        from jobs.lakehouse.followers import behind, files_after, has_read

        kept = opening.kept(self._table)
        new: list[NewFile] = []
        for as_it_is in (kept.known, kept.current):
            with as_it_is() as table:
                files = files_after(table, start)
            new = [one for one in files if has_read(end, one.file)]
            if behind(start, new) == end:
                break
        return new


def _evenly(files: Iterable[NewFile], tasks: int, table: Place) -> Iterator[EventShare]:
    """Shares of about equal size: the largest files first, each to the task that has least."""
    shares: list[tuple[int, list[NewFile]]] = [(0, []) for _ in range(tasks)]
    for new in sorted(files, key=lambda one: (-one.size, one.file)):
        least = min(range(tasks), key=lambda number: shares[number][0])
        shares[least] = (shares[least][0] + new.size, [*shares[least][1], new])
    for _, own in shares:
        if own:
            yield EventShare([str(table / unquote(new.path)) for new in sorted(own, key=lambda one: one.file)])
