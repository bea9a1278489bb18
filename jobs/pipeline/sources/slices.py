"""The slices of the spool as a stream: one slice for each micro-batch, which tasks read and parse.

The offset is the number of the newest slice that was taken, so a checkpoint holds no path. A slice is deleted after the micro-batch that it
belongs to: that is how the spool knows that it was taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from jobs.common.stores import place_of, readable
from jobs.logs.slice_files import SliceFiles

_LEAST_ROWS: Final = 2_000
"""Of a task: a task costs as much as so many lines."""


@dataclass
class SliceShare(InputPartition):
    """Row groups of a slice."""

    path: str
    first: int
    end: int


class SliceSource(DataSource):
    """Options: `spool`, the folder of the spool; `tasks`, how many read a slice at most."""

    @classmethod
    def name(cls) -> str:
        """The format of `readStream`."""
        return "rebalance-slices"

    def schema(self) -> str:
        """The rows that come out."""
        from jobs.pipeline.part_tasks import PACKETS

        return PACKETS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 - Spark's name
        """The reader."""
        return SliceReader(SliceFiles(place_of(self.options["spool"])), int(self.options["tasks"]))


class SliceReader(DataSourceStreamReader):
    """Plans in a process beside the driver, and reads in tasks."""

    def __init__(self, files: SliceFiles, tasks: int) -> None:
        self._files = files
        self._tasks = tasks
        self._taken = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Slices are numbered from 1."""
        return {"slice": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        """The next slice, if it is there."""
        return {"slice": self._taken + (self._files.newest() > self._taken)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """What tasks read. Spark also calls it when a query goes on, with the offset up to which it had read, twice."""
        self._taken = end["slice"]
        shares: list[InputPartition] = []
        for number in range(start["slice"] + 1, end["slice"] + 1):
            path = self._files.path(number)
            slice_ = pq.read_metadata(readable(path))
            count = max(1, min(self._tasks, slice_.num_row_groups, slice_.num_rows // _LEAST_ROWS))
            groups = slice_.num_row_groups
            shares += [SliceShare(str(path), groups * task // count, groups * (task + 1) // count) for task in range(count)]
        return shares

    def commit(self, end: dict[str, int]) -> None:
        """Deletes the slices whose micro-batch is over."""
        self._files.delete_up_to(end["slice"])

    def read(self, partition: SliceShare) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The packets of a share."""
        from jobs.pipeline.part_tasks import parsed_packets  # a process that plans does without

        with pq.ParquetFile(readable(place_of(partition.path))) as slice_:
            groups = range(partition.first, partition.end)
            yield from parsed_packets(batch for group in groups for batch in slice_.read_row_group(group, use_threads=False).to_batches())
