"""Who follows a table file by file, and how far each of them is.

Files are known by the micro-batch that wrote them (added_files.py), so a place in a table is, for each application that writes it, the last
file that was read. `rebalance maintain` leaves the files behind that place as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from jobs.common.stores import Place
from jobs.lakehouse import opening
from jobs.lakehouse.added_files import LAST, BatchFile, batch_file
from jobs.lakehouse.delta_files import DataFile
from jobs.lakehouse.folder import Lakehouse, is_ended
from schemas.names import FINDINGS, GROUP_EVENTS, INGEST, INGEST_TOPIC, REBALANCES_PROVISIONAL, REPLAY, TRACK

Reached: TypeAlias = dict[str, list[int]]
"""By application: micro-batch and number of the last file. JSON."""

WRITERS: Final = (REPLAY, INGEST, INGEST_TOPIC)
"""The applications that write events. A replay has written all of its events before another one begins."""
_BEFORE_ALL: Final = [-1, -1]


class NewFile(msgspec.Struct, frozen=True):
    """A file that a follower has not read."""

    path: str
    file: BatchFile
    size: int
    rows: int
    written_ms: int


def files_after(table: DeltaTable, reached: Reached, writers: Sequence[str] = WRITERS) -> list[NewFile]:
    """The files behind a place, by writer, in the order in which they were written."""
    added = pa.table(table.get_add_actions()).select(["path", "size_bytes", "num_records", "modification_time"])
    found: list[NewFile] = []
    for writer in writers:
        batch_id, number = reached.get(writer, _BEFORE_ALL)
        after = f"{writer}-{batch_id:012d}-{number:05d}-~" if batch_id >= 0 else f"{writer}-"
        paths = added["path"]
        # A colon comes behind the digits: names of writers may begin alike.
        new = added.filter(pc.and_(pc.greater(paths, after), pc.less(paths, f"{writer}-:")))
        rows = zip(*(column.to_pylist() for column in new.columns), strict=True)
        own = (NewFile(path, file, *rest) for path, *rest in rows if (file := batch_file(path)) is not None and file.app_id == writer)
        found += sorted(own, key=lambda one: one.file)
    return found


def is_whole(table: DeltaTable) -> bool:
    """Whether the files of a table are still those of the micro-batches: somebody who begins now can follow it from its beginning."""
    return all(batch_file(path) is not None for path in pa.table(table.get_add_actions())["path"].to_pylist())


def has_read(reached: Reached, file: BatchFile) -> bool:
    """Whether a file lies before a place."""
    return [file.batch_id, file.number] <= reached.get(file.app_id, _BEFORE_ALL)


def behind(reached: Reached, files: Sequence[NewFile]) -> Reached:
    """The place after these files."""
    return {**reached, **{new.file.app_id: [new.file.batch_id, new.file.number] for new in files}}


class Follower(msgspec.Struct, frozen=True):
    """One that reads a table file by file."""

    reached: Reached
    writers: Sequence[str]

    def waits_for(self, file: DataFile) -> bool:
        """Whether it has still to read the file."""
        batch = file.batch
        return batch is not None and batch.app_id in self.writers and not has_read(self.reached, batch)


def of_table(house: Lakehouse, name: str) -> list[Follower]:
    """Those who follow a table of a lakehouse."""
    if name == GROUP_EVENTS and not is_ended(house):
        return [Follower(tracked(house.track_checkpoint), WRITERS)]
    notes = {FINDINGS: house.alerts, REBALANCES_PROVISIONAL: house.open_alerts}.get(name)
    return [Follower(_sent(path), (TRACK,)) for path in notes.glob("*.json")] if notes is not None else []


def tracked(checkpoint: Place) -> Reached:
    """The events of which track has written all rows: the end of its last finished micro-batch."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not done:
        return {}
    reached: Reached = json.loads((checkpoint / "offsets" / str(max(done))).read_text(encoding="utf-8").splitlines()[-1])
    return reached


def untracked(house: Lakehouse) -> list[str]:
    """The files of events that track has still to read."""
    with opening.current(house.folder / GROUP_EVENTS) as table:
        return [new.path for new in files_after(table, tracked(house.track_checkpoint))]


def _sent(note: Place) -> Reached:
    return {TRACK: [int(json.loads(note.read_bytes())["done"]["batch"]) - 1, LAST]}
