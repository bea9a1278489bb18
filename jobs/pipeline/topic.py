"""A Kafka topic of log lines as a stream: records of `rebalance ship` (docs/shipping.md) as rows of raw_lines, decoded in the JVM.

A bundle of heartbeats stays bytes, which tasks decode (jobs/parsing/heartbeat_bundles.py).

Other programs may write anything to the topic. A record that no shipper wrote becomes a line with a fault, under the topic's own name. It
goes to quarantine, and does not advance the time of any broker.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.common.times import LATEST_MS
from jobs.kafka.bundles import VERSIONS
from jobs.parsing.heartbeat_bundles import NOT_SHIPPED
from jobs.pipeline.topic_input import TopicInput, java_settings, records_at_once
from schemas import raw_lines
from schemas.names import CLOCK, HEARTBEATS, LINE

_MAX_NAME: Final = 249  # characters, as of a topic
_MAX_ORIGIN: Final = 4_096
_MAX_CONTEXT: Final = 32_767  # of a group's name: what Kafka's protocol can say
_LENGTHS: Final = {"cluster": _MAX_NAME, "broker": _MAX_NAME, "origin": _MAX_ORIGIN, "context": _MAX_CONTEXT}
_READ: Final = f"this program reads {' and '.join(map(str, VERSIONS))}"
_UPDATE: Final = f", {_READ}: update it and read the topic into a new lakehouse, or ship with --raw"
_FAULT: Final = "^[A-Z_]{1,40}$"
_DIGITS: Final = "^[0-9]{1,18}$"

_FETCH_WAIT_MS: Final = "10"
"""After a poll a consumer at once sends its next fetch, which waits at the broker for new records, 500 ms by default. Spark then asks for
the ends of the partition. A broker answers the requests of a connection one after the other, so each partition of a micro-batch waited."""

PLACE_BITS: Final = 48
"""Low bits of a place, which hold the offset; the partition stands above them. So places sort like the records of the topic."""
READ_SEPARATOR: Final = "|"
"""Stands in a clock's text between the moment at which its broker's logs were read to their ends (epoch ms, or empty) and the seconds."""


def read_records(spark: SparkSession, topic: TopicInput, most_lines: int) -> DataFrame:
    """The topic as a stream of Kafka records. `most_lines`: of a micro-batch, about, unless the topic sets a limit of records."""
    settings = {"fetch.max.wait.ms": _FETCH_WAIT_MS} | java_settings(topic.config)
    options = {f"kafka.{name}": value for name, value in settings.items()} | {
        "kafka.bootstrap.servers": topic.bootstrap,
        "subscribe": topic.topic,
        "startingOffsets": topic.starting,
        "maxOffsetsPerTrigger": str(records_at_once(topic, most_lines)),
        "failOnDataLoss": str(not topic.accept_loss).lower(),
        "includeHeaders": "true",
        "groupIdPrefix": "rebalance",
    }
    return spark.readStream.format("kafka").options(**options).load()


def as_lines(records: DataFrame) -> DataFrame:
    """Kafka records as rows of raw_lines and their `place`. Clocks stand for no lines. Records of no shipper have no cluster and broker.

    A bundle is in `repeated`; its `context` is the name under which it goes to quarantine if it is none, as other records of no shipper.
    """
    headers = F.map_from_entries(F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>")))
    texts = records.select("topic", "partition", "offset", "value", headers.alias("h")).select(
        "topic",
        "partition",
        "offset",
        F.coalesce(F.col("value").cast("string"), F.lit("")).alias("value"),
        *(
            F.make_valid_utf8(F.col("h")[name].cast("string")).alias(name)
            for name in ("cluster", "broker", "record", "origin", "position", "at", "fault", "context", "read", "version", "crc")
        ),
        F.col("value").alias("bytes"),
    )
    problem = F.coalesce(
        *(F.when(F.coalesce(name, F.lit("")) == "", f"no header {name}") for name in ("cluster", "broker", "record", "origin", "position")),
        F.when(~F.col("record").isin(LINE, HEARTBEATS, CLOCK), F.lit("header record is neither line, heartbeats nor clock")),
        F.when((F.col("record") == HEARTBEATS) & ~F.coalesce(F.col("version").isin(*map(str, VERSIONS)), F.lit(False)), _other_version()),
        *(_too_long(name, most) for name, most in _LENGTHS.items()),
        F.when(F.col("fault").isNotNull() & ~F.col("fault").rlike(_FAULT), F.lit("header fault is no code")),
        *(_no_number(name) for name in ("position", "at", "read", "crc")),
    )
    checked = texts.withColumn("problem", problem)
    sound = F.col("problem").isNull()
    is_clock, is_bundle = (sound & (F.col("record") == name) for name in (CLOCK, HEARTBEATS))
    own_name = F.concat_ws("-", "topic", "partition")
    text = F.make_valid_utf8("value")  # not of bundles: they are no text, and each byte that is none would be replaced
    columns = {
        "cluster": F.when(sound, F.col("cluster")).otherwise(F.lit("")),
        "broker": F.when(sound, F.col("broker")).otherwise(F.lit("")),
        "record": F.when(is_clock | is_bundle, F.col("record")).otherwise(F.lit(LINE)),
        "origin": F.when(sound, F.col("origin")).otherwise(own_name),
        "position": F.when(sound, _number("position")).otherwise(F.col("offset")),
        "at": F.when(sound, F.timestamp_millis(_number("at"))),
        "text": F.when(is_bundle, F.col("crc"))
        .when(is_clock, F.concat_ws(READ_SEPARATOR, F.coalesce("read", F.lit("")), text))
        .otherwise(text),
        "fault": F.when(sound & ~is_clock, F.col("fault")).otherwise(F.concat(F.lit(f"{NOT_SHIPPED}: "), "problem")),
        "lines": F.when(is_clock, 0).otherwise(1),
        "context": F.when(is_bundle, own_name).when(sound, F.col("context")),
        "repeated": F.when(is_bundle, F.col("bytes")),
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
    most = F.lit((1 << 53) if name == "position" else LATEST_MS)
    sound = text.rlike(_DIGITS) & (_number(name) <= most)
    return F.when(text.isNotNull() & ~F.coalesce(sound, F.lit(False)), f"header {name} is no number that can be")


def _other_version() -> Column:
    """The problem of a bundle of another version."""
    return F.concat(F.lit("heartbeats of version "), F.coalesce(F.substring("version", 1, 20), F.lit("none")), F.lit(_UPDATE))


def _too_long(name: str, most: int) -> Column:
    return F.when(F.length(name) > most, f"header {name} is longer than {most}")
