"""Aligned columns of text for a terminal of any width, with heading lines in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from jobs.cli.output.terminal import write

_GAP: Final = "  "
_LEAST: Final = 8  # width that a shrunk column keeps


class Columns:
    """Rows under column names: `>Name` is aligned right, `~Name` may be cut when there is no room.

    Only a terminal has a width; elsewhere lines are as wide as they need to be, or as `width` allows.
    """

    def __init__(self, names: Sequence[str], console: Console, width: int | None = None) -> None:
        self.names = [name.lstrip(">~") for name in names]
        self._right = [name.startswith(">") for name in names]
        self._shrinkable = [index for index, name in enumerate(names) if name.startswith("~")]
        self._console = console
        self._width = console.width if console.is_terminal else width
        self._widths = [cell_len(name) for name in self.names]
        self._lines: list[Sequence[str] | str] = []

    def add(self, *cells: str) -> None:
        """Adds a row."""
        self._lines.append(cells)
        self._widths = [max(width, cell_len(cell)) for width, cell in zip(self._widths, cells, strict=True)]

    def heading(self, text: str) -> None:
        """Adds a line that has no columns."""
        self._lines.append(text)

    def fits(self, *, cut: bool = False) -> bool:
        """Whether the rows fit the terminal as they are, or with cells cut that may be cut."""
        return self._width is None or _total(self._shrunk() if cut else self._widths) <= self._width

    def write(self, *, indent: str = "", names: bool = True) -> None:
        """Writes all lines, the names first."""
        widths = self._shrunk()
        if names:
            write(self._console, indent + self._aligned(self.names, widths), "dim underline" if self._console.is_terminal else "")
        for line in self._lines:
            if isinstance(line, str):
                write(self._console, line if self._width is None else _cut(line, self._width), "bold")
            else:
                write(self._console, indent + self._aligned(line, widths))

    def _shrunk(self) -> list[int]:
        """Widths that fit the terminal, as far as possible: columns that may be cut give up the excess, the widest first."""
        widths = list(self._widths)
        while self._width is not None and _total(widths) > self._width and any(widths[index] > _LEAST for index in self._shrinkable):
            widths[max(self._shrinkable, key=widths.__getitem__)] -= 1
        return widths

    def _aligned(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        shown = []
        for cell, width, right in zip(cells, widths, self._right, strict=True):
            text = _cut(cell, width)
            shown.append(" " * (width - cell_len(text)) + text if right else set_cell_size(text, width))
        line = _GAP.join(shown).rstrip()
        return line if self._width is None else _cut(line, self._width)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _cut(text: str, width: int) -> str:
    """`text` in at most `width` columns; some characters take two."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"
