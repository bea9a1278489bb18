"""Reads compressed bytes from start to end, whatever compressed them: the first bytes tell.

Members and frames may follow each other, as `cat a.gz b.gz` makes them. Data that ends in the middle may still be being written: what is
there is read, and `damage` says that it ends. UnpackedSource makes them readable at any position, without holding them in memory.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from jobs.logs.formats.sources import Source

BEGIN_BYTES: Final = 512  # tell what a file is
_RAW_BYTES: Final = 64 * 1024  # read at once
_NEAR_BYTES: Final = 4 * 1024  # the same where they are decompressed byte by byte: the rest is copied each time
_STEP_BYTES: Final = 16 * 1024  # of what is decompressed
_MEMORY_BYTES: Final = 256 << 20  # `xz -9` needs 65 MB; a hostile file may ask for 4 GB
_CHUNK_BYTES: Final = 1 << 20  # unpacked: what reading a single byte costs
_ERRORS: Final = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)
_SKIPPED: Final = range(0x184D2A50, 0x184D2A60)  # frames without data, by which pzstd and lz4 begin


class Readable(Protocol):
    """What can be read from start to end."""

    damage: str

    def read(self, size: int) -> bytes:
        """At most about `size` bytes; empty if there are no more for now, or the rest is damaged."""


class ByteStream(Readable, Protocol):
    """Bytes from start to end."""

    def position(self) -> int:
        """How far the source was read, bytes."""


class RawStream:
    """A source from its start on."""

    def __init__(self, source: Source) -> None:
        self.damage = ""
        self._source = source
        self._position = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._source.read_at(self._position, size)
        if not data:
            self.damage = self._source.damage
        self._position += len(data)
        return data

    def position(self) -> int:
        """Where it is."""
        return self._position


class MadeStream:
    """What a generator makes of another stream."""

    def __init__(self, source: ByteStream, made: Iterator[bytes]) -> None:
        self.damage = ""
        self._source = source
        self._made = made
        self._rest = b""

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self._rest = self._rest or next(filter(None, self._made), b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        if not data:
            self.damage = self._source.damage
        return data

    def position(self) -> int:
        """That of the other stream."""
        return self._source.position()


class _Member(Protocol):
    """What decompresses one member, as in bz2 and lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZlibMember:
    """zlib in the same form. `wbits`: of gzip, or of bare data."""

    def __init__(self, wbits: int = 31) -> None:
        self._zlib = zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


class _Packed:
    """Compressed bytes that are read as they are decompressed."""

    def __init__(self, raw: ByteStream, name: str, at_once: int) -> None:
        self.raw = raw
        self.damage = ""
        self.size = 0  # bytes: what the next step makes at most
        self._name = name
        self._at_once = at_once

    def more(self) -> bytes:
        """The next compressed bytes; empty at their end."""
        return self.raw.read(self._at_once)

    def ends_in_the_middle(self) -> str:
        """What is wrong where they do so."""
        return self.raw.damage or f"the {self._name} data ends in the middle"


class Decompressed:
    """What compressed bytes decompress to.

    No library gives anything of a step in which it fails. So what lies before a damage is read once more, byte by byte.
    """

    def __init__(self, again: Callable[[], ByteStream], name: str, steps: Callable[[_Packed], Iterator[bytes]]) -> None:
        """`again`: the compressed bytes from their start, each time. `steps`: decompresses them. One of _ERRORS: the next are damaged."""
        self.damage = ""
        self._again = again
        self._name = name
        self._steps = steps
        self._read = 0
        self._rest = b""  # before a damage
        self._failed = ""
        self._open(_RAW_BYTES)

    def _open(self, at_once: int) -> None:
        """Begins at the start."""
        self._packed = _Packed(self._again(), self._name, at_once)
        self._made = self._steps(self._packed)

    def _step(self, size: int) -> bytes:
        self._packed.size = size
        return next(self._made, b"")

    def position(self) -> int:
        """That of the compressed bytes."""
        return self._packed.raw.position()

    def read(self, size: int) -> bytes:
        """Decompresses the next bytes."""
        if not self._failed:
            try:
                data = self._step(size)
            except _ERRORS as error:
                self._fail(str(error), size)
            else:
                self._read += len(data)
                self.damage = self._packed.damage
                return data
        data, self._rest = self._rest[:size], self._rest[size:]
        if not data:
            self.damage = self._failed
        return data

    def _fail(self, error: str, size: int) -> None:
        """Takes what lies before the damage: the step that meets it loses what it has, so the last ones are small."""
        rest = bytearray()
        for step in (_NEAR_BYTES, 1):
            again, known = 0, self._read + len(rest)
            with suppress(*_ERRORS):
                self._open(_NEAR_BYTES)
                while again < known and (data := self._step(min(_STEP_BYTES, known - again))):
                    again += len(data)
                while len(rest) < size and (data := self._step(min(step, size - len(rest)))):
                    rest += data
        self._rest = bytes(rest)
        self._failed = self._packed.ends_in_the_middle() if "Truncated" in error else f"damaged {self._name} data: {error}"


def _of_members(begin: Callable[[], _Member], packed: _Packed) -> Iterator[bytes]:
    """Members of gzip, bzip2, xz or lzma, one after the other."""
    given = b""
    while not packed.damage and (given := given or packed.more()):
        given = given.lstrip(b"\0")  # zeros after a member are padding, by the formats
        if given:
            member = begin()
            yield from _of_member(member, given, packed)
            given = member.unused_data
    packed.damage = packed.damage or packed.raw.damage


