"""Between Spark and the tracker: the one file that knows pandas, Arrow and GroupState.

One call of `follow_shard` is one coordinator shard in one micro-batch. What such a call costs is decided by the number
of columns, hardly by the number of rows: about 0.65 ms and 0.11 ms a column. So the fields of an Event that nearly
every row fills cross as columns (`TYPED`), and the others, mostly absent, in one JSON text that leaves out what is null
(`PACKED`): 22 columns instead of 37. Measured, 50 shards on 2 cores, a micro-batch: everything as JSON costs 0.51 s with
80 rows a shard and 1.2 s with 800, everything as columns 0.62 s and 0.77 s.

What is absent must be replaced before it crosses: pandas turns a whole number column with a null in it into floats.

An exception in the tracker is a bug, and is let out: the tracker itself survives any event. The batch is not committed,
the state and the tables stay as they were, the query stops with a message that says where, and a corrected version
continues from that very batch. To swallow it here would lose a shard's events for good, and silently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from coordinator_model.events import (
    CLOCK,
    COORDINATOR_ELECTED,
    END,
    FOLLOWED,
    GROUPS_CLEANED,
    INSTANCE_FENCED,
    Assignment,
    Event,
    MemberEntry,
    Protocol,
)
from coordinator_model.tracker.codec import MODEL_VERSION
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.settings import TrackerSettings
from jobs.pipeline.group_partition import group_partition
from jobs.pipeline.state_bytes import compressed, expanded
from schemas import group_events

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.state import GroupState

_FIRST_PACKED: Final = Event._fields.index("answer_member_id")
TYPED: Final = Event._fields[:_FIRST_PACKED]
PACKED: Final = Event._fields[_FIRST_PACKED:]

# Fields of Event that are not named as their column: times, which cross as whole numbers.
_COLUMN_OF: Final = {"at_ms": "at", "received_ms": "received_at"}

STATE: Final = StructType(
    [
        StructField("model_version", IntegerType()),
        StructField("blob", BinaryType()),
        StructField("groups", IntegerType()),  # from here on: only for people who look into the state store
        StructField("held_events", IntegerType()),
        StructField("late_events", LongType()),
    ]
)
OUTPUT: Final = StructType(
    [
        StructField("cluster", StringType()),
        StructField("table", StringType()),
        StructField("row", StringType()),
    ]
)
_OF_ALL: Final = (CLOCK, FOLLOWED, END, INSTANCE_FENCED, COORDINATOR_ELECTED, GROUPS_CLEANED)
"""Kinds of rows that concern every shard of their cluster."""
SUMMARY: Final = ""
"""`table` of the one row per call that goes to no table: how far the shard is."""


class TrackerError(RuntimeError):
    """The tracker failed on a shard; names it and what it was given."""


class StateTooNewError(RuntimeError):
    """The state was written by a newer version of the program."""


def to_events(rows: DataFrame, shards: int) -> DataFrame:
    """Rows of group_events as the tracker's input: cluster, shard, TYPED, packed.

    A group's shard follows from its id alone: a cluster may have any number of offsets partitions. Clocks concern every
    shard of their cluster, since silence is evidence only for a shard that hears the clock; so do fencing lines,
    elections and clean-ups, which name no group. Other rows without a group tell the tracker nothing.
    """
    every_shard = F.sequence(F.lit(0), F.lit(shards - 1))
    own_shard = F.array(group_partition(F.col("group_id"), shards))
    concerns_all = F.col("kind").isin(*_OF_ALL) & F.col("group_id").isNull()
    known = rows.filter(F.col("group_id").isNotNull() | concerns_all)
    return known.withColumn("shard", F.explode(F.when(concerns_all, every_shard).otherwise(own_shard))).select(
        "cluster",
        "shard",
        *(_typed(name).alias(name) for name in TYPED),
        F.to_json(F.struct(*(F.col(name) for name in PACKED))).alias("packed"),
    )


def _typed(name: str) -> Column:
    column = F.col(_COLUMN_OF.get(name, name))
    if isinstance(_type_of(name), TimestampType):
        return F.unix_millis(column)
    if name in Event._field_defaults:
        return F.coalesce(column, F.lit(Event._field_defaults[name]))
    return column


def _type_of(name: str) -> DataType:
    return group_events.SCHEMA[_COLUMN_OF.get(name, name)].dataType


def follow(events: DataFrame, settings: TrackerSettings) -> DataFrame:
    """The finished rows of all tables: cluster, table, row (JSON)."""
    return events.groupBy("cluster", "shard").applyInPandasWithState(shard_function(settings), OUTPUT, STATE, "append", "NoTimeout")


def shard_function(
    settings: TrackerSettings,
) -> Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """The function that Spark calls for every shard of a micro-batch."""

    def follow_shard(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        cluster, number = str(key[0]), int(key[1])
        events = list(decode_events(frames))
        shard = _shard(state, settings)
        try:
            rows = shard.observe(events)
            blob = compressed(shard.encode())
        except Exception as error:
            last = max(events, key=lambda event: event.at_ms)
            raise TrackerError(
                f"cluster {cluster!r}, shard {number}: {type(error).__name__}: {error} (among {len(events)} events, "
                f"the last one {last.kind} at {last.at_ms}, {last.origin}:{last.position})"
            ) from error
        groups, held, late = shard.summary()
        late_before = int(state.get[STATE.names.index("late_events")]) if state.exists else 0
        state.update((MODEL_VERSION, blob, groups, held, late))
        summary = {
            "shard": number,
            "groups": groups,
            "held_events": held,
            "late_events": late,
            "new_late_events": late - late_before,
            "state_bytes": len(blob),
            "at_ms": max(event.at_ms for event in events),
        }
        tables = [SUMMARY, *(row.table for row in rows)]
        values = [json.dumps(summary), *(json.dumps(row.values, separators=(",", ":")) for row in rows)]
        yield pd.DataFrame({"cluster": [cluster] * len(tables), "table": tables, "row": values})

    return follow_shard


def _shard(state: GroupState, settings: TrackerSettings) -> Shard:
    if not state.exists:
        return Shard(settings)
    version, blob, *_ = state.get
    if version > MODEL_VERSION:
        raise StateTooNewError(
            f"the state was written by model version {version}, this program has {MODEL_VERSION}: use the newer one, or `rebalance replay`"
        )
    return Shard.decode(expanded(bytes(blob)), settings)


def decode_events(frames: Iterable[pd.DataFrame]) -> Iterator[Event]:
    """Rows of `to_events` as Events. A shard's rows may come in several frames, in any order."""
    for frame in frames:
        columns = [frame[name].tolist() for name in TYPED]  # tolist: Python's own numbers, not numpy's
        for *values, packed in zip(*columns, frame["packed"].tolist(), strict=True):
            yield Event(*values) if packed == "{}" else Event(*values, **unpack(packed))


