"""Finds log files, and the cluster and the broker or client that each belongs to.

The folder names carry what the lines do not say. These layouts are understood:

* `INPUT/<cluster>/<broker>/*.log[.gz]`, the documented layout, any number of clusters;
* `INPUT/<broker>/*.log`: INPUT is itself a cluster and lends it its name;
* `INPUT/*.log`, or INPUT a single file: one cluster, under a default name; beside folders of brokers or clients it is theirs;
* `clients` in the place of a broker: logs of client applications, `clients/<group>/*.log` where their lines do not name the group.

Deeper folders belong to the broker above them. Rotated files count: every file whose name has `.log` in it.

Beside brokers a cluster may have the folders `offsets` and `poll` with files of records (record_judge.py), `*.jsonl[.gz]`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.logs.bytes import open_log
from jobs.logs.record_judge import FOLDERS, is_record_file, record_source

DEFAULT_CLUSTER: Final = "default"
DEFAULT_BROKER: Final = "broker-0"

_LOG_NAME: Final = re.compile(r"\.log(?:$|[.\-_\d])")
_FOREIGN_NAME: Final = re.compile(
    # Kafka's own data segments are called .log too; the rest lies next to logs without being one.
    r"^\d{20}\.log|\.(?:jsonl?|md|html?|properties|ya?ml|xml|parquet|lck|lock|sw[op]|tmp|part|crc|md5|sha\d+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True)
class LogFile:
    """One log file. `origin` is its path relative to the input, with forward slashes: what evidence names."""

    cluster: str
    broker: str
    origin: str
    path: Path


def discover(root: Path, *, cluster: str = DEFAULT_CLUSTER, broker: str = DEFAULT_BROKER) -> list[LogFile]:
    """All broker logs at `root`, a file or a folder, in a fixed order. `cluster` and `broker` are the names where no folder gives one.

    A file as `root` is a log whatever its name.
    """
    if not root.exists():
        raise FileNotFoundError(f"no such file or folder: {root}")
    if root.is_file() and is_record_file(root.name):
        return [LogFile(cluster, record_source(head_of(root)), file_name_text(root.name), root)]
    if root.is_file():
        return [LogFile(cluster, broker, file_name_text(root.name), root)]
    paths = list(walk(root))
    if () in paths:
        next(root.iterdir(), None)  # raises why it cannot be listed
    folders_with_logs = {parts[0] for parts in paths if len(parts) == 2 or parts[0] == CLIENTS}
    own_name = file_name_text(root.resolve().name) or cluster
    files = []
    for parts in paths:
        if len(parts) == 1:
            names = (own_name if folders_with_logs else cluster, broker)
        elif parts[0] in folders_with_logs:
            names = (own_name, file_name_text(parts[0]))
        else:
            names = (file_name_text(parts[0]), file_name_text(parts[1]))
        if is_record_file(parts[-1]):
            names = (names[0] if len(parts) > 2 else own_name, parts[-2])
        files.append(LogFile(*names, file_name_text("/".join(parts)), root.joinpath(*parts)))
    return sorted(files)


def is_log_name(name: str) -> bool:
    """Whether a file of this name may be a log: `server.log`, `server.log.1`, `kafka-request.log.2026-11-21-06.gz`."""
    return bool(_LOG_NAME.search(name)) and not _FOREIGN_NAME.search(name) and not name.startswith((".", "_"))


def walk(root: Path) -> Iterator[tuple[str, ...]]:
    """Paths of log files below `root`, as name parts. Linked folders are followed, each once.

    A path may be none that can be read: a pipe, a dead link, a folder that this user may not list. Who opens it finds out and says so.
    """
    visited: set[str] = set()
    denied: list[OSError] = []
    for folder, folders, names in os.walk(root, followlinks=True, onerror=denied.append):
        real = os.path.realpath(folder)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(f for f in folders if not f.startswith((".", "_")))
        parts = Path(folder).relative_to(root).parts
        for name in names:
            is_wanted = is_log_name(name) or (is_record_file(name) and len(parts) > 0 and parts[-1] in FOLDERS)
            if is_wanted:
                yield (*parts, name)
    for error in denied:
        yield Path(error.filename).relative_to(root).parts


def head_of(path: Path) -> bytes:
    """The first bytes of a log."""
    file = open_log(path)
    try:
        return file.head()
    finally:
        file.close()


def file_name_text(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become escapes, because a table cannot hold them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
