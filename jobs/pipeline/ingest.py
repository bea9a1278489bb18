"""Log lines to group_events: read slices of lines, parse, compact, write.

    spool slices ──► transform ──► group_events    one row a line, a run of heartbeats, a clock
    (Parquet)                  ├─► quarantine      lines that could not be read, each with the reason
                               └─► input_lines     the account: read = skipped + events + quarantined

Every batch is idempotent: tables record the last batch that APP_ID wrote, so a batch that is run again after a crash changes nothing.
APP_ID is the same for every run because a lakehouse has one ingest and one checkpoint: they are kept and deleted together (design 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from coordinator_model.events import CLIENT_SOURCE, CLIENTS, HEARTBEAT, PSEUDO_BROKERS
from jobs.common.text import printable
from jobs.health.batches import IngestedBatch
from jobs.lakehouse import tables
from jobs.parsing import client_log, coordinator_log, group_records, request_log
from jobs.parsing.event_rows import beat_rows, event_rows, finished
from jobs.parsing.rows import CLOCK as CLOCK_VERDICT
from jobs.parsing.rows import (
    CLOCK_SOURCE,
    COMMON,
    COORDINATOR_SOURCE,
    EVENT,
    QUARANTINE,
    RAW_CHARACTERS,
    REQUEST_SOURCE,
    SKIPPED,
    UNKNOWN_SOURCE,
    parsed,
)
from jobs.pipeline.prepared import Prepared
from jobs.pipeline.stopping import Stopping
from schemas import INGEST_TABLES, group_events, input_lines, quarantine, raw_lines

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

APP_ID: Final = "rebalance-ingest"
_SPLIT_BYTES: Final = 128 << 10  # of a slice: about 3,000 lines
FAULTY: Final = "faulty"
"""Stands for the source of lines that the source refused."""
LOG: Final = ("cluster", "broker", "origin")
"""Columns that tell a log."""
TOLD: Final = (*LOG, "position", "at", "verdict", "lines", "place", "note")
NOTE_CHARACTERS: Final = 1 << 20
"""Of a clock's text, and of a line that tells of a file as a whole."""


Observer = Callable[[IngestedBatch], None]


class IngestError(RuntimeError):
    """Ingest cannot start. The message is one line for the user."""


