"""Lines of a broker's group coordinator (server.log) as rows: `[time] LEVEL [prefix] sentence (logger)`, Kafka 0.9 to 4.2.

The sentences are in templates/classic.py, consumer.py and service.py. The first template that fits a sentence decides.

Prefixes: Scala `[GroupCoordinator <broker>]: ` and `[GroupMetadataManager brokerId=<broker>] `, up to 0.11 `[Group Metadata Manager on
Broker <broker>]: ` (GroupMetadata has none), Java
`[GroupCoordinator id=<broker> topic=__consumer_offsets partition=<p>] ` or, in lines about no partition,
`[GroupCoordinator id=<broker>] `.
"""

from __future__ import annotations

import functools
import operator
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model import events as e
from jobs.parsing.rows import COMMON, GROUPS, Refusal, judged
from jobs.parsing.templates.classic import MEMBERS as MEMBER_LINES
from jobs.parsing.templates.classic import REBALANCE
from jobs.parsing.templates.consumer import CONSUMER
from jobs.parsing.templates.language import LONG_WORD, fields_of, sentence_field, sentence_kind, template_number
from jobs.parsing.templates.reason import REASONS
from jobs.parsing.templates.service import COMMITS, HARMLESS, NOTES, OWNERSHIP
from schemas.group_events import MEMBERS

TEMPLATES: Final = (*REBALANCE, *MEMBER_LINES, *OWNERSHIP, *COMMITS, *CONSUMER, *NOTES, *HARMLESS)
"""A general wording comes after the special ones that it includes."""

_MAX_LENGTH: Final = 1 << 18  # a list of 4,000 members; Kafka writes no longer line
_MAX_WORDS: Final = 1 << 11  # characters besides long words

_MARKS: Final = (
    "coordinator.group.",
    "kafka.coordinator.Group",
    " [GroupCoordinator ",
    " [GroupMetadataManager brokerId=",
    " [Group Metadata Manager on Broker ",
)
_PREFIX: Final = (
    r"\[(?:GroupCoordinator (?:id=)?|GroupMetadataManager brokerId=|Group Metadata Manager on Broker )(\d+)"
    r"(?: topic=__consumer_offsets partition=(\d{1,9}))?\]:? "
)
_LOGGER: Final = (
    r"kafka\.coordinator\.(?:group\.[\w.$]+|GroupCoordinator|GroupMetadataManager)"
    r"|org\.apache\.kafka\.coordinator\.group\.[\w.$]+"
    r"|org\.apache\.kafka\.coordinator\.common\.runtime\.[\w.$]+"
)
SHAPE: Final = rf"(?s)^\[[^\]]*\] [A-Z]+ ({_PREFIX})?(.*) \(({_LOGGER})\)$"  # groups: prefix, node, partition, sentence, logger
_ANY_SHAPE: Final = r"(?s)^\[[^\]]*\] [A-Z]+ .* \([\w.$]+\)$"
_PREFIXED: Final = rf"^\[[^\]]*\] [A-Z]+ (?:{_PREFIX})"
_ENDS_WITH_LOGGER: Final = rf" \((?:{_LOGGER})\)$"
_GROUPS_LISTED: Final = r"^\[[^\]]*\] [A-Z]+ .{0,99}The following groups were deleted: "  # of any length: one field costs little
_MEMBER_SEPARATOR: Final = r", (?=.*-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def is_coordinator_line(text: Column) -> Column:
    """Whether a line has a mark of the group coordinator. Stack traces and damaged lines may have one, too."""
    return functools.reduce(operator.or_, (text.contains(mark) for mark in _MARKS))


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines for which `is_coordinator_line` holds, as rows of PARSED."""
    text, sentence = F.col("text"), F.col("sentence")
    parts = ("prefix", "node", "prefix_partition", "sentence", "logger")
    lines = lines.select(*COMMON, "text", is_readable(text).alias("short"))
    shaped = lines.select(
        *lines.columns, *(F.when(F.col("short"), F.regexp_extract(text, SHAPE, 1 + index)).alias(name) for index, name in enumerate(parts))
    )
    # A runtime serves coordinators of other kinds, too: only the prefix shows the kind of a line.
    is_own = (F.col("logger") != "") & ((F.col("prefix") != "") | ~F.col("logger").contains(".common.runtime."))
    marked = shaped.withColumn("is_own", F.coalesce(is_own, F.lit(False)))
    matched = marked.withColumn("template", F.when(F.col("is_own"), template_number(TEMPLATES, sentence)))
    split = matched.withColumn("fields", fields_of(TEMPLATES, sentence, F.col("template")))
    is_preparing, reason = sentence_kind() == e.PREPARING_REBALANCE, sentence_field("reason")
    reasoned = split.withColumn("reason_template", F.when(is_preparing, template_number(REASONS, reason)))
    read = reasoned.withColumns({"reason_fields": fields_of(REASONS, reason, F.col("reason_template")), "refusal": _refusal()})
    return judged(read, e.COORDINATOR_SOURCE, sentence_kind() != "", _event_columns())


def is_readable(text: Column) -> Column:
    """Whether a line is short enough to be Kafka's, and to be matched in little time."""
    few_words = F.length(F.regexp_replace(text, LONG_WORD, "")) <= _MAX_WORDS
    return F.when(F.length(text) <= _MAX_WORDS, F.lit(True)).otherwise(
        (F.length(text) <= _MAX_LENGTH) & (few_words | text.rlike(_GROUPS_LISTED))
    )


