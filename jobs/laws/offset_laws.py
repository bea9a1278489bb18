"""Laws of the rows of `rebalance_offsets`: what a rebalance costs in records follows from offsets, which only grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from coordinator_model.diagnosis.offset_catalogue import OFFSET_RESET, OFFSET_REWOUND, OFFSETS_EXPIRED
from jobs.laws.group_rows import Breaches, GroupRows, Row

_EXPLAIN: Final = frozenset({OFFSET_REWOUND.code, OFFSET_RESET.code, OFFSETS_EXPIRED.code})


def offsets_have_rebalance(group: GroupRows) -> Breaches:
    """Each row belongs to one rebalance, and its times follow each other."""
    times = {(row["started_at"], row["ended_at"]) for row in group.rebalances}
    since = min((row["started_at"] for row in group.rebalances), default=None)
    for row in group.offsets:
        if since is not None and row["started_at"] >= since and (row["started_at"], row["ended_at"]) not in times:
            yield _breach(row, "no rebalance has its times")
        resumed, caught_up = row["resumed_at"], row["caught_up_at"]
        if resumed is not None and (resumed < row["started_at"] or (caught_up is not None and caught_up < resumed)):
            yield _breach(row, "it was read again before the rebalance, or caught up before that")


def lag_not_negative(group: GroupRows) -> Breaches:
    """A log only grows, and nobody commits what is not there."""
    for row in group.offsets:
        if any(row[name] is not None and row[name] < 0 for name in ("lag_before", "lag_added", "unread_ms", "reread_min")):
            yield _breach(row, f"lag {row['lag_before']}, lag added {row['lag_added']}, unread {row['unread_ms']} ms")


def reread_was_read(group: GroupRows) -> Breaches:
    """No more records are read twice than there were, and the least is no more than the most."""
    for row in group.offsets:
        least, most = row["reread_min"], row["reread_max"]
        if (least is None) > (most is None) or (most is not None and not 0 <= least <= most):
            yield _breach(row, f"from {least} to {most} records were read twice")


def offsets_in_order(group: GroupRows) -> Breaches:
    """What is committed before a rebalance is not before what was committed before the one before, unless a finding says why."""
    explained = [row["occurred_at"] for row in group.findings if row["code"] in _EXPLAIN]
    by_partition: dict[str, list[Row]] = {}
    for row in sorted(group.offsets, key=lambda row: (row["committed_at"], row["started_at"])):
        by_partition.setdefault(row["partition"], []).append(row)
    for rows in by_partition.values():
        for one, other in pairwise(rows):
            back = other["committed_offset"] < one["committed_offset"]
            if back and not any(one["committed_at"] <= at <= other["committed_at"] for at in explained):
                yield _breach(other, f"{other['committed_offset']} follows {one['committed_offset']}")


def _breach(row: Row, text: str) -> tuple[Row, str]:
    return row, f"{row['partition']}: {text}"


LAWS: Final = (offsets_have_rebalance, lag_not_negative, reread_was_read, offsets_in_order)
