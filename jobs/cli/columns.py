"""Aligned columns of text for a terminal of any width, with heading lines in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

_GAP: Final = "  "
_LEAST: Final = 8  # columns that a shrunk one keeps


@dataclass
class Columns:
    """Rows under column names: `>Name` is aligned right, `~Name` may be cut when there is no room."""

    names: Sequence[str]
    width: int | None = None  # of the terminal; None: as wide as it gets
    _lines: list[Sequence[str] | str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """A row."""
        self._lines.append(cells)

    def heading(self, text: str) -> None:
        """A line of its own, on which column widths do not depend."""
        self._lines.append(text)

    def lines(self) -> Iterator[Text]:
        """All lines, the names first."""
        titles = [name.lstrip(">~") for name in self.names]
        widths = self._fitted(self._natural())
        yield Text(self._aligned(titles, widths), style="dim underline" if self.width else "")
        for line in self._lines:
            if isinstance(line, str):
                yield Text(line if self.width is None else _cut(line, self.width), style="bold")
            else:
                yield Text(self._aligned(line, widths))

    @property
    def fits(self) -> bool:
        """Whether nothing has to be cut."""
        return self.width is None or _total(self._natural()) <= self.width

    @property
    def fits_when_cut(self) -> bool:
        """Whether every column that may not be cut has its room, and each of the others something to show."""
        return self.width is None or _total(self._fitted(self._natural())) <= self.width

    def _natural(self) -> list[int]:
        rows = [line for line in self._lines if not isinstance(line, str)]
        return [
            max(cell_len(name.lstrip(">~")), *(cell_len(row[index]) for row in rows)) if rows else cell_len(name)
            for index, name in enumerate(self.names)
        ]

    def _fitted(self, widths: list[int]) -> list[int]:
        """Takes what is too much from the columns that may be cut, the widest first."""
        if self.width is None:
            return widths
        over = _total(widths) - self.width
        shrinkable = [index for index, name in enumerate(self.names) if name.startswith("~")]
        while over > 0 and any(widths[index] > _LEAST for index in shrinkable):
            widest = max(shrinkable, key=lambda index: widths[index])
            widths[widest] -= 1
            over -= 1
        return widths

    def _aligned(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        shown = []
        for name, cell, width in zip(self.names, cells, widths, strict=True):
            text = _cut(cell, width)
            padding = " " * (width - cell_len(text))
            shown.append(padding + text if name.startswith(">") else text + padding)
        line = _GAP.join(shown).rstrip()
        return line if self.width is None else _cut(line, self.width)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _cut(text: str, width: int) -> str:
    """`text` in at most `width` columns; some characters take two."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"
