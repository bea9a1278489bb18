"""Lines of `kafka.request.logger`, as Kafka 3.9 and 4.2 write them about requests of Java consumers.

Each function returns the JSON of a request and its answer. `line` puts a header before it and the connection and the times after it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Final, NamedTuple

from coordinator_model.errors import Error
from coordinator_model.specification.requests import (
    Answer,
    Heartbeat,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    OffsetCommit,
    Request,
    SyncAnswer,
    SyncGroup,
)
from jobs.generate.consumer_protocol import text

HEAD: Final = ' DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":'
"""Between the time of a line and the number of its API."""
_POOL: Final = 8_191  # variations; a prime, so that they meet other numbers in all combinations


class Api(NamedTuple):
    """An API: its number, the version that Java consumers of 3.9 and 4.2 speak, and its name."""

    key: int
    version: int
    name: str

    def header(self) -> str:
        """The request's header up to the correlation id."""
        return f'{HEAD}{self.key},"requestApiVersion":{self.version},"correlationId":'


HEARTBEAT: Final = Api(12, 4, "HEARTBEAT")
OFFSET_COMMIT: Final = Api(8, 9, "OFFSET_COMMIT")
OFFSET_FETCH: Final = Api(9, 9, "OFFSET_FETCH")
FIND_COORDINATOR: Final = Api(10, 6, "FIND_COORDINATOR")
APIS: Final = {
    JoinGroup: Api(11, 9, "JOIN_GROUP"),
    SyncGroup: Api(14, 5, "SYNC_GROUP"),
    Heartbeat: HEARTBEAT,
    LeaveGroup: Api(13, 5, "LEAVE_GROUP"),
    OffsetCommit: OFFSET_COMMIT,
}


def fetch_api(release: str) -> Api:
    """Fetch, in the version that consumers of a release speak."""
    return Api(1, 18 if release.startswith("4") else 17, "FETCH")


def metadata_api(release: str) -> Api:
    """Metadata, in the version that consumers of a release speak."""
    return Api(3, 13 if release.startswith("4") else 12, "METADATA")


def quoted(value: str | None) -> str:
    """A text or null. Ids that are generated need no escapes."""
    return "null" if value is None else f'"{value}"'


def bodies(group_id: str, request: Request, answer: Answer, reason: str) -> str:
    """`"request":{…},"response":{…}` of a request to a group; OffsetCommit has `commit_bodies`."""
    return f'"request":{{"groupId":"{group_id}",{_request(request, reason)}}},"response":{{"throttleTimeMs":0,{_answer(answer)}}}'


def _request(request: Request, reason: str) -> str:
    if isinstance(request, JoinGroup):
        protocols = ",".join(f'{{"name":"{name}","metadata":"{text(metadata)}"}}' for name, metadata in request.protocols)
        return (
            f'"sessionTimeoutMs":{request.session_timeout_ms},"rebalanceTimeoutMs":{request.rebalance_timeout_ms},'
            f'"memberId":"{request.member_id}","groupInstanceId":{quoted(request.instance_id)},'
            f'"protocolType":"{request.protocol_type}","protocols":[{protocols}],"reason":"{reason}"'
        )
    if isinstance(request, SyncGroup):
        given = ",".join(f'{{"memberId":"{name}","assignment":"{text(data)}"}}' for name, data in request.assignments)
        return (
            f'"generationId":{request.generation},"memberId":"{request.member_id}","groupInstanceId":{quoted(request.instance_id)},'
            f'"protocolType":{quoted(request.protocol_type)},"protocolName":{quoted(request.protocol)},"assignments":[{given}]'
        )
    if isinstance(request, LeaveGroup):
        leaving = ",".join(
            f'{{"memberId":"{m.member_id}","groupInstanceId":{quoted(m.instance_id)},"reason":"{reason}"}}' for m in request.members
        )
        return f'"members":[{leaving}]'
    assert isinstance(request, Heartbeat)
    return f'"generationId":{request.generation},"memberId":"{request.member_id}","groupInstanceId":{quoted(request.instance_id)}'