def read_slices(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream of slices: Parquet files of RAW lines, one a batch, each deleted some time after it was worked through."""
    options = {"maxFilesPerTrigger": "1", "cleanSource": "delete"}
    return spark.readStream.schema(raw_lines.SCHEMA).options(**options).parquet(tables.for_spark(folder))


def transform(raw: DataFrame) -> DataFrame:
    """RAW records as rows of PARSED, one each."""
    return _together(with_source(raw), PARSERS.values())


def with_source(raw: DataFrame) -> DataFrame:
    """RAW records with what kind of evidence each is, and a place, if none of a topic then null."""
    placed = raw if "place" in raw.columns else raw.withColumn("place", F.lit(None).cast("bigint"))
    text = F.coalesce("text", F.lit(""))
    source = (
        F.when(F.col("record") != raw_lines.LINE, CLOCK_SOURCE)
        .when(F.col("broker") == CLIENTS, CLIENT_SOURCE)
        .when(group_records.is_record_line(F.col("origin"), F.col("broker")), F.col("broker"))
        .when(request_log.is_request_line(text), REQUEST_SOURCE)
        .when(coordinator_log.is_coordinator_line(text), COORDINATOR_SOURCE)
        .otherwise(UNKNOWN_SOURCE)
    )
    return placed.withColumn("source", source)


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


Parser = Callable[[DataFrame], DataFrame]


def _read_as() -> Column:
    """The source of a record (`with_source`), or that it was refused, whatever its source is."""
    return F.when(F.col("fault").isNotNull(), FAULTY).otherwise(F.col("source"))


def _of(sources: frozenset[str], parse: Parser) -> Parser:
    """A parser that passes over the records of other sources."""
    return lambda told: parse(told.filter(_read_as().isin(*sorted(sources))))


PARSERS: Final[Mapping[frozenset[str], Parser]] = {
    sources: _of(sources, parse)
    for sources, parse in {
        frozenset({REQUEST_SOURCE}): request_log.parse,
        frozenset({COORDINATOR_SOURCE}): coordinator_log.parse,
        frozenset({CLIENT_SOURCE}): client_log.parse,
        PSEUDO_BROKERS: group_records.parse,
        frozenset({CLOCK_SOURCE, UNKNOWN_SOURCE, FAULTY}): _others,
    }.items()
}
"""Records with their source to rows of PARSED: by the sources that each reads."""


def _together(told: DataFrame, parsers: Iterable[Parser]) -> DataFrame:
    return reduce(DataFrame.unionByName, (parser(told) for parser in parsers))


@dataclass(frozen=True)
class Admitted:
    """What a micro-batch really is: without lines that came before, and with what is known of brokers' times."""

    without: Sequence[int] = ()  # places of lines that came before
    repeated: pa.Table | None = None  # of each log, how many lines those are
    clocks: Sequence[Mapping[str, Any]] | None = None  # rows of PARSED in place of the batch's own


Gatekeeper = Callable[[pa.Table], Admitted]
"""Is shown the columns TOLD of all rows of a micro-batch."""


def told(rows: pa.Table) -> pa.Table:
    """Of each row of PARSED what has to be known to account for it: the columns TOLD. `at` in milliseconds."""
    noted = pc.or_(pc.equal(rows["verdict"], CLOCK_VERDICT), pc.equal(rows["position"], 0))
    columns = {
        "at": pc.divide(rows["at"].cast(pa.int64()), 1_000),
        "lines": rows["lines"].cast(pa.int64()),
        "note": pc.if_else(noted, pc.utf8_slice_codeunits(rows["raw"], 0, NOTE_CHARACTERS), None),
    }
    return pa.table({name: columns[name] if name in columns else rows[name] for name in TOLD})


def events(rows: pa.Table, batch_id: int, admitted: Admitted | None = None) -> pa.Table:
    """Rows of PARSED as rows of group_events."""
    admitted = admitted or Admitted()
    verdicts = [EVENT, CLOCK_VERDICT] if admitted.clocks is None else [EVENT]
    wanted = rows.filter(pc.and_(pc.is_in(rows["verdict"], pa.array(verdicts)), _admitted(rows, admitted)))
    is_beat = pc.fill_null(pc.and_(pc.equal(wanted["verdict"], EVENT), pc.equal(wanted["kind"], HEARTBEAT)), False)
    beats = beat_rows(wanted.filter(is_beat))
    others = event_rows(wanted.filter(pc.invert(is_beat)), clocks=admitted.clocks or ())
    return finished(pa.concat_tables([beats, others]), batch_id)


def _admitted(rows: pa.Table, admitted: Admitted) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(rows["place"], pa.array(admitted.without, pa.int64())))


def refused(rows: pa.Table, batch_id: int, admitted: Admitted | None = None) -> pa.Table:
    """Quarantined rows, their text made printable."""
    found = rows.filter(pc.and_(pc.equal(rows["verdict"], QUARANTINE), _admitted(rows, admitted or Admitted())))
    table = found.select(["cluster", "broker", "raw", "refusal", "source", "origin", "position", "at"])
    table = table.rename_columns({"refusal": "reason"})
    shown = pa.array((text and printable(text, RAW_CHARACTERS) for text in table["raw"].to_pylist()), pa.string())
    return _of_batch(table, batch_id).set_column(2, "raw", shown)


