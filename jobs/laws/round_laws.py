"""Laws of the rows of `rebalance_rounds`: the rounds of a rebalance of the consumer protocol are the whole of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from jobs.laws.group_rows import Breaches, GroupRows, Row


def round_has_rebalance(group: GroupRows) -> Breaches:
    """Each round belongs to one rebalance: that with its generation, in whose time it began."""
    since = min((row["started_at"] for row in group.rebalances), default=None)
    for one in group.rounds:
        whose = [row for row in group.rebalances if _belongs(one, row)]
        if len(whose) != 1 and since is not None and one["started_at"] >= since:  # else its rebalance was removed with old rows
            yield one, f"epoch {one['epoch']} is in {len(whose)} rebalances"


def rounds_make_rebalance(group: GroupRows) -> Breaches:
    """They follow each other from its beginning to its end, are as many as it counts, and the first one has its cause."""
    since = min((one["started_at"] for one in group.rounds), default=None)
    for row in group.rebalances:
        if row.get("rounds") is None or since is None or row["started_at"] < since:  # older rounds may be removed already
            continue
        own = sorted((one for one in group.rounds if _belongs(one, row)), key=lambda one: (one["started_at"], one["epoch"]))
        for text in _wrong(row, own):
            yield row, text


def _wrong(row: Row, own: Sequence[Row]) -> Iterator[str]:
    if len(own) != row["rounds"]:
        yield f"{row['rounds']} rounds are counted, but {len(own)} are there"
        return
    first, last = own[0], own[-1]
    if (first["epoch"], last["epoch"]) != (row["first_epoch"], row["generation"]):
        yield f"its rounds are the epochs {first['epoch']} to {last['epoch']}, not {row['first_epoch']} to {row['generation']}"
    if any(other["epoch"] <= one["epoch"] for one, other in itertools.pairwise(own)):
        yield "an epoch is not higher than the one before"
    if first["started_at"] != row["started_at"]:
        yield f"its first round began {first['started_at'] - row['started_at']} ms after it"
    if (first["cause"], first["member_id"]) != (row["cause"], row["member_id"]):
        yield f"its cause is {row['cause']} of {row['member_id']}, that of its first round {first['cause']} of {first['member_id']}"
    if [one["superseded"] for one in own] != [True] * (len(own) - 1) + [False]:
        yield "not all rounds but the last one are superseded"
    if any(one["reconciled_at"] is not None for one in own[:-1]):
        yield "a round that was superseded was reached by all members"
    if last["reconciled_at"] not in (None, row["ended_at"]):
        yield f"all members had the last assignment {row['ended_at'] - last['reconciled_at']} ms before the end"


def _belongs(one: Row, row: Row) -> bool:
    return bool(one["generation"] == row["generation"] and row["started_at"] <= one["started_at"] <= row["ended_at"])


LAWS: Final = (round_has_rebalance, rounds_make_rebalance)
