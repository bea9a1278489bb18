"""An incident of one group: the group leaves its steady state, is simulated request by request, and becomes steady again."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from coordinator_model.clients.client import MemberState
from coordinator_model.clients.simulation import Application, Beats, Connection
from coordinator_model.errors import Error
from coordinator_model.events import PREPARING_REBALANCE
from coordinator_model.specification.requests import Heartbeat, JoinAnswer, OffsetCommit, SyncAnswer, SyncGroup
from coordinator_model.states import State
from jobs.generate.book import PORT, Book
from jobs.generate.fetches import Fetching
from jobs.generate.groups import COMMIT_EVERY_MS, Group, Member, assigned, range_assignor
from jobs.generate.incidents import Fate, Plan
from jobs.generate.logged_group import Answered, LoggedGroup, Said
from jobs.generate.request_text import APIS, FIND_COORDINATOR, OFFSET_FETCH, bodies, commit_bodies, fetch_bodies, find_bodies

_POLL_MS: Final = 1_000
_LARGE: Final = 1_000
_LARGE_POLL_MS: Final = 3_000
"""Of the members of a large group: polls are most of what is simulated."""
_MOVING_MS: Final = 4_000


class Episode(LoggedGroup):
    """A group while something happens to it, as lines of its brokers' logs in the book of its cluster."""

    def __init__(
        self, book: Book, group: Group, cast: list[Member], applications: list[Application], *,
        begin_ms: int = 0, salt: str = "", fetching: Fetching | None = None,
    ) -> None:  # fmt: skip
        """`cast`: the consumers, by the numbers that the simulation has for them."""
        assignor = partial(range_assignor, group.topic, group.partitions)
        super().__init__(book.release, applications, group_id=group.name, assignor=assignor, begin_ms=begin_ms, salt=salt)
        self._book, self.group, self._cast, self._fetching = book, group, cast, fetching
        self.ends_ms = begin_ms
        self.target = group.broker
        """The broker that takes the group over."""
        self._numbers = {member.member_id: number for number, member in enumerate(cast) if member.member_id}

    @classmethod
    def of(cls, book: Book, group: Group, plan: Plan, now_ms: int, *, salt: str, fetching: Fetching | None) -> Episode:
        """A steady group, to which from now on happens what is planned."""

        def application(member: Member, starts_ms: int, fate: Fate) -> Application:
            return Application(
                group.config(book.release, member),
                starts_ms,
                poll_every_ms=_POLL_MS if len(group.members) <= _LARGE else _LARGE_POLL_MS,
                stalls=(fate.stall,) if fate.stall else (),
                dies_ms=fate.dies_ms,
                closes_ms=fate.closes_ms,
            )

        cast = list(group.members)
        applications = [application(one, one.last_ms - _POLL_MS, plan.fates.get(number, Fate())) for number, one in enumerate(cast)]
        for newcomer in plan.newcomers:
            former = group.members[newcomer.place]
            member = Member(former.client_id, former.instance_id, book.new_host(), former.offset)
            member.committed = former.committed
            cast.append(member)
            applications.append(application(member, newcomer.starts_ms, newcomer.fate))
        episode = cls(book, group, cast, applications, begin_ms=now_ms, salt=salt, fetching=fetching)
        episode.ends_ms = plan.ends_ms
        beats = [Beats(number, member.last_ms, max(member.due_ms, now_ms + 1)) for number, member in enumerate(group.members)]
        episode.resume(group.stored(), beats)
        return episode

    def move_to(self, target: int, at_ms: int, away_ms: int) -> None:
        """The group moves to another broker."""
        self.target = target
        self.move_coordinator(at_ms, away_ms)
        self.ends_ms = max(self.ends_ms, at_ms + away_ms + _MOVING_MS)

    def run_until(self, end_ms: int) -> None:
        """Simulate what happens up to a time."""
        if self.group.commits:
            for number, member in enumerate(self._cast):
                if member.commit_due_ms < end_ms and self._has_partitions(number):
                    member.commit_due_ms = end_ms + COMMIT_EVERY_MS
                    if member.partitions:
                        self.commit(number)
        super().run_until(end_ms)
        if self._fetching is not None:
            for number, member in enumerate(self._cast):
                stalls = self.applications[number].stalls
                fetches = self._has_partitions(number) and not any(begin_ms <= end_ms < until_ms for begin_ms, until_ms in stalls)
                if fetches and not member.sessions:
                    self._fetching.open(self.group, member, end_ms)
                elif member.sessions and not fetches:
                    self._fetching.stop(member)

    def _has_partitions(self, number: int) -> bool:
        return self.runs(number) and self.clients[number].state is MemberState.STABLE

    def is_over(self, now_ms: int) -> bool:
        """Whether the group is steady again."""
        group = self.coordinator.groups.get(self.group_id)
        if now_ms < self.ends_ms or group is None or group.state is not State.STABLE:
            return False
        return sum(map(self.runs, range(len(self._cast)))) == len(group.members) and self.stable()

    def settle(self) -> None:
        """Take over what the simulation led to."""
        group, known = self.group, self.coordinator.groups[self.group_id]
        group.generation, group.leader = known.generation, known.leader or ""
        group.members = [member for number, member in enumerate(self._cast) if self.runs(number)]
        for member, client in zip(self._cast, self.clients, strict=True):
            member.member_id = client.member_id
        group.busy = False

    # The lines.

    def say(self, said: Said) -> None:
        """A line of the coordinator's log."""
        if said.kind == PREPARING_REBALANCE:
            self._book.rebalances += 1
        about: dict[str, Any] = {"partition": self.group.partition}
        number = self._numbers.get(said.member_id)
        if number is not None:
            config = self.applications[number].config
            said = said._replace(instance_id=config.group_instance_id or said.instance_id)
            about |= {
                "client": config.client_id,
                "host": f"/{self._cast[number].host}",
                "session_timeout": config.session_timeout_ms,
                "rebalance_timeout": config.max_poll_interval_ms,
                "text": f"List({', '.join(name for name, _ in config.protocols)})",
            }
        sentence = self._book.words.sentence(said, self.group_id, about)
        if sentence is not None:
            self._book.say(said.at_ms, self.group.broker, sentence, self.group.partition)

    def answer(self, answered: Answered) -> None:
        """A line of the request log."""
        number = answered.connection[0]
        member, group, request, answer = self._cast[number], self.group, answered.request, answered.answer
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
            self._book.ask(at_ms + 1, member, OFFSET_FETCH, fetch_bodies(self.group_id, self.group.topic, offsets))

    def meet(self, connection: Connection) -> None:
        """A consumer has looked up its coordinator and is connected to it now."""
        member, book, coordinator = self._cast[connection[0]], self._book, self.group.broker
        starts = not member.connection
        member.broker = connection[0] % len(book.requests)
        member.connection = book.connection(member, member.broker)
        if starts and self._fetching is not None:
            book.ask(self.now_ms, member, book.metadata_api, self._fetching.metadata(self.group))
        book.ask(self.now_ms, member, FIND_COORDINATOR, find_bodies(self.group_id, coordinator + 1, book.host(coordinator), PORT))
        member.broker = coordinator
        member.connection = book.connection(member, coordinator)

    def moves(self) -> None:
        """The group was unloaded just now. From now on the other broker writes."""
        super().moves()
        self.group.broker = self.target
