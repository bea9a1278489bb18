"""Lines of a broker's group coordinator (server.log) as rows: `[time] LEVEL [prefix] sentence (logger)`, Kafka 2.1 to 4.2.

The sentences are in classic_templates.py, consumer_templates.py and service_templates.py. The first one that a line fits decides; its
fields come back as one text, separated by a character that no line holds.

Prefixes: Scala `[GroupCoordinator <broker>]: ` and `[GroupMetadataManager brokerId=<broker>] ` (GroupMetadata has none), Java
`[GroupCoordinator id=<broker> topic=__consumer_offsets partition=<p>] ` and, for what concerns no partition,
`[GroupCoordinator id=<broker>] `.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model import events as e
from jobs.parsing.rows import COMMON, EVENT, GROUPS, QUARANTINE, RAW_CHARACTERS, SKIPPED, Refusal, parsed
from jobs.parsing.templates.classic import MEMBERS as MEMBER_LINES
from jobs.parsing.templates.classic import REBALANCE
from jobs.parsing.templates.consumer import CONSUMER
from jobs.parsing.templates.language import FIELDS, LONG_WORD, Template
from jobs.parsing.templates.reason import REASONS
from jobs.parsing.templates.service import COMMITS, HARMLESS, NOTES, OWNERSHIP
from schemas.group_events import MEMBERS

TEMPLATES: Final = (*REBALANCE, *MEMBER_LINES, *OWNERSHIP, *COMMITS, *CONSUMER, *NOTES, *HARMLESS)
"""General wordings come after the special ones that they include."""

_SEPARATOR: Final = "\x01"
_MAX_LENGTH: Final = 1 << 18  # a list of 4,000 members; longer ones are not Kafka's
_MAX_WORDS: Final = 1 << 11  # characters besides long words

_PREFIX: Final = (
    r"\[(?:GroupCoordinator (?:id=)?|GroupMetadataManager brokerId=)(\d+)(?: topic=__consumer_offsets partition=(\d{1,9}))?\]:? "
)
_LOGGER: Final = (
    r"kafka\.coordinator\.group\.[\w.$]+"
    r"|org\.apache\.kafka\.coordinator\.group\.[\w.$]+"
    r"|org\.apache\.kafka\.coordinator\.common\.runtime\.CoordinatorRuntime[\w.$]*"
)
_SHAPE: Final = rf"(?s)^\[[^\]]*\] [A-Z]+ ({_PREFIX})?(.*) \(({_LOGGER})\)$"  # groups: prefix, node, partition, sentence, logger
_ANY_SHAPE: Final = r"(?s)^\[[^\]]*\] [A-Z]+ .* \([\w.$]+\)$"
_PREFIXED: Final = rf"^\[[^\]]*\] [A-Z]+ (?:{_PREFIX})"
_ENDS_OURS: Final = rf" \((?:{_LOGGER})\)$"
_GROUPS_LISTED: Final = r"^\[[^\]]*\] [A-Z]+ .{0,99}The following groups were deleted: "  # of any length: has one field, so it costs little
_MEMBER_SEPARATOR: Final = r", (?=.*-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def is_coordinator_line(text: Column) -> Column:
    """Whether a line has a mark of the group coordinator; stack traces and damaged lines included."""
    return text.contains("coordinator.group.") | text.contains(" [GroupCoordinator ") | text.contains(" [GroupMetadataManager brokerId=")


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines for which `is_coordinator_line` holds, as rows of PARSED."""
    text, sentence = F.col("text"), F.col("sentence")
    parts = ("prefix", "node", "prefix_partition", "sentence", "logger")
    known = lines.select(*COMMON, "text", is_readable(text).alias("short"))
    shaped = known.select(
        *known.columns, *(F.when(F.col("short"), F.regexp_extract(text, _SHAPE, 1 + index)).alias(name) for index, name in enumerate(parts))
    )
    ours = (F.col("logger") != "") & ((F.col("prefix") != "") | ~F.col("logger").contains("runtime.CoordinatorRuntime"))
    owned = shaped.withColumn("ours", F.coalesce(ours, F.lit(False)))
    found = owned.withColumn("template", F.when(F.col("ours"), template_number(TEMPLATES, sentence)))
    read = found.withColumn("fields", fields_of(TEMPLATES, sentence, F.col("template")))
    is_preparing, reason = _kind() == e.PREPARING_REBALANCE, _field("reason")
    reasoned = read.withColumn("reason_template", F.when(is_preparing, template_number(REASONS, reason)))
    told = reasoned.withColumns({"reason_fields": fields_of(REASONS, reason, F.col("reason_template")), "refusal": _refusal()})
    refused = F.col("refusal").isNotNull()
    verdict = F.when(refused, QUARANTINE).when(_kind() != "", EVENT).otherwise(SKIPPED)
    own = {name: F.col(name) for name in (*COMMON, "refusal")}
    raw = F.when(refused, F.substring(text, 1, RAW_CHARACTERS))
    return told.select(*parsed(_event_columns() | own | {"source": F.lit(e.COORDINATOR_SOURCE), "verdict": verdict, "raw": raw}))


def is_readable(text: Column) -> Column:
    """Whether a line can be one of Kafka's, and be told so in little time."""
    few_words = F.length(F.regexp_replace(text, LONG_WORD, "")) <= _MAX_WORDS
    return F.when(F.length(text) <= _MAX_WORDS, F.lit(True)).otherwise(
        (F.length(text) <= _MAX_LENGTH) & (few_words | text.rlike(_GROUPS_LISTED))
    )


