"""Laws of rows beside the lines that they are made of: what lies in time, and who was heard in time.

Times of one broker alone are compared: clocks differ.
"""

from __future__ import annotations

import json
from typing import Final

from jobs.laws.group_rows import Breaches, GroupRows, Row

AFTER_REBALANCE_MS: Final = 2_500
"""The answers with its assignment are logged after its end, and the tracker waits for them so long."""
BEFORE_REBALANCE_MS: Final = 10_000
"""From the request that began it, or the line about it, to the start that is told."""
BEFORE_SESSION_MS: Final = 1_000
AFTER_SESSION_MS: Final = 10_000
"""A static member that left for a while is replaced when it comes back: its row ends when it left, and the line is that of its return."""
AT_ONCE_MS: Final = 1_000
"""The timer of a session may be late, and the two times of a line are rounded."""

_SILENT: Final = frozenset({"SESSION_TIMEOUT", "POLL_TIMEOUT", "COORDINATOR_MOVED", "UNKNOWN"})
"""Causes that are shown by a member's last sign of life, however long before."""
_LIMITS: Final = {"SESSION_TIMEOUT": "session_timeout_ms"}
"""What a finding says that a member did not do in time, by the detail that has the time."""


def evidence_in_time(group: GroupRows) -> Breaches:
    """The lines of a rebalance, and those of a membership, were written in its time, or so soon before or after as they may be."""
    lines = {(line["origin"], str(line["position"])): line for line in group.lines}
    for row in group.rebalances:
        first_ms = None if row.get("cause") in _SILENT else row["started_at"] - BEFORE_REBALANCE_MS
        yield from _outside(row, lines, first_ms, row["ended_at"] + AFTER_REBALANCE_MS)
    for row in group.sessions:
        first_ms = None if row["joined_at"] is None or row["end_kind"] == "REPLACED" else row["joined_at"] - BEFORE_SESSION_MS
        yield from _outside(row, lines, first_ms, row["ended_at"] + AFTER_SESSION_MS)


def _outside(row: Row, lines: dict[tuple[str, str], Row], first_ms: int | None, last_ms: int) -> Breaches:
    places = [(ref["origin"], str(ref["position"])) for ref in json.loads(row.get("evidence") or "[]")]
    found = [lines[place] for place in places if place in lines]
    for line in found:
        if line["broker"] != found[0]["broker"]:
            continue
        early_ms = 0 if first_ms is None else first_ms - line["occurred_at"]
        late_ms = (line["received_at"] or line["occurred_at"]) - last_ms
        if early_ms > 0 or late_ms > 0:
            when = f"{early_ms} ms too early" if early_ms > 0 else f"{late_ms} ms too late"
            what = f"a rebalance to {row['generation']}" if "started_at" in row else f"the time of member {row['member_id']}"
            yield row, f"{line['origin']}:{line['position']} was written {when} to be evidence of {what}"


def heard_in_time(group: GroupRows) -> Breaches:
    """No finding says that nothing came in time of a member whose requests arrived in time, and were accepted by that broker."""
    for row in group.findings:
        limit_ms = json.loads(row["details"]).get(_LIMITS.get(row["code"]))
        if limit_ms is None:
            continue
        since_ms = row["occurred_at"] - limit_ms + AT_ONCE_MS
        heard = [
            at_ms
            for sign in group.signs
            if sign["member_id"] == row["member_id"] and sign["id"] == row.get("id")
            for at_ms in (sign["received_at"], sign["last_at"])
            if at_ms is not None and since_ms < at_ms < row["occurred_at"]
        ]
        if heard:
            yield row, f"{row['code']} of {row['member_id']}, which was heard {row['occurred_at'] - max(heard)} ms before"


LAWS: Final = (evidence_in_time, heard_in_time)
