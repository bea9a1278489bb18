"""The folder of a lakehouse: what is in it, which program made it, and that one process at a time works in it.

The Delta tables lie beside what `Lakehouse` lists. The tables and `_checkpoints` belong together: neither is of use without the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from coordinator_model.tracker.codec import MODEL_VERSION
from jobs.common.errors import LakehouseError, UserError
from jobs.common.files import write_whole
from jobs.common.places import kept_folder
from jobs.common.settings import Settings
from jobs.common.stores import Place, StorePath, remove_tree
from jobs.lakehouse import locks
from schemas.names import INGEST, INGEST_TOPIC, TABLES, TRACK

BEFORE: Final = ".before-model-"
"""Added to the name of a lakehouse when another takes its place, before the version of the model that made the other."""

QUERIES: Final = (INGEST, INGEST_TOPIC, TRACK)
"""What may run in processes of its own, side by side (jobs/pipeline/alone.py)."""
_INPUTS_KEPT: Final = 16
_ON_EMPTY_DISKS: Final = frozenset({"lost+found", "System Volume Information"})


class Lakehouse:
    """Where things are in a lakehouse."""

    def __init__(self, folder: Place) -> None:
        try:
            str(folder).encode()
        except UnicodeEncodeError:
            raise LakehouseError(f"{folder}: the path of a lakehouse has to be UTF-8") from None
        local = folder if isinstance(folder, Path) else _beside(folder)
        checkpoints = folder / "_checkpoints"
        self.folder = folder
        self.ingest_checkpoint = checkpoints / "ingest"  # how far ingest of files is
        self.topic_checkpoint = checkpoints / "ingest-topic"  # how far ingest of a topic is
        self.topic = checkpoints / "topic.json"  # which topic that is
        self.track_checkpoint = checkpoints / "track"  # how far track is, and the state of every group
        self.tasks = self.track_checkpoint / "tasks"  # how many tasks track has
        self.layout = checkpoints / "layout.json"  # what the checkpoints were made with
        self.complete = checkpoints / "complete"  # exists if the last run processed all of its input
        self.inputs = checkpoints / "inputs.json"  # where the logs were read from
        self.replay = checkpoints / "replay.json"  # there while `rebalance replay` makes the lakehouse: its source, and how far the swap is
        self.alerts = checkpoints / "alerts"  # how far the alerts of each receiver are: NAME.json, and NAME.lock
        self.open_alerts = self.alerts / "open"  # the same of alerts about open rebalances
        self.incident_alerts = self.alerts / "incidents"  # the incidents without a finding that need not be sent any more
        self.given = local / "_input"  # what came on standard input (`rebalance explain --keep`)
        self.captured = local / "_captured"  # what was read from clusters (--offsets-from)
        self.spool = folder / "_spool"  # slices of the input that wait for ingest
        self.log = local / "_logs" / "spark.log"  # Spark's log, warnings and errors
        self.lock = folder / "_lock"  # held by the process that works here alone
        self.query_locks = {name: folder / f"_lock-{name}" for name in QUERIES}  # of each query: held by the process that runs it
        self.locks = [self.lock, *self.query_locks.values()]
        self.maintain_lock = folder / "_maintain.lock"  # held by `rebalance maintain`; shared by those that need the tables unchanged
        self.scratch = local / "_maintain"  # what does not fit into the memory of `rebalance maintain` and `replay`
        self.status = folder / "_status.json"  # what that process, or the last one, reported about itself (jobs/health/status.py)


def _beside(store: StorePath) -> Path:
    """The folder of this machine for what cannot lie in an object store: logs, and files that grow."""
    return kept_folder("stores") / re.sub(r"[^A-Za-z0-9.-]+", "-", f"{store.bucket}-{store.key}")


def is_lakehouse(folder: Place) -> bool:
    """Whether this project made the folder: it has a table of ours, or what is in a lakehouse before its first table is."""
    house = Lakehouse(folder)
    return any(path.exists() for path in (house.layout, *house.locks)) or any((folder / name / "_delta_log").is_dir() for name in TABLES)


def check_ours(folder: Place) -> None:
    """UserError: the folder holds something else than a lakehouse. Nothing was changed in it."""
    if not folder.is_dir() or is_lakehouse(folder):
        return
    try:
        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".") and path.name not in _ON_EMPTY_DISKS)
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from None
    if others:
        raise UserError(f"{folder} is no lakehouse, and not empty (it holds {others[0]}): it was left as it is; give a new folder")


def check_input(folder: Place, source: Place, warn: Callable[[str], None]) -> None:
    """UserError: the input is itself a lakehouse. `warn` gets a line where the one lies inside the other."""
    if isinstance(folder, StorePath) or isinstance(source, StorePath):
        return
    lake, logs = folder.resolve(), source.resolve()
    if logs == lake:
        raise UserError(f"--input and --lakehouse are the same folder {folder}: give another folder for the tables")
    if is_lakehouse(source):
        raise UserError(f"the input {source} is a lakehouse, which holds no logs: give the folder of the logs")
    if lake.is_relative_to(logs):
        warn(f"the lakehouse {folder} lies inside the input {source}: its own files are not read as logs")
    elif logs.is_relative_to(lake):
        warn(f"the input {source} lies inside the lakehouse {folder}: `rebalance replay --swap` would rename its folder too; move it out")


@contextmanager
def opened(folder: Place, settings: Settings, *, query: str = "", replaying: bool = False) -> Iterator[Lakehouse]:
    """Opens the lakehouse, new or continued, for this process alone. `replaying`: `rebalance replay` makes it.

    `query`: other processes may run other queries meanwhile.
    """
    lakehouse = Lakehouse(folder)
    check_ours(folder)
    if isinstance(folder, Path) and not folder.exists() and (before := sorted(folder.parent.glob(f"{folder.name}{BEFORE}*"))):
        raise UserError(f"{folder} does not exist but {before[0]} does: repeat the `rebalance replay --swap` that was cut short")
    _make(folder, folder)
    with working(lakehouse, query):  # its locks are the first that is in it: who comes next sees whose folder it is
        _make(folder, lakehouse.layout.parent, lakehouse.log.parent)
        if present(folder) and not any(lakehouse.layout.parent.iterdir()):
            raise UserError(f"{folder} has tables but not the checkpoints that say how far they go: {replay_advice(folder)}")
        check_layout(lakehouse, settings, replaying=replaying)
        yield lakehouse


def _make(folder: Place, *paths: Place) -> None:
    try:
        for path in paths:
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to the lakehouse {folder}: {error.strerror}") from None


@contextmanager
def working(lakehouse: Lakehouse, query: str = "") -> Iterator[None]:
    """Holds the lock of a query, or all locks: whoever runs a query holds that of the query. UserError: another process does."""
    wanted = [lakehouse.query_locks[query]] if query else lakehouse.locks
    with locks.all_held(wanted, f"another process is working in the lakehouse {lakehouse.folder}: wait for it or stop it"):
        yield


@contextmanager
def removed_if_void(folder: Place) -> Iterator[None]:
    """Removes a new lakehouse into which nothing came: work that was refused, or had nothing to tell, leaves no folder behind."""
    is_new = not folder.exists()

    def remove() -> None:
        if is_new and not Lakehouse(folder).captured.exists() and not present(folder):
            remove_tree(folder)

    try:
        yield
    except UserError:
        remove()
        raise
    remove()


def replay_advice(folder: Place) -> str:
    """What to do with a lakehouse that cannot be continued."""
    return f"make a new one of its events with `rebalance replay --from {folder} --lakehouse NEW`"


class _Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file layout.json."""

    shards: int
    model: int
    ended: bool = False
    """`rebalance explain` made it, without the checkpoints of queries: it cannot be continued."""


