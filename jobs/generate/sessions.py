"""What a consumer fetches, and how far it is: one fetch session for each broker that leads partitions of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from jobs.generate.fetch_text import asked, begin, told
from jobs.generate.request_text import committed
from jobs.generate.topics import Topic


class Consumer(Protocol):
    """Who fetches: a `Member`."""

    client_id: str
    correlation_id: int
    partitions: Sequence[int]
    fetcher: Fetcher | None


class Session:
    """An incremental fetch session on a connection of its own. One request of it is in the air at most."""

    __slots__ = (
        "asked", "begin", "broker", "closing", "due_ms", "end", "epoch", "every_ms", "first", "flies", "forgotten", "held", "member",
        "moved", "next", "partitions", "plain", "position", "sent", "session_id", "stays", "told", "topic",
    )  # fmt: skip

    def __init__(self, member: Consumer, topic: Topic, broker: int, session_id: int, connection: str) -> None:
        self.member = member
        self.topic = topic
        self.broker = broker
        self.session_id = session_id
        self.begin = begin(member.client_id, session_id)
        self.end = f'}},"connection":"{connection}",'
        self.epoch = -1
        """Of the request in the air, or of the last one."""
        self.sent = 0
        """The correlation id of the request in the air."""
        self.every_ms = 0
        self.due_ms = -1
        """When something happens: the request in the air is answered, if there is one. -1: nothing does."""
        self.flies = False
        """A request is in the air."""
        self.partitions: tuple[int, ...] = ()
        self.held: tuple[int, ...] = ()
        """The partitions that the broker has for the session: it keeps those that were lost until a request forgets them."""
        self.forgotten: Sequence[int] = ()
        """By the request in the air."""
        self.asked: Sequence[str] = ()
        self.told: Sequence[str] = ()
        self.position = 0
        """Where the request in the air begins, in all partitions, if `first` is None."""
        self.moved = True
        """The request in the air tells the position: the one before had another."""
        self.first: dict[int, int] | None = None
        """Where the request in the air begins in each partition, if it is the first for these partitions."""
        self.next: dict[int, int] | None = None
        """What to fetch when the request in the air is answered."""
        self.stays = True
        """The consumer goes on to fetch."""
        self.closing = False
        self.plain = False
        """The request in the air is like the one before, and like the one after."""

    def take(self, offsets: dict[int, int]) -> None:
        """The next request fetches some partitions from these offsets on."""
        self.forgotten = [partition for partition in self.held if partition not in offsets]
        self.hold(tuple(offsets))
        self.first = offsets

    def hold(self, partitions: tuple[int, ...]) -> None:
        """The next request fetches some partitions."""
        self.partitions = self.held = partitions
        self.asked = asked(self.topic.topic_id, partitions)
        self.told = told(self.topic.topic_id, partitions)

    def offsets(self) -> Iterable[tuple[int, int]]:
        """How far the consumer is in each partition."""
        known = self.first if self.next is None else self.next
        return ((partition, self.position) for partition in self.partitions) if known is None else known.items()


class Fetcher:
    """All that a consumer fetches."""

    __slots__ = ("active", "committed", "fresh", "metadata", "sessions", "topic")

    def __init__(self, topic: Topic, metadata: str, committed: list[int]) -> None:
        self.topic = topic
        self.metadata = metadata
        """A request for its topic, and the answer."""
        self.committed = committed
        """By partition, the offsets that its group has committed."""
        self.sessions: list[Session] = []
        self.active = False
        self.fresh: dict[int, int] | None = None
        """An assignment that it got and does not fetch yet: where it begins."""

    def successor(self) -> Fetcher:
        """That of a new process in the same group."""
        return Fetcher(self.topic, self.metadata, self.committed)

    def assigned(self, partitions: Iterable[int]) -> dict[int, int]:
        """It got partitions, and has asked where to begin."""
        self.fresh = {partition: self.committed[partition] for partition in partitions}
        return self.fresh

    def offsets(self) -> list[tuple[int, int]]:
        """How far it is in each partition."""
        if self.fresh is not None:
            return sorted(self.fresh.items())
        return sorted(pair for session in self.sessions for pair in session.offsets())

    def commit(self) -> str:
        """Commit how far it is: the offsets of the request."""
        found = self.offsets()
        for partition, offset in found:
            self.committed[partition] = offset
        return _offsets_text(found)

    def refused(self) -> str:
        """The same of a commit that is refused."""
        return _offsets_text(self.offsets())


def _offsets_text(offsets: Iterable[tuple[int, int]]) -> str:
    return ",".join(committed((partition,), offset) for partition, offset in offsets)
