"""Links to pages of `rebalance dashboard`."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from jobs.alerts.finding import Finding

_AROUND_MS: Final = 300_000
"""What the link shows before the finding and after it."""


def group_link(dashboard_url: str, finding: Finding) -> str:
    """The page of the finding's group around its time, with its row marked, or that of the rebalance; empty without a dashboard."""
    if not dashboard_url:
        return ""
    if finding.row_id:
        own = {"cluster": finding.cluster, "group": finding.group_id, "id": finding.row_id}
        return f"{dashboard_url.rstrip('/')}/rebalance?{urlencode(own, errors='replace')}"
    place = {
        "cluster": finding.cluster,
        "group": finding.group_id,
        "from": max(finding.occurred_ms - _AROUND_MS, 0),
        "to": finding.occurred_ms + _AROUND_MS,
        "tab": "findings",
        "finding": finding.id,
    }
    return f"{dashboard_url.rstrip('/')}/group?{urlencode(place, errors='replace')}"
