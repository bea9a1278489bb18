"""Findings that are in the table, for a look at what would be posted about them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from deltalake.exceptions import TableNotFoundError

from jobs.alerts.finding import COLUMNS, Finding
from jobs.common.errors import LakehouseError
from jobs.common.times import milliseconds
from jobs.lakehouse.reader import table_rows
from schemas.names import FINDINGS


def past_findings(lakehouse: Path, since: timedelta) -> list[Finding]:
    """Findings up to so long before the newest one, in order of time. LakehouseError: there is no table of them."""
    try:
        rows = table_rows(lakehouse / FINDINGS, [*COLUMNS, "occurred_at"])
    except TableNotFoundError:
        raise LakehouseError(f"no findings at {lakehouse}: no lakehouse of `rebalance run`") from None
    found = sorted(map(Finding.of, rows), key=lambda finding: (finding.occurred_ms, finding.key))
    return [finding for finding in found if finding.occurred_ms >= found[-1].occurred_ms - milliseconds(since)]
