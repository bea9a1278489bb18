"""Fetches of all consumers of a cluster, and what tells the names of their topics: Fetch and Metadata as Kafka 3.9 and 4.2 write them.

A consumer that has partitions has an incremental fetch session with each broker that leads some of them, on a connection of its own. It
begins where its group committed, and commits what it got. When it gives its partitions back, its sessions end.
"""

from __future__ import annotations

import base64
import random
from itertools import cycle
from typing import Any, Final

from jobs.generate.book import DRIFTS, MASK, POOL, PORT, RING, Book
from jobs.generate.groups import COMMIT_EVERY_MS, IDLE_EVERY_MS, Group, Member, Session, Topic
from jobs.generate.request_text import BLANK, fetch_api, filled, pieces

_FETCH_MS: Final = 300
"""`fetch.max.wait.ms`. With a large `fetch.min.bytes` each fetch takes so long, whether it finds records or not."""
_RECORD_BYTES: Final = 71
_LONGEST_MS: Final = 6_000  # between two fetches of a session, less than the ring
_REFRESH: Final = 1_000  # fetches between two looks at the metadata: `metadata.max.age.ms` is five minutes
_OTHER_POOL: Final = 8_171
_RATES: Final = (5, 10, 10, 20, 40)
_REPLICAS: Final = 3


def _news(end: int, offset: int) -> str:
    """What is told of a partition that was read from an offset to its end."""
    return (
        f'{end},"lastStableOffset":{end},"logStartOffset":0,"abortedTransactions":null,"preferredReadReplica":-1,'
        f'"recordsSizeInBytes":{(end - offset) * _RECORD_BYTES}'
    )


