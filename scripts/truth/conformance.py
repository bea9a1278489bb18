"""Runs the pipeline over recordings of real brokers and compares every rebalance with the broker's own account of it.

    python -m scripts.truth.conformance [RECORDING ...]

Each recording (scripts/truth/recordings.py; default: the bundled ones) is tracked three times in one run, as three clusters: from
the coordinator log alone, from the request log alone, and from both.

Exit code 1 if a rebalance is missing, comes twice or was invented, a time is off by more than its evidence allows, or the broker
answered otherwise than the specification.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts.truth.recordings import EVIDENCE, REQUEST_LOG, Row, cluster, pair, read_all, tables, track
from scripts.truth.truth import control_groups

JOINED_WITHIN_MS: Final = 100
HEARTBEAT_INTERVAL_MS: Final = 3_000  # the clients' default; the recordings' clients use it or a shorter one


@dataclass
class Score:
    """How the rebalances of one recording, from one kind of evidence, compare with the broker's."""

    expected: int
    found: int = 0
    missing: list[Row] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    started: list[int] = field(default_factory=list)  # ours minus the broker's, ms
    joined: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    healthy_findings: list[Row] = field(default_factory=list)
    divergences: list[Row] = field(default_factory=list)

    def faults(self, *, exact: bool) -> list[str]:
        """What breaks the promise. `exact`: the coordinator's log was at hand."""
        faults = [f"missing: {row['group']} generation {row['generation']}" for row in self.missing]
        faults += [f"extra: {row['group_id']} generation {row['generation']}" for row in self.extra]
        faults += [f"finding on a healthy group: {row['group_id']} {row['code']}" for row in self.healthy_findings]
        faults += [f"answered otherwise than Kafka: {row['group_id']} {row['message']}" for row in self.divergences]
        limits = (("started_at", self.started, HEARTBEAT_INTERVAL_MS), ("joined_at", self.joined, JOINED_WITHIN_MS))
        for name, errors, limit in (*limits, ("ended_at", self.ended, JOINED_WITHIN_MS)):
            worst = max((abs(error) for error in errors), default=0)
            if worst > (0 if exact else limit):
                faults.append(f"{name} off by up to {worst} ms")
        return faults


def compare(expected: Sequence[Row], rebalances: Iterable[Row], findings: Iterable[Row], healthy: frozenset[str]) -> Score:
    """Compares each of the broker's rebalances with ours. `rebalances`, `findings`: rows of the tables, times as epoch ms."""
    pairs, extra = pair(expected, rebalances)
    told = list(findings)
    score = Score(
        len(expected),
        extra=extra,
        healthy_findings=[row for row in told if row["group_id"] in healthy],
        divergences=[row for row in told if row["code"] == "MODEL_DIVERGENCE"],
    )
    for theirs, row in pairs:
        if row is None:
            score.missing.append(theirs)
            continue
        score.found += 1
        score.started.append(row["started_at"] - theirs["preparing_at"])
        if theirs["stabilized_at"] is not None and row["joined_at"] is not None:
            score.joined.append(row["joined_at"] - theirs["stabilized_at"])
        end = theirs["assignment_at"] or theirs["became_empty_at"]
        if end is not None:
            score.ended.append(row["ended_at"] - end)
    return score


def span(errors: Sequence[int]) -> str:
    """Smallest and largest error."""
    return f"{min(errors):+d} … {max(errors):+d}" if errors else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path, help="folders of recordings (default: the bundled ones)")
    try:
        recordings = read_all(parser.parse_args(argv).recordings)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    failed = False
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        lakehouse = track(recordings, Path(name))
        print(
            f"\n{'recording':<14}{'evidence':<17}{'expected':>8}{'found':>7}{'missing':>9}{'extra':>7}"
            "  error in ms of started_at, joined_at, ended_at"
        )
        for recording in recordings:
            for evidence in EVIDENCE:
                ours = tables(lakehouse, cluster(recording, evidence))
                score = compare(recording.classic, ours["rebalances"], ours["findings"], control_groups(recording))
                print(
                    f"{recording.name:<14}{evidence:<17}{score.expected:>8}{score.found:>7}{len(score.missing):>9}{len(score.extra):>7}"
                    f"  {span(score.started)}   {span(score.joined)}   {span(score.ended)}"
                )
                for fault in score.faults(exact=evidence != REQUEST_LOG):
                    failed = True
                    print(f"  FAULT {fault}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
