"""Records of a Kafka topic as log lines: what `rebalance ship` wrote (docs/shipping.md) as rows of raw_lines. Tasks do this.

A bundle of heartbeats stays bytes (jobs/parsing/heartbeats.py).

Other programs may write anything to the topic. A record that no shipper wrote becomes a line with a fault, under the topic's own name. It
goes to quarantine, and does not advance the time of any broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.common.times import LATEST_MS
from jobs.kafka.bundles import VERSION
from jobs.parsing.heartbeats import NOT_SHIPPED
from schemas.names import CLOCK, HEARTBEATS, LINE, RAW_LINES
from schemas.tables import arrow_schema_of

COLUMNS: Final = ("topic", "partition", "offset", "value", "headers")
"""What `as_lines` takes of Spark's Kafka records."""
PLACE_BITS: Final = 48
"""Low bits of a place, which hold the offset; the partition stands above them. So places sort like the records of the topic."""
READ_SEPARATOR: Final = "|"
"""Stands in a clock's text between the moment at which its broker's logs were read to their ends (epoch ms, or empty) and the seconds."""

_REQUIRED: Final = ("cluster", "broker", "record", "origin", "position")
_TEXTS: Final = (*_REQUIRED, "at", "fault", "context", "around", "read", "version", "crc")
_MAX_NAME: Final = 249  # characters, as of a topic
_MAX_ORIGIN: Final = 4_096
_MAX_CONTEXT: Final = 32_767  # of a group's name: what Kafka's protocol can say
_LENGTHS: Final = {"cluster": _MAX_NAME, "broker": _MAX_NAME, "origin": _MAX_ORIGIN, "context": _MAX_CONTEXT}
_MOST: Final = {"position": 1 << 53, "at": LATEST_MS, "read": LATEST_MS, "crc": LATEST_MS}
_OTHER_VERSION: Final = f", this program reads {VERSION}: run the same version here and in `rebalance ship`, or ship with --raw"
_FAULT: Final = r"\A[A-Z_]{1,40}\z"
_DIGITS: Final = r"\A[0-9]{1,18}\z"
_US: Final = 1_000  # in a millisecond
_ARROW: Final = arrow_schema_of(RAW_LINES).append(pa.field("place", pa.int64()))


def as_lines(records: pa.RecordBatch) -> pa.RecordBatch:
    """Kafka records as rows of raw_lines and their `place`. Clocks stand for no lines. Records of no shipper have no cluster and broker.

    Of the headers of one name the last one counts. A bundle is in `repeated`. If it is none, it goes to quarantine under its `context`, as
    other records of no shipper.
    """
    texts = _headers(records["headers"])
    numbers = {name: _number(texts[name]) for name in _MOST}
    problem = _problems(texts, numbers)
    sound = pc.is_null(problem)
    is_clock, is_bundle = (pc.and_(sound, _is(texts["record"], name)) for name in (CLOCK, HEARTBEATS))
    value = pc.fill_null(records["value"], b"")
    own_name = pc.binary_join_element_wise(records["topic"], records["partition"].cast(pa.string()), "-")
    text = _text(pc.if_else(is_bundle, b"", value))  # a bundle is no text: each byte that is none would be replaced
    seconds = pc.binary_join_element_wise(pc.fill_null(texts["read"], ""), text, READ_SEPARATOR)
    columns = {
        "cluster": pc.if_else(sound, texts["cluster"], ""),
        "broker": pc.if_else(sound, texts["broker"], ""),
        "record": pc.if_else(pc.or_(is_clock, is_bundle), texts["record"], LINE),
        "origin": pc.if_else(sound, texts["origin"], own_name),
        "position": pc.if_else(sound, numbers["position"], records["offset"]),
        "at": pc.multiply(pc.if_else(sound, numbers["at"], None), _US).cast(pa.timestamp("us", "UTC")),
        "text": pc.if_else(is_bundle, texts["crc"], pc.if_else(is_clock, seconds, text)),
        "fault": pc.if_else(sound, pc.if_else(is_clock, None, texts["fault"]), pc.binary_join_element_wise(NOT_SHIPPED, problem, ": ")),
        "lines": pc.if_else(is_clock, 0, 1),
        "context": pc.if_else(is_bundle, own_name, pc.if_else(sound, texts["context"], None)),
        "repeated": pc.if_else(is_bundle, value, None),
        "around": pc.if_else(sound, texts["around"], None),
        "place": pc.add(pc.shift_left(records["partition"].cast(pa.int64()), PLACE_BITS), records["offset"]),
    }
    return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in _ARROW], schema=_ARROW)


def _headers(headers: pa.ListArray) -> dict[str, pa.Array]:
    """The headers that count, as texts. Null: a record has no such header, or one without a value."""
    entries = headers.flatten()
    number = pc.fill_null(pc.index_in(entries.field(0), pa.array(_TEXTS)), len(_TEXTS)).to_numpy()
    places = np.full((len(_TEXTS) + 1, len(headers)), -1, np.int64)
    places[number, headers.value_parent_indices().to_numpy()] = np.arange(len(entries))  # of several the last one stays
    values = entries.field(1)
    return {name: _text(values.take(pa.array(place, mask=place < 0))) for name, place in zip(_TEXTS, places, strict=False)}


def _text(values: pa.BinaryArray) -> pa.StringArray:
    """Bytes as text; what is no UTF-8 is replaced."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()], pa.string())


def _number(text: pa.StringArray) -> pa.Int64Array:
    """Digits as their number; null for anything else."""
    return pc.if_else(pc.match_substring_regex(text, _DIGITS), text, None).cast(pa.int64())


def _is(text: pa.StringArray, *values: str) -> pa.BooleanArray:
    return pc.is_in(text, pa.array(values, pa.string()))


def _problems(texts: Mapping[str, pa.StringArray], numbers: Mapping[str, pa.Int64Array]) -> pa.StringArray:
    """What is wrong with each record, by the first rule that finds something; null if none does."""
    found = [
        pc.if_else(broken, problem, pa.scalar(None, pa.string())) for broken, problem in _rules(texts, numbers) if pc.any(broken).as_py()
    ]
    return pc.coalesce(*found) if found else pa.nulls(len(texts["record"]), pa.string())


def _rules(
    texts: Mapping[str, pa.StringArray], numbers: Mapping[str, pa.Int64Array]
) -> Iterator[tuple[pa.BooleanArray, str | pa.StringArray]]:
    """Which records break a rule, and the problem that it is."""
    for name in _REQUIRED:
        yield _is(pc.fill_null(texts[name], ""), ""), f"no header {name}"
    yield pc.invert(_is(texts["record"], LINE, HEARTBEATS, CLOCK)), "header record is neither line, heartbeats nor clock"
    other = pc.and_(_is(texts["record"], HEARTBEATS), pc.invert(_is(texts["version"], str(VERSION))))
    version = pc.utf8_slice_codeunits(pc.fill_null(texts["version"], "none"), 0, 20)
    yield other, pc.binary_join_element_wise("heartbeats of version ", version, _OTHER_VERSION, "")
    for name, most in _LENGTHS.items():
        yield pc.fill_null(pc.greater(pc.utf8_length(texts[name]), most), False), f"header {name} is longer than {most}"
    yield pc.fill_null(pc.invert(pc.match_substring_regex(texts["fault"], _FAULT)), False), "header fault is no code"
    for name, most in _MOST.items():
        can_be = pc.fill_null(pc.less_equal(numbers[name], most), False)
        yield pc.and_(pc.is_valid(texts[name]), pc.invert(can_be)), f"header {name} is no number that can be"