def _answer(answer: Answer) -> str:
    told = f'"errorCode":{int(answer.error)}'
    if isinstance(answer, JoinAnswer):
        members = ",".join(
            f'{{"memberId":"{m.member_id}","groupInstanceId":{quoted(m.instance_id)},"metadata":"{text(m.metadata)}"}}'
            for m in answer.members
        )
        return (
            f'{told},"generationId":{answer.generation},"protocolType":{quoted(answer.protocol_type)},'
            f'"protocolName":{quoted(answer.protocol)},"leader":"{answer.leader}",'
            f'"skipAssignment":{"true" if answer.skip_assignment else "false"},"memberId":"{answer.member_id}","members":[{members}]'
        )
    if isinstance(answer, SyncAnswer):
        return (
            f'{told},"protocolType":{quoted(answer.protocol_type)},"protocolName":{quoted(answer.protocol)},'
            f'"assignment":"{text(answer.assignment)}"'
        )
    if isinstance(answer, LeaveAnswer):
        gone = ",".join(
            f'{{"memberId":"{m.member_id}","groupInstanceId":{quoted(m.instance_id)},"errorCode":{int(m.error)}}}' for m in answer.members
        )
        return f'{told},"members":[{gone}]'
    return told


def commit_bodies(group_id: str, request: OffsetCommit, topic: str, partitions: Iterable[int], error: Error) -> tuple[str, str]:
    """The same of an OffsetCommit, in two parts: `committed` comes between them."""
    answers = ",".join(f'{{"partitionIndex":{number},"errorCode":{int(error)}}}' for number in partitions)
    asked = (
        f'"request":{{"groupId":"{group_id}","generationIdOrMemberEpoch":{request.generation},"memberId":"{request.member_id}",'
        f'"groupInstanceId":{quoted(request.instance_id)},"topics":[{{"name":"{topic}","partitions":['
    )
    return asked, f']}}]}},"response":{{"throttleTimeMs":0,"topics":[{{"name":"{topic}","partitions":[{answers}]}}]}}'


def committed(partitions: Iterable[int], offset: int) -> str:
    """The offsets of a commit."""
    return ",".join(
        f'{{"partitionIndex":{number},"committedOffset":{offset},"committedLeaderEpoch":0,"committedMetadata":""}}' for number in partitions
    )


def fetch_bodies(group_id: str, topic: str, offsets: Mapping[int, int]) -> str:
    """An OffsetFetch for the assigned partitions."""
    asked = ",".join(map(str, offsets))
    told = ",".join(
        f'{{"partitionIndex":{number},"committedOffset":{offset},"committedLeaderEpoch":0,"metadata":"","errorCode":0}}'
        for number, offset in offsets.items()
    )
    return (
        f'"request":{{"groups":[{{"groupId":"{group_id}","memberId":null,"memberEpoch":-1,'
        f'"topics":[{{"name":"{topic}","partitionIndexes":[{asked}]}}]}}],"requireStable":true}},'
        f'"response":{{"throttleTimeMs":0,"groups":[{{"groupId":"{group_id}","topics":[{{"name":"{topic}","partitions":[{told}]}}],'
        '"errorCode":0}]}'
    )


def find_bodies(group_id: str, node: int, host: str, port: int) -> str:
    """A FindCoordinator and its answer."""
    return (
        f'"request":{{"keyType":0,"coordinatorKeys":["{group_id}"]}},"response":{{"throttleTimeMs":0,"coordinators":'
        f'[{{"key":"{group_id}","nodeId":{node},"host":"{host}","port":{port},"errorCode":0,"errorMessage":""}}]}}'
    )


class Times:
    """How long requests take, by chance, as brokers log it: short times as in the recordings."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.prompt = cycle([self.waited(0) for _ in range(_POOL)]).__next__
        """The times of a request that waits for nothing."""

    def waited(self, milliseconds: int) -> str:
        """The times of a request whose answer came after a while."""
        spread = self._chance.lognormvariate
        queue, local, response, send = (max(round(spread(*of), 3), 0.001) for of in ((-3.0, 0.8), (-2.6, 0.7), (-4.0, 0.6), (-3.0, 0.6)))
        parked = milliseconds + (round(spread(-2.3, 0.9), 3) if milliseconds or self._chance.random() < 0.5 else 0.0)
        total = queue + local + response + send + parked
        return (
            f'"totalTimeMs":{round(total, 3)},"requestQueueTimeMs":{queue},"localTimeMs":{local},"remoteTimeMs":{round(parked, 3)},'
            f'"throttleTimeMs":0,"responseQueueTimeMs":{response},"sendTimeMs":{send}'
        )


def tail(release: str) -> str:
    """What ends a line."""
    return (
        ',"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":'
        f'{{"softwareName":"apache-kafka-java","softwareVersion":"{release}"}}}} (kafka.request.logger)\n'
    )
