"""What happens in a group, as lines of its brokers' logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator_model.clients.client import ClientConfig
from coordinator_model.clients.simulation import Connection
from coordinator_model.errors import Error
from coordinator_model.events import PREPARING_REBALANCE
from coordinator_model.specification.requests import Heartbeat, JoinAnswer, OffsetCommit, SyncAnswer, SyncGroup
from jobs.generate.book import PORT, Book
from jobs.generate.consumer_protocol import assigned
from jobs.generate.fetches import Fetching
from jobs.generate.groups import Group, Member
from jobs.generate.logged_group import Answered, Said
from jobs.generate.request_text import APIS, FIND_COORDINATOR, OFFSET_FETCH, bodies, commit_bodies, fetch_bodies, find_bodies


class TextPen:
    """Writes about one group into the book of its cluster."""

    def __init__(
        self,
        book: Book,
        group: Group,
        cast: list[Member],
        configs: list[ClientConfig],
        on_rebalance: Callable[[], None],
        fetching: Fetching | None = None,
    ) -> None:
        self._book = book
        self._group = group
        self._cast = cast
        """The consumers, by the numbers that the simulation has for them."""
        self._configs = configs
        self._numbers = {member.member_id: number for number, member in enumerate(cast) if member.member_id}
        self.target = group.broker
        """The broker that takes the group over."""
        self._on_rebalance = on_rebalance
        self._fetching = fetching

    def say(self, said: Said) -> None:
        """A line of the coordinator's log."""
        if said.kind == PREPARING_REBALANCE:
            self._on_rebalance()
        about: dict[str, Any] = {"partition": self._group.partition}
        number = self._numbers.get(said.member_id)
        if number is not None:
            config = self._configs[number]
            said = said._replace(instance_id=config.group_instance_id or said.instance_id)
            about |= {
                "client": config.client_id,
                "host": f"/{self._cast[number].host}",
                "session_timeout": config.session_timeout_ms,
                "rebalance_timeout": config.max_poll_interval_ms,
                "text": f"List({', '.join(name for name, _ in config.protocols)})",
            }
        sentence = self._book.words.sentence(said, self._group.name, about)
        if sentence is not None:
            broker = self._group.broker
            self._book.say(said.at_ms, broker, self._book.words.line(broker, sentence, self._group.partition))

    def answer(self, answered: Answered) -> None:
        """A line of the request log."""
        number = answered.connection[0]
        member, group, request, answer = self._cast[number], self._group, answered.request, answered.answer
        if isinstance(request, OffsetCommit):
            offsets = member.commits(is_accepted=answer.error is Error.NONE)
            told = commit_bodies(group.name, request, group.topic, offsets, answer.error)
        else:
            told = bodies(group.name, request, answer, answered.reason)
        self._book.ask(answered.at_ms, member, APIS[type(request)], told, answered.at_ms - answered.received_ms)
        if isinstance(answer, JoinAnswer):
            self._numbers[answer.member_id] = number
        if isinstance(answer, SyncAnswer) and answer.error is Error.NONE:
            self._assign(member, assigned(answer.assignment), answered.at_ms)
        if isinstance(request, Heartbeat | SyncGroup):
            member.last_ms = answered.at_ms

    def _assign(self, member: Member, partitions: tuple[int, ...], at_ms: int) -> None:
        """A member has got partitions, and asks where to begin."""
        if self._fetching is not None:
            self._fetching.stop(member)
        member.partitions = partitions
        if partitions:
            offsets = {number: offset or -1 for number, offset in member.offsets().items()}
            self._book.ask(at_ms + 1, member, OFFSET_FETCH, fetch_bodies(self._group.name, self._group.topic, offsets))

    def meet(self, at_ms: int, connection: Connection) -> None:
        """A consumer has looked up its coordinator and is connected to it now."""
        member, book, coordinator = self._cast[connection[0]], self._book, self._group.broker
        starts = not member.connection
        member.broker = connection[0] % len(book.requests)
        member.connection = book.connection(member, member.broker)
        if starts and self._fetching is not None:
            book.ask(at_ms, member, book.metadata_api, self._fetching.metadata(self._group))
        book.ask(at_ms, member, FIND_COORDINATOR, find_bodies(self._group.name, coordinator + 1, book.host(coordinator), PORT))
        member.broker = coordinator
        member.connection = book.connection(member, coordinator)

    def move(self) -> None:
        """From now on the other broker writes."""
        self._group.broker = self.target
