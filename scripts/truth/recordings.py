"""Recordings of real brokers, and runs of the pipeline over them with each kind of evidence.

A recording is a folder with logs in `broker-N/`, and in `clients/` if there are any of consumers; `rebalances.jsonl`, the broker's account
derived from server.log alone; a README.md that names the brokers' time zone; and, for the score, `truth.jsonl`: what was done to the
consumers, and what that should cause.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO, cast

from coordinator_model.events import CLIENTS

Row = dict[str, Any]
"""A row of a table or a line of a .jsonl file; times are epoch ms."""

BUNDLED: Final = Path(__file__).resolve().parents[2] / "tests" / "data" / "recordings"
COORDINATOR_LOG: Final = "coordinator log"
REQUEST_LOG: Final = "request log"
BOTH: Final = "both logs"
LOG_AND_CLIENTS: Final = "coordinator and client logs"
ALL: Final = "all logs"
EVIDENCE: Final = {
    COORDINATOR_LOG: ("server",),
    REQUEST_LOG: ("kafka-request",),
    BOTH: ("server", "kafka-request"),
    LOG_AND_CLIENTS: ("server", CLIENTS),
    ALL: ("server", "kafka-request", CLIENTS),
}
"""The first parts of their file names; client logs are in a separate folder."""
TABLES: Final = ("rebalances", "rebalance_rounds", "group_transitions", "member_sessions", "findings")
_DEPARTURE: Final = re.compile(
    r"Member (?:MemberMetadata\(memberId=([^,]+),.*|(\S+) )has left group .*LeaveGroup`.*client reason: (.*) \([\w.]+\)$"
)
_ZONE: Final = re.compile(r"Time zone of the brokers[^*]*\*\*([A-Za-z/_]+)")


@dataclass(frozen=True)
class Recording:
    """One folder of recordings."""

    folder: Path
    zone: str
    rebalances: tuple[Row, ...]  # of both protocols
    truth: tuple[Row, ...]
    departures: dict[str, str]  # member id: its client's reason for leaving; Kafka 4 logs it on a separate line

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def classic(self) -> tuple[Row, ...]:
        """The rebalances that Kafka itself calls classic."""
        return tuple(row for row in self.rebalances if row["protocol"] == "classic")

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Reads a recording. ValueError if the folder is none."""
        try:
            readme = (folder / "README.md").read_text(encoding="utf-8")
            rebalances = _lines(folder / "rebalances.jsonl")
            truth = _lines(folder / "truth.jsonl") if (folder / "truth.jsonl").exists() else ()
            departures = dict(_departures(folder))
        except (OSError, ValueError) as error:
            raise ValueError(f"{folder} is not a recording: {error}") from None
        zone = _ZONE.search(readme)
        return cls(folder, zone.group(1) if zone else "UTC", rebalances, truth, departures)


def _lines(path: Path) -> tuple[Row, ...]:
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line)


def open_text(path: Path) -> TextIO:
    """Opens a log, plain or gzip."""
    return cast("TextIO", gzip.open(path, "rt", encoding="utf-8")) if path.suffix == ".gz" else path.open(encoding="utf-8")


def _departures(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("broker-*/server.log*")):
        with open_text(path) as log:
            for line in log:
                match = _DEPARTURE.search(line) if "has left group" in line else None
                if match:
                    yield match.group(1) or match.group(2), "" if match.group(3) == "not provided" else match.group(3)


def from_arguments(argv: Sequence[str] | None, program: str, description: str | None) -> list[Recording]:
    """The recordings that the command line names. Exits with code 2 if a folder is no recording."""
    parser = argparse.ArgumentParser(prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path, help="folders of recordings (default: the bundled ones)")
    try:
        return read_all(parser.parse_args(argv).recordings)
    except ValueError as error:
        parser.error(str(error))


def read_all(folders: Sequence[Path]) -> list[Recording]:
    """The recordings in these folders, by default the bundled ones. ValueError if one is no recording."""
    return [Recording.read(folder) for folder in folders or sorted(path.parent for path in BUNDLED.glob("*/rebalances.jsonl"))]


def cluster(recording: Recording, evidence: str) -> str:
    """The name of the cluster with one kind of evidence of the recording."""
    return f"{recording.name} {evidence}"


def stage(recordings: Sequence[Recording], folder: Path, kinds: Iterable[str] = tuple(EVIDENCE)) -> dict[str, str]:
    """Copies the recordings to `folder`/<cluster>/<broker>/, a cluster for each kind of evidence; returns the clusters' time zones."""
    zones = {}
    for recording in recordings:
        for evidence in kinds:
            names = EVIDENCE[evidence]
            zones[cluster(recording, evidence)] = recording.zone
            logs = sorted(recording.folder.glob("broker-*/*.log*"))
            clients = sorted(recording.folder.glob(f"{CLIENTS}/*.log*")) if CLIENTS in names else []
            for log in (*logs, *clients):
                if log.name.startswith(names) or log.parent.name == CLIENTS:
                    target = folder / cluster(recording, evidence) / log.parent.name / log.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(log, target)
    return zones


def track(recordings: Sequence[Recording], folder: Path) -> Path:
    """Makes the tables of the recordings with all kinds of evidence in `folder`; returns the lakehouse. The logs are in `folder`/input."""
    from jobs.common.settings import Settings
    from jobs.pipeline import at_once

    lakehouse = folder / "lake"
    settings = Settings(timezones=tuple(sorted(stage(recordings, folder / "input").items())), shards=8)
    at_once.process(folder / "input", lakehouse, settings=settings, most_lines=sys.maxsize)
    return lakehouse


def tables(lakehouse: Path, cluster_name: str, *, every_protocol: bool = False) -> dict[str, list[Row]]:
    """The rows of one cluster, by table. Of `rebalances`: those of the classic protocol, or of every one."""
    from jobs.common.times import epoch_ms
    from jobs.lakehouse.reader import table_rows

    return {
        name: [
            {k: epoch_ms(v) if isinstance(v, datetime) else v for k, v in row.items()}
            for row in table_rows(lakehouse / name)
            if row["cluster"] == cluster_name and (every_protocol or row.get("group_protocol") != "consumer")
        ]
        for name in TABLES
    }


def pair(expected: Iterable[Row], rebalances: Iterable[Row]) -> tuple[list[tuple[Row, Row | None]], list[Row]]:
    """Pairs each of the broker's rebalances with the row of the same group and generation that is nearest in time.

    Returns (the broker's, the row or None) for each of the broker's rebalances, and the rows that are left over.
    """
    rows: dict[tuple[str, int | None], list[Row]] = {}
    for row in rebalances:
        rows.setdefault((row["group_id"], row["generation"]), []).append(row)
    pairs: list[tuple[Row, Row | None]] = []
    for truth in expected:
        candidates = rows.get((truth["group"], truth["generation"]), [])
        nearest = min(candidates, key=lambda row: abs(row["started_at"] - truth["preparing_at"]), default=None)
        if nearest is not None:
            candidates.remove(nearest)
        pairs.append((truth, nearest))
    return pairs, [row for left in rows.values() for row in left]
