"""Reads the bytes of a log as text in UTF-8, wherever they lie and however they are compressed.

The first bytes of a file tell its format, not its name: gzip, bzip2, xz, lzma, zstd, LZ4, UTF-16 (jobs/logs/formats). A path may lead
into an archive: `logs.tar.gz/broker-1/server.log.gz`. A damaged file never raises: it ends early, and `damage` says why.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from jobs.logs.envelopes.documents import SAMPLE_BYTES, DocumentSource, DocumentStream, has_documents, may_have_documents
from jobs.logs.formats.archives import archive_at, file_of, is_archive, member_at
from jobs.logs.formats.compression import BEGIN_BYTES, ByteStream, RawStream, UnpackedSource, decompressed, first_bytes
from jobs.logs.formats.encodings import UTF8_MARK, utf8, utf16_of
from jobs.logs.formats.sources import READING_FAILED, FileSource, Source

HEAD_BYTES: Final = 4096  # of a log, uncompressed: what it is recognised by

_SKIP_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 64 << 10
_TAIL_LINES: Final = 512
_STEP_BYTES: Final = 1024  # before a place, by which it is recognised

UNREADABLE: Final = (
    (b"\x1f\x9d", "compress (.Z)"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"\x02\x21\x4c\x18", "LZ4's old format"),
)
"""How files begin that nothing here can unpack."""


class Signature(NamedTuple):
    """Size (bytes) and modification time (ns) of a file: unchanged means that there is nothing new in it.

    A member of an archive has its own size and the archive's time.
    """

    size: int
    mtime_ns: int


NO_FILE: Final = Signature(-1, -1)

_MEMBERS: Final[dict[Path, tuple[tuple[int, int, int], int]]] = {}
"""Sizes of members of archives that were opened, each with what the archive was: many archives cannot stay open."""


class LogBytes(AbstractContextManager["LogBytes"]):
    """The uncompressed bytes of one file, from the start.

    An object of the base class has none: it stands for a file that does not exist, or cannot be read, whose damage says why.
    """

    def __init__(
        self, signature: Signature = NO_FILE, close: Callable[[], object] = lambda: None, *, begin: bytes = b"", damage: str = ""
    ) -> None:
        """`begin`: how the file begins on disk, which tells it from others that cannot be read."""
        self.damage = damage  # why nothing follows, if that is not simply the end of the file
        self.signature = signature  # of the file when it was opened
        self._close = close
        self._begin = begin

    @property
    def may_recover(self) -> bool:
        """Whether the damage is one of reading, which another attempt may not meet."""
        return self.damage.startswith(READING_FAILED)

    @property
    def can_grow(self) -> bool:
        """Whether a writer may still append to it: it is a file of its own that is not compressed."""
        return False

    @property
    def left_out(self) -> Mapping[str, int]:
        """What documents of JSON in it, as far as it was read, say of entries that they do not have, and how many say so."""
        return {}

    def is_there(self) -> bool:
        """Whether there is a file, and it was the wanted log as long as it was read."""
        return self.signature != NO_FILE

    def head(self) -> bytes:
        """The first HEAD_BYTES, or all there is; does not move. A file that cannot be decompressed gives its bytes on disk."""
        return self._begin

    def read(self, size: int) -> bytes:  # noqa: ARG002
        """At most about `size` bytes; empty if there are no more for now."""
        return b""

    def skip(self, size: int) -> bool:
        """Moves on by `size` bytes; False if there are fewer."""
        while size > 0 and (data := self.read(min(size, _SKIP_BYTES))):
            size -= len(data)
        return size <= 0

    def file_position(self) -> int:
        """Bytes of the file, as it lies on disk or in its archive, that were read so far: for progress."""
        return 0

    def close(self) -> None:
        """Closes the file."""
        self._close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(path: Path) -> LogBytes:
    """Opens a log in the format that its first bytes show. OSError: there is none, or it cannot be read."""
    try:
        file = FileSource(path)
    except NotADirectoryError:
        return _member(path)
    signature = Signature(file.stat.st_size, file.stat.st_mtime_ns)
    begin = file.begin(BEGIN_BYTES)
    if is_archive(begin, lambda: RawStream(file)):
        archive = archive_at(path)
        return LogBytes(signature, file.close, begin=begin, damage=archive.damage if archive is not None else "")
    return _opened(begin, lambda: RawStream(file), signature, path=path, source=file, close=file.close)


def signature_of(path: Path) -> Signature:
    """That of a log, without opening it if it was opened before. OSError: there is no such file."""
    file = file_of(path)
    status = file.stat()
    if file == path:
        return Signature(status.st_size, status.st_mtime_ns)
    identity = (status.st_ino, status.st_size, status.st_mtime_ns)
    known, size = _MEMBERS.get(path, (None, 0))
    if known != identity:
        archive, name = member_at(path)
        size = archive.members[name]
        _MEMBERS[path] = identity, size
    return Signature(size, status.st_mtime_ns)


def _member(path: Path) -> LogBytes:
    """A log in an archive."""
    signature = signature_of(path)
    archive, name = member_at(path)
    if name in archive.locked:
        return LogBytes(signature, begin=name.encode("utf-8", "backslashreplace"), damage=f"the file is {archive.locked[name]}")
    begin = archive.begin(name)
    nested = archive.nested(name)
    if nested is not None:
        return LogBytes(signature, begin=begin, damage=nested.damage)
    return _opened(begin, lambda: archive.stream(name), signature, path=path, source=archive.place(name))


def _opened(
    begin: bytes,
    again: Callable[[], ByteStream],
    signature: Signature,
    *,
    path: Path,
    source: Source | None,
    close: Callable[[], object] = lambda: None,
) -> LogBytes:
    """The log at `path` that begins with `begin`. `again`: its bytes anew. `source`: where they can be read at any position."""
    for start, name in UNREADABLE:
        if begin.startswith(start):
            return LogBytes(signature, close, begin=begin, damage=f"{name} is not supported: unpack the file first")
    mark, can_grow = len(UTF8_MARK) if begin.startswith(UTF8_MARK) else 0, False
    if source is not None and not utf16_of(begin) and decompressed(begin, again) is None:
        if not may_have_documents(begin[mark:]) or not has_documents(source.all_at(mark, SAMPLE_BYTES)):
            return PlainBytes(source, signature, close, start=mark)
        can_grow = isinstance(source, FileSource)
    unpacked = partial(utf8, lambda: decompressed(begin, again) or again())
    if not can_grow and not has_documents(first_bytes(unpacked(), SAMPLE_BYTES)):
        return StreamBytes(unpacked, begin, signature, close, None)
    made = DocumentSource(lambda: DocumentStream(unpacked()), (path, *signature), can_grow=can_grow)
    return StreamBytes(lambda: RawStream(made), begin, signature, close, made)


class PlainBytes(LogBytes):
    """Text as it lies on disk, or in an archive. `start`: bytes before it."""

    def __init__(self, source: Source, signature: Signature, close: Callable[[], object], *, start: int) -> None:
        super().__init__(signature, close)
        self._source = source
        self._start = start
        self._position = start
        self.wanted: Fingerprint | None = None  # the log that it has to be

    @property
    def can_grow(self) -> bool:
        """Not in an archive."""
        return isinstance(self._source, FileSource)

    def head(self) -> bytes:
        """The first bytes."""
        return self._source.read_at(self._start, HEAD_BYTES)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._source.read_at(self._position, size)
        if not data:
            self.damage = self._source.damage
        elif self.wanted is not None and not self.wanted.fits(self.head()):
            # Rotation by copytruncate empties the file that is open. Here it has grown again, beyond where the reader was.
            self.signature, data = NO_FILE, b""
        self._position += len(data)
        return data

    def length(self) -> int:
        """All bytes, as of now."""
        return self._source.size() - self._start

    def at(self, position: int, size: int) -> bytes:
        """`size` bytes from a position on, fewer only at the end. Does not move."""
        return self._source.all_at(self._start + position, size)

    def skip(self, size: int) -> bool:
        """Moves on without reading."""
        if self._position + size > self._source.size():
            return False
        self._position += size
        return True

    def file_position(self) -> int:
        """The position."""
        return self._position


class StreamBytes(LogBytes):
    """Text that can be read from its start alone, such as what is decompressed."""

    def __init__(
        self, again: Callable[[], ByteStream], begin: bytes, signature: Signature, close: Callable[[], object], made: DocumentSource | None
    ) -> None:
        """`made`: of documents of JSON."""
        super().__init__(signature, close, begin=begin)
        self._again = again
        self._stream = again()
        self._made = made

    @property
    def can_grow(self) -> bool:
        """As the file from which the text is made."""
        return self._made is not None and self._made.can_grow

    @property
    def left_out(self) -> Mapping[str, int]:
        """That of its documents."""
        return {} if self._made is None else self._made.left_out

    def head(self) -> bytes:
        """The first bytes, in a second pass."""
        stream = self._again()
        return first_bytes(stream, HEAD_BYTES) or (stream.damage and (self._begin or stream.damage.encode())) or b""

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._stream.read(size)
        if not data:
            self.damage = self._stream.damage
        return data

    def file_position(self) -> int:
        """How far the compressed bytes were read."""
        return min(self._stream.position(), self.signature.size)


def anywhere(log: LogBytes) -> PlainBytes:
    """The same bytes, such that they can be read at any position. OSError: there is no room to unpack them."""
    return log if isinstance(log, PlainBytes) else PlainBytes(UnpackedSource(log), log.signature, log.close, start=0)


class ShownBytes(LogBytes):
    """What a subclass shows of the bytes of a file."""

    def __init__(self, log: LogBytes) -> None:
        super().__init__(log.signature, log.close)
        self._log = log

    def is_there(self) -> bool:
        """That of the file."""
        return self._log.is_there()

    def head(self) -> bytes:
        """That of the file, by which the file is recognised."""
        return self._log.head()

    def file_position(self) -> int:
        """That of the file."""
        return self._log.file_position()


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

    def opened(self, path: Path) -> LogBytes | None:
        """The log at a path if it is this one still: it may have been rotated a moment ago. Its bytes end where they are another's."""
        try:
            log = open_log(path)
        except OSError:  # the next scan finds out why
            return None
        if self.fits(log.head()):
            if isinstance(log, PlainBytes):
                log.wanted = self
            return log
        log.close()
        return None


