"""Why an excerpt has no answer, and what to copy instead: said of lines of which nothing was understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.logs.envelopes.instants import last_time, stamp_of

_LOOKED_AT: Final = 1 << 18  # bytes
_LINES: Final = 2_000
_HEAD: Final = 400  # bytes of a line in which its time is looked for
_CLOCK: Final = re.compile(rb"(?<![\d:])[0-2]\d:[0-5]\d:[0-5]\d(?![\d:])")
_OTHER_DATE: Final = re.compile(rb"(?<![\d/.-])\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)[ T,]+[0-2]?\d:[0-5]\d:[0-5]\d")
"""Day and month cannot be told apart, nor the year."""
_OF_KAFKA: Final = re.compile(rb"\[thrd:|group|coordinator|join|rebalanc|kafka", re.IGNORECASE)
KNOWN: Final = (
    "a broker's group coordinator (`grep -i group server.log`), or of consumers: Java's client (also Connect, Streams, Spring, Logstash),"
    " librdkafka and its bindings, kafka-python, aiokafka, franz-go, sarama, kafka-go, KafkaJS"
)
_DATES: Final = (
    "copy the lines with their times: `kubectl logs --timestamps`, `docker logs --timestamps`, `docker compose logs --timestamps`, or"
    " journalctl -o short-iso; or let the log's own pattern have date and time"
)


def reasons(source: Path) -> Iterator[str]:
    """What is wrong with the lines of a file, and what to do: two sentences."""
    dated, clocks, others, of_kafka, spoken = [], 0, 0, 0, b""
    for line in _lines(source):
        found = last_time(line[:_HEAD])
        stamp = stamp_of(found[0]) if found is not None else None
        dated += [stamp[1:20]] if stamp is not None else []
        others += stamp is None and _OTHER_DATE.search(line[:_HEAD]) is not None
        clocks += stamp is None and _CLOCK.search(line[:_HEAD]) is not None
        if _OF_KAFKA.search(line) is not None:
            of_kafka += 1
            spoken = spoken or line.strip()
    if not of_kafka:
        yield f"none of its lines is about a consumer group. It takes lines of {KNOWN}, each with its date and time"
    elif not dated and others:
        yield "its dates can be read in several ways: which number is the day, the month, the year? So nothing is explained"
        yield "write the date as 2026-01-31 (`sed -E` can), or let the log's own pattern do so: %d{yyyy-MM-dd HH:mm:ss.SSS}"
    elif not dated:
        what = "a time, but no date" if clocks else "no date and no time"
        yield f"its lines have {what}: nothing can be said of when, in which order, or how often. So nothing is explained"
        if clocks:
            yield f"where you know the day, put it before each line: `sed 's/^/2026-01-31 /' FILE | rebalance explain -`. Else {_DATES}"
        else:
            yield _DATES
    else:
        yield f"its lines are about a group, and none is in words and a layout that are known here. Known are those of {KNOWN}"
    if of_kafka:
        text = spoken.decode("utf-8", "replace")
        yield f"such as: {text if len(text) < 200 else text[:199] + '…'}"
    if dated and of_kafka:
        first, last = min(dated).decode(), max(dated).decode()
        span = f"of {first} and just before" if first == last else f"from {first} to {last}"
        yield (
            f"fetch next: the lines of the group in the server.log of the broker that coordinates it, {span}: `grep -F GROUP server.log`;"
            " they say who began each rebalance, and why"
        )


def _lines(source: Path) -> list[bytes]:
    if not source.is_file():
        return []
    with source.open("rb") as file:
        return file.read(_LOOKED_AT).split(b"\n")[:_LINES]
