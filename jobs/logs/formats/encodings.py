"""Turns text in other encodings into UTF-8, as it is read. PowerShell's `>` writes UTF-16 with a byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Final

from jobs.logs.formats.compression import ByteStream, first_bytes

UTF8_MARK: Final = codecs.BOM_UTF8
_UTF16: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARK_BYTES: Final = 3
_STEP_BYTES: Final = 256 << 10


class Utf8Stream:
    """A stream in UTF-8, without a byte order mark. Lone surrogates of UTF-16 become U+FFFD."""

    def __init__(self, stream: ByteStream) -> None:
        self.damage = ""
        self._stream = stream
        self._made = _made(stream)
        self._rest = b""

    def position(self) -> int:
        """That of the source."""
        return self._stream.position()

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self._rest = self._rest or next(filter(None, self._made), b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        if not data:
            self.damage = self._stream.damage
        return data


def utf16_of(begin: bytes) -> str:
    """The name of the encoding of a text that begins so; empty if it is not UTF-16."""
    return next((name for mark, name in _UTF16 if begin.startswith(mark)), "")


def _made(stream: ByteStream) -> Iterator[bytes]:
    begin = first_bytes(stream, _MARK_BYTES)
    encoding = utf16_of(begin)
    if not encoding:
        yield begin.removeprefix(UTF8_MARK)
        while data := stream.read(_STEP_BYTES):
            yield data
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    data = begin[2:]
    while data or (data := stream.read(_STEP_BYTES)):
        yield decoder.decode(data).encode()
        data = b""
