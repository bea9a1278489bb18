"""`rebalance maintain`: prints what it did to each table."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.filesize import decimal

from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import stdout, write
from jobs.common import options
from jobs.common.disks import told_if_full

if TYPE_CHECKING:
    from jobs.lakehouse.maintain import MaintainedTable

_COLUMNS: Final = ("table", ">rows removed", ">files", ">bytes", ">old files deleted", ">freed", ">commits deleted")


@options.command(
    "rebalance maintain --lakehouse lake/",
    "rebalance maintain --lakehouse lake/ --keep 90d",
    "rebalance maintain --lakehouse lake/ --keep 365d --thin-after 7d",
    "rebalance maintain --lakehouse lake/ --keep 365d --keep-events 30d --dry-run",
)
@options.lakehouse("Folder that `rebalance run` writes to. It may be running.")
@click.option("--keep", type=options.SPAN, help="Delete rows that are older than this: 90d, 26w. [default: keep everything]")
@click.option("--keep-events", type=options.SPAN, help="The same for group_events, which `rebalance replay` reads. [default: as --keep]")
@click.option(
    "--thin-after",
    type=options.SPAN,
    help="Keep only the first, the last, the number and the longest gap of heartbeats that are older than this and have nothing unusual "
    "near. docs/operations.md says what that changes. [default: keep each heartbeat]",
)
@click.option(
    "--grace",
    type=options.SPAN,
    default="7d",
    help="Delete files that were replaced this long ago; a query that began earlier may still read younger ones. 7d at most.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def maintain(lakehouse: Path, *, dry_run: bool, **ages: Any) -> int:
    """Merge and sort the files of tables; delete old rows and replaced files.

    It keeps a lakehouse fast and small. It may run at any time, also beside `rebalance run`, and may be stopped in any way. Once a day is
    often enough. Ages are counted from the newest event in the tables.
    """
    from jobs.lakehouse.maintain import Policy
    from jobs.lakehouse.maintain import maintain as maintain_tables

    console = stdout()
    with told_if_full(lakehouse), console.status("") as status:
        done = list(maintain_tables(lakehouse, Policy(**ages), now=datetime.now(timezone.utc), dry_run=dry_run, show=status.update))
    columns = Columns(_COLUMNS, console)
    for table in done:
        columns.add(*_cells(table))
    columns.write()
    for table in done:
        if table.left_alone:
            write(console, f"{table.table} was left alone: {table.left_alone}")
        if table.thinned is not None:
            write(console, f"{table.table}: {table.thinned.beats:,} heartbeats were thinned, and {table.thinned.rows:,} rows merged.")
    if dry_run:
        write(console, "Nothing was done (--dry-run).")
    return 0


def _cells(done: MaintainedTable) -> tuple[str, ...]:
    if done.left_alone:
        return done.table, "-", "-", "-", "-", "-", "-"
    return (
        done.table,
        f"{done.rows_removed:,}",
        _change(*(f"{number:,}" for number in done.files)),
        _change(*map(decimal, done.size)),
        f"{done.deleted:,}",
        decimal(done.deleted_bytes),
        f"{done.commits_deleted:,}",
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
