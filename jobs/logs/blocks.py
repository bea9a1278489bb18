"""Blocks of log lines that are looked at all at once: a line costs a tenth of what it costs one by one.

NumPy compares the lines of a block with the form in which Kafka's own configuration writes them, `[2026-11-21 06:09:19,456] `. So a block
tells what most of its lines are without cutting them out. The few that look different are left to those who read line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from jobs.logs.faults import is_utf8
from jobs.logs.times import LENGTH, MINUTE, NEVER, LocalTimes

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FORM: Final = np.frombuffer(b"[0000-00-00 00:00:00,000] ", np.uint8)  # OWN_HEADER of jobs/logs/envelopes; 0: any digit
_ZERO: Final = ord("0")
_DIGIT: Final = _FORM == _ZERO
_TEN: Final = 10
_NEWLINE: Final = ord("\n")
_TAB: Final = ord("\t")
_FIRST_PRINTABLE: Final = 32
_DELETE: Final = b"\x7f"
_MS_OF_DIGITS: Final = np.array([10_000, 1_000, 0, 100, 10, 1])  # of `19,456` in a minute, the comma left out
_DIGITS: Final = slice(18, 24)
_SIX: Final = 6
_SECOND: Final = 1_000  # ms


class Block:
    """Lines of clean text. `starts`, `ends`: where each begins and ends, its newline left out. `own`: whether it begins as Kafka's own."""

    def __init__(self, text: bytes, starts: Numbers, ends: Numbers) -> None:
        self.text = text
        self.starts = starts
        self.ends = ends
        self.own = self._own()

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, index: int) -> bytes:
        """One of the lines."""
        return self.text[self.starts[index] : self.ends[index]]

    def lines(self) -> list[bytes]:
        """All of them."""
        return self.text.split(b"\n")

    def windows(self, width: int, places: Numbers) -> npt.NDArray[np.bytes_]:
        """So many bytes from each of these places on, all of them within the text."""
        count = len(self.text) - width + 1
        every: npt.NDArray[np.bytes_] = np.ndarray((max(0, count),), f"S{width}", self.text, strides=(1,))
        return every[places]

    def bytes_at(self, width: int, places: Numbers) -> npt.NDArray[np.uint8]:
        """The same as an array of bytes, a row for each place."""
        return self.windows(width, places).view(np.uint8).reshape(len(places), width)

    def _own(self) -> Flags:
        own: Flags = self.ends - self.starts >= len(_FORM)
        head = self.bytes_at(len(_FORM), self.starts[own])
        digits = (head - _ZERO) < _TEN
        own[own] = np.where(_DIGIT, digits, head == _FORM).all(axis=1)
        return own

    def times(self, local: LocalTimes) -> Numbers:
        """The time of each line, epoch ms; NEVER where it takes a look at the line itself."""
        ats = np.full(len(self), NEVER)
        own = np.flatnonzero(self.own)
        if not len(own):
            return ats
        minutes = self.windows(MINUTE.stop, self.starts[own])
        first = np.concatenate([[True], minutes[1:] != minutes[:-1]])
        known = [local.minute(text) for text in minutes[first].tolist()]
        begins = np.array([NEVER if minute is None else minute for minute in known])[np.cumsum(first) - 1]
        head = self.bytes_at(LENGTH, self.starts[own])[:, _DIGITS].astype(np.int64) - _ZERO
        exists = (begins != NEVER) & (head[:, 0] < _SIX)
        ats[own[exists]] = begins[exists] + head[exists] @ _MS_OF_DIGITS
        return ats

    def places(self, lines: Sequence[int], ats: Numbers) -> Iterator[tuple[int, int, int]]:
        """Where lines begin and end, and their times."""
        index = np.asarray(lines, np.int64)
        return zip(self.starts[index].tolist(), self.ends[index].tolist(), ats[index].tolist(), strict=True)

    @staticmethod
    def seconds(ats: Numbers) -> list[int]:
        """The seconds (epoch) of such times, each once."""
        seconds: list[int] = np.unique(ats[ats != NEVER] // _SECOND).tolist()
        return seconds

    def foreign(self) -> Iterator[bytes]:
        """Lines that are not empty, and do not begin as Kafka's own."""
        for index in np.flatnonzero(~self.own & (self.ends > self.starts)).tolist():
            yield self.line(index)

    def calm(self, local: LocalTimes, newest_ms: int, tolerance_ms: int, until_ms: int, last_ms: int, fall_ms: int) -> Numbers:
        """The times of the lines before the first whose time takes a closer look; NEVER for lines that have none.

        A time takes a closer look that is further than the tolerance beyond all before it, or beyond `until_ms`, or in another form, or
        more than `fall_ms` before the time of the line before it, `last_ms` for the first.
        """
        ats = self.times(local)
        newest = np.maximum.accumulate(np.concatenate([[newest_ms], ats[:-1]]))
        jumps = np.flatnonzero(ats > np.minimum(newest + tolerance_ms, until_ms))
        timed = np.flatnonzero(ats != NEVER)
        falls = timed[ats[timed] < np.concatenate([[last_ms], ats[timed][:-1]])[: len(timed)] - fall_ms]
        end = min((int(found[0]) for found in (jumps, falls) if len(found)), default=len(ats))
        for index in np.flatnonzero(ats[:end] == NEVER).tolist():
            if local.read(self.line(index), int(newest[index])) is not None:
                return ats[:index]
        return ats[:end]


def block_of(text: bytes) -> Block | None:
    """A block of lines. None if some byte is none of clean text (`faults.is_clean`)."""
    every = np.frombuffer(text, np.uint8)
    low = np.flatnonzero(every < _FIRST_PRINTABLE)
    kinds = every[low]
    is_newline = kinds == _NEWLINE
    if not (is_newline | (kinds == _TAB)).all() or _DELETE in text or not is_utf8(text):
        return None
    newlines = low[is_newline]
    return Block(text, np.concatenate([[0], newlines + 1]), np.concatenate([newlines, [len(text)]]))
