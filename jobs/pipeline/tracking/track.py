"""Track: follows the coordinators through `group_events`, and writes what they did into four tables.

What later lines may still correct goes into `rebalances_provisional`. What brokers did to the groups, as those tables show, is `incidents`.

    spark-submit --properties-file conf/spark-defaults.conf jobs/track.py --lakehouse DIR [--once]

A later version of the model can run again over the events of a lakehouse, into a new folder: `rebalance replay`, or, if the tables were
never maintained and the new ones will not be continued,

    spark-submit ... jobs/track.py --lakehouse NEW --events-from DIR --once

Exactly once: Spark repeats an interrupted micro-batch with the same events and the same state, the tracker then writes the same rows, and
a table that already has the batch refuses it (jobs/lakehouse/tables.py). The tables are not written together: a reader who needs the same
batches of all four joins on `batch_id`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.common.side_by_side import side_by_side
from jobs.common.stores import Place, is_store
from jobs.health.batches import TrackedBatch
from jobs.lakehouse import followers, opening, tables
from jobs.lakehouse.folder import Lakehouse, replay_advice
from jobs.pipeline.queries import QueryEnd, ensure_tables, start_query
from jobs.pipeline.tracking import shards
from jobs.pipeline.tracking.incident_table import IncidentTable
from jobs.pipeline.tracking.spread import Spread, spread_of
from schemas import names
from schemas.tables import FOLDED_TABLES, PROVISIONAL_TABLES, TRACK_TABLES, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_MS: Final = 250
"""How often an idle query looks for new events on a disk: rows wait for that, and a look costs 2 ms. A look at a store costs money."""

Observer = Callable[[TrackedBatch], None]
WRITTEN: Final = TRACK_TABLES | PROVISIONAL_TABLES
"""The tables that a micro-batch is appended to."""


def start_track(
    spark: SparkSession,
    house: Lakehouse,
    settings: Settings,
    *,
    events_from: Place | None = None,
    observer: Observer | None = None,
    ending: QueryEnd | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> StreamingQuery:
    """Starts the query, which follows the events.

    `events_from`: the lakehouse that has the events, if it is another one. Then `incidents` stays empty: it needs the lines about brokers.
    `tell` gets a line if the query cannot use all cores.
    """
    lakehouse, checkpoint = house.folder, house.track_checkpoint
    ensure_tables(lakehouse, WRITTEN | FOLDED_TABLES, checkpoint, names.TRACK)
    # The source must exist before its first commit.
    source = tables.ensure_table(events_from or lakehouse, names.GROUP_EVENTS, schema_of(names.GROUP_EVENTS))
    if not (checkpoint / "offsets").is_dir() and not followers.is_whole(opening.opened(source)):
        kept = (events_from or lakehouse).resolve()
        raise UserError(f"the events of {kept} do not lie in their first order any more (rebalance maintain): {replay_advice(kept)}")
    spread = spread_of(spark, house, settings, tell)
    packets = read_packets(spark, source, spread, settings.track_files)
    finished = shards.follow(packets, spread, shards.tracker_settings(settings))
    incidents = IncidentTable(lakehouse) if events_from is None else None
    if incidents is not None:
        incidents.refresh()  # a process that was killed may have left this out
    write = _batch_writer(lakehouse, incidents, observer)
    look_ms = settings.interval_ms if is_store(lakehouse) else min(_LOOK_MS, settings.interval_ms)
    return start_query("track", finished, write, checkpoint, look_ms, ending=ending)


def read_packets(spark: SparkSession, table: Place, spread: Spread, files: int) -> DataFrame:
    """`group_events` as packets, in the order in which ingest wrote its micro-batches. `files`: of a micro-batch at most."""
    from jobs.pipeline.sources.events import EventSource  # who needs no Spark does not import it

    spark.dataSource.register(EventSource)
    tasks = spark.sparkContext.defaultParallelism
    stream = spark.readStream.format(EventSource.name()).option("table", str(table.absolute()))
    return stream.options(shards=spread.shards, state_tasks=spread.tasks, files=files, tasks=tasks).load()


def _batch_writer(lakehouse: Place, incidents: IncidentTable | None, observer: Observer | None) -> Callable[[DataFrame, int], None]:
    may_have_ended = True  # the batch before, which another process may have written

    def write_batch(batch: DataFrame, batch_id: int) -> None:
        nonlocal may_have_ended
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (shards.SUMMARY, *WRITTEN)}
        # Collected once: the tracker's output is small, and another use of `batch` would run the tracker again.
        for row in batch.toArrow().to_pylist():
            rows[row["table"]].append({**json.loads(row["row"]), "cluster": row["cluster"], names.AT_END: row[names.AT_END]})
        write_rows(lakehouse, rows, batch_id, every=may_have_ended)
        had_ended, may_have_ended = may_have_ended, any(row[names.AT_END] for name in WRITTEN for row in rows[name])
        if incidents is not None and had_ended:
            incidents.refresh()
        elif incidents is not None:
            incidents.take(rows, brokers=any(summary["broker_lines"] for summary in rows[shards.SUMMARY]))
        if observer is not None:
            summaries = {(summary["cluster"], summary["shard"]): summary for summary in rows[shards.SUMMARY]}
            observer(TrackedBatch(batch_id, {name: rows[name] for name in WRITTEN}, summaries))

    return write_batch


def write_rows(lakehouse: Place, rows: Mapping[str, Sequence[Mapping[str, Any]]], batch_id: int, *, every: bool = False) -> None:
    """Appends the rows of a micro-batch to their tables. `rows`: by table, times in milliseconds.

    `every`: any table may have rows with AT_END of the batch before, which go now.
    """
    typed = {name: to_arrow(rows[name], schema, batch_id) for name, schema in WRITTEN.items() if rows[name] or every}
    side_by_side(lambda name: tables.append(lakehouse / name, typed[name], names.TRACK, batch_id), typed)


def to_arrow(rows: Iterable[Mapping[str, Any]], schema: pa.Schema, batch_id: int) -> pa.Table:
    """Rows of one table, their times in milliseconds, typed by its schema. A missing column is an error."""
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    typed = []
    for row in rows:
        microseconds = {name: row[name] * 1_000 for name in times if row[name] is not None}
        typed.append({**row, **microseconds, "batch_id": batch_id})
    for name in schema.names:
        if any(name not in values for values in typed):
            raise KeyError(f"the tracker left out column {name}")
    return pa.Table.from_pylist(typed, schema=schema)
