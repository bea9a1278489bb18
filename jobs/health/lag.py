"""Counts the rows of a query's input that wait behind the end offsets in Spark's progress (`sources`).

The progress itself has the end of a topic. It does not have the end of the slices and of `group_events`, so this module reads the footer of
each waiting slice, and looks for files of the table that track has not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow.parquet as pq

from jobs.common.stores import readable
from jobs.lakehouse import opening
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.followers import WRITERS, files_after
from jobs.logs.slice_files import SliceFiles
from schemas.names import GROUP_EVENTS


def rows_behind(house: Lakehouse, sources: Iterable[Mapping[str, Any]]) -> int | None:
    """Rows that wait behind the end offsets of a micro-batch; None if no source has such offsets."""
    waiting = [behind for source in sources if (behind := _behind(house, source)) is not None]
    return sum(waiting) if waiting else None


def _behind(house: Lakehouse, source: Mapping[str, Any]) -> int | None:
    end = source.get("endOffset")
    if not isinstance(end, Mapping):
        return None
    if "slice" in end:
        return slice_rows(SliceFiles(house.spool), int(end["slice"]))
    if set(end) <= set(WRITERS):
        with opening.kept(house.folder / GROUP_EVENTS).current() as table:
            return sum(new.rows for new in files_after(table, dict(end)))
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


def slice_rows(files: SliceFiles, taken: int) -> int:
    """Rows of the slices that come after number `taken`."""
    rows = 0
    for number in files.present():
        if taken < number <= files.newest():
            with suppress(OSError):  # deleted since it was listed
                rows += pq.read_metadata(readable(files.path(number))).num_rows
    return rows
