"""Reads from the log of a Delta table what delta-rs does not show: each commit, how far back they reach, and the last writers.

The log has `N.json`, the commit that made version N, and `N.checkpoint[.part.parts].parquet`, the sum of all versions up to N. A reader
of the table needs a checkpoint and the commits after it, or all commits.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow.parquet as pq
from deltalake import DeltaTable

LOG: Final = "_delta_log"
_FILE: Final = re.compile(r"\.?(\d{20})\..+")
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_LEAST_COMMITS: Final = 10  # fewer are not worth a checkpoint

Listing: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Commit:
    """One version of a table."""

    version: int
    actions: tuple[dict[str, Any], ...]

    @property
    def appended(self) -> list[str]:
        """Paths, as in the log, of the files with new rows. None if the commit removed rows too."""
        changes = [action for action in self.actions if any(file.get("dataChange", True) for file in _files_of(action))]
        return [] if any("remove" in action for action in changes) else [action["add"]["path"] for action in changes]

    @property
    def appended_at(self) -> list[tuple[str, int]]:
        """Those files with the times at which they were written, epoch ms."""
        times = {action["add"]["path"]: int(action["add"]["modificationTime"]) for action in self.actions if "add" in action}
        return [(path, times[path]) for path in self.appended]

    @property
    def added(self) -> list[str]:
        """Paths of all files that it put into the table."""
        return [action["add"]["path"] for action in self.actions if "add" in action]

    @property
    def transactions(self) -> dict[str, int]:
        """The last version that each application wrote with it, by the application's id."""
        return {action["txn"]["appId"]: action["txn"]["version"] for action in self.actions if "txn" in action}


def _files_of(action: dict[str, Any]) -> list[dict[str, Any]]:
    return [action[kind] for kind in ("add", "remove") if kind in action]


def _numbered(table: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path, re.Match[str]]]:
    """The files of the log that match, with their versions, ascending."""
    matches = ((path, match) for path in (table / LOG).iterdir() if (match := pattern.fullmatch(path.name)))
    return sorted(((int(match[1]), path, match) for path, match in matches), key=lambda entry: entry[:2])


def listing(table: Path) -> Listing | None:
    """What changes with each commit. Its first number is another one if another table takes the place; None: there is no table."""
    try:
        status = (table / LOG).stat()
        return status.st_ino, status.st_mtime_ns, sum(1 for _ in (table / LOG).iterdir())
    except FileNotFoundError:
        return None


def versions(table: Path) -> list[int]:
    """Versions whose commit is there, ascending."""
    return [version for version, _, _ in _numbered(table, _COMMIT)]


def commits(table: Path, first: int) -> Iterator[Commit]:
    """The commits from this version on that are there, in order."""
    for version, path, _ in _numbered(table, _COMMIT):
        if version >= first:
            yield _commit_of(version, path)


def commit_of(table: Path, version: int) -> Commit:
    """The commit that made a version. FileNotFoundError: it is not there."""
    return _commit_of(version, table / LOG / f"{version:020d}.json")


def _commit_of(version: int, path: Path) -> Commit:
    return Commit(version, tuple(json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()))


def checkpoints(table: Path) -> dict[int, list[Path]]:
    """The files of all complete checkpoints, by version."""
    files: dict[int, list[Path]] = {}
    parts: dict[int, int] = {}
    for version, path, match in _numbered(table, _CHECKPOINT):
        files.setdefault(version, []).append(path)
        parts[version] = int(match[2] or 1)
    return {version: paths for version, paths in files.items() if len(paths) >= parts[version]}


def transactions(table: Path, version: int) -> dict[str, int]:
    """The last version that each application wrote to the table, up to this version of the table."""
    written: dict[str, int] = {}
    checkpoint = max((at for at in checkpoints(table) if at <= version), default=-1)
    for path in checkpoints(table).get(checkpoint, []):
        for entry in pq.ParquetFile(path).read(columns=["txn"], use_threads=False)["txn"].to_pylist():
            if entry is not None and entry.get("appId") is not None:
                written[entry["appId"]] = entry["version"]
    for commit in commits(table, checkpoint + 1):
        if commit.version <= version:
            written |= commit.transactions
    return written


def tidy(table: Path, *, unread_from: int, older_than_s: float, dry_run: bool = False) -> int:
    """Makes a checkpoint, and deletes what an old enough checkpoint makes unnecessary; returns how many commits that are.

    `unread_from`: the first commit that a reader of the commits has still to read. `older_than_s`: seconds for which a checkpoint has to
    exist, so that a reader that began earlier can finish.
    """
    if not dry_run:
        current = DeltaTable(str(table))
        if current.version() - max(checkpoints(table), default=-1) >= _LEAST_COMMITS:
            current.create_checkpoint()
    now = time.time()
    usable = [
        version
        for version, paths in checkpoints(table).items()
        if version <= unread_from and all(now - path.stat().st_mtime >= older_than_s for path in paths)
    ]
    old = [path for version, path, _ in _numbered(table, _FILE) if version < max(usable, default=0)]
    for path in old if not dry_run else ():  # the oldest first: if this is interrupted, the log has no gaps
        path.unlink(missing_ok=True)
    return sum(_COMMIT.fullmatch(path.name) is not None for path in old)
