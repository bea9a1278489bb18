"""A simulated group that keeps what was said and what happened in it."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from coordinator_model.clients.simulation import Application, Connection, Simulation
from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import CoordinatorOutcome
from coordinator_model.specification.effects import Effect
from coordinator_model.specification.requests import Answer, JoinedMember, Request

GROUP_ID = "g"


def round_robin(partitions: int, members: tuple[JoinedMember, ...]) -> tuple[tuple[str, bytes], ...]:
    """An assignor: partition numbers, dealt out in the order of the member ids."""
    ids = sorted(member.member_id for member in members)
    return tuple(
        (member_id, b" ".join(b"%d" % number for number in range(index, partitions, len(ids)))) for index, member_id in enumerate(ids)
    )


class ClientMessage(NamedTuple):
    """A request that a client sent, or an answer that it got."""

    at_ms: int
    client: int
    content: Request | Answer


class BrokerFailedError(Exception):
    """A broker failed while it handled a request, and may answer it again later: what a client does then is not played."""


class WatchedSimulation(Simulation):
    """With twelve partitions. `effects`: each with its time."""

    def __init__(self, release: str, applications: list[Application], *, group_id: str = GROUP_ID, begin_ms: int = 0) -> None:
        self.messages: list[ClientMessage] = []
        self.effects: list[tuple[int, Effect]] = []
        assignor = partial(round_robin, 12)
        super().__init__(CoordinatorConfig.of(release), applications, group_id=group_id, assignor=assignor, begin_ms=begin_ms)

    def _send(self, number: int, requests: list[Request]) -> None:
        self.messages += [ClientMessage(self.now_ms, number, request) for request in requests]
        super()._send(number, requests)

    def _hear(self, connection: Connection, answer: Answer) -> None:
        number, of_client = connection
        if self.runs(number) and of_client == self.clients[number].connection:
            self.messages.append(ClientMessage(self.now_ms, number, answer))
        super()._hear(connection, answer)

    def take_outcome(self, outcome: CoordinatorOutcome) -> None:
        if any(getattr(reply.answer, "error", None) is Error.UNKNOWN_SERVER_ERROR for reply in outcome.replies):
            raise BrokerFailedError
        self.effects += [(effect.at_ms, effect) for _, effect in outcome.effects]
        super().take_outcome(outcome)
