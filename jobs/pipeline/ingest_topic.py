"""A topic of log lines to group_events: read records, leave out repeated ones, parse, write.

    topic ──► parse ──► lines ──► gate ──► group_events, quarantine, input_lines     as in jobs/pipeline/ingest.py
                          └─ clocks ─┘ ──► clock rows: how far each broker's logs are known in all partitions

Every batch is idempotent, as ingest's are. The state of the gate after each batch is a file in the checkpoint's folder: batch N begins with
the state of N-1, however often it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import FOLLOWED
from jobs.common.files import write_whole
from jobs.common.settings import Settings
from jobs.common.stores import Place
from jobs.common.text import many
from jobs.lakehouse.folder import Lakehouse
from jobs.parsing.batch import LOG, Admission
from jobs.parsing.rows import PARSED, QUARANTINE, UNKNOWN_SOURCE, Refusal
from jobs.pipeline import ingest, topic_records
from jobs.pipeline.gate import BrokerTime, Clock, Gate, LogName, Reach
from jobs.pipeline.part_tasks import PACKETS, parsed_packets_of_topic
from jobs.pipeline.queries import QueryEnd, ensure_tables, start_query
from jobs.pipeline.topic_input import TopicInput, java_settings, records_at_once
from schemas.names import CLOCK, INGEST_TOPIC, REPEATED
from schemas.tables import INGEST_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Offsets: TypeAlias = dict[int, tuple[str, int]]
"""Topic and next offset of each partition."""
GATE: Final = "gate"
"""Folder of the gate's states, in the folder of the checkpoint."""
_STATES_KEPT: Final = 5
_FETCH_WAIT_MS: Final = "10"
"""After a poll a consumer at once sends its next fetch, which waits at the broker for new records, 500 ms by default. Spark then asks for
the ends of the partition. A broker answers the requests of a connection one after the other, so each partition of a micro-batch waited."""


def read_records(spark: SparkSession, topic: TopicInput, most_lines: int) -> DataFrame:
    """The topic as a stream of Kafka records. `most_lines`: of a micro-batch, about, unless the topic sets a limit of records."""
    settings = {"fetch.max.wait.ms": _FETCH_WAIT_MS} | java_settings(topic.config)
    options = {f"kafka.{name}": value for name, value in settings.items()} | {
        "kafka.bootstrap.servers": topic.bootstrap,
        "subscribe": topic.topic,
        "startingOffsets": topic.starting,
        "maxOffsetsPerTrigger": str(records_at_once(topic, most_lines)),
        "failOnDataLoss": str(not topic.accept_loss).lower(),
        "includeHeaders": "true",
        "groupIdPrefix": "rebalance",
    }
    return spark.readStream.format("kafka").options(**options).load()


def start_ingest_topic(
    spark: SparkSession,
    house: Lakehouse,
    settings: Settings,
    topic: TopicInput,
    *,
    once: bool,
    observer: ingest.Observer | None = None,
    ending: QueryEnd | None = None,
) -> StreamingQuery:
    """Starts the query. `once`: it ends when it has read what the topic holds now."""
    checkpoint = house.topic_checkpoint
    ensure_tables(house.folder, INGEST_TABLES, checkpoint, INGEST_TOPIC)
    records = read_records(spark, topic, settings.slice_lines).select(*topic_records.COLUMNS)
    # A task costs Spark most of 0.1 s, to be read and its code to be found, however few its lines: one a core, not one a partition.
    packets = records.coalesce(spark.sparkContext.defaultParallelism).mapInArrow(parsed_packets_of_topic, PACKETS)
    write = TopicWriter(house.folder, checkpoint, observer)
    return start_query("ingest-topic", packets, write, checkpoint, settings.interval_ms, once=once, ending=ending)


class TopicWriter:
    """Writes micro-batches of packets. Keeps the gate between them; reads it from its file where a batch does not follow the last one."""

    def __init__(self, lakehouse: Place, checkpoint: Place, observer: ingest.Observer | None = None) -> None:
        self._write = ingest.LineWriter(lakehouse=lakehouse, app_id=INGEST_TOPIC, observer=observer)
        self._checkpoint = checkpoint
        self._states = checkpoint / GATE
        self._last: tuple[int, Gate] | None = None
        self._ends: tuple[int, Offsets] = -1, {}  # a batch, and where it ended

    def __call__(self, packets: DataFrame, batch_id: int) -> None:
        """Writes a batch, as Spark calls it."""
        gate = self._gate(batch_id - 1)
        before, starts = self._ends
        if before != batch_id - 1:
            starts = offsets_of(self._checkpoint, batch_id - 1) if batch_id else {}
        ends = offsets_of(self._checkpoint, batch_id)
        rows = ingest.unpacked(packets.toArrow())
        rows = pa.concat_tables([rows, _deleted(rows, starts, ends)])
        workers = ingest.tasks_as_workers(packets.sparkSession)
        self._write.write(rows, batch_id, workers, gatekeeper=lambda summary: admit(gate, summary, len(ends)))
        self._keep(gate, batch_id)
        self._ends = batch_id, ends

    def _gate(self, batch_id: int) -> Gate:
        """The gate after a batch, for one use: the next batch changes it, so another call reads it from its file."""
        if self._last is not None and self._last[0] == batch_id:
            gate, self._last = self._last[1], None
            return gate
        self._last = None
        return Gate() if batch_id < 0 else Gate.decode(self._file(batch_id).read_bytes())

    def _keep(self, gate: Gate, batch_id: int) -> None:
        self._states.mkdir(exist_ok=True)
        write_whole(self._file(batch_id), gate.encode())
        self._last = batch_id, gate
        self._file(batch_id - _STATES_KEPT).unlink(missing_ok=True)

    def _file(self, batch_id: int) -> Place:
        return self._states / f"{batch_id:09d}.msgpack"


