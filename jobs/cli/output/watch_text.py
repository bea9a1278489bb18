"""What `rebalance watch` writes: a screen that corrects its lines, or lines for a file or a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from jobs.answers.formats import as_json_line
from jobs.answers.news import NewsItem, NewsText
from jobs.answers.report import parsed
from jobs.cli.output.terminal import warn, write
from jobs.common.options import LINE_CHARS
from jobs.common.text import printable

if TYPE_CHECKING:
    from typing_extensions import Self

_WIDE: Final = 118
"""Columns from which on there is room for ids and messages."""
_OPEN_SHARE: Final = 2
"""Provisional rows take at most one part in so many of the screen."""


class PlainOutput(ExitStack):
    """A line for each item, and another one if it is corrected."""

    def __init__(self, console: Console, complain: Callable[[str], None] = warn) -> None:
        super().__init__()
        self._console, self._complain = console, complain
        self._text = NewsText(wide=not console.is_terminal or console.width >= _WIDE, ascii_only=console.options.ascii_only)
        self._state = ""

    def show(self, items: Sequence[NewsItem]) -> None:
        """Shows what came."""
        for line in self._text.lines(item for item in items if item.says_more):
            write(self._console, line)

    def tell(self, state: str) -> None:
        """Says why nothing may come, if that has changed. Empty: there is no reason."""
        if state and state != self._state:
            self._complain(state)
        self._state = state


class JsonOutput(PlainOutput):
    """An object a line, each row of the tables as soon as it is there."""

    def show(self, items: Sequence[NewsItem]) -> None:
        """Writes them whole."""
        for item in items:
            replaces = item.replaced.row["id"] if item.replaced is not None else None
            click.echo(as_json_line({"table": item.table, "replaces": replaces} | parsed(item.row)))


class ScreenOutput(PlainOutput):
    """A terminal: final rows scroll up, and provisional ones stay below them, where they change until they are final."""

    def __init__(self, console: Console, title: str) -> None:
        super().__init__(console)
        self._title = printable(title)
        self._open: dict[tuple[object, ...], NewsItem] = {}
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self.enter_context(self._live)
        self.callback(lambda: self._live.update(Group(*self._provisional()), refresh=True))
        self._refresh()
        return self

    def show(self, items: Sequence[NewsItem]) -> None:
        """Writes final rows, and keeps provisional ones in sight."""
        for item in items:
            if item.replaced is not None and item.replaced.goes_on:
                self._open.pop(item.open_key, None)
            self._open.pop(item.key, None)
            if item.waits_for is not None:
                self._open[item.key] = item
        if items:
            self._refresh()  # first: a row stands in one place only
        if lines := list(self._text.lines(item for item in items if item.waits_for is None)):
            self._console.print(*lines, sep="\n")

    def tell(self, state: str) -> None:
        """Says it in the last line."""
        if state != self._state:
            self._state = state
            self._refresh()

    def _provisional(self) -> Iterator[Text]:
        most = max(self._console.height // _OPEN_SHARE, 1)
        items = sorted(self._open.values(), key=lambda item: item.at)
        if len(items) > most:
            yield Text(f"… {len(items) - most} older provisional rebalances", style="dim")
        yield from map(self._text.line, items[-most:])

    def _refresh(self) -> None:
        """Draws the provisional rows, and in the last line why nothing may come."""
        state = Text(printable(self._state, LINE_CHARS) or f"{self._title}; Ctrl-C ends it", style="yellow" if self._state else "dim")
        state.no_wrap, state.overflow = True, "ellipsis"
        self._live.update(Group(*self._provisional(), state), refresh=True)
