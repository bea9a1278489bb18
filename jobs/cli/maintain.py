"""`rebalance maintain`: its options as they are typed, and what was done as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.common.times import parse_span
from jobs.lakehouse.maintain import Done, Policy, maintain

if TYPE_CHECKING:
    from rich.console import Console


def run(lakehouse: Path, keep: str | None, keep_events: str | None, grace: str, console: Console, *, dry_run: bool) -> int:
    """Maintains the lakehouse and tells what was done; the exit code. UserError: see `maintain`, or a time that is none."""
    policy = Policy(
        keep=parse_span(keep, name="--keep") if keep is not None else None,
        keep_events=parse_span(keep_events, name="--keep-events") if keep_events is not None else None,
        grace=parse_span(grace, name="--grace"),
    )
    with console.status("") as status:
        done = list(maintain(lakehouse, policy, now=datetime.now(timezone.utc), dry_run=dry_run, told=status.update))
    _render(done, console, dry_run=dry_run)
    return 0


def _render(tables: Sequence[Done], console: Console, *, dry_run: bool) -> None:
    from rich.text import Text

    rows = [("table", "rows removed", "files", "bytes", "old files deleted", "freed", "commits deleted"), *map(_cells, tables)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        console.print(Text("  ".join((name.ljust(widths[0]), *numbers))), soft_wrap=True)
    for done in tables:
        if done.left_alone:
            console.print(Text(f"{done.table} was left alone: {done.left_alone}"), soft_wrap=True)
    if dry_run:
        console.print(Text("Nothing was done (--dry-run)."))


def _cells(done: Done) -> tuple[str, ...]:
    if done.left_alone:
        return done.table, "-", "-", "-", "-", "-", "-"
    return (
        done.table,
        f"{done.rows_removed:,}",
        _change(*(f"{number:,}" for number in done.files)),
        _change(*map(_bytes, done.size)),
        f"{done.deleted:,}",
        _bytes(done.deleted_bytes),
        f"{done.commits_deleted:,}",
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _bytes(number: int) -> str:
    """1 B, 2.5 kB, 3.1 MB."""
    size, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1_000:
            break
        size, unit = size / 1_000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