def _refusal() -> Column:
    text, sentence = F.col("text"), F.col("sentence")
    prefixed, ends_with_logger = text.rlike(_PREFIXED), text.rlike(_ENDS_WITH_LOGGER)
    strange = prefixed & ~F.col("is_own")
    return (
        F.when(~F.col("short") & (prefixed | ends_with_logger), Refusal.TOO_LONG)
        .when(F.col("is_own") & F.col("occurred_at").isNull(), Refusal.NO_TIME)
        .when(F.col("is_own") & sentence.rlike(r"[\x00-\x08\x0b-\x1f\x7f]"), Refusal.CONTROL_CHARACTERS)
        .when(F.col("is_own") & F.col("fields").isNull(), Refusal.UNKNOWN_TEMPLATE)
        .when(strange & ~text.rlike(_ANY_SHAPE), Refusal.TRUNCATED)
        .when(strange, Refusal.UNKNOWN_TEMPLATE)  # no other logger writes this prefix
        .when(ends_with_logger & (F.col("logger") == ""), Refusal.MALFORMED)
    )


def _event_columns() -> dict[str, Column]:
    """The event columns of a line that a template reads."""
    reason, in_reason = sentence_field("reason"), _listed(sentence_field("members", "reason_fields"))
    # A broker ends the sentence after the reason, and some reasons end one themselves.
    bare = F.when(sentence_kind() == e.PREPARING_REBALANCE, F.regexp_replace(reason, r"\.$", "")).otherwise(reason)
    whole = sentence_kind().isin(e.COORDINATOR_NOTE, e.CONSUMER_GROUP_LOG)
    groups = F.when(sentence_kind() == e.GROUPS_DELETED, F.split(F.coalesce(sentence_field("groups"), F.lit("")), ", "))
    return {
        "kind": sentence_kind(),
        "received_at": F.col("occurred_at"),
        "group_id": sentence_field("group"),
        "coordinator_partition": _number(
            F.coalesce(sentence_field("partition"), F.when(F.col("prefix_partition") != "", F.col("prefix_partition")))
        ),
        "coordinator_id": _number(F.col("node")),
        "client_id": sentence_field("client"),
        "client_host": F.substring_index(sentence_field("host"), "/", -1),  # java.net.InetAddress prints name/address
        "member_id": F.coalesce(sentence_field("member"), sentence_field("member", "reason_fields"), F.get(in_reason, F.lit(0)).member_id),
        "instance_id": F.coalesce(_instance("fields"), _instance("reason_fields")),
        "generation": _number(sentence_field("generation")),
        "answer_member_id": sentence_field("new_member"),
        "leader_id": sentence_field("leader"),
        "session_timeout_ms": _number(sentence_field("session_timeout")),
        "rebalance_timeout_ms": _number(sentence_field("rebalance_timeout")),
        "reason": F.when(whole, F.col("sentence")).otherwise(bare),
        "state": sentence_field("state"),
        "member_count": _number(sentence_field("count")),
        "members": F.coalesce(_listed(sentence_field("members")), in_reason),
        "groups": F.transform(F.filter(groups, lambda group: group != ""), lambda group: F.struct(group, *[F.lit(None)] * 3)).cast(GROUPS),
    }


def _instance(of: str) -> Column:
    """The group.instance.id of a sentence; null where the sentence says that there is none."""
    value = F.regexp_replace(sentence_field("instance", of), r"(?s)^Some\((.*)\)$", "$1")
    return F.when(~value.isin("", "None", "null"), value)


def _number(digits: Column) -> Column:
    return digits.try_cast("int")


def _listed(collection: Column) -> Column:
    """Members of a printed collection: Scala `Set(a, b)`, `HashSet(a, b)`, Java `[a, b]`, or `a, b`."""
    inner = F.regexp_replace(collection, r"(?s)^(?:\w*\((.*)\)|\[(.*)\])$", "$1$2")
    ids = F.filter(F.split(inner, _MEMBER_SEPARATOR), lambda member: member != "")
    return F.transform(
        ids,
        lambda member: F.struct(
            member.alias("member_id"),
            F.lit(None).alias("instance_id"),
            F.lit(None).alias("error_code"),
            F.lit(None).alias("reason"),
            F.lit(None).alias("topics"),
        ),
    ).cast(MEMBERS)
