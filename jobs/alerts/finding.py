"""A finding as alerts tell it: the row of `findings`, its id and its key, and its page in `rebalance dashboard`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlencode

import duckdb
from deltalake.exceptions import DeltaError

from coordinator_model.view.outcomes import OPEN
from jobs.answers.attention_words import title_of
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.incidents.rows import by_finding
from jobs.answers.rebalance_words import as_finding
from jobs.common.alert_settings import SEVERITIES, ReceiverSettings
from jobs.common.errors import LakehouseError
from jobs.common.stores import Place
from jobs.common.times import EPOCH, epoch_ms
from jobs.lakehouse.reader import table_rows, with_zone
from schemas.names import AT_END, INCIDENTS

_AROUND_MS: Final = 300_000
"""What the link shows before the finding and after it."""


@dataclass(frozen=True)
class Finding:
    """A row of `findings`. `occurred_ms`: epoch ms."""

    cluster: str
    group_id: str
    occurred_ms: int
    code: str
    severity: str
    message: str
    advice: str
    details: str = "{}"
    member_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    generation: int | None = None
    incident: Row | None = None  # that it is part of
    row_id: str = ""  # of another row than one of `findings`
    open: bool | None = None  # whether what it is about goes on, or has ended; None: it has happened
    at_end: bool = False  # the row stands until more of the logs is read, and comes again if that changes nothing

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Finding:
        """A row of `findings`; an incident as one; of a provisional row, what is said of a rebalance that is too long, or has ended since.

        Times may be aware, or in UTC without a zone.
        """
        row = {name: with_zone(value) for name, value in row.items()}
        said, own = row, {}
        if "outcome" in row:
            known = (row["cluster"], row["group_id"], epoch_ms(row["started_at"]), None, row["generation"])
            said, own = as_finding(row) | {AT_END: row[AT_END]}, {"row_id": "r" + _digest(known), "open": row["outcome"] == OPEN}
        elif row.get("incident") == row.get("id", ""):
            own = {"row_id": row["id"]}
        at = row["ended_at" if "outcome" in row else "occurred_at"]
        return cls(occurred_ms=epoch_ms(at), **{name: said[name] for name in COLUMNS}, **own)

    @property
    def id(self) -> str:
        """The id by which `rebalance evidence` finds the row: the incident's, or that of findings_with_id.sql or rebalances_with_id.sql."""
        known = (self.cluster, self.group_id, self.occurred_ms, self.code, self.member_id, self.generation)
        return self.row_id or "f" + _digest(known)

    @property
    def key(self) -> str:
        """What a receiver can tell a repetition by: the id, and a hash of what tells rows of one id apart.

        A row never changes once it is written, so its key does not either. What an incident says may change; its groups share its id.
        """
        rest = "|".join((self.client_id or "", self.client_host or "", self.group_id if self._is_incident else self.message))
        return f"{self.id}-{hashlib.sha256(rest.encode()).hexdigest()[:8]}"

    def link(self, dashboard_url: str) -> str:
        """The page of its group around its time, with its row marked, or that of the rebalance; empty without a dashboard."""
        if not dashboard_url:
            return ""
        page, place = "rebalance", f"id={self.row_id}"
        if not self.row_id or self._is_incident:
            first_ms, last_ms = max(self.occurred_ms - _AROUND_MS, 0), self.occurred_ms + _AROUND_MS
            page, place = "group", f"from={first_ms}&to={last_ms}&tab=findings&finding={self.id}"
        group = urlencode({"cluster": self.cluster, "group": self.group_id}, errors="replace")
        return f"{dashboard_url.rstrip('/')}/{page}?{group}&{place}"

    @property
    def title(self) -> str:
        """Who did what."""
        return title_of([self.row])

    @property
    def row(self) -> Row:
        """It as the table has it."""
        return vars(self) | {"occurred_at": EPOCH + timedelta(milliseconds=self.occurred_ms)}

    @property
    def _is_incident(self) -> bool:
        return self.row_id.startswith("i")

    @property
    def gravity(self) -> int:
        """The greater, the graver. Severities of a newer version are the gravest."""
        return SEVERITIES.index(self.severity) if self.severity in SEVERITIES else len(SEVERITIES)


COLUMNS = tuple(name for name in Finding.__dataclass_fields__ if name not in {"occurred_ms", "incident", "row_id", "open"})
"""The columns of `findings` that a Finding has, besides its time."""


def of_incidents(lakehouse: Place) -> list[Finding]:
    """The incidents of which no finding tells, in the order of time, for each group that they touched."""
    try:
        rows = QuestionReader(lakehouse).found("SELECT * FROM findings_with_broker WHERE batch_id IS NULL", {})
    except (DeltaError, duckdb.Error, LakehouseError, OSError):  # as in with_incidents
        return []
    return sorted(map(Finding.of, rows), key=lambda one: (one.occurred_ms, one.key))


def with_incidents(lakehouse: Place, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with the incidents that they are part of: the broker that a group left may have stood in for one that was lost."""
    rows = []
    with suppress(DeltaError, duckdb.Error, OSError):  # there is none, or its files are just being replaced: alerts do not wait for it
        rows = table_rows(lakehouse / INCIDENTS)
    known = by_finding(rows)
    return [replace(one, incident=known.get((one.cluster, one.id))) for one in findings]


def wanted_by(receiver: ReceiverSettings, finding: Finding) -> bool:
    """Whether a receiver gets findings like this one."""
    asked = ((finding.cluster, receiver.clusters), (finding.group_id, receiver.groups), (finding.code, receiver.codes))
    return finding.gravity >= SEVERITIES.index(receiver.severity) and all(
        any(fnmatchcase(value, pattern) for pattern in patterns) for value, patterns in asked
    )


def _digest(parts: Iterable[object]) -> str:
    text = "|".join("" if part is None else str(part) for part in parts)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:11]