NO_FINGERPRINT: Final = Fingerprint("", 0)
"""Of a log that no file continues."""


class Step(NamedTuple):
    """A place in a log between two lines, and what stands before it."""

    offset: int
    line: int
    check: int  # CRC-32 of up to _STEP_BYTES before it

    def fits(self, log: PlainBytes) -> bool:
        """Whether the log still has that."""
        start = max(0, self.offset - _STEP_BYTES)
        before = log.at(start, self.offset - start)
        return len(before) == self.offset - start and zlib.crc32(before) == self.check


class Tail(NamedTuple):
    """What stood before the place up to which a log was read. It can be gone later: a machine lost power before it was on disk."""

    start: int = 0  # bytes before the first of the last lines
    checks: tuple[int, ...] = ()  # CRC-32 of each of these lines
    steps: tuple[Step, ...] = ()  # places up to which it was read, the last one first, the further up the fewer

    def is_at(self, offset: int) -> bool:
        """Whether it is that of a log which was read up to there."""
        return bool(self.steps) and self.steps[0].offset == offset

    def at(self, log: PlainBytes, offset: int, line: int) -> Tail:
        """That of a log which was read further. `line`: the lines before `offset`."""
        begin = max(0, offset - _TAIL_BYTES)
        text = log.at(begin, offset - begin)
        lines = _lines(text)[(1 if begin else 0) :][-_TAIL_LINES:]
        steps = [Step(offset, line, zlib.crc32(text[-_STEP_BYTES:]))]
        for step in self.steps:
            if step is self.steps[-1] or 2 * (offset - step.offset) >= 3 * (offset - steps[-1].offset):
                steps.append(step)
        return Tail(offset - sum(map(len, lines)), tuple(map(zlib.crc32, lines)), tuple(steps))

    def common(self, log: PlainBytes) -> Step | None:
        """The last place known up to which a log that lost its end is what was read of it. None: none is known."""
        end, at, fitting = self.steps[0], self.start, 0
        for found, check in zip(_lines(log.at(self.start, end.offset - self.start)), self.checks, strict=False):
            if zlib.crc32(found) != check:
                break
            at, fitting = at + len(found), fitting + 1
        if fitting:
            return Step(at, end.line - len(self.checks) + fitting, 0)
        return next((step for step in self.steps[1:] if step.fits(log)), None)


NO_TAIL: Final = Tail()


def _lines(text: bytes) -> list[bytes]:
    """With their ends; the last one may have none."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