def _of_batch(table: pa.Table, batch_id: int) -> pa.Table:
    return table.append_column("batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), len(table)))


def account(lines: pa.Table, batch_id: int, admitted: Admitted | None = None) -> pa.Table:
    """Lines per file: read = skipped + events + quarantined. `lines`: the columns TOLD."""
    admitted = admitted or Admitted()
    counted = lines.filter(_admitted(lines, admitted))
    verdicts = {"skipped": [SKIPPED, CLOCK_VERDICT], "events": [EVENT], "quarantined": [QUARANTINE]}
    for name, ones in verdicts.items():
        share = pc.if_else(pc.is_in(counted["verdict"], pa.array(ones)), counted["lines"], 0)
        counted = counted.append_column(name, share)
    summed = counted.group_by(list(LOG), use_threads=False).aggregate([(name, "sum") for name in ("lines", *verdicts)])
    read = summed.rename_columns([*LOG, "lines_read", *verdicts])
    return _of_batch(_with_repeated(read.filter(pc.greater(read["lines_read"], 0)), admitted.repeated), batch_id)


def _with_repeated(counts: pa.Table, repeated: pa.Table | None) -> pa.Table:
    if repeated is None or not len(repeated):
        return counts.append_column(input_lines.REPEATED, pa.nulls(len(counts), pa.int64()))
    joined = counts.join(repeated, list(LOG), join_type="full outer")
    for name in counts.column_names[len(LOG) :]:  # of a log of which nothing else came
        joined = joined.set_column(joined.schema.get_field_index(name), name, pc.fill_null(joined[name], 0))
    return joined.select([*counts.column_names, input_lines.REPEATED])


def write_batch(
    rows: pa.Table,
    batch_id: int,
    *,
    lakehouse: Path,
    app_id: str = APP_ID,
    gatekeeper: Gatekeeper | None = None,
    observer: Observer | None = None,
) -> None:
    """Append the rows of PARSED of one slice to the three tables."""
    lines = told(rows)
    admitted = gatekeeper(lines) if gatekeeper is not None else Admitted()
    tables.append(tables.table_path(lakehouse, group_events.NAME), events(rows, batch_id, admitted), app_id, batch_id)
    if pc.any(pc.equal(lines["verdict"], QUARANTINE)).as_py():
        tables.append(tables.table_path(lakehouse, quarantine.NAME), refused(rows, batch_id, admitted), app_id, batch_id)
    accounted = account(lines, batch_id, admitted)
    tables.append(tables.table_path(lakehouse, input_lines.NAME), accounted, app_id, batch_id)
    if observer is not None:
        observer(IngestedBatch(batch_id, _by_cluster(accounted)))


class LineWriter:
    """Writes micro-batches of RAW records with their source (`with_source`)."""

    def __init__(self, **options: Any) -> None:
        """`options`: of `write_batch`."""
        self._parsers = {sources: Prepared(parser) for sources, parser in PARSERS.items()}
        self._options = options

    def __call__(self, lines: DataFrame, batch_id: int, **options: Any) -> None:
        """Parses a batch and writes it, as Spark calls it. `options`: further ones of `write_batch`."""
        lines.persist()  # else every parser would read the input
        try:
            rows = self._parsed(lines).toArrow()
        finally:
            lines.unpersist()
        write_batch(rows, batch_id, **self._options, **options)

    def _parsed(self, lines: DataFrame) -> DataFrame:
        """By those parsers that have something to do: each costs a batch 50 ms and more, however few its lines."""
        (found,) = lines.agg(F.collect_set(_read_as())).collect()
        wanted = [parser for sources, parser in self._parsers.items() if sources & set(found[0])]
        return _together(lines, wanted or self._parsers.values())


def _by_cluster(accounted: pa.Table) -> dict[str, tuple[int, int, int]]:
    counts = ["skipped", "events", "quarantined"]
    summed = accounted.group_by("cluster").aggregate([(name, "sum") for name in counts]).to_pylist()
    return {row["cluster"]: (row["skipped_sum"], row["events_sum"], row["quarantined_sum"]) for row in summed}


def ensure_tables(lakehouse: Path, checkpoint: Path, app_id: str) -> None:
    """Makes ingest's tables unless they are there. IngestError: they were written with another checkpoint."""
    for name, schema in INGEST_TABLES.items():
        path = tables.ensure_table(lakehouse, name, schema)
        if tables.last_version(path, app_id) is not None and not (checkpoint / "offsets").is_dir():
            raise IngestError(f"{lakehouse} was written with another checkpoint than {checkpoint}: keep or delete both")


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark with the settings that these plans need, and others do not."""
    session = spark.newSession()
    # The checks of a request are too much for one method of generated code, which Spark would try, fail at, and log.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    # Spark would derive what each of the many columns implies for the others, at every batch: most of a small batch's time, for nothing.
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")
    # What is cached for a moment is not worth compressing.
    session.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
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
        with_source(read_slices(session, spool_slices))
        .writeStream.queryName("ingest")
        .foreachBatch((stopping or Stopping()).guard(LineWriter(lakehouse=lakehouse, observer=observer)))
        .option("checkpointLocation", tables.for_spark(checkpoint))
        .trigger(**trigger)
        .start()
    )
