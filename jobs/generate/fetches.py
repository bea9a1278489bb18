"""Fetches of all consumers of a cluster, and what tells the names of their topics.

A consumer fetches from the leaders of its partitions, on connections of its own, as long as it has partitions and calls poll(), whether
something happens to its group or not. What it got last is its position, and what it commits.
"""

from __future__ import annotations

import random
from itertools import cycle
from typing import Final

from jobs.generate.fetch_text import (
    ASKS_END,
    FETCH_MS,
    NOTHING_ASKED,
    NOTHING_TOLD,
    filled,
    forgets,
    metadata_bodies,
    news,
    told,
)
from jobs.generate.fetch_text import begin as begin_text
from jobs.generate.groups import COMMIT_EVERY_MS, Group, Member
from jobs.generate.request_text import fetch_api
from jobs.generate.sessions import Fetcher, Session
from jobs.generate.site import Site
from jobs.generate.topics import Topic, Topics, leader

_RING: Final = 8_192  # milliseconds, a power of two
_MASK: Final = _RING - 1
_LONGEST_MS: Final = 6_000  # between two fetches of a session, less than the ring
_REFRESH: Final = 1_000  # fetches between two looks at the metadata: `metadata.max.age.ms` is five minutes
_POOL: Final = 8_179
_OTHER_POOL: Final = 8_171
_DRIFTS: Final = (0, 1, 1, 1, 2, 2, 3, 5)


