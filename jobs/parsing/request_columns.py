"""The event columns of a request: what its line alone decides. Only lines without a refusal (request_checks.py) have them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from coordinator_model import events as e
from coordinator_model.errors import Error
from jobs.parsing import request_checks as checks
from jobs.parsing.consumer_protocol import assignment_entry, member_entry, protocol_entry, subscription
from jobs.parsing.request_json import (
    Client,
    Entry,
    Header,
    Logged,
    PartitionOffset,
    SharePartition,
    Target,
    TopicIdPartitions,
    TopicOffsets,
)
from jobs.parsing.rows import SOFTWARE_UNKNOWN

_GROUP_KEY: Final = 0  # keyType of FindCoordinator: CoordinatorType.GROUP
_NO_HEADER: Final = Header()
_NO_CLIENT: Final = Client()
_NOTHING: Final = Entry()
_T = TypeVar("_T")


def concerns_a_group(line: Logged) -> bool:
    """Whether a request says something about a group.

    FindCoordinator may ask for the coordinator of a transaction or a share group; v0 knows only groups. A request for offsets may come from
    a tool: a member names its one group and the partitions that it was assigned. Tools that watch offsets ask for all partitions, or for
    many groups at once, every few seconds, which says nothing about a group. Of share and Streams groups the coordinator's log tells all
    but who their members are, which the first request of each shows.
    """
    header, request = line.request_header or _NO_HEADER, line.request or _NOTHING
    if header.request_api_key_name == e.FIND_COORDINATOR:
        return request.key_type is None or request.key_type == _GROUP_KEY
    if header.request_api_key_name in e.HEARTBEATS_OF_OTHERS:
        return (request.member_epoch or 0) <= 0 or bool((line.response or _NOTHING).error_code)
    if header.request_api_key_name in e.SHARE_RECORDS:
        return any(map(_is_told, _shared(line.response or _NOTHING)))
    if header.request_api_key_name == e.OFFSET_FETCH:
        if request.groups is not None and len(request.groups) != 1:
            return False
        return request.topics is not None or _first_group(request).topics is not None
    return True


def event_columns(line: Logged, at_us: int) -> dict[str, Any]:
    """Columns of PARSED by name; the others are null. `at_us`: time of the line, epoch µs; times are such numbers, too."""
    header, request, response = line.request_header or _NO_HEADER, line.request or _NOTHING, line.response or _NOTHING
    api, host, client = header.request_api_key_name or "", checks.client_host(line.connection), line.client_information or _NO_CLIENT
    software = " ".join([part for part in (client.software_name, client.software_version) if part is not None])
    return {
        "kind": api,
        "received_at": at_us - checks.duration_us(line),
        "api_version": header.request_api_version,
        "connection": None if host is None else line.connection,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "client_host": host,
        "software": None if software in SOFTWARE_UNKNOWN else software,
        "group_id": request.group_id,
        "member_id": request.member_id,
        "instance_id": request.group_instance_id,
        "generation": request.generation_id,
        "error_code": response.error_code,
        **(_OF_API[api](request, response) if api in _OF_API else {}),
    }


def _either(value: _T | None, other: _T | None) -> _T | None:
    return other if value is None else value


def _first_group(of: Entry) -> Entry:
    """The first group of an OffsetFetch v8+, or of its answer."""
    return (of.groups[0] if of.groups else None) or _NOTHING


def _joined(request: Entry, response: Entry) -> dict[str, Any]:
    """What a member asks for and is told."""
    kind = request.protocol_type
    return {
        "answer_member_id": response.member_id,
        "answer_generation": response.generation_id,
        "leader_id": response.leader,
        "protocol_type": kind,
        "protocol": response.protocol_name,
        "skip_assignment": response.skip_assignment,
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "reason": request.reason,
        "protocols": [protocol_entry(offered.name, _bytes(offered.metadata), kind) for offered in _known(request.protocols)],
        "members": [
            member_entry(member.member_id, member.group_instance_id, subscription(_bytes(member.metadata), kind)[0])
            for member in _known(response.members)
        ],
    }


def _synced(request: Entry, response: Entry) -> dict[str, Any]:
    """Assignments: those of the leader, or else the one in the answer to the member. Before v5 no protocol type is named."""
    kind = _either(request.protocol_type, response.protocol_type)
    assigned: list[tuple[str | None, Any]] = [(entry.member_id, entry.assignment) for entry in _known(request.assignments)]
    if not assigned and response.error_code == 0:
        assigned = [(request.member_id, response.assignment)]
    return {
        "protocol_type": kind,
        "protocol": _either(request.protocol_name, response.protocol_name),
        "assignments": [assignment_entry(member_id, _bytes(text), kind) for member_id, text in assigned] or None,
    }


def _known(entries: Sequence[Entry | None] | None) -> Iterator[Entry]:
    return (entry for entry in entries or () if entry is not None)


def _bytes(text: str | None) -> bytes | None:
    """A subscription or an assignment. The text of Kafka 1.0 to 2.7 has none: of it nothing is known, not even a digest."""
    return None if text is None else base64.b64decode(text)


def _left(request: Entry, response: Entry) -> dict[str, Any]:
    """The members that leave: one at the top (v0-2) or a list (v3+), each with its own answer."""
    if request.members is None:
        return {"members": [{"member_id": request.member_id, "error_code": response.error_code}]}
    errors = [answer and answer.error_code for answer in response.members or ()]
    leaving = [member or _NOTHING for member in request.members]
    members = [
        {"member_id": member.member_id, "instance_id": member.group_instance_id, "error_code": error, "reason": member.reason}
        for member, error in zip(leaving, [*errors, *[None] * len(leaving)], strict=False)
    ]
    sole = leaving[0] if len(leaving) == 1 else _NOTHING
    return {
        "member_id": _either(request.member_id, sole.member_id),
        "instance_id": sole.group_instance_id,
        "reason": sole.reason,
        "members": members,
    }


def _committed(request: Entry, response: Entry) -> dict[str, Any]:
    """The number of partitions, and the first error of one. A commit has no other."""
    errors = checks.commit_errors(response) or ()
    return {
        "generation": _either(request.generation_id, request.generation_id_or_member_epoch),
        "error_code": next((code for code in errors if code), 0),
        "member_count": len(errors),
        "committed": _accepted(request, response),
    }


def _each_partition(topics: Sequence[TopicOffsets | None] | None) -> Iterator[tuple[str | None, PartitionOffset]]:
    """Partitions, each with its topic: its name, or its id where there is none (v10)."""
    for topic in topics or ():
        if topic is not None:
            yield from ((topic.name or topic.topic_id, part) for part in topic.partitions or () if part is not None)


def _accepted(request: Entry, response: Entry) -> str | None:
    """The offsets of the partitions whose commit was accepted. A broker does not answer in the order in which it was asked."""
    accepted = {(topic, part.partition_index) for topic, part in _each_partition(response.topics) if not part.error_code}
    return _offsets((topic, part) for topic, part in _each_partition(request.topics) if (topic, part.partition_index) in accepted)


def _offsets(partitions: Iterable[tuple[str | None, PartitionOffset]]) -> str | None:
    """The committed offsets of partitions, but for those with an error."""
    known = (one for one in partitions if not one[1].error_code and one[1].committed_offset is not None)
    return ",".join(f"{topic}-{part.partition_index}={part.committed_offset}" for topic, part in known) or None


def _fetched(request: Entry, response: Entry) -> dict[str, Any]:
    """The number of partitions that are asked for; null if it is not told."""
    asked = _first_group(request)
    answered = _first_group(response)
    topics = _either(request.topics, asked.topics)
    indexes = [None if topic is None else topic.partition_indexes for topic in topics or ()]
    count = None if topics is None or None in indexes else sum(len(part) for part in indexes if part is not None)
    return {
        "group_id": _either(request.group_id, asked.group_id),
        "member_id": asked.member_id,
        "generation": asked.member_epoch,
        "error_code": _either(response.error_code, answered.error_code),
        "member_count": count,
        "committed": _offsets(_each_partition(_either(response.topics, answered.topics))),
    }


def _deleted(_: Entry, response: Entry) -> dict[str, Any]:
    """The groups of a DeleteGroups, each with its own answer."""
    return {"groups": [result and {"group_id": result.group_id, "error_code": result.error_code} for result in response.results or ()]}


def _found(request: Entry, response: Entry) -> dict[str, Any]:
    """The coordinator of one key (until v3), or of several groups, each with its own answer."""
    if response.coordinators is None:
        return {"group_id": request.key, **_coordinator(response)}
    answers = [answer or _NOTHING for answer in response.coordinators]
    return {"groups": [{"group_id": answer.key, "error_code": answer.error_code, **_coordinator(answer)} for answer in answers]}


def _coordinator(answer: Entry) -> dict[str, Any]:
    """Node id and address that an answer of FindCoordinator names; nothing where it names none, which is node -1."""
    if answer.node_id is None or answer.node_id < 0:
        return {}
    address = ":".join(str(part) for part in (answer.host, answer.port) if part is not None)
    return {"coordinator_id": answer.node_id, "coordinator_address": address}


def _beat_of_member(request: Entry, response: Entry) -> dict[str, Any]:
    """What every heartbeat of a member with an epoch says of it."""
    return {
        "instance_id": request.instance_id,
        "generation": request.member_epoch,
        "answer_member_id": response.member_id,
        "answer_generation": response.member_epoch,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
    }


def _beat_of_consumer_group(request: Entry, response: Entry) -> dict[str, Any]:
    """The subscription of a KIP-848 member, in the shape of a classic protocol, what it owns and is assigned. Null when unchanged."""
    topics, target = request.subscribed_topic_names, response.assignment
    protocol = {"name": _either(request.server_assignor, "consumer"), "topics": [topic or "" for topic in topics or ()]}
    assigned = {"member_id": response.member_id, "partitions": _partitions(target.topic_partitions) if isinstance(target, Target) else None}
    return _beat_of_member(request, response) | {
        "heartbeat_interval_ms": response.heartbeat_interval_ms,
        "protocol": request.server_assignor,
        "protocols": None if topics is None else [protocol],
        "assignments": None if target is None else [assigned],
        "subscribed_regex": request.subscribed_topic_regex,
        "owned": _partitions(request.topic_partitions),
    }


def _beat_of_others(request: Entry, response: Entry) -> dict[str, Any]:
    """Who a member of a share or a Streams group is, and why it was refused."""
    return _beat_of_member(request, response) | {"reason": response.error_message}


def _shared(response: Entry) -> Iterator[tuple[str, SharePartition]]:
    """The partitions in an answer to a share consumer, each with its topic's id and number."""
    for topic in response.responses or ():
        for part in (topic and topic.partitions) or ():
            if topic is not None and part is not None:
                yield f"{topic.topic_id}-{part.partition_index}", part


