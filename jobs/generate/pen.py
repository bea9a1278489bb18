"""What happens in a group, as lines of its brokers' logs."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_model.clients.client import ClientConfig
from coordinator_model.clients.simulation import Connection
from coordinator_model.errors import Error
from coordinator_model.events import MEMBER_ADDED, PREPARING_REBALANCE
from coordinator_model.specification.requests import Heartbeat, JoinAnswer, OffsetCommit, SyncAnswer, SyncGroup
from jobs.generate.consumer_protocol import assigned
from jobs.generate.groups import Group, Member
from jobs.generate.logged_group import Answered, Said
from jobs.generate.request_text import (
    APIS,
    FIND_COORDINATOR,
    OFFSET_FETCH,
    Api,
    bodies,
    commit_bodies,
    committed,
    fetch_bodies,
    find_bodies,
)
from jobs.generate.sentences import STATIC_MEMBER_ADDED, Words, reason_of, values_of
from jobs.generate.site import Site


class TextPen:
    """Writes about one group into the book of its cluster."""

    def __init__(
        self,
        site: Site,
        words: Words,
        group: Group,
        cast: list[Member],
        configs: list[ClientConfig],
        on_rebalance: Callable[[], None],
    ) -> None:
        self._site = site
        self._words = words
        self._group = group
        self._cast = cast
        """The consumers, by the numbers that the simulation has for them."""
        self._configs = configs
        self._numbers = {member.member_id: number for number, member in enumerate(cast) if member.member_id}
        self.target = group.broker
        """The broker that takes the group over."""
        self._on_rebalance = on_rebalance

    def say(self, said: Said) -> None:
        """A line of the coordinator's log."""
        words = self._words
        kind = STATIC_MEMBER_ADDED if said.kind == MEMBER_ADDED and said.instance_id else said.kind
        if kind == PREPARING_REBALANCE:
            self._on_rebalance()
        sentence = words.sentences.get(kind)
        if sentence is None:
            return
        number = self._numbers.get(said.member_id)
        config = self._configs[number] if number is not None else None
        if config is not None and config.group_instance_id:
            said = said._replace(instance_id=config.group_instance_id)
        values = values_of(words, said, self._group.name)
        values |= {"partition": self._group.partition, "why": reason_of(words, said, self._group.name)}
        if config is not None and number is not None:
            values |= {
                "client": config.client_id,
                "host": f"/{self._cast[number].host}",
                "session_ms": config.session_timeout_ms,
                "rebalance_ms": config.max_poll_interval_ms,
                "protocols": ", ".join(name for name, _ in config.protocols),
            }
        broker, book = self._group.broker, self._site.book
        line = words.line.format(broker=broker + 1, partition=self._group.partition, sentence=sentence.format_map(values))
        book.put(said.at_ms, book.sayings[broker], f" {line}\n")

    def answer(self, answered: Answered) -> None:
        """A line of the request log."""
        number = answered.connection[0]
        member, request, answer = self._cast[number], answered.request, answered.answer
        waited_ms = answered.at_ms - answered.received_ms
        api = APIS[type(request)]
        if isinstance(request, OffsetCommit):
            before, after = commit_bodies(self._group.name, request, self._group.topic, member.partitions, answer.error)
            self._write(answered.at_ms, waited_ms, member, api, before + _committed(member, answer.error) + after)
            return
        if isinstance(answer, JoinAnswer):
            self._numbers[answer.member_id] = number
        self._write(answered.at_ms, waited_ms, member, api, bodies(self._group.name, request, answer, answered.reason))
        if isinstance(answer, SyncAnswer) and answer.error is Error.NONE:
            member.partitions = assigned(answer.assignment)
            offsets = _beginnings(member)
            if member.partitions:
                self._write(answered.at_ms + 1, 0, member, OFFSET_FETCH, fetch_bodies(self._group.name, self._group.topic, offsets))
        if isinstance(request, Heartbeat | SyncGroup):
            member.last_ms = answered.at_ms

    def meet(self, at_ms: int, connection: Connection) -> None:
        """A consumer has looked up its coordinator and is connected to it now."""
        member, site = self._cast[connection[0]], self._site
        coordinator, asked = self._group.broker, connection[0] % len(site.book.requests)
        starts = not member.connection
        member.broker = asked
        member.connection = site.connection(member, asked)
        if starts and member.fetcher is not None:
            self._write(at_ms, 0, member, site.metadata, member.fetcher.metadata)
        text = find_bodies(self._group.name, coordinator + 1, site.host(coordinator), site.port)
        self._write(at_ms, 0, member, FIND_COORDINATOR, text)
        member.broker = coordinator
        member.connection = site.connection(member, coordinator)

    def move(self) -> None:
        """From now on the other broker writes."""
        self._group.broker = self.target

    def _write(self, at_ms: int, waited_ms: int, member: Member, api: Api, text: str) -> None:
        site, book = self._site, self._site.book
        member.correlation_id += 1
        times = site.times.waited(waited_ms) if waited_ms else site.times.prompt()
        line = (
            f'{api.header()}{member.correlation_id},"clientId":"{member.client_id}","requestApiKeyName":"{api.name}"}},{text},'
            f'"connection":"{member.connection}",{times}{site.tail}'
        )
        book.put(at_ms, book.requests[member.broker], line)


def _committed(member: Member, error: Error) -> str:
    """The offsets of a commit."""
    if member.fetcher is None:
        member.offset += 7
        return committed(member.partitions, member.offset)
    return member.fetcher.commit() if error is Error.NONE else member.fetcher.refused()


def _beginnings(member: Member) -> dict[int, int]:
    """Where a member begins in the partitions that it got."""
    if member.fetcher is None:
        return dict.fromkeys(member.partitions, member.offset or -1)
    return member.fetcher.assigned(member.partitions)
