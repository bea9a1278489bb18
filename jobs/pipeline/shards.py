"""Connects Spark's grouped state with the tracker: the one module that knows pandas, Arrow and GroupState.

One call of `follow_shard` handles one coordinator shard in one micro-batch. It costs about 0.65 ms and 0.11 ms per column, almost
independent of the number of rows. So the fields of an Event that nearly every row fills are columns (`TYPED`), and the others, mostly
absent, are one JSON text without nulls (`PACKED`): 22 columns instead of 37. Measured for a micro-batch of 50 shards on 2 cores:
everything as JSON costs 0.51 s with 80 rows a shard and 1.2 s with 800, everything as columns 0.62 s and 0.77 s.

Nulls must be replaced before they cross: pandas turns a column of whole numbers with a null in it into floats.

An exception in the tracker is a bug, since the tracker survives any event. This module does not catch it: the batch is not committed, the
state and the tables do not change, the query stops with a message that names the place, and a corrected version continues from that very
batch. Catching it here would silently lose a shard's events.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
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
from schemas import group_events

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.state import GroupState

_FIRST_PACKED: Final = Event._fields.index("answer_member_id")
TYPED: Final = Event._fields[:_FIRST_PACKED]
PACKED: Final = Event._fields[_FIRST_PACKED:]

# Fields of Event with another name than their column: times, which cross as whole numbers.
COLUMN_OF: Final = {"at_ms": "occurred_at", "received_ms": "received_at"}

STATE: Final = StructType(
    [
        StructField("model_version", IntegerType()),
        StructField("blob", BinaryType()),
        StructField("groups", IntegerType()),  # from here on only for readers of the state store
        StructField("held_events", IntegerType()),
        StructField("late_events", LongType()),
    ]
)
OUTPUT: Final = StructType([StructField(name, StringType()) for name in ("cluster", "table", "row")])
_FOR_ALL_SHARDS: Final = (CLOCK, FOLLOWED, END, INSTANCE_FENCED, COORDINATOR_ELECTED, GROUPS_CLEANED)
"""Kinds of rows that every shard of their cluster gets."""
SUMMARY: Final = ""
"""`table` of the one row of each call that goes to no table: how far the shard is."""
_EMPTY: Final[dict[str, Any]] = {
    "protocols": Protocol("", None, (), ""),
    "members": MemberEntry("", "", 0, "", None),
    "assignments": Assignment("", None, ""),
}
"""Entries of lists in PACKED in which all fields are absent."""

_UINT32: Final = 0xFFFFFFFF
_INT_MAX: Final = 0x7FFFFFFF

_MARK: Final = b"Z"
"""The first byte of a compressed state. No MessagePack array begins so, and older versions stored one uncompressed."""
_HEAD: Final = struct.Struct("<cI")
_CODEC: Final = "zstd"


class TrackerError(RuntimeError):
    """The tracker failed on a shard. The message names the shard and its last event."""


class StateTooNewError(RuntimeError):
    """The state was written by a newer version of the program."""


def to_events(rows: DataFrame, shards: int) -> DataFrame:
    """Rows of group_events as the tracker's input: cluster, shard, TYPED, packed.

    A group's shard follows from its id alone: a cluster may have any number of offsets partitions. Every shard of a cluster gets its
    clocks, since silence is evidence only for a shard that knows the time, and its fencing lines, elections and clean-ups, which name no
    group. The tracker has no use for other rows without a group.
    """
    every_shard = F.sequence(F.lit(0), F.lit(shards - 1))
    own_shard = F.array(group_partition(F.col("group_id"), shards))
    concerns_all = F.col("kind").isin(*_FOR_ALL_SHARDS) & F.col("group_id").isNull()
    relevant = rows.filter(F.col("group_id").isNotNull() | concerns_all)
    return relevant.withColumn("shard", F.explode(F.when(concerns_all, every_shard).otherwise(own_shard))).select(
        "cluster",
        "shard",
        *(_typed(name).alias(name) for name in TYPED),
        F.to_json(F.struct(*(F.col(name) for name in PACKED))).alias("packed"),
    )


def _typed(name: str) -> Column:
    column = F.col(COLUMN_OF.get(name, name))
    if isinstance(_type_of(name), TimestampType):
        return F.unix_millis(column)
    if name in Event._field_defaults:
        return F.coalesce(column, F.lit(Event._field_defaults[name]))
    return column


def _type_of(name: str) -> DataType:
    return group_events.SCHEMA[COLUMN_OF.get(name, name)].dataType


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
    fields: dict[str, Any] = msgspec.json.decode(packed)
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(_entry(_EMPTY[name], item) for item in value) if name in _EMPTY else tuple(value)
    return fields


def _entry(empty: Any, item: Mapping[str, Any]) -> Any:
    return empty._replace(**{name: tuple(value) if isinstance(value, list) else value for name, value in item.items()})


def group_partition(group_id: Column, partitions: int) -> Column:
    """The partition of `__consumer_offsets` that a group is on, and so the broker that coordinates it.

    This is Kafka's `Utils.abs(groupId.hashCode) % partitions` (GroupMetadataManager.partitionFor) as an expression of Spark. `Utils.abs`
    is the absolute value, and 0 for the smallest integer, which has none. Java hashes UTF-16 units, while Spark splits texts into code
    points: a code point beyond the basic plane counts as its two surrogates.
    """

    def step(total: Column, character: Column) -> Column:
        code = F.ascii(character).cast("bigint")  # despite its name the code point
        above = code - 0x10000
        high, low = F.shiftright(above, 10) + 0xD800, above.bitwiseAND(F.lit(0x3FF)) + 0xDC00
        return F.when(code < 0x10000, _mix(total, code)).otherwise(_mix(_mix(total, high), low))

    units = F.split(group_id, "")
    code = F.aggregate(F.when(group_id == "", F.array().cast("array<string>")).otherwise(units), F.lit(0).cast("bigint"), step)
    absolute = F.when(code > _INT_MAX, F.lit(_UINT32 + 1) - code).otherwise(code).bitwiseAND(F.lit(_INT_MAX))
    return F.pmod(absolute, F.lit(partitions)).cast("int")


def _mix(total: Column, unit: Column) -> Column:
    return (total * 31 + unit).bitwiseAND(F.lit(_UINT32))


def compressed(data: bytes) -> bytes:
    """A shard's state in the form that is stored.

    The state passes between Spark and Python twice per micro-batch and is written each time. For 1,000 groups it is 19 MB, mostly
    repeated names. Compression makes it a tenth, for 0.4 ms a shard.
    """
    return _HEAD.pack(_MARK, len(data)) + bytes(pa.compress(data, codec=_CODEC, asbytes=True))


def expanded(data: bytes) -> bytes:
    """The argument of `compressed`; other bytes, stored by an older version, come back unchanged."""
    if data[:1] != _MARK:
        return data
    _, size = _HEAD.unpack_from(data)
    return bytes(pa.decompress(data[_HEAD.size :], decompressed_size=size, codec=_CODEC, asbytes=True))
