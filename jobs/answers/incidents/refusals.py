"""How often clients were refused that asked to join a group."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from jobs.answers.duckdb_views import Row


class Refusals(NamedTuple):
    """How often the coordinator refused to let clients join, and when it last did."""

    requests: int
    last_at: datetime
    clients: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    pending_at: datetime | None = None  # when it last refused one that has not joined since; None: all have


def refusals_in(rows: Sequence[Row]) -> Refusals | None:
    """Those of clients, one row each, in the order of time; None if there is none."""
    clients, groups = (tuple(dict.fromkeys(row[name] or "?" for row in rows)) for name in ("client_id", "group_id"))
    pending_at = max((row["last_at"] for row in rows if not row["joined"]), default=None)
    return Refusals(sum(row["requests"] for row in rows), rows[-1]["last_at"], clients, groups, pending_at) if rows else None