def offsets_of(checkpoint: Place, batch_id: int) -> Offsets:
    """Topic and next offset of each partition after a batch, as Spark wrote them before it."""
    written = json.loads((checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()[-1])
    return {int(number): (topic, offset) for topic, partitions in written.items() for number, offset in partitions.items()}


def _deleted(rows: pa.Table, starts: Offsets, ends: Offsets) -> pa.Table:
    """A row of PARSED for each partition whose first records of a batch are gone from the topic: it counts them as refused."""
    offsets = pc.bit_wise_and(rows["place"], (1 << topic_records.PLACE_BITS) - 1)
    read = pa.table({"partition": pc.shift_right(rows["place"], topic_records.PLACE_BITS), "offset": offsets})
    firsts = {row["partition"]: row["offset_min"] for row in read.group_by("partition").aggregate([("offset", "min")]).to_pylist()}
    lost = []
    for number, (topic, start) in sorted(starts.items()):
        if count := firsts.get(number, ends.get(number, (topic, start))[1]) - start:
            what = f"{Refusal.RECORDS_DELETED}: {many(count, 'record')} of the topic had been deleted before they were read"
            log = {"cluster": "", "broker": "", "origin": f"{topic}-{number}", "position": start}
            lost.append(log | {"source": UNKNOWN_SOURCE, "verdict": QUARANTINE, "refusal": what, "lines": count})
    return pa.Table.from_pylist(lost, schema=PARSED)


def admit(gate: Gate, summary: pa.Table, partitions: int) -> Admission:
    """What the gate admits of a batch, given as its `batch.line_summaries`."""
    ordered = summary.filter(pc.not_equal(summary["broker"], "")).sort_by("place")
    of_clocks = pc.equal(ordered["verdict"], CLOCK)
    # The first row of a line accounts for it.
    lines, clocks = ordered.filter(pc.and_(pc.invert(of_clocks), pc.greater(ordered["lines"], 0))), ordered.filter(of_clocks)
    repeated = pa.concat_tables([lines.slice(0, 0), *(_repeated(gate, log, part) for log, part in _by_log(lines))])
    times = gate.clocks([_clock(row) for row in clocks.to_pylist()], partitions)
    counted = repeated.group_by(list(LOG)).aggregate([([], "count_all")]).rename_columns([*LOG, REPEATED])
    return Admission(_with_later_rows(ordered, repeated), counted, list(map(_clock_row, times)))


def _with_later_rows(rows: pa.Table, repeated: pa.Table) -> list[int]:
    """The numbers of these rows, and of further rows of the same lines."""
    later = rows.filter(pc.and_(pc.equal(rows["lines"], 0), pc.is_in(rows["place"], repeated["place"].combine_chunks())))
    return [*repeated["row"].to_pylist(), *later["row"].to_pylist()]


def _by_log(lines: pa.Table) -> list[tuple[LogName, pa.Table]]:
    """The lines of each log, in the order of the topic."""
    numbered = lines.select(list(LOG)).append_column("index", pa.array(range(len(lines)), pa.int64()))
    grouped = numbered.group_by(list(LOG), use_threads=False).aggregate([("index", "list")])
    return [(LogName(*(row[name] for name in LOG)), lines.take(row["index_list"])) for row in grouped.to_pylist()]


def _repeated(gate: Gate, log: LogName, lines: pa.Table) -> pa.Table:
    positions = lines["position"].to_numpy()
    notes = {index: lines["note"][index].as_py() or "" for index in (positions == 0).nonzero()[0].tolist()}
    return lines.take(gate.lines(log, positions, notes))


def _clock(row: Mapping[str, Any]) -> Clock:
    read, _, heard = (row["note"] or "").partition(topic_records.READ_SEPARATOR)
    reach = Reach(row["position"], -1 if row["at"] is None else row["at"], int(read) if read else -1)
    return Clock(LogName(*(row[name] for name in LOG)), row["place"] >> topic_records.PLACE_BITS, reach, heard)


def _clock_row(time: BrokerTime) -> dict[str, Any]:
    """A broker's time as a row of PARSED: the columns that batch.py reads."""
    return {
        "cluster": time.log.cluster, "broker": time.log.broker, "kind": FOLLOWED if time.followed else CLOCK,
        "occurred_at": time.at_ms * 1_000, "origin": time.log.origin, "position": time.position, "raw": json.dumps(time.heard),
    }  # fmt: skip
