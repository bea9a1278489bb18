"""What a broker would log of a simulated group: the group protocol as Kafka plays it, seen through a request log.

The simulation decides what is asked and answered; here it becomes log lines, with what blurs them in reality. A request
waits a little for its handling, an answer for its line; a timer's answers come late; requests that cross are written in
either order; a client that died takes the answer of its parked request with it.
"""

import random

from coordinator_model import events as kinds
from coordinator_model.clients.simulation import Application, Connection
from coordinator_model.events import Assignment, Event, MemberEntry, Protocol
from coordinator_model.specification import requests
from coordinator_model.specification.coordinator import CoordinatorOutcome
from tests.clients.watched import GROUP_ID, WatchedSimulation
from tests.tracker.story import START_MS


class LoggedSimulation(WatchedSimulation):
    """A simulation whose coordinator writes a request log."""

    def __init__(self, release: str, applications: list[Application], *, seed: int = 0) -> None:
        self.log: list[Event] = []
        self._chance = random.Random(seed)
        self._asked: dict[int, tuple[int, Connection, requests.Request]] = {}
        super().__init__(release, applications)

    def handle(self, connection: Connection) -> None:
        request = self.unanswered[connection][0]
        if isinstance(request, requests.JoinGroup):  # two clients may use one instance id, but no member id comes twice
            request = request._replace(fresh_member_id=f"{request.instance_id or request.client_id}-{len(self.tickets)}")
            self.unanswered[connection][0] = request
        self._asked[len(self.tickets)] = (self.now_ms, connection, request)
        super().handle(connection)

    def take_outcome(self, outcome: CoordinatorOutcome) -> None:
        for reply in outcome.replies:
            arrived_ms, connection, request = self._asked.pop(int(reply.ticket))
            if self.runs(connection[0]) or self.clients[connection[0]].closed:
                at_ms = reply.at_ms + self._chance.choice((0, 0, 0, 1, 3))
                self.log.append(request_line(len(self.log) + 1, arrived_ms, at_ms, connection, request, reply.answer))
        super().take_outcome(outcome)


def request_line(
    position: int, arrived_ms: int, at_ms: int, connection: Connection, request: requests.Request, answer: requests.Answer
) -> Event:
    """An answered request as the line of a request log; member ids, subscriptions and assignments are those of the simulation."""
    event = Event(
        "b1", "request", "b1/request.log", position, START_MS + at_ms, START_MS + arrived_ms, "", GROUP_ID,
        connection=f"c{connection[0]}-{connection[1]}", correlation_id=position, client_id=f"c{connection[0]}",
        client_host="10.0.0.7", error_code=int(answer.error),
    )  # fmt: skip
    if isinstance(request, requests.Heartbeat | requests.SyncGroup | requests.OffsetCommit):
        event = event._replace(member_id=request.member_id, generation=request.generation, instance_id=request.instance_id or "")
    if isinstance(request, requests.Heartbeat):
        return event._replace(kind=kinds.HEARTBEAT, beats=(0,), positions=(position,))
    if isinstance(request, requests.OffsetCommit):
        return event._replace(kind=kinds.OFFSET_COMMIT, api_version=request.api_version)
    if isinstance(request, requests.SyncGroup):
        own = answer.assignment if isinstance(answer, requests.SyncAnswer) else b""
        sent = request.assignments or (((request.member_id, own),) if event.error_code == 0 else ())
        assigned = tuple(Assignment(member_id, None, assignment.hex()) for member_id, assignment in sent)
        return event._replace(
            kind=kinds.SYNC_GROUP, assignments=assigned, protocol_type=request.protocol_type or "", protocol=request.protocol or ""
        )
    if isinstance(request, requests.LeaveGroup):
        codes = [entry.error for entry in answer.members] if isinstance(answer, requests.LeaveAnswer) else []
        entries = tuple(
            MemberEntry(leaving.member_id, leaving.instance_id or "", int(code), "", None)
            for leaving, code in zip(request.members, codes or [0] * len(request.members), strict=True)
        )
        return event._replace(kind=kinds.LEAVE_GROUP, member_id=request.members[0].member_id, members=entries)
    assert isinstance(request, requests.JoinGroup)
    assert isinstance(answer, requests.JoinAnswer)
    return event._replace(
        kind=kinds.JOIN_GROUP, api_version=request.api_version, member_id=request.member_id, instance_id=request.instance_id or "",
        answer_member_id=answer.member_id, answer_generation=answer.generation, leader_id=answer.leader,
        protocol_type=request.protocol_type, protocol=answer.protocol or "", skip_assignment=answer.skip_assignment,
        session_timeout_ms=request.session_timeout_ms, rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=tuple(Protocol(name, None, (), metadata.hex() or "none") for name, metadata in request.protocols),
        members=tuple(MemberEntry(m.member_id, m.instance_id or "", 0, "", None) for m in answer.members),
    )  # fmt: skip
