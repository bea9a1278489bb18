"""`rebalance check`: tests whether the tables of a lakehouse keep their laws."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.output.terminal import tell, warn
from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.text import printable
from jobs.common.times import instant

if TYPE_CHECKING:
    from jobs.answers.check import Checked

_EXAMPLES = 5  # of one law, unless all are asked for


@options.command(
    "rebalance check --lakehouse lake/",
    "rebalance check --lakehouse lake/ --input logs/",
    "rebalance check --lakehouse lake/ --format json | jq '.broken'",
)
@options.lakehouse()
@options.logs_read
@click.option("--all", "everything", is_flag=True, help=f"List every row that breaks a law, not {_EXAMPLES} for each.")
@options.output_format("text", "json")
def check(*, lakehouse: Path, source: Path | None, everything: bool, form: str) -> int:
    """Check the tables: members add up, phases and states follow each other, evidence fits.

    A broken law is an error of this program or a hole in the logs. Each row is listed with its id for `rebalance evidence`.
    """
    from jobs.answers.check import check as checked
    from jobs.answers.check import to_json
    from jobs.lakehouse.folder import known_inputs

    if source is not None and not source.exists():
        raise UserError(f"no such file or folder: {source}")
    result = checked(lakehouse, [source] if source else known_inputs(lakehouse))
    if form == "json":
        tell("with --format json, which has every row", "everything")
        click.echo(to_json(result))
    else:
        _render(result, None if everything else _EXAMPLES)
    if result.lines_gone:
        warn(f"{result.lines_gone:,} of {result.lines:,} lines were not found; give --input DIR with the logs that were read")
    if result.breaches:
        return exit_codes.FAILED
    return exit_codes.PARTLY_READ if result.lines_gone else exit_codes.DONE


def _render(result: Checked, limit: int | None) -> None:
    broken = Counter(breach.law for breach in result.breaches)
    for law in sorted(broken):
        click.echo(f"{law}: {broken[law]:,} row{'s' if broken[law] != 1 else ''}")
        for breach in [one for one in result.breaches if one.law == law][:limit]:
            place = f"{printable(breach.cluster, 30)}/{printable(breach.group_id, 60)}"
            click.echo(f"  {breach.row_id}  {place}  {instant(breach.at_ms)} UTC  {printable(breach.text, 400)}")
        if limit is not None and broken[law] > limit:
            click.echo(f"  ... and {broken[law] - limit:,} more (--all)")
    rows = ", ".join(f"{count:,} {table}" for table, count in result.rows.items())
    of_all = f" of {result.lines:,}" if result.lines_gone else ""
    lines = f", and {result.lines - result.lines_gone:,}{of_all} lines of evidence" if result.lines else ""
    if broken:
        verdict = f"{len(broken)} of {result.laws} laws broken"
    elif result.lines_gone:
        verdict = "NOT CHECKED in full: no law is broken as far as lines were found"
    else:
        verdict = f"OK: {result.laws} laws hold"
    click.echo(f"{verdict} ({rows}{lines})")
