"""Lines of `kafka.request.logger` before they became JSON, read as what the JSON of Kafka 2.8 says: 1.0 to 2.7.

    Completed request:RequestHeader(apiKey=…, apiVersion=…, clientId=…, correlationId=…) -- {group_id=…},response:{error_code=…} from
    connection …;totalTime:…,requestQueueTime:…,localTime:…,remoteTime:…,throttleTime:…,responseQueueTime:…,sendTime:…,securityProtocol:…

Sources: kafka `RequestChannel.scala` and `Struct.toString` at 1.0.2, 1.1.1, 2.0.1, 2.4.1, 2.5.1 and 2.7.2; the names of fields from the
requests' classes (1.0 to 2.1) and from `common/message/*.json` (2.2 to 2.7), in snake case.

A struct is printed without quotes. Each text is matched as a whole, and every id gets as little of it as the names around it allow. A line
with an id that holds the text of a field is refused. Bytes are printed as `java.nio.HeapByteBuffer[pos=0 lim=18 cap=18]`: what a member
subscribed to and what it was assigned is not in such a log. Kafka 0.9 to 0.11 logged requests without their answers, which say nothing
then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec.json import Decoder

from coordinator_model import events as e
from jobs.common.expressions import expression
from jobs.parsing import request_offsets
from jobs.parsing.request_checks import APIS
from jobs.parsing.request_json import Client, Entry, Header, Int32, Logged, PartitionOffset, TopicOffsets

SHAPES: Final = {
    e.JOIN_GROUP: (
        "group_id session_timeout_ms rebalance_timeout_ms? member_id group_instance_id? protocol_type protocols[name metadata]",
        (
            "throttle_time_ms? error_code generation_id protocol_type? protocol_name leader member_id "
            "members[member_id group_instance_id? metadata]"
        ),
    ),
    e.SYNC_GROUP: (
        "group_id generation_id member_id group_instance_id? protocol_type? protocol_name? assignments[member_id assignment]",
        "throttle_time_ms? error_code protocol_type? protocol_name? assignment",
    ),
    e.HEARTBEAT: ("group_id generation_id member_id group_instance_id?", "throttle_time_ms? error_code"),
    e.LEAVE_GROUP: (
        "group_id member_id? members[member_id group_instance_id?]?",
        "throttle_time_ms? error_code members[member_id group_instance_id? error_code]?",
    ),
    e.OFFSET_COMMIT: (
        "group_id generation_id? member_id? group_instance_id? retention_time_ms? topics*",
        "throttle_time_ms? topics[name partitions[partition_index error_code]]",
    ),
    e.TXN_OFFSET_COMMIT: (
        "transactional_id group_id producer_id producer_epoch generation_id? member_id? group_instance_id? topics*",
        "throttle_time_ms topics[name partitions[partition_index error_code]]",
    ),
    e.OFFSET_FETCH: ("group_id topics[name partition_indexes] require_stable?", "throttle_time_ms? topics* error_code?"),
    e.DELETE_GROUPS: ("groups_names*", "throttle_time_ms results[group_id error_code]"),
    e.FIND_COORDINATOR: ("key key_type?", "throttle_time_ms? error_code error_message? node_id host port"),
}
"""The fields of a request and of its answer, in the order in which all releases print them: `?` not in all versions, `[…]` a list of
structs, `*` a list that is not read here: request_offsets.py reads `topics*`, and nothing depends on the other."""

_OLDER: Final = {
    "generation_id": "generation_?id", "session_timeout_ms": "session_timeout(?:_ms)?", "rebalance_timeout_ms": "rebalance_timeout(?:_ms)?",
    "retention_time_ms": "retention_time(?:_ms)?", "protocols": "(?:group_)?protocols", "protocol_name": "(?:protocol_name|group_protocol)",
    "name": "(?:protocol_name|topic|name)", "leader": "leader(?:_id)?", "metadata": "(?:protocol_|member_)?metadata",
    "assignments": "(?:group_assignment|assignments)", "assignment": "(?:member_)?assignment", "topics": "(?:topics|responses)",
    "partitions": "(?:partition_responses|partitions)", "partition_index": "partition(?:_index)?",
    "partition_indexes": "(?:partitions|partition_indexes)", "key": "(?:coordinator_)?key", "key_type": "(?:key_type|coordinator_type)",
    "groups_names": "groups(?:_names)?", "results": "(?:group_error_codes|results)",
}  # fmt: skip
"""Names that differ by release, until 2.1 and since 2.2."""

_INNER: Final = (
    r"(?:group_id|generation_?id|member_id|group_instance_id|protocol_type|error_code|leader(?:_id)?|node_id|key_type|coordinator_type)="
)
_LEFT_OVER: Final = expression(rf"[{{,]{_INNER}")  # a field inside of a name: then it is in doubt which of two readings is true
_TEXT: Final = rf"(?:[^{{,]|[{{,](?!{_INNER}))*?"
"""A text. It ends before such a field: else the time for a name of many fields grows with the third power of its length."""

_number: Final = Decoder(Int32).decode
_duration: Final = Decoder(float).decode
_NUMBERS: Final = (
    "error_code", "generation_id", "session_timeout_ms", "rebalance_timeout_ms", "partition_index", "key_type", "node_id", "port",
)  # fmt: skip
_DECODERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_NUMBERS, _number),
    "partition_indexes": Decoder(list[Int32]).decode,
    **dict.fromkeys(("topics", "groups_names"), lambda _: []),
}
_VALUES: Final = {
    **dict.fromkeys(_NUMBERS, r"(-?\d+)"),
    "partition_indexes": r"(\[[\d,]*\])",
    **dict.fromkeys(("metadata", "assignment"), r"(?:java\.nio\.\w+\[pos=\d+ lim=\d+ cap=\d+\]|null)"),
    **dict.fromkeys(("throttle_time_ms", "retention_time_ms", "producer_id", "producer_epoch"), r"(?:-?\d+)"),
    "require_stable": r"(?:true|false)",
    **dict.fromkeys(("error_message", "transactional_id"), _TEXT),
}
"""The patterns of numbers, and of what is not read, which has no group. All other fields are texts."""
_KINDS: Final = {"topics": TopicOffsets, "partitions": PartitionOffset}
_TAGS: Final = r"(?:,_tagged_fields=\{\})?"

_FIELD: Final = expression(r"(\w+)(\*?)(?:\[((?:[\w?* ]|\[[^]]*\])+)\])?(\??)")
"""Of SHAPES."""

MARK: Final = "Completed request:RequestHeader("
OF_GROUP_API: Final = expression(
    rf"Completed request:(?:RequestHeader\(apiKey=(?:{'|'.join(SHAPES)}), |\{{api_key=(?:8|9|1[0-4]|28|42),|"
    r"Name: ?Offset(?:Commit|Fetch)Request;)"
)
OF_ANY_API: Final = expression(r"Completed request:(?:RequestHeader\(apiKey=[A-Z_]{1,99}, |\{api_key=\d{1,5},|Name: ?\w+;)", re.ASCII)

_LINE: Final = expression(
    r"\[[^\]]*\] [A-Z]+ Completed request:RequestHeader\(apiKey=([A-Z_]+), apiVersion=(\d{1,5}), "
    r"clientId=(.*?), correlationId=(-?\d{1,10})\) -- (\{.*\}),response:(\{.*\}) from connection (\S{1,1024});"
    r"totalTime:([\d.E]{1,20}),requestQueueTime:([\d.E]{1,20}),localTime:([\d.E]{1,20}),remoteTime:([\d.E]{1,20}),"
    r"throttleTime:[\d.E]{1,20},responseQueueTime:([\d.E]{1,20}),sendTime:([\d.E]{1,20})"
    r",securityProtocol:.*?(?:,clientInformation:ClientInformation\(softwareName=([\w.-]+), softwareVersion=([\w.-]+)\))?"
    r"(?:,\w+:[\d.E]+)* \([\w.$]+\)",
    re.DOTALL | re.ASCII,
)
_ONCE: Final = (", correlationId=", ") -- {", "},response:{", "} from connection ", ";totalTime:")
"""A line that has one of these twice has a name that holds it: then its parts are in doubt, and finding them may take minutes."""
# As printed until 2.1.
_PARTITION: Final = expression(r"\{partition=(\d+)\}(?=[,\]])", re.ASCII)
_COORDINATOR: Final = expression(r",coordinator=\{(node_id=-?\d+,host=.*,port=-?\d+)\}\}\Z", re.ASCII)


class _OtherShapeError(ValueError):
    """A text is not what Kafka prints."""


def decoded(text: str) -> Logged | None:
    """The request of a line that has MARK; None if the line has another shape. MsgspecError: a number is none, or too large."""
    if any(text.count(once) != 1 for once in _ONCE):
        return None
    found = _LINE.fullmatch(text)
    if found is None or found[1] not in SHAPES or _LEFT_OVER.search(found[3]):
        return None
    api, version, client, correlation, asked, answered, connection, *times, name, release = found.groups("")
    halves = _PARTITION.sub(r"\1", asked), _COORDINATOR.sub(r",\1}", answered)
    try:
        request, response = (_read(shape, Entry, half)[0] for shape, half in zip(SHAPES[api], halves, strict=True))
    except _OtherShapeError:
        return None
    told = response if api == e.OFFSET_FETCH else request
    if api in request_offsets.EXCHANGES:
        told.topics = request_offsets.topics(api, asked, answered)
    header = Header(APIS[api].key, _number(version), _number(correlation), None if client == "null" else client, api)
    total, queued, local, remote, waited, sent = map(_duration, times)
    client_information = Client(name or None, release or None)
    return Logged(header, request, response, connection, total, queued, local, remote, waited, sent, client_information)


def _read(shape: str, kind: type[Any], text: str, place: int = 0, end: str = r"\Z") -> tuple[Any, int]:
    """A struct that is printed at a place of a text, and where it ends."""
    found = _pattern(shape, end).match(text, place)
    if found is None:
        raise _OtherShapeError
    fields = [(name, inner) for name, pattern, inner, _ in _fields(shape) if not pattern.startswith("(?:")]
    return kind(**{name: _value(name, inner, value) for (name, inner), value in zip(fields, found.groups(), strict=True)}), found.end()


def _value(name: str, inner: str, text: str | None) -> Any:
    if text is None or text == "null":
        return None
    if not inner:
        return _DECODERS[name](text) if name in _DECODERS else text
    structs, place = [], 1
    while place < len(text) and text != "[]":
        struct, place = _read(inner, _KINDS.get(name, Entry), text, place, r"(?:,(?=\{)|\]\Z)")
        structs.append(struct)
    return structs


@cache
def _fields(shape: str) -> list[tuple[str, str, str, str]]:
    """Of each field its name, the pattern of its value, the shape of the structs in it, and `?` if it may be missing."""
    found = _FIELD.findall(shape)
    lists = {(True, False): r"(\[.*\]|null)", (False, True): r"(\[.*?\]|null)"}
    patterns = (lists.get((bool(star), bool(inner))) or _VALUES.get(name, f"({_TEXT})") for name, star, inner, _ in found)
    return [(name, pattern, inner, optional) for (name, _, inner, optional), pattern in zip(found, patterns, strict=True)]


@cache
def _pattern(shape: str, end: str) -> re.Pattern[str]:
    """The text of a struct. Fields follow a brace or a comma, as the first of them may be missing."""
    texts = [f"(?:[{{,]{_OLDER.get(name, name)}={pattern}){optional}" for name, pattern, _, optional in _fields(shape)]
    return re.compile(rf"(?=\{{){''.join(texts)}{_TAGS}\}}{end}", re.DOTALL | re.ASCII)