def unpack(packed: str) -> dict[str, Any]:
    """The PACKED fields that a row has. What to_json left out is absent, and Event's defaults stand for it."""
    fields: dict[str, Any] = json.loads(packed)
    for name, convert in _NESTED.items():
        if name in fields:
            fields[name] = convert(fields[name])
    return fields


def _protocols(items: list[dict[str, Any]]) -> tuple[Protocol, ...]:
    return tuple(Protocol(item.get("name", ""), _topics(item), tuple(item.get("owned", ())), item.get("digest", "")) for item in items)


def _members(items: list[dict[str, Any]]) -> tuple[MemberEntry, ...]:
    return tuple(
        MemberEntry(
            item.get("member_id", ""),
            item.get("instance_id", ""),
            item.get("error_code", 0),
            item.get("reason", ""),
            _topics(item),
        )
        for item in items
    )


def _assignments(items: list[dict[str, Any]]) -> tuple[Assignment, ...]:
    return tuple(
        Assignment(
            item.get("member_id", ""),
            tuple(item["partitions"]) if "partitions" in item else None,
            item.get("digest", ""),
        )
        for item in items
    )


def _topics(item: dict[str, Any]) -> tuple[str, ...] | None:
    return tuple(item["topics"]) if "topics" in item else None


_NESTED: Final[dict[str, Callable[[list[Any]], tuple[Any, ...]]]] = {
    "beats": tuple,
    "positions": tuple,
    "protocols": _protocols,
    "members": _members,
    "assignments": _assignments,
}
