"""Checks of a request line. A line with flipped or lost bytes often still parses; these checks find most of them.

A line is refused where group, member, generation, answer or time are in doubt. Doubt about another number costs that number alone: a
release that measures its requests in another way must not lose its whole log. `duration_us` and `client_host` are such.

Every rule holds for all lines of all recordings, and for the code that writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from coordinator_model import events
from jobs.logs.heartbeats.beats import LONGEST_MS, TIMES_TOLERANCE_MS
from jobs.parsing.request_json import Entry, Header, Logged
from jobs.parsing.rows import Refusal

CONNECTION: Final = r"\S+?:\d+-(\S+):\d+-\d+(?:-\d+)?"
"""`localHost:port-remoteHost:port-index` (to 3.9) or `…-processor-index` (4.x). Group 1 is the client host. IPv6 hosts have no brackets."""

MAX_CONNECTION: Final = 1_024  # characters: two host names have 255 each at most. Longer texts would make that pattern slow.
_CONNECTIONS: Final = 65_536  # whose hosts are remembered: a member sends all its requests over a few

_LOWEST_ERROR: Final = -1
_HIGHEST_ERROR: Final = 140  # 4.4 ends at 136; room for a release or two


class Api(NamedTuple):
    """A group API: its key, versions, and what its lines must hold from or up to which version."""

    name: str
    key: int
    newest: int
    required: tuple[tuple[str, int], ...]  # (path, first version)
    until: tuple[tuple[str, int], ...] = ()  # (path, last version)
    elements: tuple[tuple[str, ...], ...] = ()  # (path of a list, fields of its elements): the last field is the one that is named
    errors: str = ""  # list of the answer whose elements have error codes of their own


_GROUP: Final = ("request.groupId", 0)
_MEMBER: Final = ("request.memberId", 0)
_GENERATION: Final = ("request.generationId", 0)
_ERROR: Final = ("response.errorCode", 0)
_MEMBER_BEAT: Final = (_GROUP, _MEMBER, _ERROR, ("request.memberEpoch", 0), ("response.memberEpoch", 0))

_SHARED: Final = ("response.responses", "topicId", "partitions")

# Kafka clients/src/main/resources/common/message/*.json; a converter writes every field of the request's version.
_APIS: Final = (
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
        (("request.members", "memberId"), ("response.members", "errorCode")), "members"),
    Api(events.OFFSET_COMMIT, 8, 10, (_GROUP, ("request.memberId", 1), ("response.topics", 0))),
    Api(events.TXN_OFFSET_COMMIT, 28, 6, (_GROUP, ("request.memberId", 3), ("response.topics", 0))),
    Api(events.OFFSET_FETCH, 9, 10, (("request.groups", 8), ("response.groups", 8)), (("request.groupId", 7), ("response.topics", 7)),
        (("request.groups", "groupId"), ("response.groups", "groupId", "errorCode")), "groups"),
    Api(events.DELETE_GROUPS, 42, 3, (("request.groupsNames", 0), ("response.results", 0)),
        elements=(("response.results", "groupId", "errorCode"),), errors="results"),
    Api(events.FIND_COORDINATOR, 10, 6,
        (("request.keyType", 1), ("request.coordinatorKeys", 4), ("response.coordinators", 4)),
        (("request.key", 3), ("response.errorCode", 3), ("response.nodeId", 3), ("response.host", 3), ("response.port", 3)),
        # Where there is no coordinator, the answer has node -1, port -1 and host "".
        (("response.coordinators", "key", "host", "port", "errorCode", "nodeId"),), "coordinators"),
    Api(events.CONSUMER_GROUP_HEARTBEAT, 68, 1, _MEMBER_BEAT),
    Api(events.SHARE_GROUP_HEARTBEAT, 76, 2, _MEMBER_BEAT),
    Api(events.STREAMS_GROUP_HEARTBEAT, 88, 2, _MEMBER_BEAT),
    Api(events.SHARE_FETCH, 78, 3, (_GROUP, _MEMBER, _ERROR, ("response.responses", 0)), elements=(_SHARED,)),
    Api(events.SHARE_ACKNOWLEDGE, 79, 3, (_GROUP, _MEMBER, _ERROR, ("response.responses", 0)), elements=(_SHARED,)),
)  # fmt: skip
APIS: Final = {api.name: api for api in _APIS}
_WITH_BLOBS: Final = frozenset({events.JOIN_GROUP, events.SYNC_GROUP})
COMMITS: Final = {events.OFFSET_COMMIT: 1, events.TXN_OFFSET_COMMIT: 3}
"""The requests that commit offsets, and the first version of each that has a generation."""

_BYTES: Final = ("metadata", "assignment")  # fields whose bytes are not in a line that was printed as text (request_text.py)

_REQUIRED_ALWAYS: Final = (
    "requestHeader.requestApiKey", "requestHeader.requestApiVersion", "requestHeader.requestApiKeyName", "request", "response",
)  # fmt: skip

_WITHOUT_ANSWER: Final = re.compile(r"Completed request:(?:\{api_key=|Name: ?)")  # begins a request of Kafka 0.9 to 0.11
_LOGGER: Final = re.compile(r"\([\w.$]+\)\Z", re.ASCII)
WITHOUT_BODY: Final = re.compile(r',"(?:request|response)":(?:""|null),')
"""Kafka 2.8 to 4.3 write "" in the place of a body that they did not keep, 4.4 writes null."""
_is_base64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}").fullmatch
_host_of: Final = re.compile(CONNECTION, re.ASCII).fullmatch


def misshapen(text: str, *, printed: bool) -> str:
    """Why a line has not the shape of a request line. `printed`: its request is text, not JSON."""
    if _WITHOUT_ANSWER.search(text):
        return Refusal.OLD_FORMAT
    if printed and ",response: from connection " in text:
        return Refusal.LOGGED_WITHOUT_BODY
    return Refusal.MALFORMED if _LOGGER.search(text) else Refusal.TRUNCATED


def refusal(line: Logged, text: str, *, printed: bool) -> str | None:
    """The first thing that is wrong with a request, or None. `text`: its line. `printed`: it was logged as text, which has no bytes.

    Control characters that JSON escapes are no damage: a broker accepts any name of a client.
    """
    header, request, response = line.request_header or Header(), line.request, line.response
    key, version, name = header.request_api_key, header.request_api_version, header.request_api_key_name
    if key is None or version is None or name is None or request is None or response is None:
        if (request is None or response is None) and WITHOUT_BODY.search(text):
            return Refusal.LOGGED_WITHOUT_BODY
        return _missing(_REQUIRED_ALWAYS[(key, version, name, request, response).index(None)])
    api = APIS.get(name)
    if api is None or key != api.key:
        return Refusal.API_MISMATCH
    if not 0 <= version <= api.newest:
        return f"{Refusal.UNSUPPORTED_VERSION}:{version}"
    return (
        next((missing for missing, value_of in _required(api, version, printed=printed) if value_of(line) is None), None)
        or _missing_generation(api, version, request)
        or _missing_in_list(line, api, printed=printed)
        or _wrong_error(api, response)
        or (Refusal.INVALID_BASE64 if api.name in _WITH_BLOBS and not _blobs_are_base64(request, response) else None)
    )


def duration_us(line: Logged) -> int:
    """How long the broker had a request; 0 where `totalTimeMs` is missing or less than its parts, so that one of them is wrong.

    `totalTimeMs` is the sum of five parts (kafka RequestChannel.updateRequestMetrics; throttling is not in it). Where it is more, a
    release may measure a part that this code does not know. When the answer is complete before the handler returns, `remoteTimeMs`,
    which would be negative, is written as 0 while `localTimeMs` counts on: then the sum exceeds the total, by `localTimeMs` at most.
    """
    total = line.total_time_ms
    queued, local, remote = line.request_queue_time_ms or 0.0, line.local_time_ms or 0.0, line.remote_time_ms or 0.0
    answered, sent = line.response_queue_time_ms or 0.0, line.send_time_ms or 0.0
    if total is None or not 0 <= total <= LONGEST_MS or min(queued, local, remote, answered, sent) < 0:
        return 0
    overlap = local if remote == 0 else 0.0
    believed = queued + local + remote + answered + sent <= total + overlap + TIMES_TOLERANCE_MS
    return int(total * 1_000 + 0.5) if believed else 0


def client_host(connection: str | None) -> str | None:
    """The host of the client, from the connection; None where that is not what a broker writes."""
    return _client_host(connection) if connection is not None and len(connection) <= MAX_CONNECTION else None


@lru_cache(_CONNECTIONS)
def _client_host(connection: str) -> str | None:
    match = _host_of(connection)
    return match[1] if match is not None else None


def commit_errors(response: Entry) -> list[int | None] | None:
    """Error codes of a commit's partitions, in the answer's order; None if a list is missing. Commits have no other."""
    codes: list[int | None] = []
    for topic in (None,) if response.topics is None else response.topics:
        if topic is None or topic.partitions is None:
            return None
        codes += [None if partition is None else partition.error_code for partition in topic.partitions]
    return codes


def _missing(path: str) -> str:
    return f"{Refusal.MISSING_FIELD}:{path}"


_ValueOf = Callable[[Any], Any]
"""Takes the value of a field from an object."""


def _value_of(path: str) -> _ValueOf:
    return attrgetter(re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", path))


@cache
def _required(api: Api, version: int, *, printed: bool) -> list[tuple[str, _ValueOf]]:
    """The fields that a line of this version must hold, those of all versions first: what it says of a line without, and the field."""
    paths = [path for path, first in sorted(api.required, key=lambda field: field[1] > 0) if first <= version]
    paths += [path for path, last in api.until if version <= last]
    return [(_missing(path), _value_of(path)) for path in paths if not (printed and path.endswith(_BYTES))]


def _missing_generation(api: Api, version: int, request: Entry) -> str | None:
    # `generationId`, then `generationIdOrMemberEpoch`, whatever the version: OffsetCommit since Kafka 3.6, TxnOffsetCommit since 4.4.
    known = request.generation_id is not None or request.generation_id_or_member_epoch is not None
    required = api.name in COMMITS and version >= COMMITS[api.name]
    return _missing("request.generationIdOrMemberEpoch") if required and not known else None


def _missing_in_list(line: Logged, api: Api, *, printed: bool) -> str | None:
    """The last of the fields if an element of a list lacks one of them."""
    for missing, list_of, required in _lists(api, printed=printed):
        for element in list_of(line) or ():
            if element is None or any(value_of(element) is None for value_of in required):
                return missing
    return None


@cache
def _lists(api: Api, *, printed: bool) -> list[tuple[str, _ValueOf, list[_ValueOf]]]:
    """The lists whose elements are checked, and the fields that elements must hold; before them what is said of a line without."""
    return [
        (_missing(f"{path}.{fields[-1]}"), _value_of(path), [_value_of(field) for field in fields if not (printed and field in _BYTES)])
        for path, *fields in api.elements
    ]


def _wrong_error(api: Api, response: Entry) -> str | None:
    """UNKNOWN_ERROR_CODE if an error code of the answer is outside Kafka's range, MISSING_FIELD if a partition of a commit has none."""
    codes = [response.error_code]
    if api.name in COMMITS:
        errors = commit_errors(response)
        if errors is None or None in errors:
            return _missing("response.topics.partitions.errorCode")
        codes += errors
    elif api.errors:
        codes += [element.error_code for element in getattr(response, api.errors) or ()]
    wrong = [code for code in codes if code is not None and not _LOWEST_ERROR <= code <= _HIGHEST_ERROR]
    return Refusal.UNKNOWN_ERROR_CODE if wrong else None


def _blobs_are_base64(request: Entry, response: Entry) -> bool:
    blobs = [response.assignment]
    blobs += [offered.metadata for offered in request.protocols or () if offered is not None]
    blobs += [assigned.assignment for assigned in request.assignments or () if assigned is not None]
    blobs += [member.metadata for member in response.members or () if member is not None]
    return all(blob is None or (isinstance(blob, str) and len(blob) % 4 == 0 and _is_base64(blob) is not None) for blob in blobs)
