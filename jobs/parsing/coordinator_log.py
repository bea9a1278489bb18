"""Lines of a broker's group coordinator (server.log) as rows: `[time] LEVEL [prefix] sentence (logger)`, Kafka 0.9 to 4.4.

The sentences are those of jobs/sentences/coordinator.py. The first template that fits a sentence decides.

Prefixes: Scala `[GroupCoordinator <broker>]: ` and `[GroupMetadataManager brokerId=<broker>] `, up to 0.11 `[Group Metadata Manager on
Broker <broker>]: ` (GroupMetadata has none), Java
`[GroupCoordinator id=<broker> topic=__consumer_offsets partition=<p>] ` or, in lines about no partition,
`[GroupCoordinator id=<broker>] `.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from coordinator_model import events as e
from jobs.common.expressions import expression
from jobs.common.trouble import is_grave, tells_of_trouble
from jobs.logs.envelopes.anchors import ANCHOR, evened, line_at
from jobs.parsing.rows import EVENT, UNKNOWN_SOURCE, Refusal, damage, int32, refused, skipped
from jobs.sentences.coordinator import PREFIXES, REASONS, TEMPLATES
from jobs.sentences.language import LONG_WORD, Reading, Templates

_MAX_LENGTH: Final = 1 << 18  # a list of 4,000 members; Kafka writes no longer line
_MAX_WORDS: Final = 1 << 11  # characters besides long words

_MARKS: Final = (" [GroupCoordinator ", "coordinator.group.", "kafka.coordinator.Group", *(f" [{prefix}" for prefix in PREFIXES[2:]))
_PREFIX: Final = rf"\[(?:{'|'.join(PREFIXES)})(\d+)(?: topic=__consumer_offsets partition=(\d{{1,9}}))?\]:? "
_LOGGER: Final = (
    r"kafka\.coordinator\.(?:group\.[\w.$]+|GroupCoordinator|GroupMetadataManager)"
    r"|org\.apache\.kafka\.coordinator\.group\.[\w.$]+"
    r"|org\.apache\.kafka\.coordinator\.common\.runtime\.[\w.$]+"
    r"|org\.apache\.kafka\.deferred\.DeferredEventQueue"
)
SHAPE: Final = expression(rf"(?as)\[[^\]]*\] [A-Z]+ ({_PREFIX})?(.*) \(({_LOGGER})\)\Z")
"""Groups: prefix, node, partition, sentence, logger."""
_ANY_SHAPE: Final = expression(r"(?as)\[[^\]]*\] [A-Z]+ .* \([\w.$]+\)\Z")
_PREFIXED: Final = expression(rf"(?a)\[[^\]]*\] [A-Z]+ (?:{_PREFIX})")
_ENDS_WITH_LOGGER: Final = expression(rf"(?a) \((?:{_LOGGER})\)\Z")
_LOOKS_LIKE: Final = expression(rf"(?a)(?<![\w.\[]){_PREFIX}")
_CUT: Final = expression(r"(?a) \((?:kafka|org\.apache\.kafka)\.coord[\w.$]*\Z")
"""A logger that a copy cuts: the sentence before it is whole."""
_GROUPS_LISTED: Final = expression(r"\[[^\]]*\] [A-Z]+ .{0,99}The following groups were deleted: ")  # of any length: one field costs little
_COLLECTION: Final = expression(r"(?as)\w*\((.*)\)\Z|\[(.*)\]\Z")
_MEMBER_SEPARATOR: Final = expression(r"(?<=-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}), ")
"""Client ids may have a comma, too."""
_WHOLE: Final = frozenset({e.COORDINATOR_NOTE, e.CONSUMER_GROUP_LOG})  # kinds whose reason is the sentence
_NO_INSTANCE: Final = frozenset({"", "None", "null"})

SENTENCES: Final = Templates(TEMPLATES)
_reasons: Final = Templates(REASONS)


def is_coordinator_line(text: str) -> bool:
    """Whether a line has a mark of the group coordinator. Stack traces and damaged lines may have one, too."""
    return any(mark in text for mark in _MARKS)


def row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of PARSED that the text and the time (epoch µs) of a line decide for which `is_coordinator_line` holds."""
    shape, reading = read(text)
    # A runtime serves coordinators of other kinds, too: only the prefix shows the kind of a line.
    if shape is None or (shape[1] is None and ".common.runtime." in shape[5]):
        refusal = _foreign(text, shaped=shape is not None)
        return skipped(UNKNOWN_SOURCE) if refusal is None else refused(e.COORDINATOR_SOURCE, refusal, text)
    _, node, partition, sentence, _ = shape.groups()
    refusal = damage(sentence, at_us) or (Refusal.UNKNOWN_TEMPLATE if reading is None else None)
    if refusal is not None or reading is None:
        return refused(e.COORDINATOR_SOURCE, refusal, text)
    if not reading.template.kind and not _is_trouble(text, reading, sentence):
        return skipped(e.COORDINATOR_SOURCE)
    columns = _event_columns(reading, sentence)
    if columns["coordinator_partition"] is None:
        columns["coordinator_partition"] = int32(partition)
    return columns | {"source": e.COORDINATOR_SOURCE, "verdict": EVENT, "received_at": at_us, "coordinator_id": int32(node)}


