"""Lines of `kafka.request.logger` before they became JSON, rewritten as the JSON of Kafka 2.8: 1.0 to 2.7.

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

import itertools
import re
from functools import cache
from typing import Final, NamedTuple

from coordinator_model import events as e
from jobs.common.expressions import expression
from jobs.parsing import request_offsets
from jobs.parsing.request_checks import APIS

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

_NUMBERS: Final = (
    "error_code", "generation_id", "session_timeout_ms", "rebalance_timeout_ms", "partition_index", "key_type", "node_id", "port",
)  # fmt: skip
_BUFFER: Final = r"(?:java\.nio\.\w+\[pos=\d+ lim=\d+ cap=\d+\]|null)"
_VALUES: Final = {
    **dict.fromkeys(_NUMBERS, (r"(-?\d+)", "$")),
    **dict.fromkeys(("metadata", "assignment"), (_BUFFER, "null")),
    "partition_indexes": (r"(\[[\d,]*\])", "$"),
}
"""The pattern of a value, and what stands for it in JSON. All other fields that are read are texts."""

_INNER: Final = (
    r"(?:group_id|generation_?id|member_id|group_instance_id|protocol_type|error_code|leader(?:_id)?|node_id|key_type|coordinator_type)="
)
_LEFT_OVER: Final = expression(rf"[{{,]{_INNER}")  # a field inside of a name: then it is in doubt which of two readings is true
_TEXT: Final = rf"(?:[^{{,]|[{{,](?!{_INNER}))*?"
"""A text. It ends before such a field: else the time for a name of many fields grows with the third power of its length."""

_PASSED_OVER: Final = {
    "throttle_time_ms": r"-?\d+",
    "retention_time_ms": r"-?\d+",
    "producer_id": r"-?\d+",
    "producer_epoch": r"-?\d+",
    "require_stable": r"(?:true|false)",
    "error_message": _TEXT,
    "transactional_id": _TEXT,
}
_TAGS: Final = r"(?:,_tagged_fields=\{\})?"
_NO_TOPICS: Final = '"topics":[]'

MARK: Final = "Completed request:RequestHeader("
OF_GROUP_API: Final = expression(
    rf"Completed request:(?:RequestHeader\(apiKey=(?:{'|'.join(SHAPES)}), |\{{api_key=(?:8|9|1[0-4]|28|42),|"
    r"Name: ?Offset(?:Commit|Fetch)Request;)"
)
OF_ANY_API: Final = expression(r"Completed request:(?:RequestHeader\(apiKey=[A-Z_]{1,99}, |\{api_key=\d{1,5},|Name: ?\w+;)", re.ASCII)

_TIMES: Final = ("totalTime", "requestQueueTime", "localTime", "remoteTime", "throttleTime", "responseQueueTime", "sendTime")
_LINE: Final = expression(
    r"\[[^\]]*\] [A-Z]+ Completed request:RequestHeader\(apiKey=([A-Z_]+), apiVersion=(\d{1,5}), "
    r"clientId=(.*?), correlationId=(-?\d{1,10})\) -- (\{.*\}),response:(\{.*\}) from connection (\S{1,1024});"
    + ",".join(rf"{name}:([\d.E]{{1,20}})" for name in _TIMES)
    + r",securityProtocol:.*?(?:,clientInformation:ClientInformation\(softwareName=([\w.-]+), softwareVersion=([\w.-]+)\))?"
    r"(?:,\w+:[\d.E]+)* \([\w.$]+\)",
    re.DOTALL | re.ASCII,
)
_ONCE: Final = (", correlationId=", ") -- {", "},response:{", "} from connection ", ";totalTime:")
"""A line that has one of these twice has a name that holds it: then its parts are in doubt, and finding them may take minutes."""
_MARKED: Final = ((':""', ":null"), (':"=null"', ":null"), (':"=', ':"'), (':"#"', ":null"), (':"@"[', ":["), (':"@"', ":null"))
_MARKED_NUMBER: Final = expression(r':"#(-?\d+)"', re.ASCII)
# As printed until 2.1.
_PARTITION: Final = expression(r"\{partition=(\d+)\}(?=[,\]])", re.ASCII)
_COORDINATOR: Final = expression(r",coordinator=\{(node_id=-?\d+,host=.*,port=-?\d+)\}\}\Z", re.ASCII)


class _Field(NamedTuple):
    name: str
    optional: bool
    skipped: bool
    fields: tuple[_Field, ...]  # of the structs of a list


def as_json(text: str) -> str:
    """A line that has MARK as JSON of Kafka 2.8; "" if it has another shape. What is no JSON then is damaged."""
    if any(text.count(once) != 1 for once in _ONCE):
        return ""
    found = _LINE.fullmatch(text.replace("\\", "\\\\").replace('"', '\\"'))
    if found is None or found[1] not in SHAPES:
        return ""
    api, version, client, correlation, request, response, connection, *times, name, release = found.groups("")
    asked, answered = SHAPES[api]
    topics = request_offsets.topics(api, request, response)
    request = _converted(asked, _PARTITION.sub(r"\1", request), topics)
    response = _converted(answered, _COORDINATOR.sub(r",\1}", response), topics)
    header = f'{{"requestApiKey":{APIS[api].key},"requestApiKeyName":"{api}","requestApiVersion":{version},'
    header += f'"clientId":"={client}","correlationId":{correlation}}}'
    taken = ",".join(f'"{time}Ms":{value}' for time, value in zip(_TIMES, times, strict=True))
    json = (
        f'{{"requestHeader":{header},"request":{request},"response":{response},"connection":"{connection}",{taken},'
        f'"clientInformation":{{"softwareName":"{name}","softwareVersion":"{release}"}}}}'
    )
    return "" if _LEFT_OVER.search(json) else _finished(json)


def _converted(shape: str, text: str, topics: str) -> str:
    """A printed struct as JSON, with marks before values that may be missing (`_finished`). `topics` are those of `topics*`."""
    for pattern, json in _steps(shape):
        text = pattern.sub(json, text)
    return text.replace(_NO_TOPICS, f'"topics":{topics}') if "topics*" in shape else text


@cache
def _steps(shape: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """How a struct becomes JSON: patterns, each with what replaces it. Lists in lists come first."""
    fields = _parsed(shape)
    steps = [(_pattern(struct) + r"\}(?=,\{|\])", _replacement(struct)) for struct in _elements(fields)]
    steps.append((rf"\A{_pattern(fields)}\}}\Z", _replacement(fields)))
    return tuple((expression(pattern, re.DOTALL | re.ASCII), json) for pattern, json in steps)


def _finished(json: str) -> str:
    """Without the marks of `_value`. No id can hold one, because its quotes are escaped."""
    for marked, plain in _MARKED:
        json = json.replace(marked, plain)
    return _MARKED_NUMBER.sub(r":\1", json)


def _parsed(shape: str) -> tuple[_Field, ...]:
    levels: list[list[_Field]] = [[]]
    names: list[str] = []
    for name, skipped, begins, optional, ends, may_lack in re.findall(r"(\w+)(\*?)(\[?)(\??)|(\])(\??)", shape):
        if begins:
            names.append(name)
            levels.append([])
        elif ends:
            inner = tuple(levels.pop())
            levels[-1].append(_Field(names.pop(), bool(may_lack), False, inner))
        else:
            levels[-1].append(_Field(name, bool(optional), bool(skipped), ()))
    return tuple(levels[0])


def _elements(fields: tuple[_Field, ...]) -> list[tuple[_Field, ...]]:
    """The structs of all lists, the inner ones first."""
    return [struct for field in fields if field.fields for struct in (*_elements(field.fields), field.fields)]


def _pattern(fields: tuple[_Field, ...]) -> str:
    """The text of a struct up to its last brace. Fields follow a brace or a comma, as the first of them may be missing."""
    texts = [f"[{{,]{_OLDER.get(field.name, field.name)}{_value(field)[0]}" for field in fields]
    return r"(?=\{)" + "".join(f"(?:{text})?" if field.optional else text for field, text in zip(fields, texts, strict=True)) + _TAGS


def _replacement(fields: tuple[_Field, ...]) -> str:
    """The JSON of a struct. Numbers of groups count the fields that are kept."""
    groups = itertools.count(1)
    kept = [(field, _value(field)[1]) for field in fields if field.name not in _PASSED_OVER]
    values = [json.replace("$", rf"\g<{next(groups)}>") if "$" in json else json for _, json in kept]
    names = [re.sub("_([a-z])", lambda letter: letter[1].upper(), field.name) for field, _ in kept]
    return "{" + ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True)) + "}"


def _value(field: _Field) -> tuple[str, str]:
    """The pattern of a value with its sign, and what stands for it in JSON."""
    if field.name in _PASSED_OVER:
        return f"={_PASSED_OVER[field.name]}", ""
    if field.skipped:
        return r"=(?:\[.*\]|null)", "[]"
    if field.fields:
        return r"=(\[.*?\]|null)", '"@"$' if field.optional else "$"
    if field.name in _VALUES:
        pattern, json = _VALUES[field.name]
        return f"={pattern}", f'"#{json}"' if field.optional else json
    return f"(={_TEXT})", '"$"'  # nothing, if the version lacks the field
