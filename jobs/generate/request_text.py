"""Lines of `kafka.request.logger`, as Kafka 3.9 and 4.2 write them about requests of Java consumers.

Each function returns a request and its answer as objects. In those of steady members, BLANK stands for numbers that change.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import chain, cycle, zip_longest
from typing import Any, Final, NamedTuple

import msgspec

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

BLANK: Final = "@"
_POOL: Final = 8_191  # variations; a prime, so that they meet other numbers in all combinations


class Api(NamedTuple):
    """An API: its number, the version that Java consumers of 3.9 and 4.2 speak, and its name."""

    key: int
    version: int
    name: str

    @property
    def header(self) -> str:
        """A line from behind its time up to the correlation id."""
        request = f'{{"isForwarded":false,"requestHeader":{{"requestApiKey":{self.key},"requestApiVersion":{self.version},'
        return f' DEBUG Completed request:{request}"correlationId":'


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


def text(value: object) -> str:
    """JSON as Kafka writes it, bytes in base64."""
    return msgspec.json.encode(value).decode("ascii")


def parts(value: object) -> list[str]:
    """JSON in pieces: numbers come between them."""
    return text(value).split(f'"{BLANK}"')


def pieces(client_id: str, api: Api, bodies: Mapping[str, Any], connection: str) -> list[str]:
    """A line between its correlation id and its times, in pieces."""
    whole = {"clientId": client_id, "requestApiKeyName": api.name}
    first, *others = parts(bodies)
    first = f",{text(whole)[1:]},{first[1:]}"
    *others, last = first, *others
    return [*others, f'{last[:-1]},"connection":"{connection}",']


def filled(texts: Iterable[str], between: Iterable[object]) -> str:
    """Pieces with numbers, or other texts, between them."""
    return "".join(chain.from_iterable(zip_longest(texts, map(str, between), fillvalue="")))


def bodies(group_id: str, request: Request, answer: Answer, reason: str) -> dict[str, Any]:
    """A request to a group and its answer; OffsetCommit has `commit_bodies`."""
    asked, told = _request(request, reason), _answer(answer)
    return {"request": {"groupId": group_id} | asked, "response": {"throttleTimeMs": 0, "errorCode": int(answer.error)} | told}


def _request(request: Request, reason: str) -> dict[str, Any]:
    if isinstance(request, LeaveGroup):
        return {"members": [{"memberId": m.member_id, "groupInstanceId": m.instance_id, "reason": reason} for m in request.members]}
    if isinstance(request, JoinGroup):
        return {
            "sessionTimeoutMs": request.session_timeout_ms,
            "rebalanceTimeoutMs": request.rebalance_timeout_ms,
            "memberId": request.member_id,
            "groupInstanceId": request.instance_id,
            "protocolType": request.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in request.protocols],
            "reason": reason,
        }
    assert isinstance(request, Heartbeat | SyncGroup)
    who = {"generationId": request.generation, "memberId": request.member_id, "groupInstanceId": request.instance_id}
    if isinstance(request, Heartbeat):
        return who
    given = [{"memberId": name, "assignment": data} for name, data in request.assignments]
    return who | {"protocolType": request.protocol_type, "protocolName": request.protocol, "assignments": given}


def _answer(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, JoinAnswer):
        return {
            "generationId": answer.generation,
            "protocolType": answer.protocol_type,
            "protocolName": answer.protocol,
            "leader": answer.leader,
            "skipAssignment": answer.skip_assignment,
            "memberId": answer.member_id,
            "members": [{"memberId": m.member_id, "groupInstanceId": m.instance_id, "metadata": m.metadata} for m in answer.members],
        }
    if isinstance(answer, SyncAnswer):
        return {"protocolType": answer.protocol_type, "protocolName": answer.protocol, "assignment": answer.assignment}
    if isinstance(answer, LeaveAnswer):
        members = [{"memberId": m.member_id, "groupInstanceId": m.instance_id, "errorCode": int(m.error)} for m in answer.members]
        return {"members": members}
    return {}


def commit_bodies(group_id: str, request: OffsetCommit, topic: str, offsets: Mapping[int, Any], error: Error) -> dict[str, Any]:
    """An OffsetCommit of partitions of a topic."""
    asked = [
        {"partitionIndex": number, "committedOffset": offset, "committedLeaderEpoch": 0, "committedMetadata": ""}
        for number, offset in offsets.items()
    ]
    told = [{"partitionIndex": number, "errorCode": int(error)} for number in offsets]
    return {
        "request": {
            "groupId": group_id,
            "generationIdOrMemberEpoch": request.generation,
            "memberId": request.member_id,
            "groupInstanceId": request.instance_id,
            "topics": [{"name": topic, "partitions": asked}],
        },
        "response": {"throttleTimeMs": 0, "topics": [{"name": topic, "partitions": told}]},
    }


def fetch_bodies(group_id: str, topic: str, offsets: Mapping[int, int]) -> dict[str, Any]:
    """An OffsetFetch for the assigned partitions."""
    asked = {"name": topic, "partitionIndexes": list(offsets)}
    told = [
        {"partitionIndex": number, "committedOffset": offset, "committedLeaderEpoch": 0, "metadata": "", "errorCode": 0}
        for number, offset in offsets.items()
    ]
    return {
        "request": {"groups": [{"groupId": group_id, "memberId": None, "memberEpoch": -1, "topics": [asked]}], "requireStable": True},
        "response": {
            "throttleTimeMs": 0,
            "groups": [{"groupId": group_id, "topics": [{"name": topic, "partitions": told}], "errorCode": 0}],
        },
    }


def find_bodies(group_id: str, node: int, host: str, port: int) -> dict[str, Any]:
    """A FindCoordinator and its answer."""
    found = {"key": group_id, "nodeId": node, "host": host, "port": port, "errorCode": 0, "errorMessage": ""}
    return {"request": {"keyType": 0, "coordinatorKeys": [group_id]}, "response": {"throttleTimeMs": 0, "coordinators": [found]}}


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