def _is_late(part: SharePartition) -> bool:
    """Whether a partition's acknowledgements came when the member did not hold the records any more."""
    code = part.error_code if part.acknowledge_error_code is None else part.acknowledge_error_code
    return code == Error.INVALID_RECORD_STATE


def _again(part: SharePartition) -> int:
    """How many records of a partition a member gets that were delivered before."""
    acquired = (one for one in part.acquired_records or () if one is not None and (one.delivery_count or 0) > 1)
    return sum((one.last_offset or 0) - (one.first_offset or 0) + 1 for one in acquired)


def _is_told(shared: tuple[str, SharePartition]) -> bool:
    return bool(_again(shared[1])) or _is_late(shared[1])


def _share_records(_: Entry, response: Entry) -> dict[str, Any]:
    """What a share consumer gets once more, or acknowledged too late (KIP-932)."""
    told = [one for one in _shared(response) if _is_told(one)]
    return {
        "error_code": Error.INVALID_RECORD_STATE if any(_is_late(part) for _, part in told) else 0,
        "session_timeout_ms": response.acquisition_lock_timeout_ms,
        "member_count": sum(_again(part) for _, part in told),
        "owned": [name for name, _ in told],
    }


def _partitions(topics: Sequence[TopicIdPartitions | None] | None) -> list[str] | None:
    """Partitions as topic id and number, since no name of a topic is in the line; None if a list is missing."""
    if topics is None or any(topic is None or topic.partitions is None for topic in topics):
        return None
    pairs = [(topic.topic_id, partition) for topic in topics if topic is not None for partition in topic.partitions or ()]
    return ["-".join(str(part) for part in pair if part is not None) for pair in pairs]


_OF_API: Final[Mapping[str, Callable[[Entry, Entry], dict[str, Any]]]] = {
    e.JOIN_GROUP: _joined, e.SYNC_GROUP: _synced, e.LEAVE_GROUP: _left, e.OFFSET_COMMIT: _committed, e.TXN_OFFSET_COMMIT: _committed,
    e.OFFSET_FETCH: _fetched, e.DELETE_GROUPS: _deleted, e.FIND_COORDINATOR: _found, e.CONSUMER_GROUP_HEARTBEAT: _beat_of_consumer_group,
    **dict.fromkeys(e.HEARTBEATS_OF_OTHERS, _beat_of_others), **dict.fromkeys(e.SHARE_RECORDS, _share_records),
}  # fmt: skip
"""What only requests of an API have."""
