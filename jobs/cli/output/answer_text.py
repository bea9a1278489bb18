"""Answers as a table for people. What comes from a log may hold anything: every cell is made printable (jobs/common/text.py) and cut."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from rich.console import Console

from jobs.answers.duckdb_views import Answer
from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import write
from jobs.common.text import printable, short_member
from jobs.common.times import duration, epoch_ms, instant

_CELL: Final = 60  # characters of a cell in a table
_PROSE: Final = frozenset({"message", "reason", "detail", "last_reason", "topics", "requests_of", "line"})
_PROSE_CELL: Final = 200
_RARE: Final = frozenset({"waits_for", "protocol_type"})  # columns that are left out where no row has a value
_COMMON: Final = ("cluster", "group_id")
_SHORTER: Final = {"client_id": "client", "client_host": "host", "group_id": "group", "member_id": "member"}


def render(answer: Answer, console: Console) -> None:
    """Writes a table, or a block for each row where the terminal is too narrow.

    Cluster, group and day stand above it, once, if they are the same in all rows.
    """
    day = _one_day(answer)
    common = {name: answer.rows[0][answer.columns.index(name)] for name in _COMMON if name in answer.columns}
    common = {n: v for n, v in common.items() if v is not None and all(row[answer.columns.index(n)] == v for row in answer.rows)}
    heading = [f"{_title(name)} {printable(value, _CELL)}" for name, value in common.items()]
    heading += [f"{day.isoformat()} UTC"] if day is not None else []
    if heading:
        write(console, ", ".join(heading), "dim")
    empty = {name for index, name in enumerate(answer.columns) if name in _RARE and all(row[index] is None for row in answer.rows)}
    indices = [index for index, name in enumerate(answer.columns) if name not in common.keys() | empty]
    columns = Columns([_alignment(answer, index) + _title(answer.columns[index]) for index in indices], console)
    cells = [[_cell(answer.columns[index], row[index], day) for index in indices] for row in answer.rows]
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


def _alignment(answer: Answer, index: int) -> str:
    """The prefix of a name in `Columns`: numbers are aligned right, texts may be cut."""
    values = [row[index] for row in answer.rows if row[index] is not None]
    if values and all(isinstance(value, (int, float)) for value in values):
        return ">"
    return "~" if values and isinstance(values[0], str) and not _is_id(answer.columns[index]) else ""


def _is_id(name: str) -> bool:
    """Ids of rows, which are of use only whole."""
    return name == "id" or name in {"last_id", "first_id", "removed_id"}


def _cell(name: str, value: Any, day: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return instant(epoch_ms(value))[11 if day is not None else 0 :]
    if isinstance(value, (int, float)):
        return duration(int(value)) if name.endswith("_ms") else str(value)
    text = str(value)
    if name in {"member_id", "waited_for"}:
        return short_member(text)
    return printable(text, _PROSE_CELL if name in _PROSE else _CELL)
