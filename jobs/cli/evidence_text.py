"""The lines that prove a row, as text: what the row says, then each line under the place where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jobs.answers.evidence import Proof
from jobs.common.text import printable, who
from jobs.common.times import duration, epoch_ms, instant


def render(proofs: Sequence[Proof], console: Console, *, most: int) -> None:
    """Writes them all. `most` characters of a line are shown."""

    def write(text: str = "", style: str = "") -> None:
        console.print(Text(text, style=style), soft_wrap=True)

    for proof in proofs:
        write(f"{proof.id}  {_title(proof)}", "bold")
        for sentence in _sentences(proof):
            write(f"  {sentence}")
        for line in proof.lines:
            write()
            write(f"{printable(line.origin)}:{line.position}{_moved(line.origin, line.file)}", "cyan")
            if line.text is None:
                write("  (not there: the file is gone, or holds another line by now)", "yellow")
            else:
                write(f"  {printable(line.text, most)}")
        write()


def _title(proof: Proof) -> str:
    row = proof.row
    group = printable(row["group_id"], 60)
    cluster = printable(row["cluster"], 30)
    at = next(row[name] for name in ("at", "started_at", "ended_at") if row.get(name) is not None)
    what = {
        "finding": lambda: f"{row['severity']} {row['code']}",
        "rebalance": lambda: f"rebalance {row['cause']}",
        "membership": lambda: f"membership ended {row['end_kind']}",
        "transition": lambda: f"{row['from_state']} > {row['to_state']}",
    }[proof.kind]()
    client = who(row.get("client_id"), row.get("client_host"), row.get("member_id"), row.get("instance_id"))
    return f"{what}  {cluster}/{group}  {instant(epoch_ms(at))} UTC  {client}"


def _sentences(proof: Proof) -> list[str]:
    row: dict[str, Any] = proof.row
    if proof.kind == "finding":
        return [printable(row["message"], 600), f"Advice: {printable(row['advice'], 600)}"]
    if proof.kind == "rebalance":
        generation = "" if row["generation"] is None else f", generation {row['generation']}"
        told = [f"{row['outcome']} after {duration(row['total_ms'])}{generation}"]
        return [*told, f"Reason: {printable(row['reason'], 600)}"] if row["reason"] else told
    if proof.kind == "transition":
        return [f"Trigger: {printable(row['trigger'], 60)}" + (f", {printable(row['reason'], 600)}" if row["reason"] else "")]
    return []


def _moved(origin: str, file: Path | None) -> str:
    """Says so where the line was found under another name."""
    name = origin.rpartition("/")[2]
    return f"  (now in {printable(file.name)})" if file is not None and file.name != name else ""
