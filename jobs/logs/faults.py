"""Why a line cannot be trusted, and how such a line is shown. A line has the first fault that applies."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final

TOO_LONG: Final = "TOO_LONG"  # longer than LineLimits.line_bytes; the text is its beginning
NOT_TEXT: Final = "NOT_TEXT"  # not UTF-8, or with control characters
BAD_TIMESTAMP: Final = "BAD_TIMESTAMP"  # has the form of a timestamp, but that time does not exist
TIMESTAMP_OUTLIER: Final = "TIMESTAMP_OUTLIER"  # its time does not fit the lines around it
NO_TIMESTAMP: Final = "NO_TIMESTAMP"  # concerns a group, or stands in a request log, but has no time
NOT_A_REQUEST: Final = "NOT_A_REQUEST"  # stands in a request log, but is no request
BAD_API_NAME: Final = "BAD_API_NAME"  # the name of its API is malformed, or its number belongs to another API
DAMAGED_FILE: Final = "DAMAGED_FILE"  # not a line: the rest of the file cannot be read; the text says why

MAX_FAULTY_TEXT: Final = 4096  # characters kept of a faulty line

_CONTROL: Final = bytes(c for c in range(32) if c != 9) + b"\x7f"
_CONTROL_TEXT: Final = {c: f"\\x{c:02x}" for c in _CONTROL}
_ENTRY: Final = re.compile(r'\{"timestamp":"[^"]{19,30}","[\w@]{1,30}":"((?:[^"\\]|\\.)*)')
"""How documents.py begins the line that it makes of an entry."""
_ODD: Final = _CONTROL.replace(b"\n", b"")


def is_clean(text: bytes) -> bool:
    """Whether a line, or a block of lines, is UTF-8 without control characters, and its line ends are plain."""
    return len(text.translate(None, _ODD)) == len(text) and is_utf8(text)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def around(written: bytes, line: bytes) -> bytes:
    r"""What stands around a line in its file, as `before\0after`; all of what is written there if the line is not a part of it."""
    before, found, after = written.partition(line)
    return faulty_text(before) + b"\0" + faulty_text(after) if found else faulty_text(written)


def as_written(line: str, around: str | None) -> str:
    """A line as it stands in its file, by what `around` says; the line itself if nothing does."""
    before, found, after = (around or "\0").partition("\0")
    return before + line + after if found else before


def shown(line: str, around: str | None) -> str:
    """A line as people are shown it: as it stands in its file; of an entry of a document the text, since no file has the entry so."""
    written = as_written(line, around)
    with suppress(ValueError):
        return written if (entry := _ENTRY.match(written)) is None else str(json.loads(f'"{entry[1]}"', strict=False))
    return written


def faulty_text(line: bytes) -> bytes:
    r"""A faulty line as text that any table can hold: other bytes as \xNN, cut after MAX_FAULTY_TEXT characters."""
    text = line[: MAX_FAULTY_TEXT * 4].decode("utf-8", "backslashreplace").translate(_CONTROL_TEXT)
    return text[:MAX_FAULTY_TEXT].encode()
