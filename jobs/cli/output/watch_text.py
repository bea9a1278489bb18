"""What `rebalance watch` writes: a screen that corrects its lines, or lines for a file or a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from jobs.answers.as_json import as_json_line
from jobs.answers.news import NewsItem
from jobs.answers.news_text import NewsText
from jobs.answers.open_rebalances import waits_note
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


class WatchOutput(Protocol):
    """Where news go."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, items: Sequence[NewsItem]) -> None:
        """Shows what came."""

    def tell(self, state: str) -> None:
        """Says why nothing may come, if that has changed. Empty: there is no reason."""


class _Lines:
    """The lines about items, with a heading for each day."""

    def __init__(self, console: Console) -> None:
        width = console.width if console.is_terminal else _WIDE
        ascii_only = console.options.ascii_only
        self._form = NewsText(20, 24, 20, ascii_only, with_ids=True) if width >= _WIDE else NewsText(ascii_only=ascii_only)
        self._clusters: set[str] = set()
        self._day = ""

    def of(self, item: NewsItem, note: str = "") -> list[Text]:
        """The line about an item, after a line with its day where that is another one than that of the line before."""
        day = f"{item.at:%Y-%m-%d}"
        heading = [] if day == self._day else [Text(f"{day} UTC", style="bold")]
        if not self._day:
            heading[0].append(f"   {self._form.legend()}", "not bold dim")
        self._day = day
        return [*heading, self.line(item, note)]

    def line(self, item: NewsItem, note: str = "") -> Text:
        """The line about an item. Groups have the name of their cluster before them once there are several."""
        cluster, group = item.row["cluster"], item.row["group_id"]
        self._clusters.add(cluster)
        if item.waits_for is not None:
            note = waits_note(item.row)
        line = self._form.line(item, note, group=f"{cluster}/{group}" if len(self._clusters) > 1 else group)
        line.no_wrap, line.overflow = True, "ellipsis"
        return line


class PlainOutput:
    """A line for each item, and another one if it is corrected."""

    def __init__(self, console: Console, complain: Callable[[str], None] = warn) -> None:
        self._console, self._complain = console, complain
        self._lines = _Lines(console)
        self._state = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, items: Sequence[NewsItem]) -> None:
        """Writes lines."""
        for item in items:
            if item.replaced is None or item.is_correction:
                has_ended = item.replaced is not None and item.replaced.was_open
                for line in self._lines.of(item, "corrected" if item.is_correction and not has_ended else ""):
                    write(self._console, line)

    def tell(self, state: str) -> None:
        """Says it on stderr."""
        if state and state != self._state:
            self._complain(state)
        self._state = state


class JsonOutput(PlainOutput):
    """An object a line, each row of the tables as soon as it is there."""

    def show(self, items: Sequence[NewsItem]) -> None:
        """Writes lines."""
        for item in items:
            replaces = item.replaced.id if item.replaced is not None else None
            click.echo(as_json_line({"table": item.table, "replaces": replaces} | parsed(item.row)))


class ScreenOutput:
    """A terminal: final rows scroll up, and provisional ones stay below them, where they change until they are final."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, printable(title)
        self._lines = _Lines(console)
        self._open: dict[tuple[object, ...], NewsItem] = {}
        self._state = ""
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self._live.start()
        self._refresh()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(Group(*self._provisional()), refresh=True)
        self._live.stop()

    def show(self, items: Sequence[NewsItem]) -> None:
        """Writes final rows, and keeps provisional ones in sight."""
        lines: list[Text] = []
        for item in items:
            if item.replaced is not None and item.replaced.was_open:
                self._open.pop(item.open_key, None)
            if item.waits_for is not None:
                self._open[item.key] = item
            else:
                self._open.pop(item.key, None)
                lines += self._lines.of(item)
        if items:
            self._refresh()  # first: a row stands in one place only
        if lines:
            self._console.print(*lines, sep="\n")

    def tell(self, state: str) -> None:
        """Says it in the last line."""
        if state != self._state:
            self._state = state
            self._refresh()

    def _provisional(self) -> list[Text]:
        most = max(self._console.height // _OPEN_SHARE, 1)
        items = sorted(self._open.values(), key=lambda item: item.at)
        left_out = [Text(f"… {len(items) - most} older provisional rebalances", style="dim")] if len(items) > most else []
        return [*left_out, *(self._lines.line(item) for item in items[-most:])]

    def _view(self) -> Group:
        state = Text(printable(self._state, LINE_CHARS) or f"{self._title}; Ctrl-C ends it", style="yellow" if self._state else "dim")
        state.no_wrap, state.overflow = True, "ellipsis"
        return Group(*self._provisional(), state)

    def _refresh(self) -> None:
        self._live.update(self._view(), refresh=True)
