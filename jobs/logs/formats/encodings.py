"""Turns text in other encodings into UTF-8, as it is read. PowerShell's `>` writes UTF-16 with a byte order mark."""

from __future__ import annotations

import codecs
from typing import Final

from jobs.logs.formats.compression import ByteStream

UTF8_MARK: Final = codecs.BOM_UTF8
_UTF16: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARK_BYTES: Final = 3


class DecodedStream:
    """UTF-16 as UTF-8. Lone surrogates become U+FFFD."""

    def __init__(self, stream: ByteStream, encoding: str) -> None:
        self.damage = ""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = b""

    def position(self) -> int:
        """That of the source."""
        return self._stream.position()

    def read(self, size: int) -> bytes:
        """The next bytes of the text."""
        while not self._rest and (data := self._stream.read(size)):
            self._rest = self._decoder.decode(data).encode()
        text, self._rest = self._rest[:size], self._rest[size:]
        if not text:
            self.damage = self._stream.damage
        return text


class RestStream:
    """A stream of which some bytes were read already."""

    def __init__(self, begin: bytes, stream: ByteStream) -> None:
        self.damage = ""
        self._begin = begin
        self._stream = stream

    def position(self) -> int:
        """That of the source."""
        return self._stream.position()

    def read(self, size: int) -> bytes:
        """The bytes that were read, then the others."""
        if self._begin:
            data, self._begin = self._begin[:size], self._begin[size:]
            return data
        data = self._stream.read(size)
        if not data:
            self.damage = self._stream.damage
        return data


def utf16_of(begin: bytes) -> str:
    """The name of the encoding of a text that begins so; empty if it is not UTF-16."""
    return next((name for mark, name in _UTF16 if begin.startswith(mark)), "")


def as_utf8(stream: ByteStream) -> ByteStream:
    """A stream in UTF-8, without a byte order mark."""
    begin = b""
    while len(begin) < _MARK_BYTES and (data := stream.read(_MARK_BYTES - len(begin))):
        begin += data
    encoding = utf16_of(begin)
    if encoding:
        return DecodedStream(RestStream(begin[2:], stream), encoding)
    return RestStream(begin.removeprefix(UTF8_MARK), stream)
