"""The row that every parser produces, and the reasons to refuse a line.

A parser turns lines into rows of `PARSED`: the columns of `group_events` that one line alone decides, plus what ingest needs to
finish them (the verdict, groups to spread) and to account for them. Rows that are no events have nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of

EVENT: Final = "event"  # the line becomes a row of group_events
QUARANTINE: Final = "quarantine"  # the line is damaged
SKIPPED: Final = "skipped"  # the line concerns no consumer group

UNKNOWN_SOURCE: Final = "unknown"
SOFTWARE_UNKNOWN: Final = frozenset({"", "unknown unknown"})
"""What the broker logs of a client that does not tell its software (ClientInformation.EMPTY)."""


class Refusal:
    """Codes of `quarantine.reason`. A detail may follow after a colon. Faults of jobs/logs/faults.py are codes, too."""

    TRUNCATED: Final = "TRUNCATED"  # the line ends before its logger name: it was cut, or its writer was killed
    MALFORMED: Final = "MALFORMED"  # the marks of a request or coordinator line, but not the shape `[time] LEVEL message (logger)`
    NO_TIME: Final = "NO_TIME"  # no timestamp that could be read
    TOO_LONG: Final = "TOO_LONG"  # a line of a coordinator or a client is longer than any that Kafka writes
    OLD_FORMAT: Final = "OLD_FORMAT"  # a request of 0.9 to 0.11, which logged no answers: nothing shows whether the broker accepted it
    # `request` or `response` is "" or null: the request log was switched on while the request was in flight.
    LOGGED_WITHOUT_BODY: Final = "LOGGED_WITHOUT_BODY"
    INVALID_JSON: Final = "INVALID_JSON"  # no JSON, or a field has a value of another type than Kafka gives it
    API_MISMATCH: Final = "API_MISMATCH"  # `requestApiKey` and `requestApiKeyName` name different APIs
    UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"  # a version of the API that Kafka 1.0 to 4.4 does not have
    MISSING_FIELD: Final = "MISSING_FIELD"  # this version of the API must have a field that is missing or null; the detail names it
    UNKNOWN_ERROR_CODE: Final = "UNKNOWN_ERROR_CODE"  # outside Kafka's range: without its code an answer says nothing
    INVALID_BASE64: Final = "INVALID_BASE64"  # a subscription or assignment is not base64, which the broker always writes
    # A sentence of a coordinator or a client holds control characters, or a name in JSON holds half of a character: damage, or a name
    # with a line end, whose rest cannot be recognised. Control characters that JSON escapes are part of a name.
    CONTROL_CHARACTERS: Final = "CONTROL_CHARACTERS"
    # A line of a client's log names no group. librdkafka names it with debug=cgrp; else the name of the log's folder counts.
    NO_GROUP: Final = "NO_GROUP"
    # The bytes of a record of __consumer_offsets are not what a coordinator writes; the detail says where.
    UNREADABLE_RECORD: Final = "UNREADABLE_RECORD"
    UNKNOWN_STATE: Final = "UNKNOWN_STATE"  # an answer to a poll names a state that Kafka's groups do not have
    # No line: records of the topic that had been deleted before they were read, as `--accept-loss` allows; the detail counts them.
    RECORDS_DELETED: Final = "RECORDS_DELETED"
    UNKNOWN_TEMPLATE: Final = "UNKNOWN_TEMPLATE"  # no known release of Kafka writes this line of a group coordinator's logger


GROUP: Final = pa.struct(
    {"group_id": pa.string(), "error_code": pa.int32(), "coordinator_id": pa.int32(), "coordinator_address": pa.string()}
)
GROUPS: Final = pa.list_(GROUP)  # the groups of a line that names several. Each becomes a row with its own values of these columns.

LATER: Final = frozenset({"last_at", "beat_count", "longest_gap_ms", "beats", "positions", "reads"})
"""Columns of group_events that only rows for several lines have."""

EVENTS: Final = pa.schema([field.with_nullable(True) for field in arrow_schema_of(GROUP_EVENTS)])
"""Rows of group_events that are not finished: any column may be null."""

PARSED: Final = pa.schema(
    [
        *(field for field in EVENTS if field.name not in LATER | {"batch_id"}),
        pa.field("groups", GROUPS),
        pa.field("committed", pa.string()),  # of a request: `offsets`, as partition=offset,partition=offset,…
        pa.field("verdict", pa.string()),
        pa.field("refusal", pa.string()),  # of a quarantined line: code and detail
        pa.field("raw", pa.string()),  # of a quarantined line: its text
        pa.field("repeated", pa.binary()),  # of a heartbeat: lines that repeat it (jobs/logs/heartbeats/beats.py); of FETCH: all
        pa.field("place", pa.int64()),  # of a record of a topic: its partition and offset (jobs/pipeline/topic_records.py)
    ]
)

COMMON: Final = ("cluster", "broker", "origin", "position", "occurred_at", "lines", "place")  # columns of a record that its row keeps

_OF_TEXT: Final = pa.struct([field for field in PARSED if field.name not in COMMON])

RAW_CHARACTERS: Final = 4096  # length of the text that is kept of a quarantined line

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_DIGITS: Final = 32  # a broker may write zeros in front
_MAX_SECOND: Final = 253_402_300_799  # the year 9999: the last that a timestamp can hold


def skipped(source: str) -> dict[str, Any]:
    """The columns of a line that concerns no group."""
    return {"source": source, "verdict": SKIPPED}


def refused(source: str, refusal: str | None, text: str | None) -> dict[str, Any]:
    """The columns of a line that goes to quarantine. `refusal`: a code of Refusal or of a fault, and a detail."""
    return {"source": source, "verdict": QUARANTINE, "refusal": refusal, "raw": text and text[:RAW_CHARACTERS]}


def damage(sentence: str, at_us: int | None) -> str | None:
    """What is wrong with any sentence: no time (epoch µs), or characters that no broker or client writes."""
    if at_us is None:
        return Refusal.NO_TIME
    return Refusal.CONTROL_CHARACTERS if _CONTROLS.search(sentence) else None


def int32(digits: str | None) -> int | None:
    """A number as printed; None if it is none, or needs more than 32 bits."""
    if digits is None or len(digits) > _MAX_DIGITS:
        return None
    try:
        value = int(digits)
    except ValueError:
        return None
    return value if -(1 << 31) <= value < 1 << 31 else None


def joined(pieces: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables as one with all columns of a schema, and no others. Columns that a table lacks are null."""
    return pa.concat_tables([schema.empty_table(), *pieces], promote_options="permissive").select(schema.names).cast(schema)


def parsed_lines(lines: pa.RecordBatch, rows: Sequence[Mapping[str, Any]], is_first: npt.NDArray[np.bool_]) -> pa.Table:
    """Rows of PARSED as parsers in Python make them. `lines` have COMMON; columns that rows lack are null.

    `is_first`: whether each row is the first of its line, which accounts for it.
    """
    made = pa.array(rows, _OF_TEXT)
    common = {name: lines[name] for name in COMMON} | {"lines": pc.if_else(pa.array(is_first), lines["lines"], 0)}
    return pa.table(common | dict(zip(_OF_TEXT.names, made.flatten(), strict=True)))


def clock_seconds(text: str | None) -> list[int]:
    """The seconds (UTC epoch) in which a clock's log was written: first, last, first, last, … Nothing if the text is no such list."""
    try:
        seconds = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    sound = (
        isinstance(seconds, list) and not len(seconds) % 2 and all(type(second) is int and 0 <= second <= _MAX_SECOND for second in seconds)
    )
    return seconds if sound else []
