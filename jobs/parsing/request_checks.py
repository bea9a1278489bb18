"""Checks of a request line. A line with flipped or lost bytes often still parses; these checks find most of them.

A line is refused where group, member, generation, answer or time are in doubt. Doubt about another number costs that number alone: a
release that measures its requests in another way must not lose its whole log. `duration_ms` and `client_host` are such.

Every rule holds for all lines of all recordings, and for the code that writes them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from coordinator_model import events
from jobs.logs.beat_numbers import LONGEST_MS, TIMES_TOLERANCE_MS
from jobs.parsing.rows import Refusal

CORRUPT: Final = "_corrupt"  # column that from_json fills when a value does not fit the schema

CONNECTION: Final = r"^.+?:\d+-(.+):\d+-\d+(?:-\d+)?$"
"""`localHost:port-remoteHost:port-index` (to 3.9) or `…-processor-index` (4.x). Group 1 is the client host. IPv6 hosts have no brackets."""

MAX_CONNECTION: Final = 1_024
"""Characters: two host names have 255 each at most. Longer texts would make that pattern slow."""

_LOWEST_ERROR: Final = -1
_HIGHEST_ERROR: Final = 135  # 4.2 ends at 133; room for a release or two
_PARTS: Final = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs")


class Api(NamedTuple):
    """A group API: its key, versions, and what its lines must hold from or up to which version (paths below `j`)."""

    name: str
    key: int
    newest: int
    required: tuple[tuple[str, int], ...]  # (path, first version)
    until: tuple[tuple[str, int], ...] = ()  # (path, last version)
    elements: tuple[tuple[str, ...], ...] = ()  # (path of a list, fields of its elements): the last field is the one that is named


_GROUP: Final = ("request.groupId", 0)
_MEMBER: Final = ("request.memberId", 0)
_GENERATION: Final = ("request.generationId", 0)
_ERROR: Final = ("response.errorCode", 0)

# Kafka clients/src/main/resources/common/message/*.json; a converter writes every field of the request's version.
APIS: Final = (
    Api(
        events.JOIN_GROUP, 11, 9,
        (_GROUP, _MEMBER, _ERROR, ("request.protocolType", 0), ("request.protocols", 0), ("response.generationId", 0),
         ("response.leader", 0), ("response.memberId", 0), ("response.members", 0), ("response.skipAssignment", 9)),
        elements=(("request.protocols", "name", "metadata"), ("response.members", "memberId", "metadata")),
    ),
    Api(events.SYNC_GROUP, 14, 5, (_GROUP, _MEMBER, _GENERATION, _ERROR, ("request.assignments", 0), ("response.assignment", 0)),
        elements=(("request.assignments", "memberId", "assignment"),)),
    Api(events.HEARTBEAT, 12, 4, (_GROUP, _MEMBER, _GENERATION, _ERROR)),
    Api(events.LEAVE_GROUP, 13, 5, (_GROUP, _ERROR, ("request.members", 3), ("response.members", 3)), (("request.memberId", 2),),
        (("request.members", "memberId"), ("response.members", "errorCode"))),
    Api(events.OFFSET_COMMIT, 8, 10, (_GROUP, ("request.memberId", 1), ("response.topics", 0))),
    Api(events.TXN_OFFSET_COMMIT, 28, 5, (_GROUP, ("request.memberId", 3), ("request.generationId", 3), ("response.topics", 0))),
    Api(events.OFFSET_FETCH, 9, 10, (("request.groups", 8), ("response.groups", 8)), (("request.groupId", 7), ("response.topics", 7)),
        (("request.groups", "groupId"), ("response.groups", "groupId", "errorCode"))),
    Api(events.DELETE_GROUPS, 42, 2, (("request.groupsNames", 0), ("response.results", 0)),
        elements=(("response.results", "groupId", "errorCode"),)),
    Api(events.FIND_COORDINATOR, 10, 6,
        (("request.keyType", 1), ("request.coordinatorKeys", 4), ("response.coordinators", 4)),
        (("request.key", 3), ("response.errorCode", 3), ("response.nodeId", 3), ("response.host", 3), ("response.port", 3)),
        # Where there is no coordinator, the answer has node -1, port -1 and host "".
        (("response.coordinators", "key", "host", "port", "errorCode", "nodeId"),)),
    Api(events.CONSUMER_GROUP_HEARTBEAT, 68, 1,
        (_GROUP, _MEMBER, _ERROR, ("request.memberEpoch", 0), ("response.memberEpoch", 0))),
)  # fmt: skip
API_KEYS: Final = {api.name: api.key for api in APIS}
_COMMITS: Final = (events.OFFSET_COMMIT, events.TXN_OFFSET_COMMIT)

_BYTES: Final = ("metadata", "assignment")
"""Fields whose bytes are not in a line that was printed as text (request_text.py)."""

_WITHOUT_ANSWER: Final = r"Completed request:(?:\{api_key=|Name: ?)"
"""Begins a request of Kafka 0.9 to 0.11."""

_REQUIRED_ALWAYS: Final = (
    "requestHeader.requestApiKey", "requestHeader.requestApiVersion", "requestHeader.requestApiKeyName", "request", "response",
)  # fmt: skip

_TEXTS: Final = (
    "groupId", "memberId", "groupInstanceId", "instanceId", "protocolType", "protocolName", "leader", "reason", "serverAssignor",
    "clientId", "requestApiKeyName", "connection", "softwareName", "softwareVersion", "name", "metadata", "key", "host",
)  # fmt: skip
_NOT_TEXT: Final = rf'":(?![n"])(?<="(?:{"|".join(_TEXTS)})":)'
"""A field that must be a text or null and is neither: from_json turns any value into a text.

