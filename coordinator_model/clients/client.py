"""A consumer: the Java client's part of the group protocol.

A client is a state machine without I/O. The application calls `poll`, the heartbeat thread is `tick`, and `take_answer` takes an
answer. Each returns the requests that the client sends now. `next_tick_ms` is the time at which the thread next has work.

client_version.py has the differences between releases. Kafka: AbstractCoordinator and its HeartbeatThread, Heartbeat,
ConsumerCoordinator.

Not modelled: the network, except that the client closes a connection without answers; the discovery of the coordinator (it takes
one back-off, which does not grow as it does since 3.7); offsets; the algorithm of an assignor. The Java thread checks every 100 ms
(`retry.backoff.ms`) whether something is due. Here it acts at that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeVar

from coordinator_model.clients.client_version import ClientVersion
from coordinator_model.errors import Error
from coordinator_model.specification.requests import (
    UNKNOWN_GENERATION,
    UNKNOWN_MEMBER_ID,
    Answer,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinedMember,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    Protocols,
    Request,
    SyncAnswer,
    SyncGroup,
)
from coordinator_model.specification.timers import NEVER

Assignor = Callable[[tuple[JoinedMember, ...]], tuple[tuple[str, bytes], ...]]


class MemberState(str, Enum):
    """`AbstractCoordinator.MemberState`. Up to 2.5 the client calls the two in the middle REBALANCING."""

    UNJOINED = "UNJOINED"
    """Not part of a group, or about to rejoin."""
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    """JoinGroup sent."""
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    """JoinGroup answered, SyncGroup sent."""
    STABLE = "STABLE"
    """Has an assignment."""


@dataclass(frozen=True)
class ClientConfig:
    """A consumer's settings, under Kafka's names."""

    version: ClientVersion
    client_id: str
    protocols: Protocols
    session_timeout_ms: int
    request_timeout_ms: int
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    group_instance_id: str | None = None

    @classmethod
    def of(cls, name: str, client_id: str, protocols: Protocols = (("range", b""),)) -> ClientConfig:
        """The defaults of the release called `name`."""
        version = ClientVersion.of(name)
        return cls(version, client_id, protocols, version.session_timeout_ms, version.request_timeout_ms)


_LOOK_UP: Final = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
_RETRY: Final = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS)

_InFlight = TypeVar("_InFlight", Heartbeat, SyncGroup)


class Client:
    """One consumer. `failed` is the error that ended it, which its next poll() throws."""

    def __init__(self, config: ClientConfig, assignor: Assignor) -> None:
        self.config = config
        self.version = config.version
        self.assignor = assignor
        self.state = MemberState.UNJOINED
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation = UNKNOWN_GENERATION
        self.assignment: bytes | None = None
        self.rejoin_needed = True
        self.failed: Error | None = None
        self.closed = False
        self.lives = 0
        """How many JoinGroups the client has sent. The id that the coordinator may give it contains this number."""
        self.connection = 0
        """Counts the connections to coordinators. Answers on an earlier connection are lost."""
        self._coordinator_known_ms = 0
        self._in_flight: list[tuple[int, Heartbeat | SyncGroup]] = []
        """Requests without an answer, and when they were sent. JoinGroup is left out, because its timeout is longer than a rebalance."""
        self._next_heartbeat_ms = 0
        self._last_heard_ms = 0
        self._last_poll_ms = 0

    # The application.

    def poll(self, now_ms: int) -> list[Request]:
        """`KafkaConsumer.poll`: the part of the protocol that the application's thread runs."""
        self._last_poll_ms = max(self._last_poll_ms, now_ms)
        if self.failed is not None or self.closed:
            return []
        if self.rejoin_needed and self.state in (MemberState.UNJOINED, MemberState.STABLE):
            return [] if now_ms < self._coordinator_known_ms else [self._join()]
        return [] if self.version.heartbeat_thread else self._do_what_is_due(now_ms)

    def close(self, now_ms: int = NEVER) -> list[Request]:
        """`KafkaConsumer.close`: a dynamic member leaves the group if the coordinator is known; the session of a static one ends.

        Without `now_ms`, the coordinator counts as known. (An auto commit would find it first.)
        """
        leave = self._leave(now_ms)
        self._in_flight.clear()
        self.closed = True
        return leave

    def resume(self, member_id: str, generation: int, assignment: bytes, heard_ms: int, next_heartbeat_ms: int) -> None:
        """Be a member that joined a while ago: the coordinator answered last at `heard_ms`."""
        self.state = MemberState.STABLE
        self.member_id, self.generation, self.assignment = member_id, generation, assignment
        self.rejoin_needed = False
        self._last_heard_ms = self._last_poll_ms = heard_ms
        self._next_heartbeat_ms = next_heartbeat_ms

    def subscribe(self, protocols: Protocols) -> None:
        """Subscribe to other topics, or own other partitions. The next poll() rejoins with them."""
        self.config = replace(self.config, protocols=protocols)
        self.rejoin_needed = True

    # The heartbeat thread.

    def heartbeats_run(self) -> bool:
        """Whether the thread is enabled (`HeartbeatThread.enabled`, `AbstractCoordinator.hasNotJoinedGroup`)."""
        if self.failed is not None or self.closed:
            return False
        if self.state is MemberState.COMPLETING_REBALANCE:
            return self.version.heartbeat_while_completing
        return self.state is MemberState.STABLE

    def next_tick_ms(self) -> int:
        """The time at which `tick` next has something to do."""
        if not self.version.heartbeat_thread:
            return NEVER
        due_ms = NEVER
        if self.heartbeats_run():
            due_ms = max(min(self._session_ends_ms(), self._poll_ends_ms(), self._next_heartbeat_ms), self._coordinator_known_ms)
        return min(due_ms, self._patience_ends_ms())

    def tick(self, now_ms: int) -> list[Request]:
        """One round of `HeartbeatThread.run`."""
        return self._do_what_is_due(now_ms) if self.version.heartbeat_thread else []

    def _do_what_is_due(self, now_ms: int) -> list[Request]:
        """Do the first of these that is due. The thread does not wait for answers; before 0.10.1 poll() did."""
        if now_ms >= self._patience_ends_ms():
            self._disconnect()
            self._look_up(now_ms)
        waits = bool(self._in_flight) and not self.version.heartbeat_thread
        if waits or not self.heartbeats_run() or now_ms < self._coordinator_known_ms:
            return []
        if now_ms >= self._session_ends_ms():
            # The id is kept, because the coordinator may only have moved.
            self._look_up(now_ms)
            return []
        if now_ms >= self._poll_ends_ms():
            # The application is stuck: leave, so that other members get the partitions. The next poll() rejoins.
            return self._leave(now_ms)
        if now_ms < self._next_heartbeat_ms:
            return []
        self._next_heartbeat_ms = now_ms + self.config.heartbeat_interval_ms
        heartbeat = Heartbeat(self.member_id, self.generation, self.config.group_instance_id)
        self._in_flight.append((now_ms, heartbeat))
        return [heartbeat]

    def _session_ends_ms(self) -> int:
        return self._last_heard_ms + self.config.session_timeout_ms + self.version.grace_ms

    def _poll_ends_ms(self) -> int:
        if not self.version.heartbeat_thread:
            return NEVER
        return self._last_poll_ms + self.config.max_poll_interval_ms + self.version.grace_ms

    def _patience_ends_ms(self) -> int:
        """`NetworkClient.handleTimedOutRequests`: the time at which the client closes the connection."""
        return self._in_flight[0][0] + self.config.request_timeout_ms + 1 if self._in_flight else NEVER

    # Answers.

    def take_answer(self, answer: Answer, now_ms: int) -> list[Request]:
        """Take an answer that arrived."""
        if self.failed is not None or self.closed:
            return []
        if isinstance(answer, JoinAnswer):
            return self._join_answered(answer, now_ms)
        if isinstance(answer, SyncAnswer):
            return self._sync_answered(answer, now_ms)
        if isinstance(answer, HeartbeatAnswer):
            self._heartbeat_answered(answer.error, now_ms)
        return []

    def _join_answered(self, answer: JoinAnswer, now_ms: int) -> list[Request]:
        if self.state is not MemberState.PREPARING_REBALANCE:
            return []  # the client has left meanwhile
        error = answer.error
        if error is Error.NONE:
            self.state = MemberState.COMPLETING_REBALANCE
            self.member_id, self.generation = answer.member_id, answer.generation
            self.rejoin_needed = False
            if self.version.heartbeat_while_completing:
                self._start_heartbeats(now_ms)
            sync = self._sync(answer)
            self._in_flight.append((now_ms, sync))
            return [sync]
        self.state = MemberState.UNJOINED
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return [self._join()]
        if error is Error.UNKNOWN_MEMBER_ID:
            self._drop_generation(drop_member_id=True)
            return [self._join()]
        self._retry_or_fail(error, now_ms)
        return []

    def _sync_answered(self, answer: SyncAnswer, now_ms: int) -> list[Request]:
        self._settle(SyncGroup)
        if self.state is not MemberState.COMPLETING_REBALANCE:
            return []
        error = answer.error
        if error is Error.NONE:
            self.state = MemberState.STABLE
            self.assignment = answer.assignment
            if not self.version.heartbeat_while_completing:
                self._start_heartbeats(now_ms)
            return []
        self.state = MemberState.UNJOINED
        self.rejoin_needed = True
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            drop = self.version.illegal_generation_drops_member_id or not self.version.heartbeat_thread
            self._drop_generation(drop_member_id=error is Error.UNKNOWN_MEMBER_ID or drop)
            return []
        self._retry_or_fail(error, now_ms)
        return []

    def _heartbeat_answered(self, error: Error, now_ms: int) -> None:
        heartbeat = self._settle(Heartbeat)
        if heartbeat is None:
            return
        of_member = error in (Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)
        old = (heartbeat.member_id, heartbeat.generation) != (self.member_id, self.generation)
        ignored = of_member and old and self.version.ignores_old_generations
        if error is Error.NONE or ignored or (error is Error.REBALANCE_IN_PROGRESS and self.version.heartbeat_thread):
            self._last_heard_ms = now_ms
        if error in _LOOK_UP:
            self._look_up(now_ms)
        elif error is Error.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.rejoin_needed = True
        elif error is Error.FENCED_INSTANCE_ID and not ignored:
            self._fail(error)
        elif of_member and not ignored:
            drop = self.version.illegal_generation_drops_member_id
            self._drop_generation(drop_member_id=error is Error.UNKNOWN_MEMBER_ID or drop)

    def _settle(self, kind: type[_InFlight]) -> _InFlight | None:
        """Take out the oldest request of a kind that is in flight: answers come in the order of the requests."""
        for entry in self._in_flight:
            if isinstance(entry[1], kind):
                self._in_flight.remove(entry)
                return entry[1]
        return None

    # What the application, the thread and the answers share.

    def _join(self) -> JoinGroup:
        self.state = MemberState.PREPARING_REBALANCE
        self.rejoin_needed = True
        config = self.config
        self.lives += 1
        prefix = config.group_instance_id or config.client_id
        return JoinGroup(
            self.member_id,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            "consumer",
            config.protocols,
            config.group_instance_id,
            self.version.join_version,
            config.client_id,
            fresh_member_id=f"{prefix}-{self.lives}",
        )

    def _sync(self, answer: JoinAnswer) -> SyncGroup:
        leads = answer.leader == answer.member_id and not answer.skip_assignment
        assignments = self.assignor(answer.members) if leads else ()
        return SyncGroup(
            self.member_id,
            self.generation,
            assignments,
            self.config.group_instance_id,
            answer.protocol_type,
            answer.protocol if answer.protocol_type is not None else None,
        )

    def _leave(self, now_ms: int) -> list[Request]:
        """`maybeLeaveGroup`: drop the id, and send LeaveGroup if the member is a dynamic one that has joined."""
        may_leave = self.config.group_instance_id is None and self.state is not MemberState.UNJOINED
        leave: list[Request] = []
        if may_leave and self.member_id != UNKNOWN_MEMBER_ID and now_ms >= self._coordinator_known_ms:
            leave = [LeaveGroup((LeavingMember(self.member_id),))]
        self._drop_generation(drop_member_id=True)
        return leave

    def _start_heartbeats(self, now_ms: int) -> None:
        """`HeartbeatThread.enable`, `Heartbeat.resetTimeouts`: the first heartbeat is one interval away."""
        self._last_heard_ms = now_ms
        self._last_poll_ms = max(self._last_poll_ms, now_ms)
        self._next_heartbeat_ms = now_ms + self.config.heartbeat_interval_ms

    def _drop_generation(self, *, drop_member_id: bool) -> None:
        """`resetStateAndGeneration`, `resetGeneration`."""
        self.state = MemberState.UNJOINED
        self.generation = UNKNOWN_GENERATION
        self.assignment = None
        self.rejoin_needed = True
        if drop_member_id:
            self.member_id = UNKNOWN_MEMBER_ID

    def _look_up(self, now_ms: int) -> None:
        """`markCoordinatorUnknown`: look up the coordinator. Member id and generation are kept."""
        if self.version.look_up_disconnects:
            self._disconnect()
        found_ms = now_ms + self.config.retry_backoff_ms
        self._coordinator_known_ms = found_ms
        if self.version.found_restarts_heartbeats:
            self._start_heartbeats(found_ms)
        else:
            self._last_heard_ms = found_ms
            self._next_heartbeat_ms = found_ms  # the failed one again

    def _disconnect(self) -> None:
        """Close the connection. Requests that were sent on it get no answer."""
        self.connection += 1
        self._in_flight.clear()
        if self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE):
            self.state = MemberState.UNJOINED
            self.rejoin_needed = True

    def _retry_or_fail(self, error: Error, now_ms: int) -> None:
        if error in _LOOK_UP:
            self._look_up(now_ms)
        elif error in _RETRY:
            self._coordinator_known_ms = now_ms + self.config.retry_backoff_ms
        else:
            self._fail(error)

    def _fail(self, error: Error) -> None:
        """A fatal error: poll() throws it, and the application has to react."""
        self._drop_generation(drop_member_id=True)
        self._in_flight.clear()
        self.failed = error