def check_layout(lakehouse: Lakehouse, settings: Settings, *, replaying: bool = False) -> None:
    """UserError: this program or these settings cannot continue the lakehouse. A new one remembers what it is made with."""
    folder = lakehouse.folder
    check_ours(folder)
    if not replaying and lakehouse.replay.exists():
        raise UserError(f"{folder} is being made by `rebalance replay`: repeat that command until it has swapped the lakehouses (--swap)")
    made = _layout_of(lakehouse)
    if made is not None:
        if made.shards != settings.shards:
            use = f"use the same settings, or {replay_advice(folder)}"
            raise UserError(f"{folder} was made with shards = {made.shards}, not {settings.shards}: {use}")
        if made.model != MODEL_VERSION:
            made_by = f"{folder} was made by model version {made.model}, this program has {MODEL_VERSION}"
            raise UserError(f"{made_by}: {replay_advice(folder)}")
        if made.ended:
            raise UserError(
                f"{folder} was made by `rebalance explain`, which keeps no state to go on from: give `rebalance run` a new folder,"
                " and it reads the logs again"
            )
    else:
        _write_layout(lakehouse, _Layout(settings.shards, MODEL_VERSION))


def _layout_of(lakehouse: Lakehouse) -> _Layout | None:
    """What a lakehouse was made with; None: it is new. UserError: the file is damaged."""
    try:
        return msgspec.json.decode(lakehouse.layout.read_bytes(), type=_Layout)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        raise UserError(f"{lakehouse.layout} is damaged: {replay_advice(lakehouse.folder)}") from None


