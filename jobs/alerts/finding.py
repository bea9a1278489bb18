"""A finding as alerts tell it: the row of `findings`, its id and its key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from jobs.common.alert_settings import SEVERITIES, ReceiverSettings
from jobs.common.times import EPOCH, epoch_ms, iso


@dataclass(frozen=True)
class Finding:
    """A row of `findings`. `occurred_ms`: epoch ms."""

    cluster: str
    group_id: str
    occurred_ms: int
    code: str
    severity: str
    member_id: str | None
    client_id: str | None
    client_host: str | None
    generation: int | None
    message: str
    advice: str
    details: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Finding:
        """The finding of a row, whose time may be an aware datetime or one in UTC without a zone."""
        time = row["occurred_at"]
        at_ms = epoch_ms(time if time.tzinfo is not None else time.replace(tzinfo=EPOCH.tzinfo))
        return cls(occurred_ms=at_ms, **{name: row[name] for name in COLUMNS})

    @property
    def id(self) -> str:
        """The id by which `rebalance evidence` finds the row: sql/views/findings_with_id.sql."""
        parts = (self.cluster, self.group_id, self.occurred_ms, self.code, self.member_id or "", _text(self.generation))
        return "f" + hashlib.md5("|".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()[:11]

    @property
    def key(self) -> str:
        """What a receiver can tell a repetition by: the id, and a hash of what tells rows of one id apart.

        A row never changes once it is written, so its key does not either.
        """
        rest = "|".join((self.client_id or "", self.client_host or "", self.message))
        return f"{self.id}-{hashlib.sha256(rest.encode()).hexdigest()[:8]}"

    @property
    def time(self) -> str:
        """When it happened, as ISO 8601 in UTC."""
        return iso(EPOCH + timedelta(milliseconds=self.occurred_ms))

    @property
    def gravity(self) -> int:
        """The greater, the graver. Severities of a newer version are the gravest."""
        return SEVERITIES.index(self.severity) if self.severity in SEVERITIES else len(SEVERITIES)


COLUMNS = tuple(name for name in Finding.__dataclass_fields__ if name != "occurred_ms")
"""The columns of `findings` that a Finding has, besides its time."""


def wanted_by(receiver: ReceiverSettings, finding: Finding) -> bool:
    """Whether a receiver gets findings like this one."""
    asked = ((finding.cluster, receiver.clusters), (finding.group_id, receiver.groups), (finding.code, receiver.codes))
    return finding.gravity >= SEVERITIES.index(receiver.severity) and all(
        any(fnmatchcase(value, pattern) for pattern in patterns) for value, patterns in asked
    )


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
