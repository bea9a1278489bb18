"""The logs in a file that several were written into, one after the other (section_search.py)."""

from __future__ import annotations

from typing import Final, NamedTuple

from jobs.logs.bytes import LogBytes, ShownBytes


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