def _write_layout(lakehouse: Lakehouse, layout: _Layout) -> None:
    lakehouse.layout.parent.mkdir(parents=True, exist_ok=True)
    write_whole(lakehouse.layout, msgspec.json.encode(layout))


def fixed_tasks(lakehouse: Lakehouse, wanted: int) -> int:
    """The number of the tracker's tasks: that with which it began, or `wanted`, if it begins now.

    Its state has as many parts, and the keys in them depend on the number.
    """
    with suppress(FileNotFoundError):
        return int(lakehouse.tasks.read_bytes())
    lakehouse.tasks.parent.mkdir(parents=True, exist_ok=True)
    write_whole(lakehouse.tasks, str(wanted).encode())
    return wanted


def mark_ended(lakehouse: Lakehouse, settings: Settings) -> None:
    """Remembers that the lakehouse is made at once, and is never continued."""
    _write_layout(lakehouse, _Layout(settings.shards, MODEL_VERSION, ended=True))


def is_ended(lakehouse: Lakehouse) -> bool:
    """Whether the lakehouse was made at once, and is never continued."""
    with suppress(OSError, UserError):
        made = _layout_of(lakehouse)
        return made is not None and made.ended
    return False


def is_followed(lakehouse: Lakehouse) -> bool:
    """Whether track may have something to read: not after a run that processed all of its input, nor where nothing keeps how far it is."""
    return lakehouse.layout.exists() and not lakehouse.complete.exists() and not is_ended(lakehouse)


def present(folder: Place) -> list[str]:
    """The tables that a lakehouse has, whoever made them."""
    return sorted(path.parent.name for path in folder.glob("*/_delta_log"))


def take_complete_mark(lakehouse: Lakehouse) -> bool:
    """Removes the mark that the last run processed all of its input; returns whether there was one. The end of a run sets it again."""
    complete = lakehouse.complete.exists()
    lakehouse.complete.unlink(missing_ok=True)
    return complete


def remember_input(lakehouse: Lakehouse, source: Path) -> None:
    """Keeps where logs were read from, the last place first: evidence names files relative to it."""
    here = source.resolve()
    inputs = [here, *(path for path in known_inputs(lakehouse.folder) if path != here)]
    own = lakehouse.captured.resolve().parent  # the lakehouse may be moved, and takes what it holds along
    kept = [str(path.relative_to(own) if path.is_relative_to(own) else path) for path in inputs[:_INPUTS_KEPT]]
    write_whole(lakehouse.inputs, json.dumps(kept).encode())


def known_inputs(folder: Place) -> list[Path]:
    """Where the logs of a lakehouse were read from. Empty: unknown."""
    house = Lakehouse(folder)
    try:
        # Not by msgspec's JSON, which has no names of files that are not UTF-8.
        return [house.captured.resolve().parent / path for path in msgspec.convert(json.loads(house.inputs.read_bytes()), list[str])]
    except (OSError, ValueError):
        return []
