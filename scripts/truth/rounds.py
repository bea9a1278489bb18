"""Compares the rounds of consumer groups (KIP-848) with the epochs that the coordinator logged, and with what was done to the clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from scripts.truth.recordings import REQUEST_LOG, Recording, Row

LONGEST_MS: Final = 25_000
"""From what was done to the round that it caused: a session of 9 s ends, and the broker's timers and clients take their time."""
CLOCK_MS: Final = 200
CAUSES: Final = {
    "JOIN": "MEMBER_JOINED",
    "LEAVE": "MEMBER_LEFT",
    "SESSION_TIMEOUT": "SESSION_TIMEOUT",
    "ZOMBIE": "MEMBER_JOINED",
    "SUBSCRIPTION_CHANGE": "SUBSCRIPTION_CHANGED",
    "STATIC_REJOIN_NO_REBALANCE": "SUBSCRIPTION_CHANGED",  # the client came back with other topics than it had
}
"""What a round is caused by, for each label of the truth."""


def compare(recording: Recording, evidence: str, rounds: Sequence[Row]) -> tuple[Counter[str], list[str]]:
    """How many epochs there are, are a round, have the right cause and client, or none; and what is wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    rows: dict[tuple[str, int], list[Row]] = {}
    for row in rounds:
        rows.setdefault((row["group_id"], row["epoch"]), []).append(row)
    for epoch in (row for row in recording.rebalances if row["protocol"] == "consumer"):
        counts["epochs"] += 1
        name = f"{epoch['group']} epoch {epoch['generation']}"
        found = rows.pop((epoch["group"], epoch["generation"]), [])
        if len(found) != 1:
            wrong.append(f"{name}: {len(found)} rounds")
            continue
        row = found[0]
        counts["rounds"] += 1
        if evidence != REQUEST_LOG and row["started_at"] != epoch["epoch_bumped_at"]:
            wrong.append(f"{name}: {row['started_at'] - epoch['epoch_bumped_at']} ms late")
        if row["cause"] == "UNKNOWN":
            counts["unknown"] += 1
        elif _was_done(recording, row):
            counts["right"] += 1
        else:
            wrong.append(f"{name}: {row['cause']} of {row['client_id'] or row['member_id']}, and nothing was done")
    wrong += [f"{group} epoch {epoch}: no such epoch" for group, epoch in rows]
    return counts, wrong


def _was_done(recording: Recording, row: Row) -> bool:
    return any(
        action["group"] == row["group_id"]
        and -CLOCK_MS <= row["started_at"] - action["ts_ms"] <= LONGEST_MS
        and row["cause"] in {CAUSES.get(label) for label in action["expect"].split("|")}
        and row["client_id"] in (None, action["client_id"])
        for action in recording.truth
    )
