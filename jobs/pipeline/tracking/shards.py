"""Connects Spark's grouped state with the tracker: the one module that knows GroupState.

One call of `follow_shard` handles one coordinator shard in one micro-batch. It costs about 0.65 ms and 0.11 ms per column, almost
independent of the number of rows.

An exception in the tracker is a bug, since the tracker survives any event. This module does not catch it: the batch is not committed, the
state and the tables do not change, the query stops with a message that names the place, and a corrected version continues from that very
batch. Catching it here would silently lose a shard's events.
"""

from __future__ import annotations

import json
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from coordinator_model.events import BROKER_SOURCE, END, Event
from coordinator_model.group_beats import GroupBeats
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from coordinator_model.view.settings import TrackerSettings
from jobs.common.settings import Settings
from jobs.pipeline.tracking.packets import decoded, unpacked
from jobs.pipeline.tracking.read_files import reads_of
from jobs.pipeline.tracking.spread import Spread
from schemas.names import AT_END

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

STATE: Final = "blob binary, groups int, held_events int, late_events bigint"
"""What is stored of a shard. All but the first column are for readers of the state store."""
OUTPUT: Final = f"cluster string, table string, row string, {AT_END} boolean"
SUMMARY: Final = ""
"""`table` of the one row of each call that goes to no table: how far the shard is."""
_SIZE: Final = struct.Struct("<I")
"""Of what is compressed, before it."""
_CODEC: Final = "zstd"


class TrackerError(RuntimeError):
    """The tracker failed on a shard. The message names the shard and its last event."""


def tracker_settings(settings: Settings) -> TrackerSettings:
    """What the tracker has to know of the settings."""
    return TrackerSettings(lateness_ms=settings.lateness_ms, not_read_ms=settings.not_read_ms, kafka_version=settings.kafka_version)


def follow(packets: DataFrame, spread: Spread, settings: TrackerSettings) -> DataFrame:
    """The finished rows of all tables: cluster, table, row (JSON). `packets`: those of packets.py."""
    function = shard_function(spread, settings)
    return packets.groupBy("cluster", "key").applyInPandasWithState(function, OUTPUT, STATE, "append", "NoTimeout")


