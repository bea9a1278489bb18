"""Lines of a consumer's own log as rows: the Java client's, 2.1 to 4.2, librdkafka's, and those of other libraries.

Java: `[Consumer clientId=…, groupId=…] sentence`, inside the application's own log pattern; Connect writes `[Worker …]`.
librdkafka: `%level|epoch|FACILITY|name| [thrd:…]: sentence`; the name is `<client.id>#consumer-<n>`; the lines before it name the group
(jobs/logs/clients/judge.py). Through a binding, and from another library: `time %|FACILITY|name| sentence`, where another library is the
name (jobs/logs/clients/envelopes.py).

All have many more sentences. Those that say neither why a member joins nor why it leaves are skipped.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model.events import CLIENT_SOURCE
from jobs.parsing.rows import COMMON, Refusal, judged
from jobs.parsing.templates.client import JAVA, LIBRDKAFKA
from jobs.parsing.templates.language import LONG_WORD, fields_of, sentence_field, sentence_kind, template_number
from jobs.parsing.templates.other_clients import OTHERS

_TEMPLATES: Final = (*JAVA, *LIBRDKAFKA, *OTHERS)
_MAX_LENGTH: Final = 1 << 16
_MAX_WORDS: Final = 1 << 12  # characters besides long words
_SIGNED: Final = r"^(?:%\d\|[\d.]+|(?:\d[\d:./, TUZC+-]{17,46} )?%)\|"
# What stands behind the sentence is the logger: Connect's pattern adds the line number (`%m (%c:%L)`). A class without a package is none.
_JAVA: Final = (
    r"(?s)^.*?\[(?:Consumer|Worker) (?:instanceId=(.*?), )?clientId=(.*?), groupId=(.*?)\] (.*?)(?: \([\w$]+(?:\.[\w$]+)+(?::\d+)?\))?$"
)
_OTHER: Final = rf"(?s){_SIGNED}([A-Z_]*)\|((.*)#(?:consumer|producer)-\d+|[a-z-]*)\| (?:\[thrd:[^\]]*\]: )?(.*)$"
# Facilities with one sentence; and another one, about brokers before 0.10.1.
_WHOLE: Final = r"\|(?:MAXPOLL|SESSTMOUT)\|(?!.*Broker does not support KIP-62)"


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines of client logs as rows of PARSED."""
    text = F.col("text")
    short, is_java = F.col("short"), ~text.rlike(_SIGNED)

    def part(java: int, other: int) -> Column:
        value = F.when(is_java, F.regexp_extract(text, _JAVA, java) if java else F.lit(""))
        return F.when(short, value.otherwise(F.regexp_extract(text, _OTHER, other) if other else F.lit("")))

    few_words = F.length(F.regexp_replace(text, LONG_WORD, "")) <= _MAX_WORDS
    lines = lines.select(*COMMON, "text", "context", ((F.length(text) <= _MAX_LENGTH) & few_words).alias("short"))
    shaped = lines.select(
        *lines.columns,
        part(1, 0).alias("instance"),
        part(2, 3).alias("client"),
        part(3, 0).alias("group"),
        part(0, 2).alias("name"),
        part(4, 4).alias("sentence"),
    )
    matched = shaped.withColumn("template", template_number(_TEMPLATES, F.col("sentence")))
    split = matched.withColumn("fields", fields_of(_TEMPLATES, F.col("sentence"), F.col("template")))
    group = F.coalesce(_value("group"), sentence_field("group"), _value("context"))
    read = split.withColumn("group_id", group).withColumn("refusal", _refusal())
    columns = {
        "kind": sentence_kind(),
        "received_at": F.col("occurred_at"),
        "group_id": F.col("group_id"),
        "client_id": _value("client"),
        "instance_id": _value("instance"),
        "connection": _value("name"),
        "member_id": sentence_field("member"),
        "generation": _number("generation"),
        "session_timeout_ms": _number("session_timeout"),
        "rebalance_timeout_ms": _number("rebalance_timeout"),
        "reason": sentence_field("reason"),
    }
    return judged(read, CLIENT_SOURCE, sentence_kind().isNotNull(), columns)


def _refusal() -> Column:
    text, matches = F.col("text"), F.col("template").isNotNull()
    return (
        F.when(~F.col("short"), Refusal.TOO_LONG)
        .when(matches & F.col("occurred_at").isNull(), Refusal.NO_TIME)
        .when(matches & F.col("sentence").rlike(r"[\x00-\x08\x0b-\x1f\x7f]"), Refusal.CONTROL_CHARACTERS)
        .when(matches & F.col("group_id").isNull(), Refusal.NO_GROUP)
        .when(~matches & text.rlike(_WHOLE), Refusal.UNKNOWN_TEMPLATE)
    )


def _value(name: str) -> Column:
    return F.when(~F.col(name).isin("", "null"), F.col(name))


def _number(name: str) -> Column:
    return sentence_field(name).try_cast("int")
