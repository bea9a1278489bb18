"""A whole group over time: a coordinator, its clients, their applications, and a network with a delay.

The broker handles the requests of a connection one by one, so a heartbeat waits behind a SyncGroup that waits for the leader.
The input is a list of events: an application starts, stalls, is killed or closes, and the coordinator moves. It decides the whole
run. A simulation begins with an empty group, or with one that has been stable for a while (`resume`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from coordinator_model.clients.client import Assignor, Client, ClientConfig, MemberState
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator, CoordinatorOutcome
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.specification.requests import Answer, Heartbeat, Request

DELAY_MS: Final = 2
"""Of the network."""

Connection = tuple[int, int]
"""The number of a client, and of its connection."""


@dataclass(frozen=True)
class Application:
    """The process around one consumer."""

    config: ClientConfig
    starts_ms: int = 0
    poll_every_ms: int = 500
    stalls: tuple[tuple[int, int], ...] = ()
    """The spans of time in which it does not call poll()."""
    dies_ms: int | None = None
    """The process is killed, so the client sends no LeaveGroup."""
    closes_ms: int | None = None


class Beats(NamedTuple):
    """When the coordinator heard from a member that is stable, and when it hears from it next."""

    client: int
    last_ms: int
    next_ms: int


class Simulation:
    """Runs applications against a coordinator."""

    def __init__(
        self, config: CoordinatorConfig, applications: Sequence[Application], *, group_id: str, assignor: Assignor, begin_ms: int = 0
    ) -> None:
        self.coordinator = Coordinator(config, begin_ms, [coordinator_partition(group_id, config.offsets_topic_num_partitions)])
        self.group_id = group_id
        self.applications = applications
        self.clients = [Client(application.config, assignor) for application in applications]
        self.now_ms = begin_ms
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self.tickets: list[Connection] = []
        self.unanswered: dict[Connection, deque[Request]] = {}
        """The requests on a connection that have no answer yet. The coordinator handles the first."""
        self._ticks: list[int] = [-1] * len(self.clients)
        """When each client ticks next; -1: no tick is scheduled."""
        for number, application in enumerate(applications):
            late_ms = max(begin_ms - application.starts_ms, 0)  # it has polled at its pace before
            self._at(
                application.starts_ms + -(-late_ms // application.poll_every_ms) * application.poll_every_ms, partial(self._poll, number)
            )
            if application.closes_ms is not None:
                self._at(application.closes_ms, partial(self._close, number))

    def resume(self, stored: StoredGroup, members: Sequence[Beats]) -> None:
        """Begin with a group that has been Stable for a while. Call it before anything else.

        The members of `stored` are those of `members`, in the same order. Each member's session runs since its last heartbeat.
        """
        group_id, coordinator = self.group_id, self.coordinator
        coordinator.log[group_id] = stored
        coordinator.load(coordinator.partition(group_id), min(beats.last_ms for beats in members))
        for entry, beats in sorted(zip(stored.members, members, strict=True), key=lambda pair: pair[1].last_ms):
            coordinator.handle(group_id, Heartbeat(entry.member_id, stored.generation, entry.instance_id), beats.last_ms)
            client = self.clients[beats.client]
            client.resume(entry.member_id, stored.generation, entry.assignment, beats.last_ms, max(beats.next_ms - DELAY_MS, self.now_ms))
            self._send(beats.client, [])

    def move_coordinator(self, at_ms: int, away_ms: int) -> None:
        """The group's partition moves away at `at_ms` and is back `away_ms` later."""
        partition = self.coordinator.partition(self.group_id)
        self._at(at_ms, lambda: self.take_outcome(self.coordinator.unload(partition, self.now_ms)))
        self._at(at_ms + away_ms, lambda: self.take_outcome(self.coordinator.load(partition, self.now_ms)))

    def run_until(self, end_ms: int) -> None:
        """Run everything that is due at or before `end_ms`."""
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            self.take_outcome(self.coordinator.advance(self.now_ms))
            action()
        self.now_ms = end_ms
        self.take_outcome(self.coordinator.advance(end_ms))

    def stable(self) -> bool:
        """Whether every application that runs has an assignment of the group's present generation."""
        group = self.coordinator.groups.get(self.group_id)
        running = [client for number, client in enumerate(self.clients) if self.runs(number)]
        return all(
            client.state is MemberState.STABLE
            and group is not None
            and client.member_id in group.members
            and client.generation == group.generation
            for client in running
        )

    # Events.

    def _at(self, at_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (at_ms, self._order, action))

    def runs(self, number: int) -> bool:
        """Whether an application has started, and is neither killed nor closed."""
        application = self.applications[number]
        dead = application.dies_ms is not None and self.now_ms >= application.dies_ms
        return self.now_ms >= application.starts_ms and not dead and not self.clients[number].closed

    def _stalled(self, number: int) -> bool:
        return any(start <= self.now_ms < end for start, end in self.applications[number].stalls)

    def _poll(self, number: int) -> None:
        if self.runs(number):
            if not self._stalled(number):
                self._send(number, self.clients[number].poll(self.now_ms))
            self._at(self.now_ms + self.applications[number].poll_every_ms, partial(self._poll, number))

    def _close(self, number: int) -> None:
        if self.runs(number):
            self._send(number, self.clients[number].close(self.now_ms))

    def _tick(self, number: int) -> None:
        if self._ticks[number] != self.now_ms:
            return  # an earlier tick has taken its place
        self._ticks[number] = -1
        if self.runs(number):
            self._send(number, self.clients[number].tick(self.now_ms))

    def _send(self, number: int, requests: list[Request]) -> None:
        for request in requests:
            connection = (number, self.clients[number].connection)
            self._at(self.now_ms + DELAY_MS, partial(self._arrive, connection, request))
        # The heartbeat thread wakes when it has work.
        tick_ms = max(self.clients[number].next_tick_ms(), self.now_ms)
        if tick_ms < self.now_ms + 3_600_000 and (self._ticks[number] < 0 or tick_ms < self._ticks[number]):
            self._ticks[number] = tick_ms
            self._at(tick_ms, partial(self._tick, number))

    def _arrive(self, connection: Connection, request: Request) -> None:
        requests = self.unanswered.setdefault(connection, deque())
        requests.append(request)
        if len(requests) == 1:
            self.handle(connection)

    def handle(self, connection: Connection) -> None:
        """The coordinator handles the first request on a connection."""
        ticket = len(self.tickets)
        self.tickets.append(connection)
        self.take_outcome(self.coordinator.handle(self.group_id, self.unanswered[connection][0], self.now_ms, ticket))

    def take_outcome(self, outcome: CoordinatorOutcome) -> None:
        """Send the replies."""
        for reply in outcome.replies:
            connection = self.tickets[int(reply.ticket)]
            self._at(max(reply.at_ms + DELAY_MS, self.now_ms), partial(self._hear, connection, reply.answer))
            requests = self.unanswered[connection]
            requests.popleft()
            if requests:
                self._at(self.now_ms, partial(self.handle, connection))

    def _hear(self, connection: Connection, answer: Answer) -> None:
        number, of_client = connection
        if self.runs(number) and of_client == self.clients[number].connection:
            self._send(number, self.clients[number].take_answer(answer, self.now_ms))