No id can fake it, because the quotes of ids are escaped.

The pattern looks at the value first, then back at its name: most values are texts, and there are many names.
"""

_BASE64: Final = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def refusal() -> Column:
    """The first thing that is wrong with a line (columns `text`, `printed`, `at`, `json`, `j`), or null.

    Cheap checks come first. Control characters that JSON escapes are no damage: a broker accepts any name of a client.
    """
    text, json = F.col("text"), F.col("json")
    name, version = F.col("j.requestHeader.requestApiKeyName"), F.col("j.requestHeader.requestApiVersion")
    unshaped = (
        F.when(text.rlike(_WITHOUT_ANSWER), Refusal.OLD_FORMAT)
        .when(F.col("printed") & text.contains(",response: from connection "), Refusal.LOGGED_WITHOUT_BODY)
        .when(~text.rlike(r"\([\w.$]+\)$"), Refusal.TRUNCATED)
        .otherwise(Refusal.MALFORMED)
    )
    newest = _by_name({api.name: api.newest for api in APIS}, name)
    judged = F.coalesce(
        F.when(F.col(f"j.{CORRUPT}").isNotNull() | json.rlike(_NOT_TEXT), _not_json(json)),
        _missing(_REQUIRED_ALWAYS),
        F.when(~_by_name(API_KEYS, name).eqNullSafe(F.col("j.requestHeader.requestApiKey")), Refusal.API_MISMATCH),
        F.when(~version.between(0, newest), F.concat_ws(":", F.lit(Refusal.UNSUPPORTED_VERSION), version.cast("string"))),
        _of_api(name, version),
        _wrong_error(name),
        F.when(name.isin(events.JOIN_GROUP, events.SYNC_GROUP) & ~_blobs_are_base64(), Refusal.INVALID_BASE64),
    )
    return F.when(F.col("occurred_at").isNull(), Refusal.NO_TIME).when(json == "", unshaped).otherwise(judged)


def duration_ms() -> Column:
    """How long the broker had a request; null where `totalTimeMs` is missing or less than its parts, so that one of them is wrong.

    `totalTimeMs` is the sum of five parts (kafka RequestChannel.updateRequestMetrics; throttling is not in it). Where it is more, a
    release may measure a part that this code does not know. When the answer is complete before the handler returns, `remoteTimeMs`,
    which would be negative, is written as 0 while `localTimeMs` counts on: then the sum exceeds the total, by `localTimeMs` at most.
    """
    total = F.col("j.totalTimeMs")
    parts = [F.coalesce(f"j.{name}", F.lit(0.0)) for name in _PARTS]
    overlap = F.when(F.coalesce("j.remoteTimeMs", F.lit(0.0)) == 0, F.coalesce("j.localTimeMs", F.lit(0.0))).otherwise(0.0)
    in_range = functools.reduce(operator.and_, (part >= 0 for part in parts), total.between(0, LONGEST_MS))
    return F.when(in_range & (functools.reduce(operator.add, parts) <= total + overlap + TIMES_TOLERANCE_MS), total)


def client_host() -> Column:
    """The host of the client, from the connection; null where that is not what a broker writes."""
    text = F.col("j.connection")
    return F.when(F.length(text) <= MAX_CONNECTION, F.nullif(F.regexp_extract(text, CONNECTION, 1), F.lit("")))


def commit_errors() -> Column:
    """Error codes of a commit's partitions, in the answer's order. Commits have no other."""
    return F.flatten(F.col("j.response.topics.partitions")).errorCode


def _not_json(json: Column) -> Column:
    without_body = json.contains(',"request":"",') | json.contains(',"response":"",')
    return F.when(without_body, Refusal.LOGGED_WITHOUT_BODY).otherwise(Refusal.INVALID_JSON)


def _by_name(values: Mapping[str, int], name: Column) -> Column:
    """The value for an API's name; null for other names."""
    return F.try_element_at(F.create_map(*(F.lit(part) for pair in values.items() for part in pair)), name)


