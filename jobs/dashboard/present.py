"""The pipeline's health and the lines of evidence: what `rebalance health` and `rebalance evidence` print, for pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from jobs.answers.evidence import ProvenRow, prove
from jobs.common.errors import EvidenceError, LakehouseError
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.health import reading, verdict
from jobs.lakehouse.folder import known_inputs

_LINE_CHARS: Final = 2_000  # of a log line, as in `rebalance evidence`


def health(lakehouse: Place, now_ms: int) -> dict[str, Any]:
    """The verdict of `rebalance health`. `now_ms`: this machine's clock."""
    limits = verdict.Limits()
    try:
        seen = reading.read(lakehouse, now_ms)
        problems = verdict.problems(seen, limits)
    except LakehouseError as error:
        return {"ok": None, "summary": printable(str(error), 600), "problems": []}
    return {
        "ok": not problems,
        "running": seen.running,
        "summary": "" if problems else reading.summary(seen, limits),
        "problems": [asdict(problem) for problem in problems],
    }


def evidence(lakehouse: Place, row_id: str) -> dict[str, Any]:
    """The lines that prove a row, as `rebalance evidence` finds them, or the `problem` with them."""
    try:
        return lines_of(prove(lakehouse, row_id, known_inputs(lakehouse)))
    except EvidenceError as error:
        return {"lines": [], "problem": printable(str(error), 600)}


def lines_of(proven: Iterable[ProvenRow]) -> dict[str, Any]:
    """The lines of some rows."""
    return {
        "lines": [
            {
                "source": line.source,
                "place": f"{printable(line.origin)}:{line.position}",
                "file": printable(line.file.name) if line.file is not None else None,
                "text": printable(line.text, _LINE_CHARS) if line.text is not None else None,
            }
            for row in proven
            for line in row.lines
        ]
    }
