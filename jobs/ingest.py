"""Log lines to group_events: read slices of lines, parse, compact, write. `spark-submit jobs/ingest.py --help`.

    spool slices ──► transform ──► group_events    one row a line, a run of heartbeats, a clock
    (Parquet)                  ├─► quarantine      lines that could not be read, each with the reason
                               └─► input_lines     the account: read = skipped + events + quarantined

Every batch is idempotent: tables record the last batch that APP_ID wrote, so a batch that is run again after a crash changes nothing.
APP_ID is the same for every run because a lakehouse has one ingest and one checkpoint: they are kept and deleted together (design 6).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

if __name__ == "__main__":  # spark-submit puts jobs/ on the path; what is imported below is named from the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coordinator_model.events import CLIENT_SOURCE, CLIENTS, HEARTBEAT, JOIN_GROUP, PSEUDO_BROKERS, SYNC_GROUP
from jobs import sinks
from jobs.safe_text import printable
from jobs.sources import client_log, coordinator_log, group_records, request_log
from jobs.sources.compaction import heartbeat_runs
from jobs.sources.consumer_protocol import with_decoded_blobs
from jobs.sources.group_partition import group_partition
from jobs.sources.rows import CLOCK as CLOCK_VERDICT
from jobs.sources.rows import (
    CLOCK_SOURCE,
    COMMON,
    COORDINATOR_SOURCE,
    EVENT,
    GROUP,
    LATER,
    QUARANTINE,
    RAW_CHARACTERS,
    REQUEST_SOURCE,
    SKIPPED,
    UNKNOWN_SOURCE,
    parsed,
)
from jobs.stopping import Stopping
from schemas import INGEST_TABLES, group_events, input_lines, quarantine, raw_lines

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

APP_ID: Final = "rebalance-ingest"
OFFSETS_PARTITIONS: Final = 50  # Kafka's default of offsets.topic.num.partitions
_SPLIT_BYTES: Final = 128 << 10  # of a slice: about 3,000 lines
_EVENT_COLUMNS: Final = [name for name in group_events.SCHEMA.names if name != "batch_id"]


@dataclass(frozen=True)
class IngestedBatch:
    """What a micro-batch came to: the account of its lines by cluster, as (skipped, events, quarantined)."""

    batch_id: int
    lines: Mapping[str, tuple[int, int, int]]


Observer = Callable[[IngestedBatch], None]


class IngestError(RuntimeError):
    """Ingest cannot start. The message is one line for the user."""


def read_slices(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream of slices: Parquet files of RAW lines, one a batch, each deleted some time after it was worked through."""
    options = {"maxFilesPerTrigger": "1", "cleanSource": "delete"}
    return spark.readStream.schema(raw_lines.SCHEMA).options(**options).parquet(sinks.for_spark(folder))


def transform(raw: DataFrame) -> DataFrame:
    """RAW records as rows of PARSED, one each."""
    text = F.coalesce("text", F.lit(""))
    source = (
        F.when(F.col("record") != raw_lines.LINE, CLOCK_SOURCE)
        .when(F.col("broker") == CLIENTS, CLIENT_SOURCE)
        .when(group_records.is_record_line(F.col("origin"), F.col("broker")), F.col("broker"))
        .when(request_log.is_request_line(text), REQUEST_SOURCE)
        .when(coordinator_log.is_coordinator_line(text), COORDINATOR_SOURCE)
        .otherwise(UNKNOWN_SOURCE)
    )
    told = raw.withColumn("source", source)
    sound = F.col("fault").isNull()
    is_request, is_coordinator = sound & (F.col("source") == REQUEST_SOURCE), sound & (F.col("source") == COORDINATOR_SOURCE)
    is_client, is_record = sound & (F.col("source") == CLIENT_SOURCE), sound & F.col("source").isin(*PSEUDO_BROKERS)
    return (
        request_log.parse(told.filter(is_request))
        .unionByName(coordinator_log.parse(told.filter(is_coordinator)))
        .unionByName(client_log.parse(told.filter(is_client)))
        .unionByName(group_records.parse(told.filter(is_record)))
        .unionByName(_others(told.filter(~is_request & ~is_coordinator & ~is_client & ~is_record)))
    )


def _others(records: DataFrame) -> DataFrame:
    """Rows of PARSED of lines that concern no group, lines that the source refused, and clocks."""
    is_clock, refused = F.col("source") == CLOCK_SOURCE, F.col("fault").isNotNull()
    return records.select(
        *parsed(
            {name: F.col(name) for name in (*COMMON, "source")}
            | {
                "kind": F.when(is_clock, F.col("record")),
                "verdict": F.when(is_clock, CLOCK_VERDICT).when(refused, QUARANTINE).otherwise(SKIPPED),
                "refusal": F.when(~is_clock, F.col("fault")),
                # Of a clock: the seconds in which its log was written.
                "raw": F.when(is_clock, F.col("text")).when(refused, F.substring("text", 1, RAW_CHARACTERS)),
            }
        )
    )


