"""Answers as a table for people. What comes from a log may hold anything: every cell is made printable (jobs/common/text.py) and cut."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console

from jobs.answers.duckdb_views import Answer
from jobs.answers.incidents.bills import bound
from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import write
from jobs.common.text import printable, short_member
from jobs.common.times import duration, epoch_ms, instant, is_known

_CELL: Final = 60  # characters of a cell in a table
_PROSE: Final = frozenset({"message", "reason", "detail", "last_reason", "topics", "requests_of", "line"})
_PROSE_CELL: Final = 200
_IDS: Final = frozenset({"id", "last_id", "first_id", "removed_id"})
_SHORTER: Final = {"client_id": "client", "client_host": "host", "group_id": "group", "member_id": "member"}


def render(answer: Answer, console: Console, fixed: Sequence[str]) -> None:
    """Writes a table, or a block for each row where the terminal is too narrow.

    `fixed`: columns that stand above it, once, since no row can have another value. So does the day, if it is that of all times.
    """
    day = _one_day(answer)
    values = dict(zip(answer.columns, zip(*answer.rows, strict=True), strict=True))
    common = {name: values[name][0] for name in fixed if name in values}
    heading = [f"{_title(name)} {printable(value, _CELL)}" for name, value in common.items()]
    heading += [f"{day.isoformat()} UTC"] if day is not None else []
    if heading:
        write(console, ", ".join(heading), "dim")
    shown = {name: own for name, own in values.items() if name not in common and name != "at_least"}
    columns = Columns([_alignment(name, own) + _title(name) for name, own in shown.items()], console)
    cells = [[bound(name, row) + _cell(name, row[name], day) for name in shown] for row in answer.by_name()]
    for row in cells:
        columns.add(*row)
    if columns.fits(cut=True):
        columns.write()
        return
    width = max(map(len, columns.names))
    for number, row in enumerate(cells, 1):
        write(console, f"{number}.", "bold")
        for title, cell in zip(columns.names, row, strict=True):
            if cell != "-":
                write(console, f"  {title:<{width}}  {cell}")


def _one_day(answer: Answer) -> Any:
    """The day, if all times are of one day."""
    days = {value.date() for row in answer.rows for value in row if isinstance(value, datetime)}
    return days.pop() if len(days) == 1 else None


def _title(name: str) -> str:
    """A column's name as a person reads it, without a unit: each cell has its unit."""
    if name == "unavailable_partition_ms":
        return "unowned"
    for long, short in _SHORTER.items():
        name = name.replace(long, short)
    return name.removesuffix("_ms").replace("_", " ")


def _alignment(name: str, values: Sequence[Any]) -> str:
    """The prefix of a name in `Columns`: numbers are aligned right, texts may be cut, but not the ids of rows."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, (int, float)) for value in present):
        return ">"
    return "~" if present and isinstance(present[0], str) and name not in _IDS else ""


def _cell(name: str, value: Any, day: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return instant(epoch_ms(value))[11 if day is not None and is_known(value) else 0 :]
    if isinstance(value, (int, float)):
        return duration(int(value)) if name.endswith("_ms") else str(value)
    text = str(value)
    if name in {"member_id", "waited_for"}:
        return short_member(text)
    return printable(text, _PROSE_CELL if name in _PROSE else _CELL)
