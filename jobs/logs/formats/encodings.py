"""Turns text in other encodings into UTF-8, as it is read. PowerShell's `>` writes UTF-16, a part of which has no mark."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator
from typing import Final

from jobs.logs.formats.compression import BEGIN_BYTES, ByteStream, decompressed, first_bytes

UTF8_MARK: Final = codecs.BOM_UTF8
_UTF16: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
_SEEN_BYTES: Final = 64  # of a text without a mark
_STEP_BYTES: Final = 256 << 10


class Utf8Stream:
    """A stream in UTF-8, without a byte order mark. Lone surrogates of UTF-16 become U+FFFD. Unpacks what is packed twice."""

    def __init__(self, again: Callable[[], ByteStream]) -> None:
        """`again`: the bytes from their start, each time."""
        self.damage = ""
        self._again = again
        self._stream = again()
        self._made = self._text()
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

    def close(self) -> None:
        """Forgets what it needed to read on."""
        self._made.close()

    def _text(self) -> Generator[bytes, None, None]:
        begin = first_bytes(self._stream, BEGIN_BYTES)
        if (inner := decompressed(begin, self._again)) is not None:
            self._stream, begin = inner, first_bytes(inner, BEGIN_BYTES)
        encoding = utf16_of(begin)
        if not encoding:
            yield begin.removeprefix(UTF8_MARK)
            while data := self._stream.read(_STEP_BYTES):
                yield data
            return
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        yield decoder.decode(begin).removeprefix(_MARK).encode()
        while data := self._stream.read(_STEP_BYTES):
            yield decoder.decode(data).encode()


def utf16_of(begin: bytes) -> str:
    """The name of the encoding of a text that begins so; empty if it is not UTF-16. Without a mark every second byte is zero."""
    named = next((name for mark, name in _UTF16 if begin.startswith(mark)), "")
    first, second = begin[0:_SEEN_BYTES:2], begin[1:_SEEN_BYTES:2]
    if named or len(begin) < _SEEN_BYTES:
        return named
    return "utf-16-le" if not any(second) and all(first) else "utf-16-be" if not any(first) and all(second) else ""