def _missing(paths: Iterable[str]) -> Column:
    return F.coalesce(*(_absent(path) for path in paths))


def _absent(path: str, condition: Column | None = None) -> Column:
    lacking = F.col(f"j.{path}").isNull() if condition is None else condition
    return F.when(_unless_bytes(path.rpartition(".")[2], lacking), f"{Refusal.MISSING_FIELD}:{path}")


def _unless_bytes(field: str, lacking: Column) -> Column:
    return lacking & ~F.col("printed") if field in _BYTES else lacking


def _of_api(name: Column, version: Column) -> Column:
    """The first field that a line of its API and version lacks."""
    errors = commit_errors()
    result = F.when(F.lit(False), F.lit(None).cast("string"))
    for api in APIS:
        checks = [_absent(path) for path, first in api.required if first == 0]
        checks += [_absent(path, F.col(f"j.{path}").isNull() & (version >= first)) for path, first in api.required if first > 0]
        checks += [_absent(path, F.col(f"j.{path}").isNull() & (version <= last)) for path, last in api.until]
        if api.name == events.OFFSET_COMMIT:
            # `generationId` until Kafka 3.5, `generationIdOrMemberEpoch` since, whatever the version; v0 has neither.
            neither = F.col("j.request.generationId").isNull() & F.col("j.request.generationIdOrMemberEpoch").isNull()
            checks.append(_absent("request.generationIdOrMemberEpoch", neither & (version >= 1)))
        if api.name in _COMMITS:
            checks.append(_absent("response.topics.partitions.errorCode", errors.isNull() | F.exists(errors, lambda code: code.isNull())))
        checks += [_missing_in(path, fields) for path, *fields in api.elements]
        result = result.when(name == api.name, F.coalesce(*checks))
    return result


def _missing_in(path: str, fields: Sequence[str]) -> Column:
    """The last of the fields if an element of a list lacks one of them."""
    lacks = F.exists(F.col(f"j.{path}"), lambda e: functools.reduce(operator.or_, (_unless_bytes(f, e[f].isNull()) for f in fields)))
    return F.when(lacks, f"{Refusal.MISSING_FIELD}:{path}.{fields[-1]}")


def _wrong_error(name: Column) -> Column:
    """UNKNOWN_ERROR_CODE if an error code of the answer is outside Kafka's range."""

    def wrong(code: Column) -> Column:
        return ~code.between(_LOWEST_ERROR, _HIGHEST_ERROR)

    response = F.col("j.response")
    lists = {
        events.LEAVE_GROUP: response.members.errorCode,
        events.DELETE_GROUPS: response.results.errorCode,
        events.OFFSET_FETCH: response.groups.errorCode,
        events.FIND_COORDINATOR: response.coordinators.errorCode,
    } | dict.fromkeys(_COMMITS, commit_errors())
    result = F.when(wrong(response.errorCode), Refusal.UNKNOWN_ERROR_CODE)
    for api, codes in lists.items():
        result = result.when((name == api) & F.exists(codes, wrong), Refusal.UNKNOWN_ERROR_CODE)
    return result


def _blobs_are_base64() -> Column:
    request, response = F.col("j.request"), F.col("j.response")
    lists = (request.protocols.metadata, request.assignments.assignment, response.members.metadata)
    result = F.coalesce(response.assignment.rlike(_BASE64), F.lit(True))
    for blobs in lists:
        result = result & F.coalesce(F.forall(blobs, lambda blob: blob.rlike(_BASE64)), F.lit(True))
    return result