_BODIES: Final = {
    "request": {"maxWaitMs": _FETCH_MS, "minBytes": 65_536, "maxBytes": 52_428_800, "isolationLevel": 0, "sessionId": BLANK}
    | {"sessionEpoch": BLANK, "topics": BLANK, "forgottenTopicsData": [], "rackId": ""},
    "response": {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": BLANK},
}


class Fetching:
    """All fetch sessions, by the time at which their requests are answered."""

    def __init__(self, book: Book, chance: random.Random) -> None:
        self._book = book
        self._chance = chance
        self._brokers = len(book.requests)
        self._topics: dict[str, Topic] = {}
        self._cluster_id = self._new_id()
        self._api = fetch_api(book.release)
        self._waited = cycle([book.times.waited(_FETCH_MS) for _ in range(POOL)]).__next__
        self._drift = cycle([chance.choice(DRIFTS) for _ in range(_OTHER_POOL)]).__next__
        self._ring: list[list[Session]] = [[] for _ in range(RING)]

    def begin(self, group: Group) -> None:
        """The members of a group have fetched for a while when the log begins."""
        topic = self._topic(group)
        committed = [0] * group.partitions
        for member in group.members:
            member.committed = committed
            for partition in member.partitions:
                committed[partition] = topic.end(member.commit_due_ms - COMMIT_EVERY_MS - _LONGEST_MS)
            self.open(group, member, -_LONGEST_MS)
            for session in member.sessions:
                session.epoch = self._chance.randrange(1, _REFRESH)
                self._later(session, self._chance.randrange(session.every_ms))
                session.offsets = [topic.end(session.due_ms - session.every_ms)] * len(session.offsets)

    def _topic(self, group: Group) -> Topic:
        """The topic of a group; the first that asks decides how many partitions it has."""
        if group.topic not in self._topics:
            chance, topic_id = self._chance, self._new_id()
            metadata = self._metadata(group.topic, topic_id, group.partitions)
            rate, base = chance.choice(_RATES), chance.randrange(100_000, 1_000_000)
            self._topics[group.topic] = Topic(topic_id, metadata, rate, base, chance.randrange(IDLE_EVERY_MS))
        return self._topics[group.topic]

    def _new_id(self) -> str:
        """A random `Uuid`, which Kafka never lets begin with a dash."""
        while (found := base64.urlsafe_b64encode(self._chance.randbytes(16)).rstrip(b"=").decode("ascii")).startswith("-"):
            pass
        return found

    def _metadata(self, topic: str, topic_id: str, partitions: int) -> dict[str, Any]:
        """A request for a topic, which tells its id, and the answer."""
        nodes = range(1, self._brokers + 1)
        brokers = [{"nodeId": node, "host": self._book.host(node - 1), "port": PORT, "rack": None} for node in nodes]
        led = []
        for partition in range(partitions):
            leads = self._leader(partition)
            ids = [(leads + step) % self._brokers + 1 for step in range(min(_REPLICAS, self._brokers))]
            about = {"errorCode": 0, "partitionIndex": partition, "leaderId": ids[0], "leaderEpoch": 0}
            led.append(about | {"replicaNodes": ids, "isrNodes": ids, "offlineReplicas": []})
        told = {"errorCode": 0, "name": topic, "topicId": topic_id, "isInternal": False, "partitions": led}
        answer = {"throttleTimeMs": 0, "brokers": brokers, "clusterId": self._cluster_id, "controllerId": 1}
        answer["topics"] = [told | {"topicAuthorizedOperations": -(1 << 31)}]
        asked = {"topics": [{"topicId": "A" * 22, "name": topic}], "allowAutoTopicCreation": True}
        return {
            "request": asked | {"includeTopicAuthorizedOperations": False},
            "response": answer | ({"errorCode": 0} if self._book.metadata_api.version > 12 else {}),
        }

    def _leader(self, partition: int) -> int:
        """The number of the broker that leads a partition: two neighbours have one, so most members fetch from one broker."""
        return partition // 2 % self._brokers

    def metadata(self, group: Group) -> dict[str, Any]:
        """What a member asks about its topic when it starts, and the answer."""
        return self._topic(group).metadata

    def open(self, group: Group, member: Member, now_ms: int) -> None:
        """A member begins to fetch its partitions."""
        wanted: dict[int, dict[int, int]] = {}
        for partition, offset in member.offsets().items():
            wanted.setdefault(self._leader(partition), {})[partition] = offset
        for broker, offsets in wanted.items():
            topic, number = self._topic(group), self._chance.randrange(1, 1 << 31)
            told = _BODIES["response"] | {"sessionId": number}
            of_line = pieces(member.client_id, self._api, _BODIES | {"response": told}, self._book.connection(member, broker))
            every_ms = min(_FETCH_MS * len(wanted), _LONGEST_MS)
            session = Session(member, topic, broker, number, tuple(offsets), list(offsets.values()), every_ms, of_line)
            member.sessions.append(session)
            self._later(session, now_ms + session.every_ms)

    def stop(self, member: Member) -> None:
        """A member gave its partitions back, or its process is gone: what it asked for last is not answered any more."""
        for session in member.sessions:
            session.due_ms = -1
        member.sessions = []

    def _later(self, session: Session, due_ms: int) -> None:
        session.due_ms = due_ms
        self._ring[due_ms & MASK].append(session)

    def write(self, at_ms: int) -> None:
        """Write the requests that are answered in a millisecond."""
        due = self._ring[at_ms & MASK]
        if not due:
            return
        self._ring[at_ms & MASK] = []
        book, waited, drift = self._book, self._waited, self._drift
        head, tail, logs, ring = book.stamp(at_ms) + self._api.header, book.tail, book.requests, self._ring
        ends = {topic.topic_id: topic.end(at_ms) for topic in self._topics.values()}
        for session in due:
            if session.due_ms != at_ms:
                continue  # it was stopped
            member, before, epoch, end = session.member, session.offsets, session.epoch, ends[session.topic.topic_id]
            session.offsets = after = [end] * len(before)
            moved, session.moved = session.moved, after != before
            asked = told = "[]"
            if not epoch:
                asked, told = filled(session.asked, before), filled(session.told, (_news(end, offset) for offset in before))
            else:  # all partitions are read up to the same offset
                if moved:
                    asked = str(before[0]).join(session.asked)
                if session.moved:
                    told = _news(end, before[0]).join(session.told)
            member.correlation_id += 1
            numbered, at_epoch, asks, tells, last = session.pieces
            logs[session.broker].append(
                f"{head}{member.correlation_id}{numbered}{session.number if epoch else 0}{at_epoch}{epoch}{asks}{asked}{tells}{told}{last}"
                f"{waited()}{tail}"
            )
            session.epoch = epoch + 1
            if session.epoch % _REFRESH == 0:
                book.ask(at_ms, member, book.metadata_api, session.topic.metadata)
            session.due_ms = due_ms = at_ms + session.every_ms + drift()
            ring[due_ms & MASK].append(session)
