"""Which partition of `__consumer_offsets` a group lives on, and so which broker coordinates it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_UINT32 = 0xFFFFFFFF
_INT_MAX = 0x7FFFFFFF


def group_partition(group_id: Column, partitions: int) -> Column:
    """Kafka's `Utils.abs(groupId.hashCode) % partitions` (GroupMetadataManager.partitionFor), as Spark's own expression.

    `Utils.abs` is the absolute value, and 0 for the smallest integer, which has none.

    Java hashes UTF-16 units, Spark splits texts into code points: one beyond the basic plane counts as its two surrogates.
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
