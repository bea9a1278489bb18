"""The logs in a file that several were written into, one after the other (section_search.py)."""

from __future__ import annotations

from typing import Final, NamedTuple

from jobs.logs.bytes import LogBytes


class Section(NamedTuple):
    """Where a log begins in its file."""

    offset: int  # bytes, uncompressed
    line: int  # lines before it


WHOLE: Final = (Section(0, 0),)


class Part(LogBytes):
    """The bytes of a file up to where a section ends."""

    def __init__(self, log: LogBytes, end: int) -> None:
        super().__init__()
        self.signature = log.signature
        self._log = log
        self._left = end

    def head(self) -> bytes:
        """That of the file, by which the file is recognised."""
        return self._log.head()

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

    def file_position(self) -> int:
        """That of the file."""
        return self._log.file_position()

    def close(self) -> None:
        """Closes the file."""
        self._log.close()
