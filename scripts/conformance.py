"""Runs the pipeline over recordings of real brokers and compares every rebalance with the broker's own account of it.

    python scripts/conformance.py [RECORDING ...]

A recording is a folder with `broker-N/` logs, `rebalances.jsonl` (the broker's account, derived from server.log alone) and a
README.md that names the zone of the brokers; default: the bundled ones. Each is tracked three times in one run, as
three clusters: from the coordinator log alone, from the request log alone, and from both.

Exit code 1 if a rebalance is missing, comes twice or was invented, a time is off by more than its evidence allows, or the broker
answered otherwise than the specification.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from rich.console import Console

from jobs.pipeline import run
from jobs.progress import Progress
from jobs.settings import Settings

BUNDLED: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "recordings"
EVIDENCE: Final = {"coordinator log": ("server",), "request log": ("kafka-request",), "both logs": ("server", "kafka-request")}
JOINED_WITHIN_MS: Final = 100
HEARTBEAT_INTERVAL_MS: Final = 3_000  # the clients' default; the recordings' clients use it or a shorter one
HEALTHY: Final = re.compile(r"^\| s22 \|[^|]*\| ([^|]+) \|", re.MULTILINE)
ZONE: Final = re.compile(r"Time zone of the brokers[^*]*\*\*([A-Za-z/_]+)")


@dataclass(frozen=True)
class Recording:
    """One folder of recordings."""

    folder: Path
    zone: str
    healthy: frozenset[str]
    expected: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Reads what the recording says of itself. ValueError if it is none."""
        try:
            readme = (folder / "README.md").read_text(encoding="utf-8")
            lines = (folder / "rebalances.jsonl").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ValueError(f"{folder} is not a recording: {error}") from None
        zone = ZONE.search(readme)
        rows = [json.loads(line) for line in lines]
        return cls(
            folder,
            zone.group(1) if zone else "UTC",
            frozenset(name.strip() for match in HEALTHY.findall(readme) for name in match.split(",")),
            tuple(row for row in rows if row["protocol"] == "classic"),
        )


@dataclass
class Score:
    """How the rebalances of one recording, from one kind of evidence, compare with the broker's."""

    expected: int
    found: int = 0
    missing: list[dict[str, Any]] = field(default_factory=list)
    extra: list[dict[str, Any]] = field(default_factory=list)
    started: list[int] = field(default_factory=list)  # ours minus the broker's, ms
    joined: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    healthy_findings: list[dict[str, Any]] = field(default_factory=list)
    divergences: list[dict[str, Any]] = field(default_factory=list)

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


def compare(
    expected: Sequence[dict[str, Any]],
    rebalances: Iterable[dict[str, Any]],
    findings: Iterable[dict[str, Any]],
    healthy: frozenset[str],
) -> Score:
    """Pairs each of the broker's rebalances with ours of the same group and generation, nearest in time first.

    `rebalances`, `findings`: rows of the tables, times as epoch ms.
    """
    score = Score(len(expected))
    ours: dict[tuple[str, int | None], list[dict[str, Any]]] = {}
    for row in rebalances:
        ours.setdefault((row["group_id"], row["generation"]), []).append(row)
    for theirs in expected:
        candidates = ours.get((theirs["group"], theirs["generation"]), [])
        if not candidates:
            score.missing.append(theirs)
            continue
        row = min(candidates, key=lambda r: abs(r["started_at"] - theirs["preparing_at"]))
        candidates.remove(row)
        score.found += 1
        score.started.append(row["started_at"] - theirs["preparing_at"])
        if theirs["stabilized_at"] is not None and row["joined_at"] is not None:
            score.joined.append(row["joined_at"] - theirs["stabilized_at"])
        end = theirs["assignment_at"] or theirs["became_empty_at"]
        if end is not None:
            score.ended.append(row["ended_at"] - end)
    score.extra = [row for rows in ours.values() for row in rows]
    rows = list(findings)
    score.healthy_findings = [row for row in rows if row["group_id"] in healthy]
    score.divergences = [row for row in rows if row["code"] == "MODEL_DIVERGENCE"]
    return score


def stage(recordings: Sequence[Recording], folder: Path) -> Settings:
    """Lays the recordings out as INPUT/<cluster>/<broker>/, a cluster for each kind of evidence."""
    zones = []
    for recording in recordings:
        for evidence, names in EVIDENCE.items():
            cluster = f"{recording.folder.name} {evidence}"
            zones.append((cluster, recording.zone))
            for log in sorted(recording.folder.glob("broker-*/*.log*")):
                if log.name.startswith(names):
                    target = folder / cluster / log.parent.name / log.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(log, target)
    return Settings(timezones=tuple(sorted(zones)))


def rows(lakehouse: Path, table: str, cluster: str) -> list[dict[str, Any]]:
    """A table's rows of one cluster, times as epoch ms."""
    data = DeltaTable(str(lakehouse / table)).to_pyarrow_table(filters=[("cluster", "=", cluster)])
    return [{k: round(v.timestamp() * 1_000) if hasattr(v, "timestamp") else v for k, v in row.items()} for row in data.to_pylist()]


def span(errors: Sequence[int]) -> str:
    """Smallest and largest error."""
    return f"{min(errors):+d} … {max(errors):+d}" if errors else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path, help="folders of recordings (default: the bundled ones)")
    arguments = parser.parse_args(argv)
    folders = arguments.recordings or sorted(path.parent for path in BUNDLED.glob("*/rebalances.jsonl"))
    try:
        recordings = [Recording.read(folder) for folder in folders]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    failed = False
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        source, lakehouse = Path(name, "input"), Path(name, "lakehouse")
        settings = stage(recordings, source)
        run(source, lakehouse, settings=settings, once=True, progress=Progress(Console(stderr=True)), short_run=True)
        print(
            f"\n{'recording':<14}{'evidence':<17}{'expected':>8}{'found':>7}{'missing':>9}{'extra':>7}"
            "  error in ms of started_at, joined_at, ended_at"
        )
        for recording in recordings:
            for evidence in EVIDENCE:
                cluster = f"{recording.folder.name} {evidence}"
                score = compare(
                    recording.expected,
                    rows(lakehouse, "rebalances", cluster),
                    rows(lakehouse, "findings", cluster),
                    recording.healthy,
                )
                print(
                    f"{recording.folder.name:<14}{evidence:<17}{score.expected:>8}{score.found:>7}{len(score.missing):>9}{len(score.extra):>7}"
                    f"  {span(score.started)}   {span(score.joined)}   {span(score.ended)}"
                )
                for fault in score.faults(exact=evidence != "request log"):
                    failed = True
                    print(f"  FAULT {fault}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
