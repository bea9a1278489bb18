"""A fleet of consumer groups as a broker's logs, written as it happens: for the benchmarks of the live pipeline.

    python bench/live_load.py FOLDER --rate 5000 --seconds 60

Writes FOLDER/kafka-request.log and FOLDER/server.log in the words of Kafka 4.2.0, each line when its time has come. Groups of 15
members that send a heartbeat every 3 s: so many that all of them make up the rate. Again and again a member of some group leaves and
another one comes. What the broker answers is what the executable specification answers.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from coordinator_model.errors import Error  # noqa: E402
from coordinator_model.specification.config import CoordinatorConfig  # noqa: E402 - a script: the project is not on the path before
from coordinator_model.specification.effects import MemberAdded, Outcome, Transition  # noqa: E402
from coordinator_model.specification.group import ClassicGroup  # noqa: E402
from coordinator_model.specification.requests import (  # noqa: E402
    Answer,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    Request,
    SyncAnswer,
    SyncGroup,
)
from coordinator_model.states import State  # noqa: E402

MEMBERS: Final = 15
HEARTBEAT_MS: Final = 3_000
ABSENT_MS: Final = 12_000
"""From a member's leaving to its successor's coming."""
PARTITIONS: Final = 60

_SESSION_MS: Final = 45_000
_CLOSED: Final = "the consumer is being closed"
_PREFIX: Final = "INFO [GroupCoordinator id=1 topic=__consumer_offsets partition={partition}] "
_LOGGER: Final = " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
_SUBSCRIPTION: Final = base64.b64decode("AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA==")
_KEYS: Final = {
    Heartbeat: (12, "HEARTBEAT", 4),
    JoinGroup: (11, "JOIN_GROUP", 9),
    SyncGroup: (14, "SYNC_GROUP", 5),
    LeaveGroup: (13, "LEAVE_GROUP", 5),
}
_TIMES: Final = (
    '"requestQueueTimeMs":0.05,"localTimeMs":0.05,"remoteTimeMs":{remote},"throttleTimeMs":0,"responseQueueTimeMs":0.05,"sendTimeMs":0.05,'
    '"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT",'
    '"clientInformation":{{"softwareName":"apache-kafka-java","softwareVersion":"4.2.0"}}}} (kafka.request.logger)'
)


@dataclass
class Member:
    """One consumer of a group."""

    client_id: str
    connection: str
    member_id: str = ""
    generation: int = -1
    correlation: int = 0
    gone: bool = False


@dataclass
class Group:
    """A group at the broker, and its consumers."""

    coordinator: ClassicGroup
    partition: int
    members: list[Member] = field(default_factory=list)
    waiting: dict[int, tuple[Member, Request, int]] = field(default_factory=dict)  # by ticket: who asked what, and when
    leaver: int = 0  # whose turn it is


class Fleet:
    """Everything that happens, by its time. `lines` yields what the broker logs."""

    def __init__(self, groups: int, start_ms: int, *, changes_every_ms: int) -> None:
        config = CoordinatorConfig.of("4.2.0")
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = 0
        self._tickets = 0
        self._ids = 0
        self._out: list[tuple[bool, str]] = []
        self._changes_every_ms = changes_every_ms
        self._groups = []
        for number in range(groups):
            group = Group(ClassicGroup(f"fleet-{number:04d}", config, start_ms), partition=number % 50)
            self._groups.append(group)
            for index in range(MEMBERS):
                self._at(start_ms + 7 * number + index, partial(self._come, group, index))
        self._at(start_ms + 20_000, partial(self._change, 0))

    def lines(self, until_ms: int) -> Iterator[tuple[bool, str]]:
        """What is logged up to a time: whether it is a request, and the line. In order of time."""
        while self._queue and self._queue[0][0] <= until_ms:
            at_ms, _, act = heapq.heappop(self._queue)
            act(at_ms)
            yield from self._out
            self._out.clear()

    def _at(self, at_ms: int, act: Callable[[int], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (at_ms, self._order, act))

    # What consumers do.

    def _come(self, group: Group, index: int, at_ms: int) -> None:
        self._ids += 1
        name = f"{group.coordinator.group_id}-{index}"
        member = Member(name, f"127.0.0.1:9092-127.0.0.1:{20_000 + self._ids % 40_000}-0-{self._ids}")
        if index < len(group.members):
            group.members[index] = member
        else:
            group.members.append(member)
        self._join(group, member, at_ms)

    def _join(self, group: Group, member: Member, at_ms: int) -> None:
        fresh = f"{member.client_id}-{self._ids:08x}-0000-4000-8000-{self._order:012x}"
        request = JoinGroup(
            member.member_id, _SESSION_MS, 300_000, "consumer", (("range", _SUBSCRIPTION),), client_id=member.client_id,
            client_host="/127.0.0.1", fresh_member_id=fresh,
        )  # fmt: skip
        self._ask(group, member, request, at_ms)

    def _beat(self, group: Group, member: Member, generation: int, at_ms: int) -> None:
        if not member.gone and member.generation == generation:
            self._ask(group, member, Heartbeat(member.member_id, generation), at_ms)

    def _change(self, number: int, at_ms: int) -> None:
        """A member of the next group leaves, and comes again later as a new one."""
        group = self._groups[number % len(self._groups)]
        if group.coordinator.state is State.STABLE:
            index = group.leaver % MEMBERS
            group.leaver += 1
            member = group.members[index]
            member.gone = True
            self._ask(group, member, LeaveGroup((LeavingMember(member.member_id),)), at_ms)
            self._at(at_ms + ABSENT_MS, partial(self._come, group, index))
        self._at(at_ms + self._changes_every_ms, partial(self._change, number + 1))

    # What the broker does.

    def _ask(self, group: Group, member: Member, request: Request, at_ms: int) -> None:
        self._tickets += 1
        group.waiting[self._tickets] = member, request, at_ms
        self._tell(group, group.coordinator.handle(request, at_ms, self._tickets), at_ms, request)

    def _look(self, group: Group, at_ms: int) -> None:
        self._tell(group, group.coordinator.advance(at_ms), at_ms, None)

    def _tell(self, group: Group, outcome: Outcome, at_ms: int, cause: Request | None) -> None:
        for effect in outcome.effects:
            if isinstance(effect, MemberAdded):
                self._coordinator(group, at_ms, f"Pending dynamic member with id {effect.member_id} joins group {{group}} in {group.coordinator.state.value} state. Adding to the group now.")  # fmt: skip # noqa: E501
            if isinstance(effect, Transition):
                self._transition(group, effect, at_ms, cause)
        for reply in outcome.replies:
            member, request, asked_ms = group.waiting.pop(reply.ticket)
            self._request(group, member, request, reply.answer, asked_ms, at_ms)
            self._answer(group, member, reply.answer, at_ms)
        due = group.coordinator.timers.earliest
        if (outcome.effects or cause is None) and due < at_ms + 10_000:
            self._at(max(due, at_ms + 1), partial(self._look, group))

    def _answer(self, group: Group, member: Member, answer: Answer, at_ms: int) -> None:
        """What a consumer does next."""
        if isinstance(answer, JoinAnswer):
            member.member_id = answer.member_id
            if answer.error is not Error.NONE:
                self._at(at_ms + 2, partial(self._join_again, group, member))
                return
            member.generation = answer.generation
            ids = [joined.member_id for joined in answer.members]
            share = tuple((name, assignment(range(index, PARTITIONS, len(ids)))) for index, name in enumerate(ids))
            self._at(
                at_ms + 2,
                partial(self._sync, group, member, SyncGroup(member.member_id, answer.generation, share, None, "consumer", "range")),
            )
        elif isinstance(answer, (HeartbeatAnswer, SyncAnswer)):
            if answer.error is Error.NONE:
                self._at(at_ms + HEARTBEAT_MS, partial(self._beat, group, member, member.generation))
            else:
                self._at(at_ms + 2, partial(self._join_again, group, member))

    def _join_again(self, group: Group, member: Member, at_ms: int) -> None:
        if not member.gone:
            self._join(group, member, at_ms)

    def _sync(self, group: Group, member: Member, request: SyncGroup, at_ms: int) -> None:
        self._ask(group, member, request, at_ms)

    # What it logs.

    def _coordinator(self, group: Group, at_ms: int, text: str) -> None:
        said = text.format(group=group.coordinator.group_id)
        self._out.append((False, f"{stamp(at_ms)} {_PREFIX.format(partition=group.partition)}{said}{_LOGGER}\n"))

    def _transition(self, group: Group, effect: Transition, at_ms: int, cause: Request | None) -> None:
        known = group.coordinator
        if effect.to_state is State.PREPARING_REBALANCE:
            if isinstance(cause, LeaveGroup):
                reason = f"explicit `LeaveGroup` request for ({cause.members[0].member_id}) members."
                self._coordinator(group, at_ms, f"[Group {{group}}] Member {cause.members[0].member_id} has left group through explicit `LeaveGroup` request; client reason: {_CLOSED}")  # fmt: skip # noqa: E501
            else:
                reason = f"Adding new member {effect.member_id} with group instance id null; client reason: not provided"
            self._coordinator(group, at_ms, f"Preparing to rebalance group {{group}} in state PreparingRebalance with old generation {effect.generation} (reason: {reason}).")  # fmt: skip # noqa: E501
        elif effect.to_state is State.COMPLETING_REBALANCE:
            self._coordinator(group, at_ms, f"Stabilized group {{group}} generation {known.generation} with {len(known.members)} members.")
        elif effect.to_state is State.STABLE:
            self._coordinator(group, at_ms, f"Assignment received from leader {known.leader} for group {{group}} for generation {known.generation}. The group has {len(known.members)} members, 0 of which are static.")  # fmt: skip # noqa: E501

    def _request(self, group: Group, member: Member, request: Request, answer: Answer, asked_ms: int, at_ms: int) -> None:
        key, name, version = _KEYS[type(request)]  # type: ignore[index]
        member.correlation += 1
        header = {
            "requestApiKey": key, "requestApiVersion": version, "correlationId": member.correlation, "clientId": member.client_id,
            "requestApiKeyName": name,
        }  # fmt: skip
        bodies = json.dumps(
            {"isForwarded": False, "requestHeader": header, **_bodies(group.coordinator.group_id, request, answer)}, separators=(",", ":")
        )
        took = at_ms - asked_ms
        rest = f',"connection":"{member.connection}","totalTimeMs":{took}.25,{_TIMES.format(remote=f"{took}.05")}'
        self._out.append((True, f"{stamp(at_ms)} DEBUG Completed request:{bodies[:-1]}{rest}\n"))


def _bodies(group_id: str, request: Request, answer: Any) -> dict[str, Any]:
    error = {"throttleTimeMs": 0, "errorCode": answer.error.value}
    if isinstance(request, Heartbeat):
        asked = {"groupId": group_id, "generationId": request.generation, "memberId": request.member_id, "groupInstanceId": None}
        return {"request": asked, "response": error}
    if isinstance(request, JoinGroup):
        asked = {
            "groupId": group_id, "sessionTimeoutMs": request.session_timeout_ms, "rebalanceTimeoutMs": request.rebalance_timeout_ms,
            "memberId": request.member_id, "groupInstanceId": None, "protocolType": "consumer",
            "protocols": [{"name": name, "metadata": text(data)} for name, data in request.protocols], "reason": None,
        }  # fmt: skip
        members = [{"memberId": m.member_id, "groupInstanceId": None, "metadata": text(m.metadata)} for m in answer.members]
        told = {
            "generationId": answer.generation, "protocolType": answer.protocol_type, "protocolName": answer.protocol,
            "leader": answer.leader, "skipAssignment": answer.skip_assignment, "memberId": answer.member_id, "members": members,
        }  # fmt: skip
        return {"request": asked, "response": error | told}
    if isinstance(request, SyncGroup):
        asked = {
            "groupId": group_id, "generationId": request.generation, "memberId": request.member_id, "groupInstanceId": None,
            "protocolType": "consumer", "protocolName": "range",
            "assignments": [{"memberId": name, "assignment": text(data)} for name, data in request.assignments],
        }  # fmt: skip
        told = {"protocolType": "consumer", "protocolName": "range", "assignment": text(answer.assignment)}
        return {"request": asked, "response": error | told}
    assert isinstance(request, LeaveGroup)
    left = [{"memberId": m.member_id, "groupInstanceId": None, "reason": _CLOSED} for m in request.members]
    gone = [{"memberId": m.member_id, "groupInstanceId": None, "errorCode": m.error.value} for m in answer.members]
    return {"request": {"groupId": group_id, "members": left}, "response": error | {"members": gone}}


def assignment(partitions: range) -> bytes:
    """Partitions of the topic `orders`, as ConsumerProtocol writes them (version 3)."""
    return struct.pack(f">hih6si{len(partitions)}ii", 3, 1, 6, b"orders", len(partitions), *partitions, -1)


def text(data: bytes) -> str:
    """As the request log has bytes."""
    return base64.b64encode(data).decode("ascii")


_stamps: dict[int, str] = {}


def stamp(at_ms: int) -> str:
    """As log4j writes it, with its brackets, UTC."""
    second, milliseconds = divmod(at_ms, 1_000)
    if second not in _stamps:
        _stamps.clear()
        _stamps[second] = f"{datetime.fromtimestamp(second, timezone.utc):[%Y-%m-%d %H:%M:%S}"
    return f"{_stamps[second]},{milliseconds:03d}]"


def write(folder: Path, rate: int, seconds: float, *, changes_per_second: float, rotate_bytes: int = 256 << 20) -> int:
    """Writes lines as their time comes; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    start_ms = time.time_ns() // 1_000_000
    groups = max(round(rate * HEARTBEAT_MS / 1_000 / MEMBERS), 1)
    fleet = Fleet(groups, start_ms, changes_every_ms=round(1_000 / changes_per_second))
    paths = {True: folder / "kafka-request.log", False: folder / "server.log"}
    files: dict[bool, IO[str]] = {kind: path.open("a", encoding="utf-8") for kind, path in paths.items()}
    count = 0
    while (now_ms := time.time_ns() // 1_000_000) < start_ms + seconds * 1_000:
        for is_request, line in fleet.lines(now_ms):
            files[is_request].write(line)
            count += 1
        for kind, file in files.items():
            file.flush()
            if file.tell() > rotate_bytes:
                file.close()
                paths[kind].replace(paths[kind].with_name(f"{paths[kind].name}.1"))
                files[kind] = paths[kind].open("a", encoding="utf-8")
        time.sleep(0.02)
    for file in files.values():
        file.close()
    return count


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=int, default=5_000, help="lines a second, about")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--changes", type=float, default=2.0, help="members that leave, a second; as many come")
    wanted = parser.parse_args()
    print(f"{write(wanted.folder, wanted.rate, wanted.seconds, changes_per_second=wanted.changes):,} lines")


if __name__ == "__main__":
    main()