def _of_member(member: _Member, given: bytes, packed: _Packed) -> Iterator[bytes]:
    """What a member has that begins with the given bytes."""
    while not packed.damage:
        data, given = member.decompress(given, packed.size), b""
        if data:
            yield data
        if member.eof:
            return
        if member.needs_input and not (given := packed.more()) and not data:
            packed.damage = packed.ends_in_the_middle()


def _of_stored(size: int, packed: _Packed) -> Iterator[bytes]:
    """Bytes that are not compressed."""
    while size and (data := packed.raw.read(min(size, packed.size))):
        size -= len(data)
        yield data
    packed.damage = packed.ends_in_the_middle() if size else ""


class ZipMemberStream(Decompressed):
    """A member of a zip."""

    def __init__(self, again: Callable[[], ByteStream], method: int, size: int, crc: int | None) -> None:
        """`size`: bytes of what is only stored. `crc`: the CRC-32 of all, if it is known."""

        def steps(packed: _Packed) -> Iterator[bytes]:
            found = 0
            for data in _of_stored(size, packed) if method == zipfile.ZIP_STORED else _of_member(_ZIPPED[method](), b"", packed):
                found = zlib.crc32(data, found)
                yield data
            if crc not in (None, found) and not packed.damage:
                raise ValueError("Bad CRC-32")

        super().__init__(again, "zip", steps)

    def position(self) -> int:
        """That of the member's own bytes: its size is theirs."""
        return self._read


def _of_frames(codec: str, packed: _Packed) -> Iterator[bytes]:
    """Frames of zstd or LZ4, one after the other."""
    import pyarrow as pa

    frames = pa.CompressedInputStream(pa.PythonFile(_RawFile(packed.raw), mode="r"), codec)
    while data := frames.read(min(packed.size, _STEP_BYTES)):
        yield data


class _RawFile(io.RawIOBase):
    """A stream as a file, for Arrow."""

    def __init__(self, raw: ByteStream) -> None:
        super().__init__()
        self._raw = raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._raw.read(size if size >= 0 else _RAW_BYTES)


_MEMBERS: Final[tuple[tuple[bytes, str, Callable[[], _Member]], ...]] = (
    (b"\x1f\x8b", "gzip", _ZlibMember),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES)),
    (b"\x5d\x00\x00", "lzma", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=_MEMORY_BYTES)),
)
_ZIPPED: Final[dict[int, Callable[[], _Member]]] = {
    zipfile.ZIP_DEFLATED: lambda: _ZlibMember(-zlib.MAX_WBITS),
    zipfile.ZIP_BZIP2: bz2.BZ2Decompressor,
}
_FRAMES: Final = ((b"\x28\xb5\x2f\xfd", "zstd", "zstd"), (b"\x04\x22\x4d\x18", "lz4", "LZ4"))
_BZIP2_BLOCK: Final = b"\x31\x41\x59\x26\x53\x59"
_BZIP2_END: Final = b"\x17\x72\x45\x38\x50\x90"


def decompressed(begin: bytes, again: Callable[[], ByteStream]) -> ByteStream | None:
    """What compressed bytes decompress to; None if they are not compressed. `begin`: the first BEGIN_BYTES. `again`: all of them, anew."""
    for start, name, member in _MEMBERS:
        if begin.startswith(start) and (name != "bzip2" or (begin[3:4].isdigit() and begin[4:10] in (_BZIP2_BLOCK, _BZIP2_END))):
            return Decompressed(again, name, partial(_of_members, member))
    position = 0
    while int.from_bytes(begin[position : position + 4], "little") in _SKIPPED:
        position += 8 + int.from_bytes(begin[position + 4 : position + 8], "little")
    for start, codec, name in _FRAMES:
        if begin.startswith(start, position):
            return Decompressed(again, name, partial(_of_frames, codec))
    return None


def first_bytes(stream: Readable, size: int) -> bytes:
    """The next `size` bytes, fewer only at the end."""
    parts = []
    while size > 0 and (data := stream.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


class UnpackedSource(Source):
    """All that a stream has. It lies in a temporary file without a name, compressed anew in chunks that can be read one by one.

    So it takes about as much room as the archive that it comes from, however much that unpacks to. OSError: there is no room.
    """

    def __init__(self, stream: Readable) -> None:
        import pyarrow as pa

        self._codec = pa.Codec("zstd", compression_level=1)
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as the source
        self._ends = [0]  # of the chunks, in the file
        self._size = 0
        self._last = (-1, b"")  # the chunk that was read last
        while chunk := first_bytes(stream, _CHUNK_BYTES):
            packed = memoryview(self._codec.compress(chunk, asbytes=True))
            self._ends.append(self._ends[-1] + len(packed))
            try:
                while packed:  # a disk that is nearly full takes a part
                    packed = packed[self._file.write(packed) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from None
            self._size += len(chunk)
        self.damage = stream.damage

    def size(self) -> int:
        """As much as was unpacked."""
        return self._size

    def read_at(self, position: int, size: int) -> bytes:
        """As much as lies in one chunk."""
        if position >= self._size:
            return b""
        index, offset = divmod(position, _CHUNK_BYTES)
        return self._chunk(index)[offset : offset + size]

    def _chunk(self, index: int) -> bytes:
        number, chunk = self._last
        if number != index:
            start, end = self._ends[index : index + 2]
            packed = os.pread(self._file.fileno(), end - start, start)
            chunk = self._codec.decompress(packed, min(_CHUNK_BYTES, self._size - index * _CHUNK_BYTES), asbytes=True)
            self._last = index, chunk
        return chunk
