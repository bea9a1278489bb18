"""The other side: one member of a group, as the Java consumer plays it.

A client is a machine without I/O. The application calls `poll` (now and then, or it stalls); the heartbeat thread is
`tick`; answers come in by `answered`. Each returns the requests that the client sends now. `next_tick_ms` says when
the thread has something to do.

What differs between releases is in `client_version`. Kafka: AbstractCoordinator and its HeartbeatThread, Heartbeat,
ConsumerCoordinator.

Not modelled: the network, except that a connection on which nothing is answered is given up; discovery of the coordinator
(it is found after one back-off, which does not grow: since 3.7 it does); offsets; what an assignor computes. The thread
looks every 100 ms (`retry.backoff.ms`) whether something is due; here it acts in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

_Asked = TypeVar("_Asked", Heartbeat, SyncGroup)


class Client:
    """One consumer. `failed` is the error that ended it: its next poll() throws."""

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
        """How many ids the coordinator may have made for this client: see `_join`."""
        self.connection = 0
        """Counts the connections to coordinators: answers to an earlier one's requests are not heard."""
        self._coordinator_known_ms = 0
        self._in_flight: list[tuple[int, Heartbeat | SyncGroup]] = []
        """What is not answered yet, and when it was sent. Not JoinGroup: its own limit is longer than a rebalance."""
        self._next_heartbeat_ms = 0
        self._last_heard_ms = 0
        self._last_poll_ms = 0

    # The application.

    def poll(self, now_ms: int) -> list[Request]:
        """`KafkaConsumer.poll`: whatever the group needs of the application happens in here."""
        self._last_poll_ms = max(self._last_poll_ms, now_ms)
        if self.failed is not None or self.closed:
            return []
        if self.rejoin_needed and self.state in (MemberState.UNJOINED, MemberState.STABLE):
            return [] if now_ms < self._coordinator_known_ms else [self._join()]
        return [] if self.version.heartbeat_thread else self._do_what_is_due(now_ms)

    def close(self, now_ms: int = NEVER) -> list[Request]:
        """`KafkaConsumer.close`: a dynamic member says so if it knows whom to tell, a static one leaves it to its session.

        Without `now_ms`: at a time when the coordinator is known. (An auto commit would find it first.)
        """
        leave = self._leave(now_ms)
        self._in_flight.clear()
        self.closed = True
        return leave

    def subscribe(self, protocols: Protocols) -> None:
        """Other topics, or other partitions owned: the next poll() rejoins with them."""
        self.config = self.config.__class__(**{**self.config.__dict__, "protocols": protocols})
        self.rejoin_needed = True

    # The heartbeat thread.

    def heartbeats_run(self) -> bool:
        """Whether the thread is at work (`HeartbeatThread.enabled`, `AbstractCoordinator.hasNotJoinedGroup`)."""
        if self.failed is not None or self.closed:
            return False
        if self.state is MemberState.COMPLETING_REBALANCE:
            return self.version.heartbeat_while_completing
        return self.state is MemberState.STABLE

    def next_tick_ms(self) -> int:
        """When `tick` has something to do next."""
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
        """The thread does the first of these that is due. It does not wait for answers; the task before it did."""
        if now_ms >= self._patience_ends_ms():
            self._disconnect()
            self._look_up(now_ms)
        waits = bool(self._in_flight) and not self.version.heartbeat_thread
        if waits or not self.heartbeats_run() or now_ms < self._coordinator_known_ms:
            return []
        if now_ms >= self._session_ends_ms():
            # Not a reason to drop the id: the coordinator may only have moved.
            self._look_up(now_ms)
            return []
        if now_ms >= self._poll_ends_ms():
            # The application is stuck: give the partitions to somebody else. It rejoins with its next poll().
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
        """`NetworkClient.handleTimedOutRequests`: when the connection is given up."""
        return self._in_flight[0][0] + self.config.request_timeout_ms + 1 if self._in_flight else NEVER

    # Answers.

    def answered(self, answer: Answer, now_ms: int) -> list[Request]:
        """An answer arrived."""
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
        asked = self._settle(Heartbeat)
        if asked is None:
            return
        of_member = error in (Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)
        old = (asked.member_id, asked.generation) != (self.member_id, self.generation)
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

    def _settle(self, kind: type[_Asked]) -> _Asked | None:
        """Take out the oldest request of a kind that is in flight: answers come in the order of the requests."""
        for entry in self._in_flight:
            if isinstance(entry[1], kind):
                self._in_flight.remove(entry)
                return entry[1]
        return None

    # What they have in common.

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
        """`maybeLeaveGroup`: the id is given up, with or without a word."""
        speaks = self.config.group_instance_id is None and self.state is not MemberState.UNJOINED
        leave: list[Request] = []
        if speaks and self.member_id != UNKNOWN_MEMBER_ID and now_ms >= self._coordinator_known_ms:
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
        """`markCoordinatorUnknown`: ask who the coordinator is. Member id and generation are kept."""
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
        """Nothing that was sent on this connection will be answered."""
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
        """Fatal: poll() throws, and the application has to do something about it."""
        self._drop_generation(drop_member_id=True)
        self._in_flight.clear()
        self.failed = error