class Fetching:
    """All fetch sessions, by the time at which their requests are answered."""

    def __init__(self, site: Site, release: str, chance: random.Random) -> None:
        self._site = site
        self._release = release
        self._chance = chance
        self._brokers = len(site.book.requests)
        self._topics = Topics(chance)
        self._cluster_id = self._topics.new_id()
        self._metadata: dict[str, str] = {}
        self._head = fetch_api(release).header()
        self._metadata_head = site.metadata.header()
        self._waited = cycle([site.times.waited(FETCH_MS) for _ in range(_POOL)]).__next__
        self._drift = cycle([chance.choice(_DRIFTS) for _ in range(_OTHER_POOL)]).__next__
        self._ring: list[list[Session]] = [[] for _ in range(_RING)]

    def open(self, group: Group) -> None:
        """The members of a group have fetched for a while when the log begins."""
        topic = self._topics.topic(group.topic, group.partitions)
        committed = [0] * group.partitions
        for member in group.members:
            member.fetcher = fetcher = Fetcher(topic, self._metadata_of(topic), committed)
            committed_ms = member.commit_due_ms - COMMIT_EVERY_MS - _LONGEST_MS
            for partition in member.partitions:
                committed[partition] = topic.end(committed_ms)
            for broker in sorted({leader(partition, self._brokers) for partition in member.partitions}):
                fetcher.sessions.append(self._session(member, topic, broker))
            for session in fetcher.sessions:
                self._resume(session, len(fetcher.sessions))
            fetcher.active = True

    def _metadata_of(self, topic: Topic) -> str:
        if topic.name not in self._metadata:
            hosts = [(self._site.host(broker), self._site.port) for broker in range(self._brokers)]
            self._metadata[topic.name] = metadata_bodies(self._release, topic, self._cluster_id, hosts)
        return self._metadata[topic.name]

    def _session(self, member: Member, topic: Topic, broker: int) -> Session:
        return Session(member, topic, broker, self._chance.randrange(1, 1 << 31), self._site.connection(member, broker))

    def _resume(self, session: Session, sessions: int) -> None:
        member = session.member
        session.hold(tuple(p for p in member.partitions if leader(p, self._brokers) == session.broker))
        session.every_ms = _every(sessions)
        session.epoch = self._chance.randrange(_REFRESH)
        due_ms = self._chance.randrange(session.every_ms)
        session.position = session.topic.end(due_ms - session.every_ms)
        session.plain = True
        self._send(session, due_ms - session.every_ms - 1)

    # What happens to consumers.

    def assign(self, member: Member, now_ms: int) -> None:
        """A consumer fetches what it got, or goes on where it was."""
        fetcher = member.fetcher
        assert fetcher is not None
        wanted: dict[int, dict[int, int]] = {}
        for partition, offset in fetcher.offsets():
            wanted.setdefault(leader(partition, self._brokers), {})[partition] = offset
        fetcher.fresh, fetcher.active = None, True
        known = {session.broker for session in fetcher.sessions}
        fetcher.sessions += [self._session(member, fetcher.topic, broker) for broker in wanted if broker not in known]
        for session in fetcher.sessions:
            session.next = wanted.get(session.broker, {})
            session.every_ms = _every(len(wanted))
            session.stays, session.plain = True, False
            if not session.flies:
                self._go_on(session, now_ms)

    def pause(self, member: Member) -> None:
        """A consumer gave its partitions back, or does not call poll(). The request in the air is answered; what comes is not read."""
        assert member.fetcher is not None
        member.fetcher.active = False
        for session in member.fetcher.sessions:
            session.stays = session.plain = False

    def close(self, member: Member, now_ms: int) -> None:
        """A consumer shuts down: it closes its sessions when the requests in the air are answered."""
        for session in self._forget(member):
            session.closing, session.plain = True, False
            if not session.flies:
                self._later(session, now_ms + 1)

    def kill(self, member: Member) -> None:
        """A process is gone, and with it the connections on which requests would be answered."""
        for session in self._forget(member):
            session.due_ms = -1

    def _forget(self, member: Member) -> list[Session]:
        assert member.fetcher is not None
        sessions, member.fetcher.sessions = member.fetcher.sessions, []
        member.fetcher.active, member.fetcher.fresh = False, None
        return sessions

    # Lines.

    def write(self, at_ms: int) -> None:
        """Write the requests that are answered in a millisecond."""
        due = self._ring[at_ms & _MASK]
        if not due:
            return
        self._ring[at_ms & _MASK] = []
        head, tail, logs, ring = self._site.book.stamp(at_ms) + self._head, self._site.tail, self._site.book.requests, self._ring
        waited, drift = self._waited, self._drift
        ends = [topic.end(at_ms) for topic in self._topics.all]
        for session in due:
            if session.due_ms != at_ms:
                continue  # the process was killed
            end, offset, epoch = ends[session.topic.number], session.position, session.epoch
            if not session.plain:
                self._write_other(session, at_ms, end)
                continue
            asked = str(offset).join(session.asked) if session.moved else NOTHING_ASKED
            told = news(end, offset).join(session.told) if end > offset else NOTHING_TOLD
            logs[session.broker].append(
                f"{head}{session.sent}{session.begin}{epoch},{asked}{ASKS_END}{session.session_id},{told}{session.end}{waited()}{tail}"
            )
            if not epoch % _REFRESH:
                self._write_metadata(session, at_ms)
            session.position = end
            session.moved = end > offset
            member = session.member
            member.correlation_id = session.sent = member.correlation_id + 1
            session.epoch = epoch + 1
            session.due_ms = due_ms = at_ms + session.every_ms + drift()
            ring[due_ms & _MASK].append(session)

    def _write_other(self, session: Session, at_ms: int, end: int) -> None:
        """The first request for some partitions, or the last one."""
        if session.flies:
            self._write_answered(session, at_ms, end)
        if session.next is not None or session.closing or not session.stays:
            self._go_on(session, at_ms)
            return
        session.moved = session.first is None or any(offset != end for offset in session.first.values())
        session.first, session.forgotten = None, ()
        session.position, session.plain = end, True
        self._send(session, at_ms)

    def _go_on(self, session: Session, at_ms: int) -> None:
        """No request is in the air any more: the next one fetches something else, or nothing follows."""
        session.flies, session.due_ms = False, -1
        if session.closing:
            if session.epoch >= 0:
                text = f"-1,{NOTHING_ASKED}{ASKS_END}0,{NOTHING_TOLD}"
                session.member.correlation_id += 1
                self._write_line(session, at_ms, f"{session.member.correlation_id}{session.begin}{text}", self._site.times.prompt())
            return
        if not session.stays:
            return
        offsets, session.next = session.next, None
        if offsets:
            session.take(offsets)
            self._send(session, at_ms)
        elif offsets is not None:
            session.partitions, session.first = (), None

    def _send(self, session: Session, at_ms: int) -> None:
        session.member.correlation_id = session.sent = session.member.correlation_id + 1
        session.epoch += 1
        session.flies = True
        self._later(session, max(at_ms + session.every_ms + self._drift(), 0))

    def _later(self, session: Session, due_ms: int) -> None:
        session.due_ms = due_ms
        self._ring[due_ms & _MASK].append(session)

    def _write_answered(self, session: Session, at_ms: int, end: int) -> None:
        topic_id, epoch = session.topic.topic_id, session.epoch
        offsets = dict.fromkeys(session.partitions, session.position) if session.first is None else session.first
        asked = filled(session.asked, [str(offset) for offset in offsets.values()]) if session.moved or session.first else NOTHING_ASKED
        behind = tuple(partition for partition, offset in offsets.items() if offset < end)
        answers = filled(told(topic_id, behind), [news(end, offsets[partition]) for partition in behind]) if behind else NOTHING_TOLD
        begins = session.begin if epoch else begin_text(session.member.client_id, 0)
        text = f"{session.sent}{begins}{epoch},{asked}{forgets(topic_id, session.forgotten)}{session.session_id},{answers}"
        self._write_line(session, at_ms, text, self._waited())

    def _write_line(self, session: Session, at_ms: int, text: str, times: str) -> None:
        book = self._site.book
        book.requests[session.broker].append(f"{book.stamp(at_ms)}{self._head}{text}{session.end}{times}{self._site.tail}")

    def _write_metadata(self, session: Session, at_ms: int) -> None:
        member, book = session.member, self._site.book
        assert member.fetcher is not None
        member.correlation_id += 1
        book.requests[session.broker].append(
            f'{book.stamp(at_ms)}{self._metadata_head}{member.correlation_id},"clientId":"{member.client_id}",'
            f'"requestApiKeyName":"METADATA"}},{member.fetcher.metadata}{session.end[1:]}{self._site.times.prompt()}{self._site.tail}'
        )


def _every(sessions: int) -> int:
    """How long the requests of a session lie apart: a consumer's sessions take turns."""
    return min(FETCH_MS * max(sessions, 1), _LONGEST_MS)