def read(text: str) -> tuple[re.Match[str] | None, Reading | None]:
    """The parts of a line as SHAPE has them, and what a template reads of its sentence; None where nothing fits."""
    shape, reading = _read(text)
    if is_readable(text) and (reading is None or any(value != value.strip(" ") for value in reading.fields.values())):
        tidied = _tidied(text)
        again = _read(tidied) if tidied != text else (None, None)
        return again if again[1] is not None else (shape, reading)
    return shape, reading


def _read(text: str) -> tuple[re.Match[str] | None, Reading | None]:
    shape = SHAPE.match(text) if is_readable(text) else None
    return shape, None if shape is None else SENTENCES.read(shape[4])


def _tidied(text: str) -> str:
    """A line of Kafka's own pattern without what people add to it: a thread, a mark at its end, runs of blanks, a cut in its logger."""
    if (cut := _CUT.search(text)) is not None and _PREFIXED.match(text):
        return text[: cut.start()] + " (kafka.coordinator.group.GroupCoordinator)"
    line = text.encode("utf-8", "replace")
    anchor = ANCHOR.search(line)
    found = None if anchor is None else line_at(line, anchor.start(), None)
    return evened(found or line).decode("utf-8", "replace")


def is_readable(text: str) -> bool:
    """Whether a line is short enough to be Kafka's, and to be matched in little time."""
    if len(text) <= _MAX_WORDS:
        return True
    return len(text) <= _MAX_LENGTH and (len(LONG_WORD.sub("", text)) <= _MAX_WORDS or _GROUPS_LISTED.match(text) is not None)


def _foreign(text: str, *, shaped: bool) -> str | None:
    """What is wrong with a line that is not the coordinator's by its shape; None if it is of another logger."""
    prefixed = _PREFIXED.match(text) is not None  # no other logger writes this prefix
    looks_like = _ENDS_WITH_LOGGER.search(text) or (_LOOKS_LIKE.search(text) and not _ANY_SHAPE.match(text))
    if not prefixed and (shaped or not looks_like):
        return None
    if not is_readable(text):
        return Refusal.TOO_LONG
    if not prefixed:
        return Refusal.MALFORMED
    return Refusal.UNKNOWN_TEMPLATE if _ANY_SHAPE.match(text) else Refusal.TRUNCATED


def _is_trouble(text: str, reading: Reading, sentence: str) -> bool:
    """Whether a line that moves no group tells of a group's trouble: nothing may be called healthy over it."""
    return tells_of_trouble(sentence) and (is_grave(text) or "group" in reading.fields)


def _event_columns(reading: Reading, sentence: str) -> dict[str, Any]:
    """The event columns of a sentence."""
    kind, fields = reading.template.kind or e.COORDINATOR_NOTE, reading.fields
    reason = fields.get("reason")
    why: Mapping[str, str] = {}
    if kind == e.PREPARING_REBALANCE and reason is not None:
        found = _reasons.read(reason)
        why = {} if found is None else found.fields
        reason = reason.removesuffix(".")  # a broker ends the sentence after the reason, and some reasons end one themselves
    in_reason = _listed(why.get("members"))
    member = fields.get("member") or why.get("member")
    members = _listed(fields.get("members"))
    host = fields.get("host")
    return {
        "kind": kind,
        "group_id": fields.get("group"),
        "coordinator_partition": int32(fields.get("partition")),
        "client_id": fields.get("client"),
        "client_host": host and host.rpartition("/")[2],  # java.net.InetAddress prints name/address
        "member_id": member or (in_reason[0]["member_id"] if in_reason else None),
        "instance_id": _instance(fields.get("instance")) or _instance(why.get("instance")),
        "generation": int32(fields.get("generation")),
        "answer_member_id": fields.get("new_member"),
        "leader_id": fields.get("leader"),
        "protocol_type": fields.get("protocol_type"),
        "session_timeout_ms": int32(fields.get("session_timeout")),
        "rebalance_timeout_ms": int32(fields.get("rebalance_timeout")),
        "reason": sentence if kind in _WHOLE else reason,
        "state": fields.get("state"),
        "member_count": int32(fields.get("count")),
        "members": in_reason if members is None else members,
        "groups": [{"group_id": name} for name in fields.get("groups", "").split(", ") if name] if kind == e.GROUPS_DELETED else None,
    }


def _instance(value: str | None) -> str | None:
    """The group.instance.id of a sentence; None where the sentence says that there is none."""
    if value is not None and value.startswith("Some(") and value.endswith(")"):
        value = value[len("Some(") : -1]
    return None if value in _NO_INSTANCE else value


def _listed(collection: str | None) -> list[dict[str, str]] | None:
    """Members of a printed collection: Scala `Set(a, b)`, `HashSet(a, b)`, Java `[a, b]`, or `a, b`."""
    if collection is None:
        return None
    found = _COLLECTION.match(collection)
    inner = collection if found is None else next(part for part in found.groups() if part is not None)
    return [{"member_id": member} for member in _MEMBER_SEPARATOR.split(inner) if member]
