"""Lines of a broker or controller that say how a broker comes and goes, as rows. The sentences are in templates/broker.py."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model.events import BROKER_SOURCE
from jobs.parsing.rows import COMMON, GROUPS, judged
from jobs.parsing.templates.broker import BROKER
from jobs.parsing.templates.language import fields_of, sentence_field, sentence_kind, template_number

BROKER_LOGGERS: Final = (
    r"(?:[\w.]*\.)?(?:BrokerServer|KafkaServer|LogManager|LoggingSignalHandler|Kafka\$|ZooKeeperClient|FetchSessionHandler"
    r"|ReplicationControlManager|KafkaController|ReplicaStateMachine\$BrokerChangeListener)"
)
BROKER_SHAPE: Final = rf"(?s)^\[[^\]]*\] [A-Z]+ (.*) \({BROKER_LOGGERS}\)$"
_MOST: Final = 1 << 10  # characters of a line


def is_broker_line(text: Column) -> Column:
    """Whether a line is of a logger that says how brokers come and go."""
    return (F.length(text) <= _MOST) & text.rlike(rf"\({BROKER_LOGGERS}\)$")


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines for which `is_broker_line` holds, as rows of PARSED. A sentence that no template fits is skipped."""
    sentences = lines.select(*COMMON, "text", F.regexp_extract("text", BROKER_SHAPE, 1).alias("sentence"))
    numbered = sentences.withColumn("template", template_number(BROKER, F.col("sentence")))
    read = numbered.withColumns({"fields": fields_of(BROKER, F.col("sentence"), F.col("template")), "refusal": F.lit(None).cast("string")})
    is_event = F.col("template").isNotNull() & F.col("occurred_at").isNotNull()
    nodes = F.split(sentence_field("nodes"), ", ?")
    return judged(
        read,
        BROKER_SOURCE,
        is_event,
        {
            "kind": sentence_kind(),
            "received_at": F.col("occurred_at"),
            "coordinator_id": sentence_field("node").try_cast("int"),
            "reason": F.col("sentence"),
            "groups": F.transform(nodes, lambda node: F.struct(F.lit(None), F.lit(None), node.try_cast("int"), F.lit(None))).cast(GROUPS),
        },
    )
