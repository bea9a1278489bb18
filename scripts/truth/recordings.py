"""Recordings of real brokers, and runs of the pipeline over them with each kind of evidence.

A recording is a folder with logs in `broker-N/`, and in `clients/` if there are any of consumers; and a README.md that names the brokers'
time zone.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO, cast

from coordinator_model.events import CLIENTS

Row = dict[str, Any]
"""A row of a table; times are epoch ms."""

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
_ZONE: Final = re.compile(r"Time zone of the brokers[^*]*\*\*([A-Za-z/_]+)")


class Recording(NamedTuple):
    """One folder of recordings."""

    folder: Path
    zone: str

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Reads a recording. ValueError: the folder is none."""
        try:
            zone = _ZONE.search((folder / "README.md").read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{folder} is not a recording: {error}") from None
        return cls(folder, zone.group(1) if zone else "UTC")


def open_text(path: Path) -> TextIO:
    """Opens a log, plain or gzip."""
    return cast("TextIO", gzip.open(path, "rt", encoding="utf-8")) if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_all(folders: Sequence[Path]) -> list[Recording]:
    """The recordings in these folders, by default the bundled ones. ValueError: one is no recording."""
    return [Recording.read(folder) for folder in folders or sorted(path.parent for path in BUNDLED.glob("*/README.md"))]


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
