"""What the tracker writes: rows of five tables, and of a sixth while they may be corrected, each with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator_model.events import Event

GROUP_TRANSITIONS: Final = "group_transitions"
REBALANCES: Final = "rebalances"
REBALANCE_ROUNDS: Final = "rebalance_rounds"
REBALANCE_OFFSETS: Final = "rebalance_offsets"
REBALANCES_PROVISIONAL: Final = "rebalances_provisional"
MEMBER_SESSIONS: Final = "member_sessions"
FINDINGS: Final = "findings"

MAX_EVIDENCE: Final = 16  # lines that one row names: enough to prove it, few enough to read

_Record = TypeVar("_Record", bound="Record")


class Row(NamedTuple):
    """One finished row. `values` has every column of the table except cluster and batch_id; times are epoch ms."""

    table: str
    values: dict[str, Any]
    stopped: Mapping[str, int] = {}
    """Of `rebalances`, for what explains offsets: until when members that left had worked (`members.worked_until_ms`), by member id."""


class Record(Struct):
    """What is kept, and told with some values that only its row has."""

    def changed(self: _Record, **fields: Any) -> _Record:  # noqa: PYI019 (Python 3.10 has no Self)
        """A copy with other values in some fields."""
        return replace(self, **fields)


class Ref(NamedTuple):
    """The place of a line."""

    source: str
    origin: str
    position: int


def ref(event: Event) -> Ref:
    """The place of an event's line."""
    return Ref(event.source, event.origin, event.position)


def evidence_json(refs: Iterable[Ref]) -> str:
    """The `evidence` column: distinct lines in the order of the files, so that the same lines always give the same text."""
    distinct = sorted(set(refs), key=lambda r: (r.source, r.origin, r.position))[:MAX_EVIDENCE]
    return json.dumps([r._asdict() for r in distinct], separators=(",", ":"), ensure_ascii=False)


def or_none(value: int) -> int | None:
    """A number for a nullable column or for `details`: None where it is unknown, -1."""
    return value if value >= 0 else None
