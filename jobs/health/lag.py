"""Counts the rows of a query's input that wait behind the end offsets in Spark's progress (`sources`).

The progress itself has the end of a topic. It does not have the end of the slices and of a Delta table, so this module reads the footer of
each waiting slice, and each new commit of the table once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

_SLICE: Final = "slice-"


class Backlog:
    """The input that waits for the queries of one lakehouse."""

    def __init__(self, slices_folder: Path, events_table: Path) -> None:
        self._slices = slices_folder
        self._events = DeltaCommits(events_table)

    def rows(self, sources: Iterable[Mapping[str, Any]]) -> int | None:
        """Rows that wait behind the end offsets of a micro-batch; None if no source has such offsets."""
        waiting = [behind for source in sources if (behind := self._behind(source)) is not None]
        return sum(waiting) if waiting else None

    def _behind(self, source: Mapping[str, Any]) -> int | None:
        end = source.get("endOffset")
        if not isinstance(end, Mapping):
            return None
        if "logOffset" in end:  # a slice is a micro-batch; they are numbered from 1, micro-batches from 0
            return slice_rows(self._slices, int(end["logOffset"]) + 1)
        if "reservoirVersion" in end:
            return self._events.rows_from(int(end["reservoirVersion"]) + (int(end.get("index", -1)) >= 0))
        return topic_records(end, source.get("latestOffset"))


def topic_records(end: Mapping[str, Any], latest: object) -> int | None:
    """Records between two offsets of Kafka's, {topic: {partition: offset}}. None: they are offsets of another source."""
    if not isinstance(latest, Mapping) or not all(isinstance(partitions, Mapping) for partitions in (*end.values(), *latest.values())):
        return None
    return sum(
        max(int(offset) - int(end.get(topic, {}).get(partition, 0)), 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def slice_rows(folder: Path, done: int) -> int:
    """Rows of the slices that come after number `done`."""
    rows = 0
    for path in folder.glob(f"{_SLICE}*.parquet"):
        try:
            if int(path.stem.removeprefix(_SLICE)) > done:
                rows += pq.read_metadata(path).num_rows
        except (OSError, ValueError):  # noqa: PERF203 - deleted since it was listed
            continue
    return rows


class DeltaCommits:
    """Rows that each commit added to a table, read from its log."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._rows: dict[int, int] = {}

    def rows_from(self, version: int) -> int:
        """Rows added by commits of this version and later ones."""
        self._rows = {number: rows for number, rows in self._rows.items() if number >= version}
        following = version
        while True:
            if following not in self._rows:
                path = self._log / f"{following:020d}.json"
                try:
                    self._rows[following] = _added(path)
                except FileNotFoundError:
                    return sum(self._rows.values())
            following += 1


def _added(commit: Path) -> int:
    rows = 0
    with commit.open(encoding="utf-8") as lines:
        for line in lines:
            add = json.loads(line).get("add")
            if add is not None and add.get("dataChange", True):
                rows += int(json.loads(add.get("stats") or "{}").get("numRecords", 0))
    return rows
