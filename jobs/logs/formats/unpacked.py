"""Makes a compressed stream readable at any position, without holding it in memory."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from jobs.logs.formats.compression import Readable, first_bytes
from jobs.logs.formats.sources import Source

_CHUNK_BYTES: Final = 1 << 20  # unpacked: what reading a single byte costs


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