def events(rows: DataFrame, batch_id: int) -> DataFrame:
    """Rows of PARSED as rows of group_events: heartbeats in runs, blobs decoded, lines that name several groups spread."""
    event, kind = F.col("verdict") == EVENT, F.col("kind")
    beats = heartbeat_runs(rows.filter(event & (kind == HEARTBEAT)), _EVENT_COLUMNS)
    blobs = with_decoded_blobs(rows.filter(event & kind.isin(JOIN_GROUP, SYNC_GROUP)).coalesce(1))
    rest = rows.filter(event & ~kind.isin(HEARTBEAT, JOIN_GROUP, SYNC_GROUP))
    known = _lines(rest.unionByName(blobs)).unionByName(beats).unionByName(_clocks(rows))
    partition = F.coalesce("coordinator_partition", group_partition(F.col("group_id"), OFFSETS_PARTITIONS))
    # A plain literal would be part of the code that Spark generates, and have it compiled anew for every batch.
    same = F.get(F.array(F.lit(batch_id)), F.col("lines") * 0)
    derived = {"coordinator_partition": partition, "batch_id": same}
    return known.select(
        *(derived.get(field.name, F.col(field.name)).cast(field.dataType).alias(field.name) for field in group_events.SCHEMA)
    )


def _lines(rows: DataFrame) -> DataFrame:
    """A row a line; of lines that name several groups a row a group, the first of which stands for the line."""
    spread = rows.select("*", F.posexplode_outer("groups").alias("index", "entry"))
    derived = {name: F.coalesce(f"entry.{name}", name) for name in GROUP.names}
    derived["lines"] = F.when(F.col("index") > 0, 0).otherwise(F.col("lines"))
    null = dict.fromkeys(LATER, F.lit(None))
    return spread.select(*((derived | null).get(name, F.col(name)).alias(name) for name in _EVENT_COLUMNS))


def _clocks(rows: DataFrame) -> DataFrame:
    """How far each broker's logs were read, and in which seconds it wrote: a row per broker and record of the batch.

    A broker's time is the latest of its origins; it was heard when any of its logs was. `beats` has the stretches as first, last,
    first, last, … seconds since `received_at`.
    """
    clocks = rows.filter((F.col("verdict") == CLOCK_VERDICT) & F.col("at").isNotNull())
    heard = F.from_json(F.coalesce("raw", F.lit("[]")), "array<bigint>")
    latest = clocks.groupBy("cluster", "broker", "kind").agg(
        F.max(F.struct("at", "origin", "position")).alias("latest"), F.flatten(F.collect_list(heard)).alias("heard")
    )
    second = F.coalesce(F.array_min("heard"), F.unix_seconds("latest.at"))
    columns = {
        "cluster": F.col("cluster"), "broker": F.col("broker"), "kind": F.col("kind"), "source": F.lit(CLOCK_SOURCE),
        "origin": F.col("latest.origin"), "position": F.col("latest.position"), "at": F.col("latest.at"),
        "received_at": F.timestamp_seconds(second), "lines": F.lit(0),
        "beats": F.transform("heard", lambda at: F.coalesce((at - second).try_cast("int"), F.lit(0))),
    }  # fmt: skip
    return latest.select(*(columns.get(name, F.lit(None)).alias(name) for name in _EVENT_COLUMNS))


def refused(rows: DataFrame, batch_id: int) -> pa.Table:
    """Quarantined rows, their text made printable."""
    table = (
        rows.filter(F.col("verdict") == QUARANTINE)
        .select("cluster", "broker", "raw", F.col("refusal").alias("reason"), "source", "origin", "position", "at")
        .toArrow()
    )
    shown = pa.array((text and printable(text, RAW_CHARACTERS) for text in table["raw"].to_pylist()), pa.string())
    return _of_batch(table, batch_id).set_column(2, "raw", shown)


