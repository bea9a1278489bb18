"""The folder of a lakehouse: what is in it, whose it is, and that one process at a time works in it.

group_events/, rebalances/, ...   the Delta tables
_checkpoints/ingest, track        how far each query is; belongs to the tables: neither is of use without the other
_checkpoints/layout.json          what the checkpoints were made with
_checkpoints/inputs.json          where the logs were read from
_captured/                        what was read from clusters itself (--offsets-from)
_spool/                           slices of the input that wait for ingest
_logs/                            Spark's log
_lock                             held by the process that works here
_maintain/, _maintain.lock        what `rebalance maintain` is about to put into the tables, and that it is at work
_status.json                      what that process, or the last one, said of itself (jobs/health/status.py)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.tracker.codec import MODEL_VERSION
from jobs.common.errors import LakehouseError, UserError
from jobs.common.files import write_whole
from jobs.common.settings import Settings
from jobs.lakehouse import locks

if TYPE_CHECKING:
    pass

LAYOUT_VERSION: Final = 1
"""Of the folder and the checkpoints. Raised when an older one can no longer be continued."""

BEFORE: Final = ".before-model-"
"""What the name of a lakehouse gets when another takes its place, followed by the version of the model that made the other."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")  # as Path leaves it, which takes two slashes for one
_INPUTS_KEPT: Final = 16


@dataclass(frozen=True)
class Lakehouse:
    """Where things are in a lakehouse."""

    folder: Path

    def __post_init__(self) -> None:
        if url := _URL.match(str(self.folder)):
            raise UserError(
                f"the lakehouse has to be a folder, not a URL ({url.group()}...): what an object store would need is in docs/cluster.md"
            )

    @property
    def ingest_checkpoint(self) -> Path:
        """How far ingest is."""
        return self.folder / "_checkpoints" / "ingest"

    @property
    def topic_checkpoint(self) -> Path:
        """How far ingest is in a topic."""
        return self.folder / "_checkpoints" / "ingest-topic"

    @property
    def topic(self) -> Path:
        """Which topic that is."""
        return self.folder / "_checkpoints" / "topic.json"

    @property
    def track_checkpoint(self) -> Path:
        """How far track is, and the state of every group."""
        return self.folder / "_checkpoints" / "track"

    @property
    def layout(self) -> Path:
        """What the checkpoints were made with."""
        return self.folder / "_checkpoints" / "layout.json"

    @property
    def complete(self) -> Path:
        """There if the last run worked off all of its input."""
        return self.folder / "_checkpoints" / "complete"

    @property
    def inputs(self) -> Path:
        """Where the logs were read from."""
        return self.folder / "_checkpoints" / "inputs.json"

    @property
    def captured(self) -> Path:
        """What was read from clusters."""
        return self.folder / "_captured"

    @property
    def spool(self) -> Path:
        """Slices of the input."""
        return self.folder / "_spool"

    @property
    def log(self) -> Path:
        """Spark's log, warnings and errors."""
        return self.folder / "_logs" / "spark.log"

    @property
    def lock(self) -> Path:
        """Held by the process that works here."""
        return self.folder / "_lock"

    @property
    def maintain_lock(self) -> Path:
        """Held by the process that maintains the tables; shared by those for which they must stay as they are."""
        return self.folder / "_maintain.lock"

    @property
    def scratch(self) -> Path:
        """Files that are about to be put into the tables."""
        return self.folder / "_maintain"

    @property
    def replay(self) -> Path:
        """There while the lakehouse is made by `rebalance replay`: what of, and how far the swap is."""
        return self.folder / "_checkpoints" / "replay.json"

    @property
    def status(self) -> Path:
        """What the process that works here, or the last one, said of itself."""
        return self.folder / "_status.json"


