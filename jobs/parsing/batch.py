"""A parsed micro-batch as rows of ingest's three tables.

rows of PARSED ─┬─► group_events    one row for a line, a run of heartbeats, or a clock
                ├─► quarantine      lines that could not be read, each with the reason
                └─► input_lines     the account: read = skipped + events + quarantined
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import FETCH
from coordinator_model.specification.partition import coordinator_partition
from jobs.common.text import printable
from jobs.parsing.rows import EVENT, EVENTS, GROUP, QUARANTINE, RAW_CHARACTERS, SKIPPED, clock_seconds, joined
from jobs.parsing.runs.fetch_runs import fetch_rows
from jobs.parsing.runs.heartbeat_runs import are_beats, heartbeat_runs, numbered
from schemas import names
from schemas.names import CLOCK, REPEATED
from schemas.tables import arrow_schema_of

LOG: Final = ("cluster", "broker", "origin")  # columns that identify a log
NOTE_CHARACTERS: Final = 1 << 20  # length of the longest `note`: the text of a clock, or of a line about a whole file


class Admission(msgspec.Struct, frozen=True):
    """What a gate lets through of a micro-batch."""

    repeated: Sequence[int] = ()  # rows of lines that an earlier batch had, by their numbers
    repeated_counts: pa.Table | None = None  # the number of those lines by log: the columns LOG and `repeated`
    clocks: Sequence[Mapping[str, Any]] | None = None  # rows of PARSED that replace the batch's own clocks

    def admitted(self, rows: pa.Table) -> pa.ChunkedArray:
        """Whether each row stays: a mask."""
        mask = np.ones(len(rows), np.bool_)
        mask[np.array(self.repeated, np.int64)] = False
        return pa.chunked_array([pa.array(mask)])


ACCOUNT: Final = arrow_schema_of(names.INPUT_LINES)
EVERYTHING: Final = Admission()
_ARROW: Final = arrow_schema_of(names.GROUP_EVENTS)
_SECOND: Final = 1_000_000  # microseconds
_INT_MAX: Final = (1 << 31) - 1
_CLOCK: Final = ["cluster", "broker", "kind", "occurred_at", "origin", "position", "raw"]


def line_summaries(rows: pa.Table) -> pa.Table:
    """The columns by which a gate decides about each row of PARSED. `at` is in milliseconds, `row` the number of the row."""
    noted = pc.or_(pc.equal(rows["verdict"], CLOCK), pc.equal(rows["position"], 0))
    note = pc.if_else(noted, pc.utf8_slice_codeunits(rows["raw"], 0, NOTE_CHARACTERS), None)
    at_ms = pc.divide(rows["occurred_at"].cast(pa.int64()), 1_000)
    named = rows.select([*LOG, "position", "verdict", "place", "lines"]).append_column("at", at_ms).append_column("note", note)
    return named.append_column("row", pa.array(np.arange(len(rows))))


def rows_by_table(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> dict[str, pa.Table]:
    """The rows to append, by table. `quarantine` is left out if no line of the batch belongs there."""
    made = {names.GROUP_EVENTS: events(rows, batch_id, admission)}
    if pc.any(pc.equal(rows["verdict"], QUARANTINE)).as_py():
        made[names.QUARANTINE] = quarantined(rows, batch_id, admission)
    return made | {names.INPUT_LINES: input_line_counts(rows, batch_id, admission)}


def events(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> pa.Table:
    """Rows of group_events."""
    verdicts = [EVENT, CLOCK] if admission.clocks is None else [EVENT]
    wanted = rows.filter(pc.and_(pc.is_in(rows["verdict"], pa.array(verdicts)), admission.admitted(rows)))
    is_event = pc.equal(wanted["verdict"], EVENT)
    is_beat = pc.fill_null(pc.and_(is_event, are_beats(wanted)), False)
    is_fetch = pc.fill_null(pc.and_(is_event, pc.equal(wanted["kind"], FETCH)), False)
    lines = wanted.filter(pc.and_(is_event, pc.invert(pc.or_(is_beat, is_fetch))))
    of_clocks = wanted.filter(pc.and_(pc.invert(is_event), pc.is_valid(wanted["occurred_at"])))
    own = _with(of_clocks.select(_CLOCK), "occurred_at", of_clocks["occurred_at"].cast(pa.int64()))
    clocks = _clocks([*own.to_pylist(), *(admission.clocks or ())])
    runs, fetches = heartbeat_runs(wanted.filter(is_beat)), fetch_rows(wanted.filter(is_fetch))
    return finished([runs, *fetches, *_spread(_with_offsets(lines)), clocks], batch_id)


def finished(pieces: Iterable[pa.Table], batch_id: int) -> pa.Table:
    """Tables with some columns of group_events as one with all of them; adds the batch id and the partition of each group."""
    rows = _placed(joined(pieces, EVENTS))
    return _with(rows, "batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), len(rows))).cast(_ARROW)


def _spread(rows: pa.Table) -> Iterator[pa.Table]:
    """A row for each line. A line that names several groups gets a row for each, the first of which accounts for the line."""
    several = pc.fill_null(pc.greater(pc.list_value_length(rows["groups"]), 0), False)
    yield rows.filter(pc.invert(several))
    listing = rows.filter(several)
    if not len(listing):
        return
    entries = listing["groups"].to_pylist()
    spread = listing.take(pa.array([index for index, groups in enumerate(entries) for _ in groups], pa.int64()))
    flat = [entry or {} for groups in entries for entry in groups]
    for name in GROUP.names:
        own = pa.array([entry.get(name) for entry in flat], spread.schema.field(name).type)
        spread = _with(spread, name, pc.coalesce(own, spread[name]))
    stands = [1 if number == 0 else 0 for groups in entries for number, _ in enumerate(groups)]
    yield _with(spread, "lines", pc.multiply(spread["lines"], pa.array(stands, pa.int32())))


def _with_offsets(rows: pa.Table) -> pa.Table:
    """Rows with the offsets of `committed`. A parser in Python writes texts: lists cost it three times as much."""
    if rows["committed"].null_count == len(rows):
        return rows
    texts = pc.split_pattern(rows["committed"].combine_chunks(), ",")
    parts = pc.extract_regex(texts.flatten(), "^(?P<partition>.*)=(?P<offset>-?[0-9]+)$")
    kind = _ARROW.field("offsets").type
    read = {"partition": parts.field("partition"), "offset": parts.field("offset").cast(pa.int64())}
    fields = [kind.value_type.field(index) for index in range(kind.value_type.num_fields)]
    values = pa.StructArray.from_arrays([read.get(field.name, pa.nulls(len(parts), field.type)) for field in fields], fields=fields)
    offsets = pa.ListArray.from_arrays(texts.offsets, values, mask=texts.is_null()).cast(kind)
    return _with(rows, "offsets", pc.coalesce(rows["offsets"].cast(kind), pa.chunked_array([offsets])))


def _with(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _clocks(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """How far each broker's logs were read, and in which seconds the broker wrote: a row per broker and kind of clock.

    A broker's time is the latest of its origins; the broker wrote when any of its logs has a line. `beats` has the stretches as first,
    last, first, last, … seconds since `received_at`.
    """
    latest: dict[tuple[str, str, str], tuple[int, str, int]] = {}
    seconds: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        key = row["cluster"], row["broker"], row["kind"]
        latest[key] = max(latest.get(key, (-1, "", 0)), (row["occurred_at"], row["origin"], row["position"]))
        seconds.setdefault(key, []).extend(clock_seconds(row["raw"]))
    made = []
    for (cluster, broker, kind), (at, origin, position) in sorted(latest.items()):
        own = seconds[cluster, broker, kind]
        base = min(own, default=at // _SECOND)
        made.append(
            {
                "cluster": cluster, "broker": broker, "kind": kind, "source": CLOCK, "origin": origin, "position": position,
                "occurred_at": at, "received_at": base * _SECOND, "lines": 0, "beats": [min(second - base, _INT_MAX) for second in own],
            }
        )  # fmt: skip
    return pa.Table.from_pylist(made, schema=EVENTS)


def _placed(rows: pa.Table) -> pa.Table:
    """Adds the partition of `__consumer_offsets` that a group lives in, where the line does not name it."""
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    partitions = pa.array([coordinator_partition(group) for group in groups.dictionary.to_pylist()], pa.int32())
    own = partitions.take(groups.indices)
    return _with(rows, "coordinator_partition", pc.coalesce(rows["coordinator_partition"], own))


def quarantined(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> pa.Table:
    """Rows of quarantine, their text made printable."""
    refused = rows.filter(pc.and_(pc.equal(rows["verdict"], QUARANTINE), admission.admitted(rows)))
    table = refused.select(["cluster", "broker", "raw", "refusal", "source", "origin", "position", "occurred_at"])
    table = table.rename_columns({"refusal": "reason"})
    shown = pa.array((text and printable(text, RAW_CHARACTERS) for text in table["raw"].to_pylist()), pa.string())
    return _with_batch_id(table, batch_id).set_column(2, "raw", shown)


def input_line_counts(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> pa.Table:
    """Rows of input_lines: the lines of each log by what became of them."""
    counted = rows.select([*LOG, "verdict", "lines"]).filter(pc.and_(admission.admitted(rows), pc.greater(rows["lines"], 0)))
    log, lines = numbered(counted, LOG), counted["lines"].to_numpy()
    read = counted.select(LOG).take(pa.array(np.unique(log, return_index=True)[1]))
    counts = {"lines_read": lines}
    for name, verdicts in {"skipped": [SKIPPED, CLOCK], "events": [EVENT], "quarantined": [QUARANTINE]}.items():
        counts[name] = np.where(pc.is_in(counted["verdict"], pa.array(verdicts)).to_numpy(), lines, 0)
    for name, count in counts.items():
        read = read.append_column(name, pa.array(np.bincount(log, count).astype(np.int64)))
    return _with_batch_id(_with_repeated(read, admission.repeated_counts), batch_id)


def summed(accounts: Sequence[pa.Table]) -> pa.Table:
    """Rows of input_lines of several pieces of a batch as those of the whole."""
    if len(accounts) == 1:
        return accounts[0]
    rows = pa.concat_tables([account.cast(ACCOUNT) for account in accounts]) if accounts else ACCOUNT.empty_table()
    counts = [name for name in ACCOUNT.names if name not in {*LOG, "batch_id"}]
    totals = rows.group_by([*LOG, "batch_id"], use_threads=False).aggregate([(name, "sum") for name in counts])
    return totals.rename_columns([*LOG, "batch_id", *counts]).select(ACCOUNT.names).cast(ACCOUNT)


def _with_repeated(counts: pa.Table, repeated: pa.Table | None) -> pa.Table:
    if repeated is None or not len(repeated):
        return counts.append_column(REPEATED, pa.nulls(len(counts), pa.int64()))
    joined = counts.join(repeated, list(LOG), join_type="full outer")
    for name in counts.column_names[len(LOG) :]:  # null for a log that had nothing but repeated lines
        joined = joined.set_column(joined.schema.get_field_index(name), name, pc.fill_null(joined[name], 0))
    return joined.select([*counts.column_names, REPEATED])


def _with_batch_id(table: pa.Table, batch_id: int) -> pa.Table:
    return table.append_column("batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), len(table)))
