"""Groups of a generated cluster and their members, while nothing happens to them: texts that stay the same from line to line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from coordinator_model.clients.client import ClientConfig
from coordinator_model.errors import Error
from coordinator_model.specification.member import StoredGroup, StoredMember
from coordinator_model.specification.requests import OffsetCommit
from jobs.generate.consumer_protocol import assignment, shares, subscription
from jobs.generate.request_text import commit_bodies, quoted
from jobs.generate.sessions import Fetcher

PROTOCOL: Final = "range"
COMMIT_EVERY_MS: Final = 5_000
"""`auto.commit.interval.ms`."""


class Member:
    """A consumer, its connection to its coordinator, and what its lines have in common."""

    __slots__ = (
        "beat", "broker", "client_id", "commit", "commit_due_ms", "connection", "correlation_id", "due_ms", "fetcher", "host",
        "instance_id", "last_ms", "member_id", "offset", "partitions",
    )  # fmt: skip

    def __init__(self, client_id: str, instance_id: str | None, host: str) -> None:
        self.client_id = client_id
        self.instance_id = instance_id
        self.host = host
        self.connection = ""
        self.member_id = ""
        self.correlation_id = 0
        self.broker = 0
        """The number of the broker that it is connected to, from 0."""
        self.beat = ""
        """Its heartbeats from the client id to the connection."""
        self.due_ms = -1
        """When its coordinator hears from it next; -1: it is not steady."""
        self.last_ms = 0
        self.commit: tuple[str, str] | None = None
        self.commit_due_ms = -1
        self.offset = 0
        """Of its commits, if it does not fetch."""
        self.fetcher: Fetcher | None = None
        self.partitions: Sequence[int] = ()

    def settle(self, group: Group) -> None:
        """Make the texts of its lines for the present generation."""
        name, instance = self.client_id, quoted(self.instance_id)
        end = f',"connection":"{self.connection}",'
        self.beat = (
            f',"clientId":"{name}","requestApiKeyName":"HEARTBEAT"}},"request":{{"groupId":"{group.name}","generationId":{group.generation},'
            f'"memberId":"{self.member_id}","groupInstanceId":{instance}}},"response":{{"throttleTimeMs":0,"errorCode":0}}{end}'
        )
        if group.commits and self.partitions:
            request = OffsetCommit(self.member_id, group.generation, self.instance_id, 9)
            before, after = commit_bodies(group.name, request, group.topic, self.partitions, Error.NONE)
            self.commit = f',"clientId":"{name}","requestApiKeyName":"OFFSET_COMMIT"}},{before}', after + end


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

    def stored(self) -> StoredGroup:
        """The group as its coordinator has it in the log."""
        metadata = subscription(self.topic)
        given = {name: assignment(self.topic, share) for name, share in shares((m.member_id for m in self.members), self.partitions)}
        members = tuple(
            StoredMember(
                m.member_id,
                m.instance_id,
                m.client_id,
                f"/{m.host}",
                self.session_timeout_ms,
                self.max_poll_interval_ms,
                metadata,
                given[m.member_id],
            )
            for m in self.members
        )
        return StoredGroup(self.generation, "consumer", PROTOCOL, self.leader, members, 0)

    def settle(self) -> None:
        """Make the texts of all members' lines."""
        if self.commits:
            given = dict(shares((m.member_id for m in self.members), self.partitions))
            for member in self.members:
                member.partitions = given[member.member_id]
        for member in self.members:
            member.settle(self)


@cache
def _settings(release: str, topic: str, session_timeout_ms: int, max_poll_interval_ms: int) -> ClientConfig:
    default = ClientConfig.of(release, "", ((PROTOCOL, subscription(topic)),))
    return replace(default, session_timeout_ms=session_timeout_ms, max_poll_interval_ms=max_poll_interval_ms)
