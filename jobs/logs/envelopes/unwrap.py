"""Takes off what stands around a broker's line: what containers, log shippers and other log4j patterns add to it.

    broker-1  | [2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group … (kafka.coordinator.group.GroupCoordinator)

becomes the line as Kafka's own configuration writes it. Envelopes may stand in each other (`kubectl logs --prefix --timestamps`). A line
whose inside is no line of a broker stays as it is. The result depends on the line alone.

The broker's own time counts. The time that an envelope has is that of the collector: it counts for a line that has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from jobs.common.expressions import expression
from jobs.logs.envelopes.anchors import ANCHOR, has_place, line_at, place_of
from jobs.logs.envelopes.entries import line_of_csv, line_of_json, own_line_of_json
from jobs.logs.envelopes.layouts import ANY_TIME_SIGN, OWN_HEADER, OWN_START, is_own, uncoloured
from jobs.logs.envelopes.patterns import Layout

_MOST: Final = 6  # envelopes in each other
_BRACKET: Final = ord("[")
ENVELOPE: Final = expression(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^ \t]{0,16}(?: (?:stdout|stderr) [FP] |[ \t]+)"  # a kubelet's files; --timestamps
    rb"|\[(?:pod/[\w.-]+/[\w.-]+\][ \t]+|(?!\d{4}-)[\w./ -]{1,512}\][ \t]+(?=[\[\d{]))"  # kubectl logs --prefix; kubetail
    rb"|[\w.@-]{1,128}[ \t]*\| |[a-z0-9][a-z0-9.-]{0,252}[ \t]+[a-z0-9][a-z0-9-]{0,62}[ \t]+(?=[\[\d{])"  # docker compose logs; stern
)
"""What containers put before each line."""
_BEFORE_OWN: Final = expression(rb"(?:" + ENVELOPE.pattern + rb"){1,3}(?=" + OWN_START + rb")")
"""The same before a line of Kafka's own pattern, in one step."""
_PLAIN: Final = expression(OWN_HEADER + rb"(?!\x1b)")
_STRANGE: Final = expression(rb"\n(?!" + OWN_HEADER + rb"(?!\x1b)|\n|\Z)")


class Unwrapper:
    """Takes envelopes off. `layouts`: patterns of the broker's lines that the user named, which come before those that are known."""

    def __init__(self, layouts: tuple[Layout, ...] = ()) -> None:
        self.layouts = layouts

    def __call__(self, line: bytes) -> bytes:
        """The broker's own line; the line itself where nothing stands around it, or its inside is no broker's line."""
        if not self.layouts:
            if _PLAIN.match(line) is not None:
                return line
            if line[-1:] == b")" and (before := _BEFORE_OWN.match(line)) is not None:
                return line[before.end() :]
            if line[:1] == b"{":
                if (own := own_line_of_json(line)) is not None:
                    return own
                if b'level"' not in line and b'severity"' not in line and not has_place(line):
                    return line  # such as most entries of stack traces
            elif ANY_TIME_SIGN.search(line) is None:
                return line  # such as most lines of stack traces
        found = self._find(line, None, _MOST)
        return line if found is None else found

    def candidates(self, whole: bytes, lines: Sequence[bytes]) -> Iterable[int]:
        """The indexes of those lines around which something may stand. `whole`: the lines as one text, which is faster to look through."""
        if self.layouts:
            return range(len(lines))
        if _PLAIN.match(whole) is None:
            return [index for index, line in enumerate(lines) if line and (line[0] != _BRACKET or _PLAIN.match(line) is None)]
        found, index, seen = [], 0, 0
        for start in _STRANGE.finditer(whole):
            index += whole.count(b"\n", seen, start.end())
            seen = start.end()
            found.append(index)
        return found

    def _find(self, text: bytes, moment: Any, left: int) -> bytes | None:
        """The line in a text. A quote before its place is of JSON, of a field of CSV, or a word of the layout."""
        if b"\x1b" in text:
            text = uncoloured(text)
        if not self.layouts and is_own(text):
            return text
        place = place_of(text)
        if left and b'"' in text[: place if place >= 0 else None]:
            unwrap = partial(self._find, left=left - 1)
            found = line_of_json(text, place, moment, unwrap)
            if found is None and place >= 0:
                if ANCHOR.search(text, place + 1) is not None:
                    return None  # a document of several lines
                found = line_of_csv(text, place, moment, unwrap)
            if found is not None:
                return found
        for layout in self.layouts:
            found = layout.as_own(text, moment)
            if found is not None:
                return found
        if is_own(text):
            return text
        return None if place < 0 else line_at(text, place, moment)


unwrapped: Final = Unwrapper()  # takes off whatever is known
