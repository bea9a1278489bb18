"""What the log of a Delta table tells and delta-rs does not: its commits one by one, how far back it goes, who wrote last.

Files of the log: `N.json`, the commit that made version N; `N.checkpoint[.part.parts].parquet`, all that versions up to N add up to.
Whoever opens a table needs a checkpoint and the commits after it, or all commits.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from deltalake import DeltaTable

LOG: Final = "_delta_log"
_FILE: Final = re.compile(r"\.?(\d{20})\..+")
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet|(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_LEAST_COMMITS: Final = 10
"""Commits after which a checkpoint is worth while."""


@dataclass(frozen=True)
class Commit:
    """One version of a table."""

    version: int
    actions: tuple[dict[str, Any], ...]

    @property
    def appended(self) -> list[str]:
        """Paths of the files whose rows are new, as the log has them: none, if the commit took rows away too."""
        if any(self._changes("remove")):
            return []
        return [action["path"] for action in self._changes("add")]

    @property
    def added(self) -> list[str]:
        """Paths of all files that it put into the table."""
        return [action["add"]["path"] for action in self.actions if "add" in action]

    @property
    def transactions(self) -> dict[str, int]:
        """What applications wrote with it: their last version by their id."""
        return {action["txn"]["appId"]: action["txn"]["version"] for action in self.actions if "txn" in action}

    def _changes(self, kind: str) -> Iterator[dict[str, Any]]:
        return (action[kind] for action in self.actions if kind in action and action[kind].get("dataChange", True))


def versions(table: Path) -> list[int]:
    """Versions whose commit is there, ascending."""
    return sorted(int(found[1]) for path in (table / LOG).iterdir() if (found := _COMMIT.fullmatch(path.name)))


def commits(table: Path, first: int) -> Iterator[Commit]:
    """The commits from this version on, in order, as far as there are any."""
    for version in versions(table):
        if version >= first:
            yield _read(table / LOG / f"{version:020}.json", version)


def _read(path: Path, version: int) -> Commit:
    with path.open(encoding="utf-8") as lines:
        return Commit(version, tuple(json.loads(line) for line in lines if line.strip()))


def checkpoints(table: Path) -> dict[int, list[Path]]:
    """The checkpoints that are whole, by version."""
    found: dict[int, list[Path]] = {}
    wanted: dict[int, int] = {}
    for path in (table / LOG).iterdir():
        if match := _CHECKPOINT.fullmatch(path.name):
            version = int(match[1] or match[2])
            found.setdefault(version, []).append(path)
            wanted[version] = int(match[4] or 1)
    return {version: paths for version, paths in sorted(found.items()) if len(paths) >= wanted[version]}


def transactions(table: Path, version: int) -> dict[str, int]:
    """The last version that each application wrote to the table up to this version of it."""
    known: dict[str, int] = {}
    newest = max((at for at in checkpoints(table) if at <= version), default=-1)
    for path in checkpoints(table).get(newest, []):
        for entry in pq.ParquetFile(path).read(columns=["txn"])["txn"].to_pylist():
            if entry is not None and entry.get("appId") is not None:
                known[entry["appId"]] = entry["version"]
    for commit in commits(table, newest + 1):
        if commit.version <= version:
            known |= commit.transactions
    return known


def tidy(table: Path, *, unread_from: int, older_than_s: float, dry_run: bool = False) -> int:
    """Makes a checkpoint, and deletes what an old enough one makes superfluous. How many commits went.

    `unread_from`: the first commit that somebody still has to read. `older_than_s`: seconds for which a checkpoint has to be there, so that
    whoever began to read the log before can end.
    """
    if not dry_run:
        current = DeltaTable(str(table))
        if current.version() - max(checkpoints(table), default=-1) >= _LEAST_COMMITS:
            current.create_checkpoint()
    now = time.time()
    settled = [
        version
        for version, paths in checkpoints(table).items()
        if version <= unread_from and all(now - path.stat().st_mtime >= older_than_s for path in paths)
    ]
    if not settled:
        return 0
    numbered = [(int(found[1]), path) for path in (table / LOG).iterdir() if (found := _FILE.fullmatch(path.name))]
    old = [(version, path) for version, path in numbered if version < max(settled)]
    if not dry_run:
        # From the oldest on: what is left when this is cut short is a log without gaps.
        for _, path in sorted(old):
            path.unlink(missing_ok=True)
    return sum(_COMMIT.fullmatch(path.name) is not None for _, path in old)
