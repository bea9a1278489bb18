"""Turns raw records into rows of PARSED: decides what each record is, and lets its parser read it.

The parsers are Python on Arrow batches. Expressions of Spark would be planned anew for every micro-batch (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import BROKER_SOURCE, CLIENT_SOURCE, CLIENTS, COORDINATOR_SOURCE, FETCH, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.logs.faults import shown
from jobs.logs.record_judge import holds_records
from jobs.parsing import broker_log, client_log, coordinator_log, group_records, heartbeats, request_log
from jobs.parsing.rows import EVENT, PARSED, QUARANTINE, RAW_CHARACTERS, UNKNOWN_SOURCE, joined, parsed_lines, refused, skipped
from schemas.names import CLOCK, FETCHES, HEARTBEATS, LINE, PART

_PARSERS: Final[Mapping[str, Callable[[str, int | None], dict[str, Any]]]] = {
    REQUEST_SOURCE: request_log.row,
    COORDINATOR_SOURCE: coordinator_log.row,
    BROKER_SOURCE: broker_log.row,
    UNKNOWN_SOURCE: lambda *_: skipped(UNKNOWN_SOURCE),
}
"""What reads a line of each source: by its text and its time (epoch µs). Those of clients take more than that."""


def parsed(raw: pa.RecordBatch) -> pa.Table:
    """Rows of PARSED of rows of raw_lines. Those of a topic have a `place`, too."""
    lines = _named(raw)
    whose = [lines[name].to_pylist() for name in ("record", "broker", "origin", "text", "fault", "context", "around")]
    times = lines["occurred_at"].cast(pa.int64()).to_pylist()
    is_beat = pc.and_(pc.is_valid(lines["repeated"]), pc.and_(pc.is_null(lines["fault"]), pc.equal(lines["record"], LINE))).to_pylist()
    repeated = lines["repeated"]
    bundles, beats, others, rows = [], [], [], []
    for place, (record, broker, origin, text, fault, context, around) in enumerate(zip(*whose, strict=True)):
        if record == HEARTBEATS:
            bundles.append(place)
            continue
        if is_beat[place]:
            beats.append(place)
            continue
        source = CLOCK if record != LINE else broker if holds_records(broker, origin) else source_of(broker, text or "")
        if record == FETCHES:
            own = [{"source": REQUEST_SOURCE, "kind": FETCH, "verdict": EVENT, "repeated": repeated[place].as_py()}]
        elif source == CLOCK:
            # A clock's text lists the seconds in which its log was written, a part's names a file.
            own = [{"source": CLOCK, "kind": record, "verdict": PART if record == PART else CLOCK, "raw": text}]
        elif fault is not None:
            own = [refused(source, fault, text)]
        elif source in PSEUDO_BROKERS:
            own = group_records.rows(source, text or "", lines["occurred_at"][place].as_py())
        else:
            own = [row_of(source, text or "", times[place], context, around)]
        if text and own[0].get("verdict") == QUARANTINE:
            own[0]["raw"] = shown(text, around)[:RAW_CHARACTERS]
        others += [place] * len(own)
        rows += own
    pieces = [parsed_lines(_taken(lines, others), rows, np.diff(others, prepend=-1) != 0)]
    if bundles:
        pieces += map(heartbeats.of_bundle, _taken(lines, bundles).to_pylist())
    if beats:
        pieces.append(heartbeats.of_lines(_taken(lines, beats)))
    return joined(pieces, PARSED)


def row_of(source: str, text: str, at_us: int | None, context: str | None, around: str | None = None) -> dict[str, Any]:
    """The columns of PARSED that a line decides. `context`: what other lines of a client's log say about it. `around`: as in raw_lines."""
    return client_log.row(text, at_us, context, around) if source == CLIENT_SOURCE else _PARSERS[source](text, at_us)


def source_of(broker: str, text: str) -> str:
    """The kind of evidence that a line is, by what stands in the place of its broker and by its text."""
    if broker == CLIENTS:
        return CLIENT_SOURCE
    if request_log.is_request_line(text):
        return REQUEST_SOURCE
    if coordinator_log.is_coordinator_line(text):
        return COORDINATOR_SOURCE
    return BROKER_SOURCE if broker_log.is_broker_line(text) else UNKNOWN_SOURCE


def _named(raw: pa.RecordBatch) -> pa.RecordBatch:
    """The records as parsers take them. Records of files have no place in a topic."""
    columns = dict(zip(raw.schema.names, raw.columns, strict=True))
    columns["occurred_at"] = columns.pop("at")
    return pa.RecordBatch.from_pydict({"place": pa.nulls(len(raw), pa.int64()), **columns})


def _taken(lines: pa.RecordBatch, places: list[int]) -> pa.RecordBatch:
    return lines if places == [*range(len(lines))] else lines.take(pa.array(places, pa.int64()))