def check_path(folder: Path) -> None:
    """LakehouseError: Delta cannot have tables there."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise LakehouseError(f"{folder}: the path of a lakehouse has to be UTF-8") from None


@contextmanager
def opened(folder: Path, settings: Settings, *, replaying: bool = False) -> Iterator[Lakehouse]:
    """The lakehouse, new or continued, for this process alone. `replaying`: it is one that `rebalance replay` makes."""
    lakehouse = Lakehouse(folder)
    check_path(folder)
    if not folder.exists() and (before := sorted(folder.parent.glob(f"{folder.name}{BEFORE}*"))):
        raise UserError(f"{folder} is not there but {before[0]} is: repeat the `rebalance replay --swap` that was cut short")
    try:
        for path in (folder, lakehouse.layout.parent, lakehouse.log.parent):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to the lakehouse {folder}: {error.strerror}") from None
    with locks.held(lakehouse.lock, f"another process is working in the lakehouse {folder}: wait for it or stop it"):
        if any(folder.glob("*/_delta_log")) and not any(lakehouse.layout.parent.iterdir()):
            raise UserError(f"{folder} has tables but not the checkpoints that say how far they go: {replay_advice(folder)}")
        check_layout(lakehouse, settings, replaying=replaying)
        yield lakehouse


def replay_advice(folder: Path) -> str:
    """What to do with a lakehouse that cannot be gone on with."""
    return f"make a new one of its events with `rebalance replay --from {folder} --lakehouse NEW`"


def check_layout(lakehouse: Lakehouse, settings: Settings, *, replaying: bool = False) -> None:
    """Continues only what this program and these settings can continue; remembers what a new lakehouse is made with."""
    ours = {"layout": LAYOUT_VERSION, "shards": settings.shards, "model": MODEL_VERSION}
    folder = lakehouse.folder
    if not replaying and lakehouse.replay.exists():
        raise UserError(f"{folder} is being made by `rebalance replay`: repeat that command until it has swapped the lakehouses (--swap)")
    try:
        theirs: Any = json.loads(lakehouse.layout.read_text(encoding="utf-8"))
    except FileNotFoundError:
        lakehouse.layout.parent.mkdir(parents=True, exist_ok=True)
        write_whole(lakehouse.layout, json.dumps(ours).encode())
        return
    except ValueError:
        raise UserError(f"{lakehouse.layout} is damaged: {replay_advice(folder)}") from None
    if not isinstance(theirs, dict) or theirs.get("layout") != LAYOUT_VERSION:
        raise UserError(f"{folder} was made by another version of this program: {replay_advice(folder)}")
    if theirs.get("shards") != settings.shards:
        raise UserError(
            f"{folder} was made with shards = {theirs.get('shards')}, not {settings.shards}: use the same settings, "
            f"or {replay_advice(folder)}"
        )
    model = theirs.get("model", 0)  # not told by the first versions
    if model > MODEL_VERSION:
        raise UserError(
            f"{folder} was made by model version {model}, this program has {MODEL_VERSION}: use the newer program, "
            f"or {replay_advice(folder)}"
        )
    if theirs != ours:
        write_whole(lakehouse.layout, json.dumps(ours).encode())


def take_complete_mark(lakehouse: Lakehouse) -> bool:
    """Removes the mark that the last run worked off all of its input; returns whether there was one. The end of a run sets it again."""
    complete = lakehouse.complete.exists()
    lakehouse.complete.unlink(missing_ok=True)
    return complete


def remember_input(lakehouse: Lakehouse, source: Path) -> None:
    """Keeps where logs were read from, the last place first: evidence names files relative to it."""
    here = str(source.resolve())
    known = [here, *(str(path) for path in known_inputs(lakehouse.folder) if str(path) != here)]
    write_whole(lakehouse.inputs, json.dumps(known[:_INPUTS_KEPT]).encode())


def known_inputs(folder: Path) -> list[Path]:
    """Where the logs of a lakehouse were read from, as far as it is known."""
    try:
        paths = json.loads(Lakehouse(folder).inputs.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(path) for path in paths] if isinstance(paths, list) and all(isinstance(path, str) for path in paths) else []
