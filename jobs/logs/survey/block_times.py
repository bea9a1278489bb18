"""A log's lines in blocks of whole lines, the times in them, and the logs in a file that several were written into (section_search.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from jobs.logs.bytes import LogBytes, ShownBytes

WITNESSES: Final = 8  # lines before and after a place that must agree on the time there, so that no damaged time counts

_BLOCK_BYTES: Final = 256 << 10  # a processor keeps it at hand while it is looked at three times
_LONGEST_LINE: Final = 64 << 20
_OWN_TIME: Final = re.compile(rb"\n[^\n]{0,200}?\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_ANY_TIME: Final = re.compile(rb"\n[^\n]{0,200}?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
TIME: Final = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")

Block = tuple[int, bytes]  # whole lines, and the line end before them; where that lies in the log (-1 is that of the first line)


def blocks_of(log: LogBytes, line_end: int = -1) -> Iterator[Block]:
    """Whole lines from where a log stands, which is behind the line end at `line_end`."""
    offset, rest = line_end, b"\n"
    while data := log.read(_BLOCK_BYTES):
        text = rest + data
        end = text.rfind(b"\n")
        if end > 0:
            yield offset, text[: end + 1]
            offset += end
            text = text[end:]
        elif len(text) > _LONGEST_LINE:
            return  # no log
        rest = text
    if len(rest) > 1:
        yield offset, rest + b"\n"


def lines_with(block: bytes, signs: Iterable[bytes]) -> list[bytes]:
    """The lines that have one of these texts. To find each takes a quarter of the time of a pattern for all."""
    ends: dict[int, int] = {}  # by where a line begins
    for sign in signs:
        found = block.find(sign)
        while found >= 0:
            start, end = block.rfind(b"\n", 0, found) + 1, block.find(b"\n", found)
            ends[start] = end
            found = block.find(sign, end)
    return [block[start : ends[start]] for start in sorted(ends)]


def has_own_times(block: bytes) -> bool:
    """Whether times stand in brackets. Only they count then: the time of a collector before them may be of another zone."""
    return _OWN_TIME.search(block) is not None


def each_time(block: bytes, *, own: bool) -> Iterator[re.Match[bytes]]:
    """The times of a block, as group 1 of matches that begin at the line end before their line. `own`: those in brackets."""
    return (_OWN_TIME if own else _ANY_TIME).finditer(block)


def seconds_of(time: bytes) -> float | None:
    """Seconds since 1970 by a clock of UTC; None if there is no such time."""
    try:
        return datetime.fromisoformat(f"{time.decode()}+00:00").timestamp()
    except ValueError:
        return None


class Section(NamedTuple):
    """Where a log begins in its file."""

    offset: int  # bytes, uncompressed
    line: int  # lines before it


WHOLE: Final = (Section(0, 0),)


class Part(ShownBytes):
    """The bytes of a file up to where a section ends."""

    def __init__(self, log: LogBytes, end: int) -> None:
        super().__init__(log)
        self._left = end

    def read(self, size: int) -> bytes:
        """The next bytes of the section."""
        data = self._log.read(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def skip(self, size: int) -> bool:
        """Moves on within the section."""
        if size > self._left or not self._log.skip(size):
            return False
        self._left -= size
        return True
