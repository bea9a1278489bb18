"""Runs the pipeline over recordings of real brokers, and compares every rebalance with the broker's own account of it.

    python -m scripts.truth.conformance [RECORDING ...]

One run tracks each recording (scripts/truth/recordings.py; default: the bundled ones) once for each kind of evidence, as clusters.

Exit code 1 if a rebalance is missing, duplicate or invented, a time is off by more than its evidence allows, a healthy group has a
finding, or an answer differs from the specification's.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts.truth.recordings import EVIDENCE, REQUEST_LOG, Row, cluster, from_arguments, pair, tables, track
from scripts.truth.truth import control_groups

JOINED_WITHIN_MS: Final = 100
HEARTBEAT_INTERVAL_MS: Final = 3_000  # the clients' default; the recordings' clients use it or a shorter one


@dataclass
class Conformance:
    """How the rebalances from one kind of evidence compare with the broker's."""

    expected: int
    found: int = 0
    missing: list[Row] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    started: list[int] = field(default_factory=list)  # the row's time minus the broker's, ms
    joined: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    healthy_findings: list[Row] = field(default_factory=list)
    divergences: list[Row] = field(default_factory=list)

    def faults(self, *, exact: bool) -> list[str]:
        """All faults, one line each. `exact`: the coordinator's log is part of the evidence."""
        faults = [f"missing: {row['group']} generation {row['generation']}" for row in self.missing]
        faults += [f"extra: {row['group_id']} generation {row['generation']}" for row in self.extra]
        faults += [f"finding on a healthy group: {row['group_id']} {row['code']}" for row in self.healthy_findings]
        faults += [f"answered differently from Kafka: {row['group_id']} {row['message']}" for row in self.divergences]
        limits = (("started_at", self.started, HEARTBEAT_INTERVAL_MS), ("joined_at", self.joined, JOINED_WITHIN_MS))
        for name, errors, limit in (*limits, ("ended_at", self.ended, JOINED_WITHIN_MS)):
            worst = max((abs(error) for error in errors), default=0)
            if worst > (0 if exact else limit):
                faults.append(f"{name} off by up to {worst} ms")
        return faults


def compare(expected: Sequence[Row], rebalances: Iterable[Row], findings: Iterable[Row], healthy: frozenset[str]) -> Conformance:
    """Compares each of the broker's rebalances with the rows of the tables, whose times are epoch ms."""
    pairs, extra = pair(expected, rebalances)
    result = Conformance(len(expected), extra=extra)
    for finding in findings:
        if finding["group_id"] in healthy:
            result.healthy_findings.append(finding)
        if finding["code"] == "MODEL_DIVERGENCE":
            result.divergences.append(finding)
    for truth, row in pairs:
        if row is None:
            result.missing.append(truth)
            continue
        result.found += 1
        result.started.append(row["started_at"] - truth["preparing_at"])
        if truth["stabilized_at"] is not None and row["joined_at"] is not None:
            result.joined.append(row["joined_at"] - truth["stabilized_at"])
        end = truth["assignment_at"] or truth["became_empty_at"]
        if end is not None:
            result.ended.append(row["ended_at"] - end)
    return result


def span(errors: Sequence[int]) -> str:
    """Smallest and largest error."""
    return f"{min(errors):+d} … {max(errors):+d}" if errors else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    recordings = from_arguments(argv, "conformance", __doc__)
    failed = False
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        lakehouse = track(recordings, Path(name))
        print(
            f"\n{'recording':<14}{'evidence':<17}{'expected':>8}{'found':>7}{'missing':>9}{'extra':>7}"
            "  error in ms of started_at, joined_at, ended_at"
        )
        for recording in recordings:
            for evidence in EVIDENCE:
                rows = tables(lakehouse, cluster(recording, evidence))
                result = compare(recording.classic, rows["rebalances"], rows["findings"], control_groups(recording))
                print(
                    f"{recording.name:<14}{evidence:<17}{result.expected:>8}{result.found:>7}{len(result.missing):>9}{len(result.extra):>7}"
                    f"  {span(result.started)}   {span(result.joined)}   {span(result.ended)}"
                )
                for fault in result.faults(exact=evidence != REQUEST_LOG):
                    failed = True
                    print(f"  FAULT {fault}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
