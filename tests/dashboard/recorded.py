"""The lakehouse of a recording without Spark: the pipeline's own reader, parsers, tracker and writers, one after the other."""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq

from coordinator_model.tracker.shard import Shard
from jobs.common.settings import Settings
from jobs.lakehouse import tables
from jobs.lakehouse.folder import Lakehouse, remember_input
from jobs.logs.spool import Spool, SpoolSettings
from jobs.parsing import batch, kinds
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from tests.lakehouse.rows import empty_lakehouse, write


class GrowingLakehouse:
    """A lakehouse that gets the lines of a folder of logs slice by slice, as `rebalance run` writes them. The logs are of one cluster."""

    def __init__(self, source, folder, slice_lines=1_000_000):
        self.folder = empty_lakehouse(folder)
        house = Lakehouse(folder)
        house.inputs.parent.mkdir()
        remember_input(house, source)
        settings = SpoolSettings(slice_lines=slice_lines, tolerance_ms=Settings().lateness_ms, fold=True)
        self._reports = Spool(source, house.spool, settings=settings).slices()
        self._shard = Shard()
        self._batch = 0

    def grow(self):
        """Writes the next slice. False: there was none."""
        report = next(self._reports, None)
        if report is None:
            return False
        (lines,) = pq.read_table(report.path).combine_chunks().to_batches()
        written = batch.rows_by_table(kinds.parsed(lines), self._batch)
        for name, rows in written.items():
            tables.append(self.folder / name, rows, "test", self._batch)
        (rows,) = written[GROUP_EVENTS].combine_chunks().to_batches()
        (packed,) = packets.packed(Spread(1, 1), [rows], "")
        (cluster,) = packed["cluster"].to_pylist()
        told = packets.unpacked([pd.DataFrame({"events": packed["events"].to_pylist()})])[:2]
        tracked = [*self._shard.observe(*told), *self._shard.provisional]
        made = ({**row.values, "cluster": cluster, "table": row.table} for row in tracked)  # noqa: PD011 - no pandas
        write(self.folder, *made, batch=self._batch)
        self._batch += 1
        return True

    def grow_to_the_end(self):
        """Writes all slices that are left; returns the folder."""
        while self.grow():
            pass
        return self.folder
