"""Log lines to group_events: read slices of lines, parse, compact, write.

    spool slices (Parquet) ──► kinds ──► batch ──► group_events, quarantine, input_lines     of jobs/parsing

Every batch is idempotent: tables record the last batch that the application INGEST wrote, so a batch that is run again after a crash
changes nothing. A lakehouse has one ingest and one checkpoint: they are kept and deleted together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from jobs.common.settings import Settings
from jobs.common.side_by_side import side_by_side
from jobs.common.stores import Place, place_of
from jobs.health.batches import IngestedBatch
from jobs.lakehouse import tables
from jobs.lakehouse.folder import Lakehouse
from jobs.logs.slice_files import SliceFiles
from jobs.logs.slice_rows import shares_in
from jobs.logs.workers import Workers
from jobs.parsing import batch
from jobs.parsing.rows import PARSED, joined
from jobs.pipeline.part_tasks import Part, write_share
from jobs.pipeline.queries import QueryEnd, ensure_tables, start_query
from schemas import names
from schemas.tables import INGEST_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Observer = Callable[[IngestedBatch], None]
Gatekeeper = Callable[[pa.Table], batch.Admission]
"""Decides what of a micro-batch is admitted, by the `batch.line_summaries` of all its rows."""


def tasks_as_workers(spark: SparkSession) -> Workers:
    """Lets tasks work, one for each piece of work."""
    context = spark.sparkContext
    return Workers(
        context.defaultParallelism, lambda function, work: context.parallelize(work, len(work)).map(function).collect() if work else []
    )


def read_slices(spark: SparkSession, files: SliceFiles) -> DataFrame:
    """The stream of slices as packets, one slice for each micro-batch."""
    from jobs.pipeline.sources.slices import SliceSource  # who needs no Spark does not import it

    spark.dataSource.register(SliceSource)
    stream = spark.readStream.format(SliceSource.name()).option("spool", str(files.folder.absolute()))
    return stream.option("tasks", spark.sparkContext.defaultParallelism).load()


def unpacked(packets: pa.Table) -> pa.Table:
    """The rows of PARSED in PACKETS."""
    return joined((pa.ipc.open_stream(packet.as_buffer()).read_all() for packet in packets["packet"]), PARSED)


class LineWriter(msgspec.Struct, frozen=True):
    """Writes micro-batches to the three tables: PACKETS, or rows of PARSED."""

    lakehouse: Place
    parts: Place | None = None  # the folder of parts, if batches may have them
    app_id: str = names.INGEST
    observer: Observer | None = None

    def __call__(self, packets: DataFrame, batch_id: int) -> None:
        """Writes a batch, as Spark calls it."""
        self.write(unpacked(packets.toArrow()), batch_id, tasks_as_workers(packets.sparkSession))

    def write(self, rows: pa.Table, batch_id: int, workers: Workers, gatekeeper: Gatekeeper | None = None) -> pa.Table:
        """Writes a batch; returns its rows of input_lines. `workers`: who parses and writes its parts."""
        is_part = pc.equal(rows["verdict"], names.PART)
        parts = [Part(str(self.parts / row["raw"]), row["position"]) for row in rows.filter(is_part).to_pylist() if self.parts]
        # Tasks read, parse and write the parts of large slices. Their files count when the driver commits them with the batch.
        shares = max((shares_in(place_of(part.path)) for part in parts), default=0)
        more = workers.map(partial(write_share, self.lakehouse, batch_id, parts), range(shares))
        rows = rows.filter(pc.invert(is_part))
        admission = gatekeeper(batch.line_summaries(rows)) if gatekeeper is not None else batch.EVERYTHING
        written = batch.rows_by_table(rows, batch_id, admission)
        if more:
            written[names.INPUT_LINES] = batch.summed([written[names.INPUT_LINES], *(task.account for task in more)])
        files = {name: [task.files[name] for task in more if name in task.files] for name in (*written, names.QUARANTINE)}
        if files[names.QUARANTINE]:
            written.setdefault(names.QUARANTINE, batch.quarantined(rows, batch_id))
        side_by_side(lambda name: tables.append(self.lakehouse / name, written[name], self.app_id, batch_id, files[name]), written)
        account = written[names.INPUT_LINES]
        if self.observer is not None:
            self.observer(IngestedBatch(batch_id, _by_cluster(account), repeated=pc.sum(account[names.REPEATED]).as_py() or 0))
        return account


def _by_cluster(accounted: pa.Table) -> dict[str, tuple[int, int, int]]:
    counts = ["skipped", "events", "quarantined"]
    summed = accounted.group_by("cluster").aggregate([(name, "sum") for name in counts]).to_pylist()
    return {row["cluster"]: (row["skipped_sum"], row["events_sum"], row["quarantined_sum"]) for row in summed}


def start_ingest(
    spark: SparkSession, house: Lakehouse, settings: Settings, *, observer: Observer | None = None, ending: QueryEnd | None = None
) -> StreamingQuery:
    """Starts the query, which follows the slices of the spool."""
    checkpoint, files = house.ingest_checkpoint, SliceFiles(house.spool)
    ensure_tables(house.folder, INGEST_TABLES, checkpoint, names.INGEST)
    write = LineWriter(house.folder, files.parts, observer=observer)
    return start_query("ingest", read_slices(spark, files), write, checkpoint, settings.interval_ms, ending=ending)