def template_number(templates: tuple[Template, ...], sentence: Column) -> Column:
    """The place in `templates` of the first one that a sentence fits; null if none does.

    Only those are tried that begin with the sentence's first word; those without a kind and fields are tried last, as one.
    """
    by_word: dict[str, Column] = {}
    plain = [(place, template) for place, template in enumerate(templates) if not template.kind and not template.groups]
    for place, template in enumerate(templates):
        if template.kind or template.groups:
            tried = by_word.get(template.first_word, F.when(F.lit(False), F.lit(None).cast("int")))
            by_word[template.first_word] = tried.when(sentence.rlike(template.pattern), place)
    number = F.when(F.lit(False), F.lit(None).cast("int"))
    for word, tried in by_word.items():
        number = number.when(sentence.startswith(word), tried)
    if plain:
        number = F.coalesce(number, F.when(sentence.rlike("|".join(template.pattern for _, template in plain)), plain[0][0]))
    return number


def fields_of(templates: tuple[Template, ...], sentence: Column, number: Column) -> Column:
    """The kind and then the fields of a sentence, empty where the template has none.

    The pattern is compiled for the line. To cut out the fields where the template is found would be a little faster, and ten times the
    code for Spark to generate and the JVM to compile.
    """
    patterns = F.array(*(F.lit(template.pattern if template.kind else "(?s)^.*$") for template in templates))
    replacements = F.array(*(F.lit(_SEPARATOR.join(_replacements(template))) for template in templates))
    return F.split(F.regexp_replace(sentence, F.get(patterns, number), F.get(replacements, number)), _SEPARATOR)


def _replacements(template: Template) -> list[str]:
    if not template.kind:
        return [""]
    return [template.kind, *(_replacement(template, name) for name in FIELDS)]


def _replacement(template: Template, name: str) -> str:
    if name in template.groups:
        return f"${template.groups.index(name) + 1}"
    return template.fixed.get(name, "")


def _kind() -> Column:
    """Kind of the line; null if no template fits, empty if it concerns no group."""
    return F.get("fields", F.lit(0))


def _field(name: str, of: str = "fields") -> Column:
    """A field of a record; null where the template does not have it or the line says that there is none."""
    value = F.get(of, F.lit(1 + list(FIELDS).index(name)))
    if name == "instance":
        value = F.regexp_replace(value, r"(?s)^Some\((.*)\)$", "$1")
        return F.when(~value.isin("", "None", "null"), value)
    return F.when(value != "", value)


def _refusal() -> Column:
    text, sentence = F.col("text"), F.col("sentence")
    prefixed, ends_ours = text.rlike(_PREFIXED), text.rlike(_ENDS_OURS)
    strange = prefixed & ~F.col("ours")
    return (
        F.when(~F.col("short") & (prefixed | ends_ours), Refusal.TOO_LONG)
        .when(F.col("ours") & F.col("at").isNull(), Refusal.NO_TIME)
        .when(F.col("ours") & sentence.rlike(r"[\x00-\x08\x0b-\x1f\x7f]"), Refusal.CONTROL_CHARACTERS)
        .when(F.col("ours") & F.col("fields").isNull(), Refusal.UNKNOWN_TEMPLATE)
        .when(strange & ~text.rlike(_ANY_SHAPE), Refusal.TRUNCATED)
        .when(strange, Refusal.UNKNOWN_TEMPLATE)  # another logger does not write our prefix
        .when(ends_ours & (F.col("logger") == ""), Refusal.MALFORMED)
    )


def _event_columns() -> dict[str, Column]:
    """Columns of a coordinator line that a template reads."""
    reason, in_reason = _field("reason"), _listed(_field("members", "reason_fields"))
    # A broker ends the sentence after the reason, and some reasons end one themselves.
    bare = F.when(_kind() == e.PREPARING_REBALANCE, F.regexp_replace(reason, r"\.$", "")).otherwise(reason)
    whole = _kind().isin(e.COORDINATOR_NOTE, e.CONSUMER_GROUP_LOG)
    groups = F.when(_kind() == e.GROUPS_DELETED, F.split(F.coalesce(_field("groups"), F.lit("")), ", "))
    return {
        "kind": _kind(),
        "received_at": F.col("at"),
        "group_id": _field("group"),
        "coordinator_partition": _number(
            F.coalesce(_field("partition"), F.when(F.col("prefix_partition") != "", F.col("prefix_partition")))
        ),
        "coordinator_id": _number(F.col("node")),
        "client_id": _field("client"),
        "client_host": F.substring_index(_field("host"), "/", -1),  # java.net.InetAddress prints name/address
        "member_id": F.coalesce(_field("member"), _field("member", "reason_fields"), F.get(in_reason, F.lit(0)).member_id),
        "instance_id": F.coalesce(_field("instance"), _field("instance", "reason_fields")),
        "generation": _number(_field("generation")),
        "answer_member_id": _field("new_member"),
        "leader_id": _field("leader"),
        "session_timeout_ms": _number(_field("session_timeout")),
        "rebalance_timeout_ms": _number(_field("rebalance_timeout")),
        "reason": F.when(whole, F.col("sentence")).otherwise(bare),
        "state": _field("state"),
        "member_count": _number(_field("count")),
        "members": F.coalesce(_listed(_field("members")), in_reason),
        "groups": F.transform(F.filter(groups, lambda group: group != ""), lambda group: F.struct(group, *[F.lit(None)] * 3)).cast(GROUPS),
    }


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
