"""Turns text in other encodings into UTF-8, as it is read. PowerShell's `>` writes UTF-16, a part of which has no mark."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Final

from jobs.logs.formats.compression import BEGIN_BYTES, ByteStream, MadeStream, decompressed, first_bytes

UTF8_MARK: Final = codecs.BOM_UTF8
_UTF16: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
_SEEN_BYTES: Final = 64  # of a text without a mark
_STEP_BYTES: Final = 256 << 10


def utf8(again: Callable[[], ByteStream]) -> ByteStream:
    """A stream in UTF-8, without a byte order mark. Lone surrogates of UTF-16 become U+FFFD. Unpacks what is packed twice.

    `again`: the bytes from their start, each time.
    """
    stream = again()
    begin = first_bytes(stream, BEGIN_BYTES)
    if (inner := decompressed(begin, again)) is not None:
        stream, begin = inner, first_bytes(inner, BEGIN_BYTES)
    return MadeStream(stream, _utf8(begin, stream))


def _utf8(begin: bytes, stream: ByteStream) -> Iterator[bytes]:
    encoding = utf16_of(begin)
    if not encoding:
        yield begin.removeprefix(UTF8_MARK)
        while data := stream.read(_STEP_BYTES):
            yield data
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(begin).removeprefix(_MARK).encode()
    while data := stream.read(_STEP_BYTES):
        yield decoder.decode(data).encode()


def utf16_of(begin: bytes) -> str:
    """The name of the encoding of a text that begins so; empty if it is not UTF-16. Without a mark every second byte is zero."""
    named = next((name for mark, name in _UTF16 if begin.startswith(mark)), "")
    first, second = begin[0:_SEEN_BYTES:2], begin[1:_SEEN_BYTES:2]
    if named or len(begin) < _SEEN_BYTES:
        return named
    return "utf-16-le" if not any(second) and all(first) else "utf-16-be" if not any(first) and all(second) else ""
