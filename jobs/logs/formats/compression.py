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
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
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


class _Decompressed(ABC):
    """What compressed bytes decompress to.

    No library gives anything of a step in which it fails. So what lies before a damage is read once more, byte by byte.
    """

    _raw: ByteStream

    def __init__(self, again: Callable[[], ByteStream], name: str) -> None:
        """`again`: the compressed bytes from their start, each time."""
        self.damage = ""
        self._again = again
        self._name = name
        self._read = 0
        self._rest = b""  # before a damage
        self._failed = ""
        self._input_bytes = _RAW_BYTES
        self._open()

    @abstractmethod
    def _open(self) -> None:
        """Begins at the start."""

    @abstractmethod
    def _step(self, size: int) -> bytes:
        """Decompresses at most so many bytes. One of _ERRORS: the next ones are damaged."""

    @property
    def _end(self) -> str:
        """What is wrong where the data end in the middle."""
        return self._raw.damage or f"the {self._name} data ends in the middle"

    def position(self) -> int:
        """That of the compressed bytes."""
        return self._raw.position()

    def read(self, size: int) -> bytes:
        """Decompresses the next bytes."""
        if not self._failed:
            try:
                data = self._step(size)
            except _ERRORS as error:
                self._fail(str(error), size)
            else:
                self._read += len(data)
                return data
        data, self._rest = self._rest[:size], self._rest[size:]
        if not data:
            self.damage = self._failed
        return data

    def _fail(self, error: str, size: int) -> None:
        """Takes what lies before the damage: the step that meets it loses what it has, so the last ones are small."""
        rest, self._input_bytes = bytearray(), _NEAR_BYTES
        for step in (_NEAR_BYTES, 1):
            again, known = 0, self._read + len(rest)
            with suppress(*_ERRORS):
                self._open()
                while again < known and (data := self._step(min(_STEP_BYTES, known - again))):
                    again += len(data)
                while len(rest) < size and (data := self._step(min(step, size - len(rest)))):
                    rest += data
        self._rest = bytes(rest)
        self._failed = self._end if "Truncated" in error else f"damaged {self._name} data: {error}"


class MemberStream(_Decompressed):
    """Members of gzip, bzip2, xz or lzma, one after the other."""

    def __init__(self, again: Callable[[], ByteStream], name: str, begin: Callable[[], _Member]) -> None:
        self._begin = begin
        super().__init__(again, name)

    def _open(self) -> None:
        self._raw = self._again()
        self._input = b""
        self._member: _Member | None = None

    def _step(self, size: int) -> bytes:
        while not self.damage:
            at_end = not self._input and (self._member is None or self._member.needs_input) and not self._refill()
            if self._member is None:
                # Zeros after a member are padding, by the formats.
                self._input = self._input.lstrip(b"\0")
                if at_end:
                    self.damage = self._raw.damage
                    break
                if not self._input:
                    continue
                self._member = self._begin()
            data = self._member.decompress(self._input, size)
            self._input = b""
            if self._member.eof:
                self._input = self._member.unused_data
                self._member = None
            elif at_end and not data:
                self.damage = self._end
            if data:
                return data
        return b""

    def _refill(self) -> bool:
        self._input = self._raw.read(self._input_bytes)
        return bool(self._input)


class _StoredMember:
    """Bytes that are not compressed, in the same form."""

    unused_data = b""

    def __init__(self, size: int) -> None:
        self._left = size
        self._rest = b""

    @property
    def eof(self) -> bool:
        return not self._left

    @property
    def needs_input(self) -> bool:
        return not self._rest

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = (self._rest + data)[: self._left]
        data, self._rest = data[:max_length], data[max_length:]
        self._left -= len(data)
        return data


class ZipMemberStream(_Decompressed):
    """A member of a zip."""

    def __init__(self, again: Callable[[], ByteStream], method: int, size: int, crc: int | None) -> None:
        """`size`: bytes of what is only stored. `crc`: the CRC-32 of all, if it is known."""
        self._begin: dict[int, Callable[[], _Member]] = {
            zipfile.ZIP_STORED: lambda: _StoredMember(size),
            zipfile.ZIP_DEFLATED: lambda: _ZlibMember(-zlib.MAX_WBITS),
            zipfile.ZIP_BZIP2: bz2.BZ2Decompressor,
        }
        self._method = method
        self._crc = crc
        super().__init__(again, "zip")

    def _open(self) -> None:
        self._raw = self._again()
        self._member = self._begin[self._method]()
        self._sum = 0

    def _step(self, size: int) -> bytes:
        while not (self._member.eof or self.damage):
            raw = self._raw.read(self._input_bytes) if self._member.needs_input else b""
            data = self._member.decompress(raw, size)
            if data:
                self._sum = zlib.crc32(data, self._sum)
                return data
            if not raw and self._member.needs_input and not self._member.eof:
                self.damage = self._end
        if self._crc not in (None, self._sum) and not self.damage:
            raise ValueError("Bad CRC-32")
        return b""

    def position(self) -> int:
        """That of the member's own bytes: its size is theirs."""
        return self._read


class ArrowStream(_Decompressed):
    """Frames of zstd or LZ4, one after the other."""

    def __init__(self, again: Callable[[], ByteStream], codec: str, name: str) -> None:
        self._codec = codec
        super().__init__(again, name)

    def _open(self) -> None:
        import pyarrow as pa

        self._raw = self._again()
        self._frames = pa.CompressedInputStream(pa.PythonFile(_RawFile(self._raw), mode="r"), self._codec)

    def _step(self, size: int) -> bytes:
        data: bytes = self._frames.read(min(size, _STEP_BYTES))
        return data


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
_FRAMES: Final = ((b"\x28\xb5\x2f\xfd", "zstd", "zstd"), (b"\x04\x22\x4d\x18", "lz4", "LZ4"))
_BZIP2_BLOCK: Final = b"\x31\x41\x59\x26\x53\x59"
_BZIP2_END: Final = b"\x17\x72\x45\x38\x50\x90"


def decompressed(begin: bytes, again: Callable[[], ByteStream]) -> ByteStream | None:
    """What compressed bytes decompress to; None if they are not compressed. `begin`: the first BEGIN_BYTES. `again`: all of them, anew."""
    for start, name, member in _MEMBERS:
        if begin.startswith(start) and (name != "bzip2" or (begin[3:4].isdigit() and begin[4:10] in (_BZIP2_BLOCK, _BZIP2_END))):
            return MemberStream(again, name, member)
    position = 0
    while int.from_bytes(begin[position : position + 4], "little") in _SKIPPED:
        position += 8 + int.from_bytes(begin[position + 4 : position + 8], "little")
    for start, codec, name in _FRAMES:
        if begin.startswith(start, position):
            return ArrowStream(again, codec, name)
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
