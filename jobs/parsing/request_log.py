"""Lines of `kafka.request.logger` as rows: `[time] LEVEL Completed request:{json} (kafka.request.logger)`, Kafka 2.8 to 4.4.

The text of Kafka 1.0 to 2.7 is read by request_text.py. Requests of other APIs are recognised by their header and
not read, except that an answer to ApiVersions tells the release (broker_log.py).

A line is written when the request is answered, after the answer was sent, so `received_at` is `at` minus `totalTimeMs`. `totalTimeMs`
has microseconds, `at` only milliseconds (cut, not rounded): `received_at` is up to 1 ms early, and its microseconds carry no meaning
beyond the order of requests that were answered in the same millisecond. Where `totalTimeMs` cannot be believed, `received_at` is `at`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import MsgspecError

from coordinator_model.events import REQUEST_SOURCE
from jobs.parsing import broker_log, request_text
from jobs.parsing import request_checks as checks
from jobs.parsing.request_columns import concerns_a_group, event_columns
from jobs.parsing.request_json import Logged, decoded
from jobs.parsing.rows import EVENT, Refusal, refused, skipped

_MARKS: Final = ("Completed request:", '"requestApiKeyName":"')
_SHAPE: Final = re.compile(r"\[[^\]]*\] [A-Z]+ Completed request:(\{.*\}) \([\w.$]+\)", re.DOTALL | re.ASCII)
# Quotes inside JSON strings are escaped, so no client id can fake these.
_OF_GROUP_API: Final = re.compile(
    rf'"requestApiKey(?:":(?:{"|".join(str(api.key) for api in checks.APIS.values())})[,}}]|Name":"(?:{"|".join(checks.APIS)})")'
)
_OF_ANY_API: Final = re.compile(r'"requestApiKey(?:":\d{1,5}[,}]|Name":"[A-Z_]+")', re.ASCII)


def is_request_line(text: str) -> bool:
    """Whether a line has a mark of the request log. Damaged lines may have one, too."""
    return _MARKS[0] in text or _MARKS[1] in text


def row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of PARSED that the text and the time (epoch µs) of a line decide for which `is_request_line` holds."""
    printed = request_text.MARK in text
    concerns = _OF_GROUP_API.search(text) or request_text.OF_GROUP_API.search(text)
    if not concerns and (_OF_ANY_API.search(text) or request_text.OF_ANY_API.search(text)):
        return broker_log.answer_row(text, at_us)
    line: Logged | None = None
    if at_us is None:
        refusal: str | None = Refusal.NO_TIME
    else:
        try:
            line = _read(text, printed=printed) if concerns else None
            refusal = checks.misshapen(text, printed=printed) if line is None else checks.refusal(line, text, printed=printed)
        except (MsgspecError, RecursionError):
            refusal = Refusal.LOGGED_WITHOUT_BODY if checks.WITHOUT_BODY.search(text) else Refusal.INVALID_JSON
    if line is None or at_us is None or refusal is not None:
        return refused(REQUEST_SOURCE, refusal, text)
    if not concerns_a_group(line):
        return skipped(REQUEST_SOURCE)
    return {"source": REQUEST_SOURCE, "verdict": EVENT, **event_columns(line, at_us)}


def _read(text: str, *, printed: bool) -> Logged | None:
    """The request of a line; None if it has not the shape of a line. MsgspecError: it is not JSON, or a field has another type."""
    if printed:
        return request_text.decoded(text)
    shaped = _SHAPE.fullmatch(text)
    return None if shaped is None else decoded(shaped[1])
