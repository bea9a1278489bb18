"""Makes text from logs safe and short for a terminal.

Group, client and member ids are whatever a client sent: escape sequences, newlines, right-to-left marks, 100 kB of text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_UUID: Final = re.compile(r"([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$")
_ELLIPSIS: Final = "…"
_ITSELF: Final = re.compile(r"/?(?:127\.|(?:localhost|::1|0:0:0:0:0:0:0:1)$)")
_MARKS: Final = 2  # combining marks on a letter: no script needs more, and a tower of them covers other lines
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that Unicode classes as letters, marks or symbols but that show as nothing. Names that differ only in these look alike."""


def printable(text: str | None, limit: int = 200) -> str:
    """`text` with everything invisible or active as an escape, cut after `limit` characters."""
    if not text:
        return ""
    shown = _escaped(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + _ELLIPSIS


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = _MARKS  # a mark at the beginning would join whatever stands before the text
    for c in text:
        marks = marks + 1 if unicodedata.category(c).startswith("M") else 0
        # isprintable is false for control and format characters (bidirectional marks too), surrogates and odd blanks.
        plain = c.isprintable() and marks <= _MARKS and not _UNSEEN.match(c)
        shown.append(c if plain else c.encode("unicode_escape").decode("ascii"))
    return "".join(shown)


def short_member(member_id: str | None) -> str:
    """The part of a member id that differs between members: the first part of the UUID at its end, else the end itself."""
    if not member_id:
        return ""
    if match := _UUID.search(member_id[-40:]):
        return match.group(1)
    return printable(member_id if len(member_id) <= 16 else _ELLIPSIS + member_id[-15:], 40)


def _ends(text: str, limit: int) -> str:
    """A name without its middle, if it is too long: clients of one application differ in the numbers at their ends."""
    return text if len(text) <= limit else text[: limit - 9] + _ELLIPSIS + text[-8:]


def who(client_id: str | None, host: str | None, member_id: str | None, instance_id: str | None = None) -> str:
    """A client as a person names it: client id, static name if it has one, host, and which of its members.

    An address by which a machine speaks to itself names no machine: it is left out where there is another name.
    """
    name = _ends(printable(client_id, 300), 40)
    place = "@" + printable(host.removeprefix("/"), 40) if host and not (name and _ITSELF.match(host)) else ""
    static = f"={printable(instance_id, 30)}" if instance_id and instance_id != client_id else ""
    member = short_member(member_id)
    return " ".join(part for part in (name + static + place, member) if part) or "-"


def some(names: Sequence[str], most: int) -> str:
    """Names in a line, those beyond `most` only counted."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def many(count: int, noun: str) -> str:
    """A number of things: 1 finding, 1,200 findings."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
