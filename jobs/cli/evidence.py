"""`rebalance evidence` and `rebalance check`: the log lines that prove a row, and whether all rows keep their laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from jobs.cli.output.terminal import stdout, tell, warn, write
from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.common.text import many, printable, who
from jobs.common.times import duration, epoch_ms, instant

if TYPE_CHECKING:
    from jobs.answers.check import Checked
    from jobs.answers.evidence import ProvenRow

_EXAMPLES = 5  # of one law, unless all are asked for


@options.command(
    "rebalance evidence f3a91c0d27be --lakehouse lake/",
    "rebalance evidence f3a91c0d27be --lakehouse lake/ --entry",
    "rebalance evidence r5410 --lakehouse lake/ --input logs/ --format json",
)
@click.argument("row_id", metavar="ID")
@options.lakehouse()
@options.logs_read()
@click.option("--entry", is_flag=True, help="Show all findings of the same entry of the report.")
@options.output_format("text", "json")
@click.option("--chars", type=click.IntRange(80, 1_000_000), default=2_000, metavar="N", help="Characters of a line at most.")
def evidence(row_id: str, *, lakehouse: Place, source: Path | None, entry: bool, form: str, chars: int) -> int:
    """Show the log lines that prove a finding or a rebalance.

    The report, `rebalance ask findings`, `rebalance ask rebalances` and other questions show the ids. The beginning of an id is enough.
    """
    from jobs.answers.evidence import others_of_entry, prove, to_json
    from jobs.lakehouse.folder import known_inputs

    rows = prove(lakehouse, row_id, [source] if source else known_inputs(lakehouse), entry=entry)
    if form == "json":
        tell("with --format json, which has whole lines", "chars")
        click.echo(to_json(rows))
    else:
        _render_rows(rows, stdout(), chars)
        if not entry and (others := others_of_entry(lakehouse, rows[0])):
            shows = f"`rebalance evidence {rows[0].id} --entry` shows all."
            write(stdout(), f"Its entry in the report has {many(others, 'more finding')}: {shows}", "dim")
    lines = [line for row in rows for line in row.lines]
    missing = sum(line.text is None for line in lines)
    _warn_of_missing(missing, len(lines))
    return exit_codes.UNUSABLE if missing else exit_codes.DONE


def _render_rows(rows: Sequence[ProvenRow], console: Console, chars: int) -> None:
    for row in rows:
        write(console, f"{row.id}  {_title(row)}", "bold")
        for sentence in _sentences(row):
            write(console, f"  {sentence}")
        for line in row.lines:
            write(console)
            write(console, f"{printable(line.origin)}:{line.position}{_moved(line.origin, line.file)}", "cyan")
            if line.text is None:
                write(console, "  (not found: the file is gone or has changed)", "yellow")
            else:
                write(console, f"  {printable(line.text, chars)}")
        write(console)


def _title(proven: ProvenRow) -> str:
    from jobs.answers.evidence import KINDS  # with DuckDB
    from jobs.answers.rebalance_words import culprit_of

    row = proven.row
    about = printable(row["broker"] if proven.kind == "incident" else row["group_id"], 60)
    cluster = printable(row["cluster"], 30)
    at = next(row[name] for name in ("occurred_at", "started_at", "ended_at", "began_at") if row.get(name) is not None)
    what = KINDS[proven.id[0]][-1].format_map(row)
    client = culprit_of(row) if proven.kind == "rebalance" else _client(row)
    return f"{what}  {cluster}/{about}  {instant(epoch_ms(at))} UTC  {client}"


def _client(row: dict[str, Any]) -> str:
    return who(row.get("client_id"), row.get("client_host"), row.get("member_id"), row.get("instance_id"))


def _sentences(proven: ProvenRow) -> list[str]:
    from jobs.answers.rebalance_words import rounds_in_words, waits_note  # with DuckDB

    row: dict[str, Any] = proven.row
    if proven.kind in ("finding", "incident"):
        return [printable(row["message"], 600), *([f"Advice: {printable(row['advice'], 600)}"] if row["advice"] else [])]
    if proven.kind == "rebalance":
        generation = "" if row["generation"] is None else f", generation {row['generation']}"
        after = "" if row["total_ms"] is None else f" after {duration(row['total_ms'])}"
        outcome = f"{row['outcome']}{after}{generation}"
        began = [f"It began with {row['began_with']}, {_client(row)}; see the finding {row['finding_id']}"] if row["began_with"] else []
        reason = [f"Reason: {printable(row['reason'], 600)}"] if row["reason"] else []
        note = waits_note(row) if row["waits_for"] else ""
        waits = [note[0].upper() + note[1:]] if note else []
        return [outcome, *began, *reason, *waits, *rounds_in_words(proven.rounds)]
    if proven.kind == "transition":
        return [f"Trigger: {printable(row['trigger'], 60)}" + (f", {printable(row['reason'], 600)}" if row["reason"] else "")]
    return []


def _moved(origin: str, file: Place | None) -> str:
    """Names the file if the line was found under another name."""
    return f"  (now in {printable(file.name)})" if file is not None and file.name != origin.rpartition("/")[2] else ""


@options.command(
    "rebalance check --lakehouse lake/",
    "rebalance check --lakehouse lake/ --input logs/",
    "rebalance check --lakehouse lake/ --format json | jq '.broken'",
)
@options.lakehouse()
@options.logs_read()
@click.option("--all", "everything", is_flag=True, help=f"List every row that breaks a law, not {_EXAMPLES} for each.")
@options.output_format("text", "json")
def check(*, lakehouse: Place, source: Path | None, everything: bool, form: str) -> int:
    """Check that the tables are consistent: members add up, phases and states follow each other, evidence fits.

    A broken law is a bug in this program or a gap in the logs. Each row is listed with its id for `rebalance evidence`.
    """
    from jobs.answers.check import check as checked
    from jobs.answers.formats import as_json
    from jobs.lakehouse.folder import known_inputs

    if source is not None and not source.exists():
        raise UserError(f"no such file or folder: {source}")
    result = checked(lakehouse, [source] if source else known_inputs(lakehouse))
    if form == "json":
        tell("with --format json, which has every row", "everything")
        click.echo(as_json(asdict(result) | {"broken": dict(sorted(Counter(breach.law for breach in result.breaches).items()))}))
    else:
        _render_breaches(result, None if everything else _EXAMPLES)
    _warn_of_missing(result.lines_gone, result.lines)
    if result.breaches:
        return exit_codes.FAILED
    return exit_codes.PARTLY_READ if result.lines_gone else exit_codes.DONE


def _render_breaches(result: Checked, limit: int | None) -> None:
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
        verdict = "NOT FULLY CHECKED: no law is broken in the lines that were found"
    else:
        verdict = f"OK: {result.laws} laws hold"
    click.echo(f"{verdict} ({rows}{lines})")


def _warn_of_missing(missing: int, lines: int) -> None:
    if missing:
        warn(f"{missing:,} of {lines:,} lines were not found; give --input DIR with the logs that were read")
