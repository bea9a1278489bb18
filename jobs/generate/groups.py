"""Groups of a generated cluster and their members, while nothing happens to them: texts that stay the same from line to line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from coordinator_model.clients.client import ClientConfig
from coordinator_model.errors import Error
from coordinator_model.specification.consumer.consumer_protocol import (
    NEWEST_VERSION,
    EmbeddedSubscription,
    read_assignment,
    write_assignment,
    write_subscription,
)
from coordinator_model.specification.member import Member as StoredMember
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, JoinedMember, OffsetCommit
from jobs.generate.request_text import BLANK, HEARTBEAT, OFFSET_COMMIT, bodies, commit_bodies, parts, pieces

PROTOCOL: Final = "range"
COMMIT_EVERY_MS: Final = 5_000
"""`auto.commit.interval.ms`."""
IDLE_EVERY_MS: Final = 20_000
_BUSY_MS: Final = 19_000
"""Of each such span; nothing is written in the rest, so that some fetches find nothing."""


class Topic(NamedTuple):
    """A topic. Its producers give each partition as many records."""

    topic_id: str
    metadata: dict[str, Any]
    """A request for it, and the answer."""
    rate: int
    """Records a second in each partition, while producers are busy."""
    base: int
    shift_ms: int

    def end(self, at_ms: int) -> int:
        """The high watermark of its partitions. It depends on nothing but the time, so all groups that read the topic agree."""
        spans, rest_ms = divmod(at_ms + self.shift_ms, IDLE_EVERY_MS)
        return self.base + (spans * _BUSY_MS + min(rest_ms, _BUSY_MS)) * self.rate // 1_000


@dataclass(slots=True, eq=False)
class Member:
    """A consumer, its connection to its coordinator, and what its lines have in common."""

    client_id: str
    instance_id: str | None
    host: str
    offset: int = 0
    """Of its commits, if it does not fetch."""
    connection: str = ""
    member_id: str = ""
    correlation_id: int = 0
    broker: int = 0
    """The number of the broker that it is connected to, from 0."""
    beat: str = ""
    """Its heartbeats between the correlation id and the times."""
    due_ms: int = -1
    """When its coordinator hears from it next; -1: it is not steady."""
    last_ms: int = 0
    commit: list[str] = field(default_factory=list)
    """Pieces of its commits; offsets come between them."""
    commit_due_ms: int = -1
    partitions: Sequence[int] = ()
    sessions: list[Session] = field(default_factory=list)
    """Its fetches."""
    committed: list[int] | None = None
    """By partition, what its group has committed, if it fetches."""

    def offsets(self) -> dict[int, int]:
        """How far it is in each partition."""
        if self.committed is None:
            return dict.fromkeys(self.partitions, self.offset)
        read = {
            partition: offset for session in self.sessions for partition, offset in zip(session.partitions, session.offsets, strict=True)
        }
        return {partition: read.get(partition, self.committed[partition]) for partition in self.partitions}

    def commits(self, *, is_accepted: bool = True) -> dict[int, int]:
        """It commits how far it is."""
        self.offset += 7
        offsets = self.offsets()
        if self.committed is not None and is_accepted:
            for partition, offset in offsets.items():
                self.committed[partition] = offset
        return offsets

    def settle(self, group: Group) -> None:
        """Make the texts of its lines for the present generation."""
        beat = Heartbeat(self.member_id, group.generation, self.instance_id)
        (self.beat,) = pieces(self.client_id, HEARTBEAT, bodies(group.name, beat, HeartbeatAnswer(Error.NONE), ""), self.connection)
        if group.commits and self.partitions:
            request = OffsetCommit(self.member_id, group.generation, self.instance_id, 9)
            blank = commit_bodies(group.name, request, group.topic, dict.fromkeys(self.partitions, BLANK), Error.NONE)
            self.commit = pieces(self.client_id, OFFSET_COMMIT, blank, self.connection)


@dataclass(slots=True, eq=False)
class Session:
    """A fetch session with the leader of some partitions."""

    member: Member
    topic: Topic
    broker: int
    number: int
    partitions: tuple[int, ...]
    offsets: list[int]
    """Where the next request begins in each partition."""
    every_ms: int
    pieces: list[str]
    """Of a line. Between them come the session, its epoch, what it asks for, and what it is told."""
    asked: list[str] = field(init=False)
    told: list[str] = field(init=False)
    moved: bool = True
    """The request before began elsewhere, or there was none."""
    epoch: int = 0
    due_ms: int = -1
    """When the next request is answered; -1: none follows."""

    def __post_init__(self) -> None:
        self.asked, self.told = _shared(self.topic.topic_id, self.partitions)


@lru_cache(4_096)
def _shared(topic_id: str, partitions: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """What a request asks for and is told, in pieces. Groups of one topic have the same shares."""
    asked = [
        {"partition": number, "currentLeaderEpoch": 0, "fetchOffset": BLANK, "lastFetchedEpoch": -1, "logStartOffset": -1}
        | {"partitionMaxBytes": 1 << 20}
        for number in partitions
    ]
    told = [{"partitionIndex": number, "errorCode": 0, "highWatermark": BLANK} for number in partitions]
    return parts([{"topicId": topic_id, "partitions": asked}]), parts([{"topicId": topic_id, "partitions": told}])


@dataclass(slots=True)
class Group:
    """A consumer group."""

    name: str
    partition: int
    broker: int
    """The number of its coordinator, from 0."""
    session_timeout_ms: int
    max_poll_interval_ms: int
    commits: bool
    members: list[Member] = field(default_factory=list)
    generation: int = 1
    leader: str = ""
    partitions: int = 1
    """Of its topic."""
    busy: bool = False
    """Something happens to it, or is about to."""

    @property
    def topic(self) -> str:
        """The topic that it consumes."""
        return self.name.rpartition("-")[0]

    def config(self, release: str, member: Member) -> ClientConfig:
        """The settings of a member."""
        shared = _settings(release, self.topic, self.session_timeout_ms, self.max_poll_interval_ms)
        return replace(shared, client_id=member.client_id, group_instance_id=member.instance_id)

    def shares(self) -> dict[str, range]:
        """The partitions of each member, by their ids."""
        return _shares((member.member_id for member in self.members), self.partitions)

    def stored(self) -> StoredGroup:
        """The group as its coordinator has it in the log."""
        metadata, given = _subscription(self.topic), self.shares()
        members = tuple(
            StoredMember(
                m.member_id,
                m.instance_id,
                m.client_id,
                f"/{m.host}",
                self.session_timeout_ms,
                self.max_poll_interval_ms,
                ((PROTOCOL, metadata),),
                _assignment(self.topic, given[m.member_id]),
            )
            for m in self.members
        )
        return StoredGroup(self.generation, "consumer", PROTOCOL, self.leader, members, 0)

    def settle(self) -> None:
        """Make the texts of all members' lines."""
        if self.commits:
            given = self.shares()
            for member in self.members:
                member.partitions = given[member.member_id]
        for member in self.members:
            member.settle(self)


