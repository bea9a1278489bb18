"""The other side: one member of a group, as the Java consumer plays it.

A client is a machine without I/O. The application calls `poll` (now and then, or it stalls); the heartbeat thread is
`tick`; answers come in by `answered`. Each returns the requests that the client sends now. `next_tick_ms` says when
the thread has something to do.

What differs between releases is read from the sources of the clients, row by row as K01 to K21 of the claims that this
project tests (tests/model/test_client.py). Kafka: AbstractCoordinator and its HeartbeatThread, ConsumerCoordinator.

Not modelled: the network, discovery of the coordinator (it is found after one back-off), offsets, what an assignor
computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from coordinator_model.config import release_numbers
from coordinator_model.errors import Error
from coordinator_model.requests import (
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
from coordinator_model.timers import NEVER

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
class ClientVersion:
    """How one release of the Java client behaves."""

    name: str
    heartbeat_thread: bool
    """Heartbeats come from a thread (KIP-62, 0.10.1); before, from poll() alone."""
    heartbeat_while_completing: bool
    """The thread runs from the answer of JoinGroup on (2.6), before: of SyncGroup."""
    ignores_old_generations: bool
    """An error answer to a heartbeat of an older generation says nothing (2.6)."""
    illegal_generation_drops_member_id: bool
    """ILLEGAL_GENERATION costs the member id too (0.10.1 to 3.1)."""
    join_version: int
    """The newest JoinGroup that it speaks."""
    session_timeout_ms: int
    """The default of session.timeout.ms."""

    @classmethod
    def of(cls, name: str) -> ClientVersion:
        """The client of the release called `name`."""
        v = release_numbers(name)
        joins = (
            ((0, 10, 1), 1),
            ((0, 11), 2),
            ((2, 0), 3),
            ((2, 2), 4),
            ((2, 3), 5),
            ((2, 4), 6),
            ((2, 5), 7),
            ((3, 2), 9),
        )
        sessions = (((0, 10, 1), 10_000), ((3, 0), 45_000))
        return cls(
            name=name,
            heartbeat_thread=v >= (0, 10, 1),
            heartbeat_while_completing=v >= (2, 6),
            ignores_old_generations=v >= (2, 6),
            illegal_generation_drops_member_id=(0, 10, 1) <= v < (3, 2),
            join_version=max((version for since, version in joins if v >= since), default=0),
            session_timeout_ms=[30_000, *(ms for since, ms in sessions if v >= since)][-1],
        )


@dataclass(frozen=True)
class ClientConfig:
    """A consumer's settings, under Kafka's names."""

    version: ClientVersion
    client_id: str
    protocols: Protocols
    session_timeout_ms: int
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    group_instance_id: str | None = None

    @classmethod
    def of(cls, name: str, client_id: str, protocols: Protocols = (("range", b""),)) -> ClientConfig:
        """The defaults of the release called `name`."""
        version = ClientVersion.of(name)
        return cls(version, client_id, protocols, version.session_timeout_ms)


_LOOK_UP: Final = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
_RETRY: Final = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS)


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
        self._coordinator_known_ms = 0
        self._sent_away_until_ms = 0
        """Until when the coordinator is unknown because a broker said that it is none. One that is only silent is told when
        the client leaves: what becomes of that is the network's business."""
        self._in_flight: Heartbeat | None = None
        self._next_heartbeat_ms = 0
        self._last_heard_ms = 0
        self._last_poll_ms = 0
        self._polled = False

    # The application.

    def poll(self, now_ms: int) -> list[Request]:
        """`KafkaConsumer.poll`: whatever the group needs of the application happens in here."""
        self._last_poll_ms = now_ms
        self._polled = True
        if self.failed is not None or self.closed:
            return []
        if self.rejoin_needed and self.state in (MemberState.UNJOINED, MemberState.STABLE):
            return [] if now_ms < self._coordinator_known_ms else [self._join(now_ms)]
        return [] if self.version.heartbeat_thread else self._heartbeat_if_due(now_ms)

    def close(self, now_ms: int = NEVER) -> list[Request]:
        """`KafkaConsumer.close`: a dynamic member says so, a static one leaves it to its session.

        Without `now_ms`: at a time when the coordinator is known.
        """
        leave = self._leave(now_ms)
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
        if not self.version.heartbeat_thread or not self.heartbeats_run():
            return NEVER
        poll_ends = max(self._last_poll_ms + self.config.max_poll_interval_ms + 1, self._sent_away_until_ms)
        session_ends = self._last_heard_ms + self.config.session_timeout_ms
        return min(poll_ends, session_ends if self._in_flight is not None else self._next_heartbeat_ms)

    def tick(self, now_ms: int) -> list[Request]:
        """One round of `HeartbeatThread.run`."""
        if not self.version.heartbeat_thread or not self.heartbeats_run():
            return []
        if now_ms < self._sent_away_until_ms:
            return []  # nobody to tell anything
        if now_ms - self._last_poll_ms > self.config.max_poll_interval_ms:
            # The application is stuck: give the partitions to somebody else. It rejoins with its next poll().
            return self._leave(now_ms)
        return self._heartbeat_if_due(now_ms)

    def _heartbeat_if_due(self, now_ms: int) -> list[Request]:
        if not self.heartbeats_run() or now_ms < self._coordinator_known_ms:
            return []
        if now_ms - self._last_heard_ms >= self.config.session_timeout_ms:
            # Not a reason to drop the id: the coordinator may only have moved.
            self._look_up(now_ms)
            self._last_heard_ms = now_ms
            return []
        if self._in_flight is not None or now_ms < self._next_heartbeat_ms:
            return []
        self._next_heartbeat_ms = now_ms + self.config.heartbeat_interval_ms
        self._in_flight = Heartbeat(self.member_id, self.generation, self.config.group_instance_id)
        return [self._in_flight]

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
            self._start_heartbeats(now_ms)
            return [self._sync(answer)]
        self.state = MemberState.UNJOINED
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return [self._join(now_ms)]
        if error is Error.UNKNOWN_MEMBER_ID:
            self._drop_generation(drop_member_id=True)
            return [self._join(now_ms)]
        self._retry_or_fail(error, now_ms)
        return []

    def _sync_answered(self, answer: SyncAnswer, now_ms: int) -> list[Request]:
        if self.state is not MemberState.COMPLETING_REBALANCE:
            return []
        error = answer.error
        if error is Error.NONE:
            self.state = MemberState.STABLE
            self.assignment = answer.assignment
            heartbeat = self._in_flight
            self._start_heartbeats(now_ms)
            if self.version.heartbeat_while_completing:
                self._in_flight = heartbeat  # of this generation: its answer counts
            return []
        self.state = MemberState.UNJOINED
        self.rejoin_needed = True
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._drop_generation(drop_member_id=error is Error.UNKNOWN_MEMBER_ID or self._illegal_drops_id())
            return []
        self._retry_or_fail(error, now_ms)
        return []

    def _heartbeat_answered(self, error: Error, now_ms: int) -> None:
        asked, self._in_flight = self._in_flight, None
        if error is Error.NONE or (error is Error.REBALANCE_IN_PROGRESS and self.version.heartbeat_thread):
            self._last_heard_ms = now_ms
        if error in _LOOK_UP:
            self._look_up(now_ms)
            self._sent_away_until_ms = self._coordinator_known_ms
        elif error is Error.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.rejoin_needed = True
        elif error in (Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            old = asked is None or (asked.member_id, asked.generation) != (self.member_id, self.generation)
            if old and self.version.ignores_old_generations:
                return
            if error is Error.FENCED_INSTANCE_ID:
                self._fail(error)
            else:
                self._drop_generation(drop_member_id=error is Error.UNKNOWN_MEMBER_ID or self._illegal_drops_id())

    # What they have in common.

    def _join(self, now_ms: int) -> JoinGroup:
        self.state = MemberState.PREPARING_REBALANCE
        self.rejoin_needed = True
        config = self.config
        self.lives += 1
        prefix = config.group_instance_id or config.client_id
        self._last_heard_ms = now_ms
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
        if speaks and self.member_id != UNKNOWN_MEMBER_ID and now_ms >= self._sent_away_until_ms:
            leave = [LeaveGroup((LeavingMember(self.member_id),))]
        self._drop_generation(drop_member_id=True)
        return leave

    def _start_heartbeats(self, now_ms: int) -> None:
        self._in_flight = None
        self._last_heard_ms = now_ms
        self._next_heartbeat_ms = now_ms

    def _drop_generation(self, *, drop_member_id: bool) -> None:
        """`resetStateAndGeneration`, `resetGeneration`."""
        self.state = MemberState.UNJOINED
        self.generation = UNKNOWN_GENERATION
        self.assignment = None
        self.rejoin_needed = True
        self._in_flight = None
        if drop_member_id:
            self.member_id = UNKNOWN_MEMBER_ID

    def _illegal_drops_id(self) -> bool:
        return self.version.illegal_generation_drops_member_id

    def _look_up(self, now_ms: int) -> None:
        """`markCoordinatorUnknown`: ask who the coordinator is. Member id and generation are kept."""
        self._coordinator_known_ms = now_ms + self.config.retry_backoff_ms
        self._next_heartbeat_ms = max(self._next_heartbeat_ms, self._coordinator_known_ms)
        self._in_flight = None

    def _retry_or_fail(self, error: Error, now_ms: int) -> None:
        if error in _LOOK_UP or error in _RETRY:
            self._coordinator_known_ms = now_ms + self.config.retry_backoff_ms
        else:
            self._fail(error)

    def _fail(self, error: Error) -> None:
        """Fatal: poll() throws, and the application has to do something about it."""
        self._drop_generation(drop_member_id=True)
        self.failed = error
