"""Puts a lakehouse that replay made in the place of the old one, so that `rebalance run` continues in it.

First it carries over what replay does not make from events: the checkpoints of ingest, the spool, captured records, the account of all
lines. Then the two folders swap their names, in one step where the system can do that, else in two. A marker in the new lakehouse
(_checkpoints/replay.json) says how far the swap is. While it exists no run begins, and the same command finishes an interrupted swap.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator_model.tracker.codec import MODEL_VERSION
from jobs.common.errors import UserError
from jobs.common.files import write_whole
from jobs.common.stores import Place, StorePath, copy_tree, remove_tree
from jobs.lakehouse.folder import BEFORE, Lakehouse, present, working

_NOT_CARRIED: Final = frozenset({"track", "layout.json", "replay.json"})
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True)
class Marker:
    """The lakehouse that a replay reads, and what it will be called once the swap has begun."""

    source: str
    before: str = ""

    @classmethod
    def read(cls, house: Lakehouse) -> Marker | None:
        """None: replay does not make this lakehouse, or has finished it."""
        try:
            entry: Any = json.loads(house.replay.read_text(encoding="utf-8"))
            return cls(str(entry["from"]), str(entry["before"]))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{house.replay} is damaged: give a new folder") from None

    def write(self, house: Lakehouse) -> None:
        """Puts it into the lakehouse."""
        write_whole(house.replay, json.dumps({"from": self.source, "before": self.before}).encode())


def check(old: Place, new: Place) -> None:
    """UserError: the two folders cannot be swapped."""
    if isinstance(old, StorePath) or isinstance(new, StorePath):
        return
    if old.is_symlink() or new.is_symlink():
        raise UserError("--swap renames folders: name the folders themselves, not symbolic links to them")
    beside = new if new.exists() else new.resolve().parent
    if not beside.exists() or old.stat().st_dev != beside.stat().st_dev:
        raise UserError(f"{old} and {new} cannot be swapped: they are on different file systems. Make the new one next to the old one")
    if before_of(old).exists():
        raise UserError(f"{before_of(old)} is left from an earlier swap: delete or rename it")


def before_of(old: Path) -> Path:
    """What the old lakehouse is called after the swap."""
    return old.with_name(f"{old.name}{BEFORE}{MODEL_VERSION}")


def carry_over(old: Lakehouse, new: Lakehouse, made: Collection[str]) -> None:
    """Copies everything but the tables `made` from events. May be interrupted and called again."""
    carry_tables(old, new, made)
    for stale in (new.ingest_checkpoint, new.topic_checkpoint, new.alerts, new.spool, new.captured):  # of an earlier call
        remove_tree(stale)
    copy_tree(old.ingest_checkpoint.parent, new.ingest_checkpoint.parent, without=_NOT_CARRIED.__contains__)
    for source, target in ((old.spool, new.spool), (old.captured, new.captured)):
        if source.exists():
            copy_tree(source, target)


def carry_tables(old: Lakehouse, new: Lakehouse, made: Collection[str]) -> None:
    """Copies the tables that are not `made` from events, such as the account of all lines, and where the logs are.

    Others may write the old ones meanwhile: the log is copied first, and what it names was there before it. May be called again.
    """
    for name in present(old.folder):
        if name in made:
            continue
        source, target = old.folder / name, new.folder / name
        remove_tree(target)
        copy_tree(source / "_delta_log", target / "_delta_log", without=_is_unfinished)
        copy_tree(source, target, without=lambda entry: entry == "_delta_log")
    if old.inputs.exists():
        write_whole(new.inputs, old.inputs.read_bytes())


def _is_unfinished(name: str) -> bool:
    """Of a log that grows while it is copied: files that are being written, and the hint that may name one of later."""
    return name == "_last_checkpoint" or name.startswith(".") or name.endswith(".tmp")


def swap(old: Place, new: Place) -> Place:
    """Swaps the folders; returns where the old lakehouse is now. This process must have locked both.

    In a store nothing can be renamed: the new lakehouse is ready under its own name.
    """
    if isinstance(old, StorePath) or isinstance(new, StorePath):
        Lakehouse(new).replay.unlink()
        return old
    before = before_of(old)
    Marker(str(old.resolve()), str(before.resolve())).write(Lakehouse(new))
    if not exchange(new, old):
        old.rename(before)
        new.rename(old)
    return _finish(old, new, before)


def resume(old: Place, new: Place) -> Place | None:
    """Finishes an interrupted swap; returns where the old lakehouse is now. None: there is nothing to finish."""
    if isinstance(old, StorePath) or isinstance(new, StorePath):
        return None
    marker = Marker.read(Lakehouse(old))
    if marker is None and not old.exists():  # interrupted between the two renames
        marker = Marker.read(Lakehouse(new))
        if marker is None or not marker.before or Path(marker.source) != old.resolve():
            return None
        new.rename(old)
    if marker is None or not marker.before:
        return None
    with working(Lakehouse(old)):
        return _finish(old, new, Path(marker.before))


def exchange(one: Path, other: Path) -> bool:
    """Swaps the names of two folders in one step. False: this system cannot; nothing was done."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _finish(old: Path, new: Path, before: Path) -> Path:
    if new.exists():  # after an exchange, the old lakehouse has the name of the new one
        new.rename(before)
    Lakehouse(old).replay.unlink()
    return before
