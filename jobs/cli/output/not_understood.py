"""Why lines were not understood, and what to do about it: by the reason for which a line was refused, or of an excerpt as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.cli.output.terminal import NO_LINE
from jobs.logs.bytes import open_log
from jobs.logs.envelopes.instants import last_time, stamp_of
from jobs.logs.formats.compression import first_bytes

_LOOKED_AT: Final = 1 << 18  # bytes
_LINES: Final = 2_000
_HEAD: Final = 400  # bytes of a line in which its time is looked for
_CLOCK: Final = re.compile(rb"(?<![\d:])[0-2]\d:[0-5]\d:[0-5]\d(?![\d:])")
_OTHER_DATE: Final = re.compile(rb"(?<![\d/.-])\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)[ T,]+[0-2]?\d:[0-5]\d:[0-5]\d")
"""Day and month cannot be told apart, nor the year."""
_YEARLESS: Final = re.compile(r"(?<![\w/-])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d:\d\d(?![\d:])")
_OF_KAFKA: Final = re.compile(rb"\[thrd:|group|coordinator|join|rebalanc|kafka", re.IGNORECASE)
_KNOWN: Final = (
    "a broker's group coordinator (`grep -i group server.log`), or of consumers: Java's client (also Connect, Streams, Spring, Logstash),"
    " librdkafka and its bindings, kafka-python, aiokafka, franz-go, sarama, kafka-go, KafkaJS"
)
WHAT_IS_READ: Final = f"look for lines of {_KNOWN}, each with its date and time; `rebalance inspect` shows what a file holds"
_NO_TIME: Final = (
    "a line needs a date and a time. Copy it with that of its container (`kubectl logs --timestamps`, `docker logs --timestamps`, `docker"
    " compose logs --timestamps`) or of the journal (`journalctl -o short-iso`), or let the log's own pattern have both; if both are there"
    " in another form, name the pattern of the log: --log-format '%d{…} %p %m (%c)%n'"
)
_NO_YEAR: Final = (
    "a line needs the year of its date. Where you know it, write the day in full:"
    " `sed -E 's/[A-Z][a-z]{2} +[0-9]+ ([0-9:]{8})/2026-01-31 \\1/' FILE | rebalance explain -`"
)
_TIME: Final = (
    "the time of such a line is damaged, or far from those of the lines around it. A clock of another time zone is: explain its lines in a"
    " file of their own, with --timezone"
)
_STEPS: Final = {
    "UNKNOWN_TEMPLATE": "such a line is whole, and is not read: a gap in this program. Please report it as it stands there",
    "NO_TIMESTAMP": _NO_TIME,
    "NO_TIME": _NO_TIME,
    "BAD_TIMESTAMP": _TIME,
    "TIMESTAMP_OUTLIER": _TIME,
    "TRUNCATED": "such a line ends before its logger: it was cut, or the pattern of the log has no logger; then name the pattern:"
    " --log-format '[%d] %p %m%n'",
    "MALFORMED": "such a line is a coordinator's, in a layout that is not known: name the pattern of the log:"
    " --log-format '[%d] %p [%t] %c %m%n'",
    "NO_GROUP": "no line of that client names its group. Put the log into a folder that bears its name, logs/clients/GROUP/app.log, and"
    " explain logs/",
    "OLD_FORMAT": "Kafka 0.9 to 0.11 logs requests without their answers: server.log tells more",
    "RECORDS_DELETED": "the retention of the topic is shorter than the pipeline's pause: what happened in these records is not known",
    "LOGGED_WITHOUT_BODY": "the request log was switched on while such a request was in flight",
}


def has_no_year(line: str) -> bool:
    """Whether a line without a time that counts has one, whose date has no year."""
    return _YEARLESS.search(line, 0, _HEAD) is not None


def next_step(reason: str, line: str = "") -> str:
    """A sentence about lines that were refused for this reason, a code with or without a detail. `line`: one of them."""
    if _STEPS.get(reason) is _NO_TIME and has_no_year(line):
        return _NO_YEAR
    return _STEPS.get(reason.partition(":")[0], "such a line is damaged")


def reasons(source: Path) -> Iterator[str]:
    """What is wrong with the lines of a file, and what to do: two sentences, and more where they are of a group."""
    if not source.is_file():
        yield from (NO_LINE, WHAT_IS_READ)
        return
    with open_log(source) as log:
        lines = first_bytes(log, _LOOKED_AT).split(b"\n")[:_LINES]
    dated, clocks, others, spoken = [], 0, 0, b""
    for line in lines:
        found = last_time(line[:_HEAD])
        stamp = stamp_of(found[0]) if found is not None else None
        dated += [stamp[1:20]] if stamp is not None else []
        others += stamp is None and _OTHER_DATE.search(line[:_HEAD]) is not None
        clocks += stamp is None and _CLOCK.search(line[:_HEAD]) is not None
        if not spoken and _OF_KAFKA.search(line) is not None:
            spoken = line.strip()
    if not spoken:
        yield f"none of its lines is about a consumer group; {WHAT_IS_READ}"
    elif not dated and others:
        yield "its dates can be read in several ways: which number is the day, the month, the year? So nothing is explained"
        yield "write the date as 2026-01-31 (`sed -E` can), or let the log's own pattern do so: %d{yyyy-MM-dd HH:mm:ss.SSS}"
    elif not dated:
        what = "a time, but no date" if clocks else "no date and no time"
        yield f"its lines have {what}: nothing can be said of when, in which order, or how often. So nothing is explained"
        day = "where you know the day, put it before each line: `sed 's/^/2026-01-31 /' FILE | rebalance explain -`. Else "
        yield (day if clocks else "") + _NO_TIME
    else:
        yield f"its lines are about a group, and none is in words and a layout that are known here. Known are those of {_KNOWN}"
    if spoken:
        text = spoken.decode("utf-8", "replace")
        yield f"such as: {text if len(text) < 200 else text[:199] + '…'}"
    if dated and spoken:
        first, last = min(dated).decode(), max(dated).decode()
        span = f"of {first} and just before" if first == last else f"from {first} to {last}"
        yield (
            f"fetch next: the lines of the group in the server.log of the broker that coordinates it, {span}: `grep -F GROUP server.log`;"
            " they say who began each rebalance, and why"
        )