def _of_batch(table: pa.Table, batch_id: int) -> pa.Table:
    return table.append_column("batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), len(table)))


def account(rows: DataFrame, batch_id: int, repeated: pa.Table | None = None) -> pa.Table:
    """Lines per file: read = skipped + events + quarantined. `repeated`: by file, lines that were passed over before."""
    lines, verdict = F.col("lines"), F.col("verdict")
    counted = rows.groupBy("cluster", "broker", "origin").agg(
        F.sum(F.when(verdict.isin(SKIPPED, CLOCK_VERDICT), lines).otherwise(0)).alias("skipped"),
        F.sum(F.when(verdict == EVENT, lines).otherwise(0)).alias("events"),
        F.sum(F.when(verdict == QUARANTINE, lines).otherwise(0)).alias("quarantined"),
    )
    total = F.col("skipped") + F.col("events") + F.col("quarantined")
    counts = counted.filter(total > 0).select("cluster", "broker", "origin", total.alias("lines_read"), "skipped", "events", "quarantined")
    return _of_batch(_with_repeated(counts.toArrow(), repeated), batch_id)


def _with_repeated(counts: pa.Table, repeated: pa.Table | None) -> pa.Table:
    if repeated is None or not len(repeated):
        return counts.append_column(input_lines.REPEATED, pa.nulls(len(counts), pa.int64()))
    joined = counts.join(repeated, ["cluster", "broker", "origin"], join_type="full outer")
    numbers = [name for name in counts.column_names if name not in {"cluster", "broker", "origin"}]
    for name in numbers:  # of a log of which nothing else came
        joined = joined.set_column(joined.schema.get_field_index(name), name, pc.fill_null(joined[name], 0))
    return joined.select([*counts.column_names, input_lines.REPEATED])


def write_batch(
    rows: DataFrame,
    batch_id: int,
    *,
    lakehouse: Path,
    app_id: str = APP_ID,
    repeated: pa.Table | None = None,
    observer: Observer | None = None,
) -> None:
    """Append the rows of PARSED of one slice to the three tables."""
    rows.persist()
    try:
        sinks.append_with_spark(sinks.table_path(lakehouse, group_events.NAME), events(rows, batch_id), app_id, batch_id)
        accounted = account(rows, batch_id, repeated)
        for name, table in ((quarantine.NAME, refused(rows, batch_id)), (input_lines.NAME, accounted)):
            sinks.append(sinks.table_path(lakehouse, name), table, app_id, batch_id)
    finally:
        rows.unpersist()
    if observer is not None:
        observer(IngestedBatch(batch_id, _by_cluster(accounted)))


def _by_cluster(accounted: pa.Table) -> dict[str, tuple[int, int, int]]:
    counts = ["skipped", "events", "quarantined"]
    summed = accounted.group_by("cluster").aggregate([(name, "sum") for name in counts]).to_pylist()
    return {row["cluster"]: (row["skipped_sum"], row["events_sum"], row["quarantined_sum"]) for row in summed}


def ensure_tables(lakehouse: Path, checkpoint: Path, app_id: str) -> None:
    """Makes ingest's tables unless they are there. IngestError: they were written with another checkpoint."""
    for name, schema in INGEST_TABLES.items():
        path = sinks.ensure_table(lakehouse, name, schema)
        if sinks.last_version(path, app_id) is not None and not (checkpoint / "offsets").is_dir():
            raise IngestError(f"{lakehouse} was written with another checkpoint than {checkpoint}: keep or delete both")


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark with the settings that these plans need, and others do not."""
    session = spark.newSession()
    # The checks of a request are too much for one method of generated code, which Spark would try, fail at, and log.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    # Spark would derive what each of the many columns implies for the others, at every batch: most of a small batch's time, for nothing.
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")
    # A slice is a few compressed MB, which Spark would give to one task: parsing it is worth one per core.
    session.conf.set("spark.sql.files.openCostInBytes", str(_SPLIT_BYTES))
    return session


def start_ingest(
    spark: SparkSession,
    *,
    spool_slices: Path,
    lakehouse: Path,
    checkpoint: Path,
    once: bool,
    observer: Observer | None = None,
    stopping: Stopping | None = None,
) -> StreamingQuery:
    """Start the query. With `once` it ends when the slices that are there now are worked through."""
    ensure_tables(lakehouse, checkpoint, APP_ID)
    session = own_session(spark)
    trigger = {"availableNow": True} if once else {"processingTime": "1 second"}
    return (
        transform(read_slices(session, spool_slices))
        .writeStream.queryName("ingest")
        .foreachBatch((stopping or Stopping()).guard(partial(write_batch, lakehouse=lakehouse, observer=observer)))
        .option("checkpointLocation", sinks.for_spark(checkpoint))
        .trigger(**trigger)
        .start()
    )


def main(arguments: list[str] | None = None) -> None:
    """Entry of spark-submit: the spool and ingest, without track."""
    parser = argparse.ArgumentParser(prog="ingest.py", description="Turn broker logs into group_events.")
    parser.add_argument("--input", type=Path, required=True, help="folder <cluster>/<broker>/*.log[.gz], or any file or folder of logs")
    parser.add_argument("--lakehouse", type=Path, required=True, help="folder of the Delta tables")
    parser.add_argument("--timezone", action="append", default=[], metavar="ZONE", help="of the timestamps; or CLUSTER=ZONE; repeatable")
    parser.add_argument("--config", type=Path, help="TOML file of settings, as conf/pipeline.toml")
    parser.add_argument("--once", action="store_true", help="end when the input has been worked through")
    options = parser.parse_args(arguments)

    from jobs import pipeline
    from jobs.errors import UserError
    from jobs.session import spark_session  # after the arguments are known to be right
    from jobs.settings import load

    try:
        settings = load(options.config, timezones=options.timezone)
        session = partial(spark_session, "rebalance-ingest")
        pipeline.ingest_alone(options.input, options.lakehouse, settings=settings, once=options.once, session=session)
    except UserError as error:
        parser.error(printable(str(error), 2_000))


if __name__ == "__main__":
    main()