def shard_function(
    spread: Spread, settings: TrackerSettings
) -> Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """The function that Spark calls for every shard of a micro-batch."""

    def follow_shard(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        cluster, number = str(key[0]), spread.shard(int(key[1]))
        given = unpacked(frames)
        events, beats = given.events, given.beats
        shard = _shard((cluster, number), state, settings)
        with _placing_errors((cluster, number), events, beats):
            others, ends = _parted(events)
            rows = [*shard.observe(others, beats, reads_of(given.files).get(cluster, ())), *shard.provisional]
            blob, (groups, held, late) = compressed(shard.encode()), shard.summary()
            last_rows = _at_the_end(shard, ends)
        if not ends:
            _KEPT.keep((cluster, number), blob, shard)
        late_before = int(state.get[-1]) if state.exists else 0
        state.update((blob, groups, held, late))
        summary = {
            "shard": number,
            "rows": given.rows,
            "groups": groups,
            "held_events": held,
            "late_events": late,
            "new_late_events": late - late_before,
            "broker_lines": sum(event.source == BROKER_SOURCE for event in events),
            "state_bytes": len(blob),
            "at_ms": max(chain((event.at_ms for event in events), *(group.arrivals for group in beats)), default=-1),
        }
        tables = [SUMMARY, *(row.table for row in (*rows, *last_rows))]
        values = [json.dumps(summary), *(json.dumps(row.values, separators=(",", ":")) for row in (*rows, *last_rows))]
        at_end = [False] * (1 + len(rows)) + [True] * len(last_rows)
        yield pd.DataFrame({"cluster": [cluster] * len(tables), "table": tables, "row": values, AT_END: at_end})

    return follow_shard


def follow_whole(key: tuple[str, int], packets: Iterable[bytes], settings: TrackerSettings) -> Iterator[tuple[Row, bool]]:
    """The rows of a shard of which these packets hold all events, so that none comes too late; whether each is one with AT_END."""
    given = decoded(packets)
    shard = Shard(settings)
    with _placing_errors(key, given.events, given.beats):
        others, ends = _parted(given.events)
        rows = [*shard.observe(others, given.beats, reads_of(given.files).get(key[0], ())), *shard.provisional]
        yield from ((row, False) for row in rows)
        yield from ((row, True) for row in _at_the_end(shard, ends))


def _parted(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """Events without END, which the shard takes as if more of the logs were to come, and each END."""
    ends = [event for event in events if event.kind == END]
    return [event for event in events if event.kind != END] if ends else events, ends


def _at_the_end(shard: Shard, ends: list[Event]) -> list[Row]:
    """What is known if nothing more comes. The shard is of no use afterwards: logs that ended may have grown by the next run."""
    return [*shard.observe(ends, (), ()), *shard.provisional] if ends else []


@contextmanager
def _placing_errors(key: tuple[str, int], events: Sequence[Event], beats: Sequence[GroupBeats]) -> Iterator[None]:
    """Makes a TrackerError of any error: which shard and which events it is about."""
    try:
        yield
    except Exception as error:
        every = [*events, *(run.event() for group in beats for run in group.runs())]
        last = max(every, key=lambda event: event.at_ms, default=None)
        told = f", the last one {last.kind} at {last.at_ms}, {last.origin}:{last.position}" if last is not None else ""
        raise TrackerError(
            f"cluster {key[0]!r}, shard {key[1]}: {type(error).__name__}: {error} (among {len(every)} events{told})"
        ) from error


def _shard(key: tuple[str, int], state: GroupState, settings: TrackerSettings) -> Shard:
    if not state.exists:
        return Shard(settings)
    stored, *_ = state.get
    blob = bytes(stored)
    return _KEPT.take(key, blob, settings) or Shard.decode(expanded(blob), settings)


class KeptShards:
    """Shards as this process left them: mostly the next batch brings back the very bytes that were stored then.

    A shard goes on only where they are the same. So a batch that is repeated, or that another process has handled since, has its own state.
    `most_bytes`: of the stored forms of all.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._shards: dict[tuple[str, int], tuple[bytes, Shard]] = {}  # the last one used is the last

    def keep(self, key: tuple[str, int], blob: bytes, shard: Shard) -> None:
        """Keeps a shard. `blob`: its stored form."""
        self._shards[key] = blob, shard
        while sum(len(own) for own, _ in self._shards.values()) > self._most:
            del self._shards[next(iter(self._shards))]

    def take(self, key: tuple[str, int], blob: bytes, settings: TrackerSettings) -> Shard | None:
        """The shard with this stored form, for one use."""
        kept, shard = self._shards.pop(key, (b"", None))
        return shard if shard is not None and kept == blob and shard.settings == settings else None


_KEPT: Final = KeptShards(most_bytes=32 << 20)


def compressed(data: bytes) -> bytes:
    """A shard's state in the form that is stored: compressed, and written in ASCII (base 64).

    The state passes between Spark and Python twice per micro-batch and is written each time. For 1,000 groups it is 19 MB, mostly
    repeated names. Compression makes it a tenth, for 0.4 ms a shard. Spark hands bytes to Python as a text of as many characters, encoded
    as UTF-8. For bytes beyond ASCII that takes a quarter of the time of its tasks, and half of them need two bytes on the way.
    """
    packed = bytes(pa.compress(data, codec=_CODEC, asbytes=True))
    return b2a_base64(_SIZE.pack(len(data)) + packed, newline=False)


def expanded(data: bytes) -> bytes:
    """The argument of `compressed`."""
    sized = a2b_base64(data)
    (size,) = _SIZE.unpack_from(sized)
    return bytes(pa.decompress(sized[_SIZE.size :], decompressed_size=size, codec=_CODEC, asbytes=True))
