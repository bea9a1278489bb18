"""A Kafka topic of log lines as a stream: records of `rebalance ship` (docs/shipping.md) as rows of raw_lines, decoded in the JVM.

Other programs may write anything to the topic. A record that no shipper wrote becomes a line with a fault, under the topic's own name. It
goes to quarantine, and does not advance the time of any broker.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.pipeline.topic_input import TopicInput, java_settings
from schemas import raw_lines
from schemas.names import CLOCK, LINE

NOT_SHIPPED: Final = "NOT_SHIPPED"
"""Code of `quarantine.reason`: a record of the topic that `rebalance ship` did not write; the detail says what is wrong with it."""

_MAX_NAME: Final = 249  # characters, as of a topic
_MAX_ORIGIN: Final = 4_096
_MAX_TIME_MS: Final = 253_402_300_799_999  # the year 9999: what a timestamp can hold
_MAX_CONTEXT: Final = 32_767  # of a group's name: what Kafka's protocol can say
_LENGTHS: Final = {"cluster": _MAX_NAME, "broker": _MAX_NAME, "origin": _MAX_ORIGIN, "context": _MAX_CONTEXT}
_FAULT: Final = "^[A-Z_]{1,40}$"
_DIGITS: Final = "^[0-9]{1,18}$"

_MOST_RECORDS: Final = 100_000  # of a micro-batch: each is a whole line, none is a number
PLACE_BITS: Final = 48
"""Low bits of a place, which hold the offset; the partition stands above them. So places sort like the records of the topic."""
READ_SEPARATOR: Final = "|"
"""Stands in a clock's text between the moment at which its broker's logs were read to their ends (epoch ms, or empty) and the seconds."""


def read_records(spark: SparkSession, topic: TopicInput, max_offsets: int) -> DataFrame:
    """The topic as a stream of Kafka records. `max_offsets`: limit for a micro-batch, unless the topic sets its own."""
    options = {f"kafka.{name}": value for name, value in java_settings(topic.config).items()} | {
        "kafka.bootstrap.servers": topic.bootstrap,
        "subscribe": topic.topic,
        "startingOffsets": topic.starting,
        "maxOffsetsPerTrigger": str(topic.max_offsets or min(max_offsets, _MOST_RECORDS)),
        "failOnDataLoss": str(not topic.accept_loss).lower(),
        "includeHeaders": "true",
        "groupIdPrefix": "rebalance",
    }
    return spark.readStream.format("kafka").options(**options).load()


def as_lines(records: DataFrame) -> DataFrame:
    """Kafka records as rows of raw_lines and their `place`. Clocks stand for no lines. Records of no shipper have no cluster and broker."""
    headers = F.map_from_entries(F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>")))
    texts = records.select("topic", "partition", "offset", "value", headers.alias("h")).select(
        "topic",
        "partition",
        "offset",
        F.make_valid_utf8(F.coalesce(F.col("value").cast("string"), F.lit(""))).alias("value"),
        *(
            F.make_valid_utf8(F.col("h")[name].cast("string")).alias(name)
            for name in ("cluster", "broker", "record", "origin", "position", "at", "fault", "context", "read")
        ),
    )
    problem = F.coalesce(
        *(F.when(F.coalesce(name, F.lit("")) == "", f"no header {name}") for name in ("cluster", "broker", "record", "origin", "position")),
        F.when(~F.col("record").isin(LINE, CLOCK), F.lit("header record is neither line nor clock")),
        *(_too_long(name, most) for name, most in _LENGTHS.items()),
        F.when(F.col("fault").isNotNull() & ~F.col("fault").rlike(_FAULT), F.lit("header fault is no code")),
        *(_no_number(name) for name in ("position", "at", "read")),
    )
    checked = texts.withColumn("problem", problem)
    sound = F.col("problem").isNull()
    is_clock = sound & (F.col("record") == CLOCK)
    columns = {
        "cluster": F.when(sound, F.col("cluster")).otherwise(F.lit("")),
        "broker": F.when(sound, F.col("broker")).otherwise(F.lit("")),
        "record": F.when(is_clock, F.lit(CLOCK)).otherwise(F.lit(LINE)),
        "origin": F.when(sound, F.col("origin")).otherwise(F.concat_ws("-", "topic", "partition")),
        "position": F.when(sound, _number("position")).otherwise(F.col("offset")),
        "at": F.when(sound, F.timestamp_millis(_number("at"))),
        "text": F.when(is_clock, F.concat_ws(READ_SEPARATOR, F.coalesce("read", F.lit("")), "value")).otherwise(F.col("value")),
        "fault": F.when(sound & ~is_clock, F.col("fault")).otherwise(F.concat(F.lit(f"{NOT_SHIPPED}: "), "problem")),
        "lines": F.when(is_clock, 0).otherwise(1),
        "context": F.when(sound, F.col("context")),
        "repeated": F.lit(None),
    }
    return checked.select(
        *(columns[field.name].cast(field.dataType).alias(field.name) for field in raw_lines.SCHEMA),
        (F.shiftleft(F.col("partition").cast("bigint"), PLACE_BITS) + F.col("offset")).alias("place"),
    )


def _number(name: str) -> Column:
    return F.when(F.col(name).rlike(_DIGITS), F.col(name)).cast("bigint")


def _no_number(name: str) -> Column:
    """The problem of a header whose value is not a number, or is too large."""
    text = F.col(name)
    most = F.lit((1 << 53) if name == "position" else _MAX_TIME_MS)
    sound = text.rlike(_DIGITS) & (_number(name) <= most)
    return F.when(text.isNotNull() & ~F.coalesce(sound, F.lit(False)), f"header {name} is no number that can be")


def _too_long(name: str, most: int) -> Column:
    return F.when(F.length(name) > most, f"header {name} is longer than {most}")
