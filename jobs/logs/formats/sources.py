"""Bytes that can be read at any position: those of a file, or of a stretch of it."""

from __future__ import annotations

import errno
import io
import os
import stat
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

READING_FAILED: Final = "reading failed"  # how a damage begins that another attempt may not meet

_SPECIAL: Final = ((stat.S_ISFIFO, "named pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


def special_kind(mode: int) -> str:
    """What a path is if it is neither file nor folder, by its mode; empty if it is."""
    return next((name for is_kind, name in _SPECIAL if is_kind(mode)), "")


class Source(ABC):
    """Bytes at positions."""

    damage = ""  # why reading stopped before the end

    @abstractmethod
    def size(self) -> int:
        """The number of bytes, as of now."""

    @abstractmethod
    def read_at(self, position: int, size: int) -> bytes:
        """At most `size` bytes from a position on; empty at the end."""

    def all_at(self, position: int, size: int) -> bytes:
        """`size` bytes from a position on, fewer only at the end."""
        parts = []
        while size > 0 and (data := self.read_at(position, size)):
            parts.append(data)
            position, size = position + len(data), size - len(data)
        return b"".join(parts)


class FileSource(Source):
    """A file. It is closed when nothing reads from it any more, at the latest. `stat`: what it was when it was opened."""

    def __init__(self, path: Path) -> None:
        """OSError: the file cannot be opened, or is something else, such as a pipe, which would make the reader wait."""
        kind = special_kind(path.stat().st_mode)
        if kind:
            raise OSError(errno.EINVAL, f"it is a {kind}, not a file", str(path))
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        self._descriptor = os.open(path, flags)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self.stat = os.fstat(self._descriptor)
        if stat.S_ISDIR(self.stat.st_mode):
            self.close()
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))

    def begin(self, size: int) -> bytes:
        """The first bytes. OSError: the file cannot be read at all."""
        return os.pread(self._descriptor, size, 0)

    def size(self) -> int:
        """That of the file."""
        return os.fstat(self._descriptor).st_size

    def read_at(self, position: int, size: int) -> bytes:
        """What the file has there. A failing disk is a damage."""
        try:
            return os.pread(self._descriptor, size, position)
        except OSError as error:
            self.damage = f"{READING_FAILED}: {error.strerror}"
            return b""


class Stretch(Source):
    """A stretch of another source. `cut`: the damage if the other one ends within it."""

    def __init__(self, whole: Source, start: int, size: int, cut: str) -> None:
        self._whole = whole
        self._start = start
        self._size = size
        self._cut = cut

    def size(self) -> int:
        """As it should be."""
        return self._size

    def read_at(self, position: int, size: int) -> bytes:
        """What the other source has there."""
        wanted = min(size, self._size - position)
        if wanted <= 0:
            return b""
        data = self._whole.read_at(self._start + position, wanted)
        if not data:
            self.damage = self._whole.damage or self._cut
        return data


class SourceFile(io.RawIOBase):
    """A source as a file, for libraries. They read what they want to hold in memory at once: OSError if that is more than `most`."""

    def __init__(self, source: Source, most: int) -> None:
        super().__init__()
        self._source = source
        self._most = most
        self._position = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size()}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """As many bytes as there are, up to `size`."""
        left = self._source.size() - self._position if size < 0 else size
        if left > self._most:
            raise OSError(f"{left:,} bytes in one piece")
        data = self._source.all_at(self._position, left)
        self._position += len(data)
        return data
