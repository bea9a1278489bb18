"""Reads the bytes of a log file, plain or gzip, and recognises a log again after it was rotated.

The first bytes of a file tell whether it is gzip, not its name. A damaged file never raises: it ends early, and `damage` says why.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zlib
from pathlib import Path
from typing import Final, NamedTuple

HEAD_BYTES: Final = 4096  # of a log, uncompressed: what it is recognised by

_GZIP_MAGIC: Final = b"\x1f\x8b"
UNREADABLE: Final = (
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
    *((b"BZh%d\x31\x41\x59\x26\x53\x59" % level, "bzip2") for level in range(1, 10)),
)
_NO_FILES: Final = (
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
_MAGIC_BYTES: Final = 10
_RAW_BYTES: Final = 64 * 1024  # read at once from a compressed file


class Signature(NamedTuple):
    """Size (bytes) and modification time (ns) of a file: unchanged means that there is nothing new in it."""

    size: int
    mtime_ns: int


NO_FILE: Final = Signature(-1, -1)


class LogBytes:
    """The uncompressed bytes of one file, from the start. An object of the base class stands for a file that does not exist."""

    def __init__(self) -> None:
        self.damage = ""  # why nothing follows, if that is not simply the end of the file
        self.may_recover = False  # whether the damage is one of reading, which another attempt may not meet
        self.signature = NO_FILE  # of the file when it was opened

    def head(self) -> bytes:
        """The first HEAD_BYTES, or all there is; does not move. A file that cannot be decompressed gives its bytes on disk."""
        return b""

    def read(self, size: int) -> bytes:  # noqa: ARG002
        """At most about `size` bytes; empty if there are no more for now."""
        return b""

    def skip(self, size: int) -> bool:  # noqa: ARG002
        """Moves on by `size` bytes; False if there are fewer."""
        return False

    def file_position(self) -> int:
        """Bytes of the file on disk that were read so far: for progress."""
        return 0

    def close(self) -> None:
        """Closes the file."""


def open_log(path: Path) -> LogBytes:
    """Opens a log in the format that its first bytes show. OSError: it cannot be read, or is no file, such as a pipe."""
    kind = next((name for is_kind, name in _NO_FILES if is_kind(path.stat().st_mode)), None)
    if kind is not None:
        raise OSError(errno.EINVAL, f"it is a {kind}, not a file")
    file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        magic = os.pread(file, _MAGIC_BYTES, 0)
    except OSError:
        os.close(file)
        raise
    if magic.startswith(_GZIP_MAGIC):
        return GzipBytes(file)
    for start, name in UNREADABLE:
        if magic.startswith(start):
            return UnreadableBytes(file, f"{name} compression is not supported: decompress the file first")
    return PlainBytes(file)


class PlainBytes(LogBytes):
    """A file that is not compressed."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = file
        self._position = 0
        self.signature = _signature(file)

    def head(self) -> bytes:
        """The first bytes on disk."""
        return os.pread(self._file, HEAD_BYTES, 0)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        try:
            data = os.pread(self._file, size, self._position)
        except OSError as error:
            self.damage, self.may_recover = f"reading failed: {error.strerror}", True
            return b""
        self._position += len(data)
        return data

    def skip(self, size: int) -> bool:
        """Moves on without reading."""
        if self._position + size > os.fstat(self._file).st_size:
            return False
        self._position += size
        return True

    def file_position(self) -> int:
        """The same as the position."""
        return self._position

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


class UnreadableBytes(PlainBytes):
    """A file in an unsupported format: it has a damage and no content."""

    def __init__(self, file: int, damage: str) -> None:
        super().__init__(file)
        self.damage = damage

    def read(self, size: int) -> bytes:  # noqa: ARG002
        """Nothing."""
        return b""

    def skip(self, size: int) -> bool:
        """Only to the start."""
        return size == 0


class GzipBytes(PlainBytes):
    """A gzip file, of any number of members, possibly still being written."""

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self._raw = b""
        self._member = zlib.decompressobj(wbits=31)
        self._in_member = False

    def head(self) -> bytes:
        """The first bytes, decompressed in a second pass."""
        again, head = GzipBytes(self._file), b""
        while len(head) < HEAD_BYTES and (data := again.read(HEAD_BYTES - len(head))):
            head += data
        return head if head or not again.damage else super().head()

    def read(self, size: int) -> bytes:
        """Decompresses the next bytes."""
        while not self.damage:
            if not self._raw:
                self._raw = super().read(_RAW_BYTES)
                if not self._raw:
                    if self._in_member and not self.damage:
                        self.damage = "the gzip data ends in the middle"
                    break
            if not self._in_member:
                # Zeros after a member are padding, by the format.
                self._raw = self._raw.lstrip(b"\0")
                if not self._raw:
                    continue
                self._member = zlib.decompressobj(wbits=31)
                self._in_member = True
            try:
                data = self._member.decompress(self._raw, size)
            except zlib.error as error:
                self.damage = f"damaged gzip data: {error}"
                break
            if self._member.eof:
                self._raw = self._member.unused_data
                self._in_member = False
            else:
                self._raw = self._member.unconsumed_tail
            if data:
                return data
        return b""

    def skip(self, size: int) -> bool:
        """Decompresses and forgets."""
        while size > 0:
            data = self.read(min(size, 1 << 20))
            if not data:
                return False
            size -= len(data)
        return True


class Fingerprint(NamedTuple):
    """Identifies a log by how it begins, wherever it was moved and however it was compressed since."""

    digest: str  # sha256 of the first `size` bytes, hex
    size: int  # at most HEAD_BYTES; less if the log was shorter

    @staticmethod
    def of(head: bytes) -> Fingerprint:
        """The fingerprint of a log that begins with `head`."""
        return Fingerprint(hashlib.sha256(head).hexdigest(), len(head))

    def fits(self, head: bytes) -> bool:
        """Whether a log that begins with `head` may be the same one, grown since."""
        return 0 < self.size <= len(head) and Fingerprint.of(head[: self.size]) == self


def _signature(file: int) -> Signature:
    status = os.fstat(file)
    return Signature(status.st_size, status.st_mtime_ns)
