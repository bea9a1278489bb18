"""Finds files that repeat the lines of another log of the same broker.

A broker writes to its console what it writes to server.log: `kafkaServer.out`, and what Docker and journald keep, has the same lines. Read
twice, every rebalance would happen twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from jobs.logs.bytes import PlainBytes, anywhere, open_log
from jobs.logs.content.verdict import SAMPLE_BYTES, own_line
from jobs.logs.formats.compression import first_bytes
from jobs.logs.survey.block_times import Part

_LINES: Final = 8  # of the beginning, and of the end, that are looked for
_SHARE: Final = 0.75  # of the lines: a file that several brokers wrote repeats none of them
_STAMP: Final = slice(0, 25)  # `[2026-11-21 06:09:19,456]`: in the order of time
_STEP_BYTES: Final = 16 << 10
_NEAR_BYTES: Final = 4 << 10
_MOST_BYTES: Final = 512 << 20  # of a compressed log that are looked through


def repeats(path: Path, others: Sequence[Path]) -> Path | None:
    """The first of the other logs that has the lines of this one at the time they bear; None if none does. OSError: one cannot be read.

    Lines from before the other log's time, or after it, decide nothing.
    """
    lines = _sample(path)
    return next((other for other in others if lines and _has(other, lines)), None)


def _sample(path: Path) -> list[bytes]:
    """Lines of a broker from the beginning of a log and, if that is cheap, from its end."""
    with open_log(path) as log:
        lines = _own(first_bytes(log, SAMPLE_BYTES))[:_LINES]
        if isinstance(log, PlainBytes):
            lines += _own(log.at(max(SAMPLE_BYTES, log.length() - SAMPLE_BYTES), SAMPLE_BYTES))[-_LINES:]
        return lines


def _own(text: bytes) -> list[bytes]:
    """The broker's lines in a part of a log, whose first and last line may be cut."""
    return [own for own in map(own_line, text.split(b"\n")) if own]


def _has(path: Path, lines: list[bytes]) -> bool:
    with open_log(path) as log:
        places = list(_places(log if isinstance(log, PlainBytes) else anywhere(Part(log, _MOST_BYTES)), lines))
        found = sum(is_found for _, is_found in places)
        return found > 0 and found >= _SHARE * sum(is_within for is_within, _ in places)


def _places(log: PlainBytes, lines: list[bytes]) -> Iterator[tuple[bool, bool]]:
    """For each line whether a log has others from before and after it, and whether it has the line. Looks for its time by halving."""
    around: list[bytes] = []
    for line in lines:
        if not (around and around[0][_STAMP] < line[_STAMP] < around[-1][_STAMP]):
            steps = range(_STEP_BYTES, log.length(), _STEP_BYTES)
            low = _STEP_BYTES * bisect_left(steps, line[_STAMP], key=partial(_stamp_at, log))
            around = _own(log.at(max(0, low - SAMPLE_BYTES), _STEP_BYTES + 2 * SAMPLE_BYTES))
        yield bool(around) and around[0][_STAMP] <= line[_STAMP] <= around[-1][_STAMP], line in around


def _stamp_at(log: PlainBytes, position: int) -> bytes:
    """The time of the first line after a position; later than any if there is none nearby."""
    text = b""
    while len(text) < SAMPLE_BYTES and (data := log.at(position + len(text), _NEAR_BYTES)):
        text += data
        for line in text.split(b"\n")[1:]:
            if own := own_line(line):
                return own[_STAMP]
    return b"\xff"
