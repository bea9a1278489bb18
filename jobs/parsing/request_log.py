"""Lines of `kafka.request.logger` as rows: `[time] LEVEL Completed request:{json} (kafka.request.logger)`, Kafka 2.8 to 4.2.

The text of Kafka 1.0 to 2.7 is read as the JSON that request_text.py makes of it. Requests of other APIs are recognised by their header and
not read.

Python on Arrow batches does this, since expressions of Spark cost many times as much for each line, and seconds at each start
(docs/decisions.md).

A line is written when the request is answered, after the answer was sent, so `received_at` is `at` minus `totalTimeMs`. `totalTimeMs`
has microseconds, `at` only milliseconds (cut, not rounded): `received_at` is up to 1 ms early, and its microseconds carry no meaning
beyond the order of requests that were answered in the same millisecond. Where `totalTimeMs` cannot be believed, `received_at` is `at`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame

from coordinator_model.events import REQUEST_SOURCE
from jobs.parsing import request_checks as checks
from jobs.parsing import request_text
from jobs.parsing.request_columns import concerns_a_group, event_columns
from jobs.parsing.request_json import decoded
from jobs.parsing.rows import COMMON, EVENT, PARSED, QUARANTINE, RAW_CHARACTERS, SKIPPED, Refusal, parsed_batch

_MARKS: Final = ("Completed request:", '"requestApiKeyName":"')
_SHAPE: Final = re.compile(r"\[[^\]]*\] [A-Z]+ Completed request:(\{.*\}) \([\w.$]+\)", re.DOTALL | re.ASCII)
# Quotes inside JSON strings are escaped, so no client id can fake these.
_OF_GROUP_API: Final = re.compile(
    rf'"requestApiKey(?:":(?:{"|".join(str(api.key) for api in checks.APIS.values())})[,}}]|Name":"(?:{"|".join(checks.APIS)})")'
)
_OF_ANY_API: Final = re.compile(r'"requestApiKey(?:":\d{1,5}[,}]|Name":"[A-Z_]+")', re.ASCII)


def is_request_line(text: Column) -> Column:
    """Whether a line has a mark of the request log. Damaged lines may have one, too."""
    return text.contains(_MARKS[0]) | text.contains(_MARKS[1])


def are_request_lines(texts: pa.Array) -> pa.Array:
    """The same of an array; not of a null."""
    found: pa.Array = pc.fill_null(pc.or_(*(pc.match_substring(texts, mark) for mark in _MARKS)), False)
    return found


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines for which `is_request_line` holds, as rows of PARSED."""
    return lines.select(*COMMON, "text").mapInArrow(_parse_batches, PARSED)


def parsed(lines: pa.RecordBatch) -> pa.RecordBatch:
    """The same without Spark. Rows that are no events have only what accounts for them."""
    times = lines["occurred_at"].cast(pa.int64()).to_pylist()
    rows = [_row(text, at_us) for text, at_us in zip(lines["text"].to_pylist(), times, strict=True)]
    return parsed_batch(lines, rows)


def _parse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from map(parsed, batches)


def _row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of a line that its text and time decide."""
    printed = request_text.MARK in text
    concerns = _OF_GROUP_API.search(text) or request_text.OF_GROUP_API.search(text)
    if not concerns and (_OF_ANY_API.search(text) or request_text.OF_ANY_API.search(text)):
        return {"source": REQUEST_SOURCE, "verdict": SKIPPED}
    json = _json(text, printed=printed) if concerns else ""
    line = decoded(json)
    if at_us is None:
        refusal: str | None = Refusal.NO_TIME
    elif line is None:
        refusal = checks.no_json(json) if json else checks.misshapen(text, printed=printed)
    else:
        refusal = checks.refusal(line, printed=printed)
    if line is None or at_us is None or refusal is not None:
        return {"source": REQUEST_SOURCE, "verdict": QUARANTINE, "refusal": refusal, "raw": text[:RAW_CHARACTERS]}
    if not concerns_a_group(line):
        return {"source": REQUEST_SOURCE, "verdict": SKIPPED}
    return {"source": REQUEST_SOURCE, "verdict": EVENT, **event_columns(line, at_us)}


def _json(text: str, *, printed: bool) -> str:
    """The JSON of a line; "" if it has not the shape of a line."""
    if printed:
        return request_text.as_json(text)
    shaped = _SHAPE.fullmatch(text)
    return "" if shaped is None else shaped[1]
