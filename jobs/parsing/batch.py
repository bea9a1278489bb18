"""A parsed micro-batch as rows of ingest's three tables.

rows of PARSED ─┬─► group_events    one row for a line, a run of heartbeats, or a clock
                ├─► quarantine      lines that could not be read, each with the reason
                └─► input_lines     the account: read = skipped + events + quarantined
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import FETCH
from jobs.common.text import printable
from jobs.parsing.event_rows import beat_rows, event_rows, finished, laid_out
from jobs.parsing.rows import EVENT, QUARANTINE, RAW_CHARACTERS, SKIPPED
from jobs.parsing.runs.fetch_runs import fetch_rows
from jobs.parsing.runs.heartbeat_runs import are_beats
from schemas import names
from schemas.names import CLOCK, REPEATED
from schemas.tables import arrow_schema_of

LOG: Final = ("cluster", "broker", "origin")  # columns that identify a log
NOTE_CHARACTERS: Final = 1 << 20  # length of the longest `note`: the text of a clock, or of a line about a whole file


@dataclass(frozen=True)
class Admission:
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
    is_beat = pc.fill_null(pc.and_(pc.equal(wanted["verdict"], EVENT), are_beats(wanted)), False)
    beats = beat_rows(wanted.filter(is_beat))
    is_fetch = pc.fill_null(pc.and_(pc.equal(wanted["verdict"], EVENT), pc.equal(wanted["kind"], FETCH)), False)
    others = event_rows(wanted.filter(pc.invert(pc.or_(is_beat, is_fetch))), clocks=admission.clocks or ())
    return finished(pa.concat_tables([beats, laid_out(fetch_rows(wanted.filter(is_fetch))), others]), batch_id)


def quarantined(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> pa.Table:
    """Rows of quarantine, their text made printable."""
    refused = rows.filter(pc.and_(pc.equal(rows["verdict"], QUARANTINE), admission.admitted(rows)))
    table = refused.select(["cluster", "broker", "raw", "refusal", "source", "origin", "position", "occurred_at"])
    table = table.rename_columns({"refusal": "reason"})
    shown = pa.array((text and printable(text, RAW_CHARACTERS) for text in table["raw"].to_pylist()), pa.string())
    return _with_batch_id(table, batch_id).set_column(2, "raw", shown)


def input_line_counts(rows: pa.Table, batch_id: int, admission: Admission = EVERYTHING) -> pa.Table:
    """Rows of input_lines: the lines of each log by what became of them."""
    counted = rows.select([*LOG, "verdict", "lines"]).filter(admission.admitted(rows))
    verdicts = {"skipped": [SKIPPED, CLOCK], "events": [EVENT], "quarantined": [QUARANTINE]}
    for name, ones in verdicts.items():
        share = pc.if_else(pc.is_in(counted["verdict"], pa.array(ones)), counted["lines"], 0)
        counted = counted.append_column(name, share)
    summed = counted.group_by(list(LOG), use_threads=False).aggregate([(name, "sum") for name in ("lines", *verdicts)])
    read = summed.rename_columns([*LOG, "lines_read", *verdicts])
    return _with_batch_id(_with_repeated(read.filter(pc.greater(read["lines_read"], 0)), admission.repeated_counts), batch_id)


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