@cache
def _settings(release: str, topic: str, session_timeout_ms: int, max_poll_interval_ms: int) -> ClientConfig:
    default = ClientConfig.of(release, "", ((PROTOCOL, _subscription(topic)),))
    return replace(default, session_timeout_ms=session_timeout_ms, max_poll_interval_ms=max_poll_interval_ms)


def _subscription(topic: str) -> bytes:
    """A subscription to one topic by a consumer that owns no partitions."""
    return write_subscription(EmbeddedSubscription((topic,)))


def _assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """An assignment of some partitions of one topic, as Java consumers since 3.5 write it."""
    return write_assignment(((topic, tuple(partitions)),) if partitions else (), NEWEST_VERSION)


def assigned(data: bytes) -> tuple[int, ...]:
    """The partitions in an assignment of one topic."""
    return next((numbers for _, numbers in read_assignment(data).partitions), ())


def _shares(member_ids: Iterable[str], partitions: int) -> dict[str, range]:
    """What RangeAssignor gives to each member, in the order of their ids."""
    ordered = sorted(member_ids)
    each, more = divmod(partitions, len(ordered))
    begins = [number * each + min(number, more) for number in range(len(ordered) + 1)]
    return {member_id: range(begin, end) for member_id, begin, end in zip(ordered, begins, begins[1:], strict=False)}


def range_assignor(topic: str, partitions: int, members: tuple[JoinedMember, ...]) -> tuple[tuple[str, bytes], ...]:
    """`RangeAssignor`, for one topic that all members subscribe to."""
    return tuple((name, _assignment(topic, given)) for name, given in _shares((m.member_id for m in members), partitions).items())
