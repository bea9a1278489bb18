"""An incident of one group: the group leaves its steady state, is simulated request by request, and becomes steady again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator_model.clients.client import MemberState
from coordinator_model.clients.simulation import Application, Beats
from coordinator_model.states import State
from jobs.generate.book import Book
from jobs.generate.consumer_protocol import range_assignor
from jobs.generate.fetches import Fetching
from jobs.generate.groups import COMMIT_EVERY_MS, Group, Member
from jobs.generate.incidents import Fate, Plan
from jobs.generate.logged_group import LoggedGroup
from jobs.generate.pen import TextPen

_POLL_MS: Final = 1_000
_LARGE: Final = 1_000
_LARGE_POLL_MS: Final = 3_000
"""Of the members of a large group: polls are most of what is simulated."""


class Episode:
    """A group while something happens to it."""

    def __init__(
        self, book: Book, group: Group, plan: Plan, now_ms: int, *, salt: str, on_rebalance: Callable[[], None], fetching: Fetching | None
    ) -> None:
        self.group = group
        self.plan = plan
        self._fetching = fetching
        self._cast = list(group.members)
        applications = [
            self._application(book.release, member, member.last_ms - _POLL_MS, plan.fates.get(number, Fate()))
            for number, member in enumerate(group.members)
        ]
        for newcomer in plan.newcomers:
            former = group.members[newcomer.place]
            member = Member(former.client_id, former.instance_id, book.new_host(), former.offset)
            member.committed = former.committed
            self._cast.append(member)
            applications.append(self._application(book.release, member, newcomer.starts_ms, newcomer.fate))
        configs = [application.config for application in applications]
        self._pen = TextPen(book, group, self._cast, configs, on_rebalance, fetching)
        self._simulation = LoggedGroup(
            book.release,
            applications,
            self._pen,
            group_id=group.name,
            assignor=partial(range_assignor, group.topic, group.partitions),
            begin_ms=now_ms,
            salt=salt,
        )
        beats = [Beats(number, member.last_ms, max(member.due_ms, now_ms + 1)) for number, member in enumerate(group.members)]
        self._simulation.resume(group.stored(), beats)

    def _application(self, release: str, member: Member, starts_ms: int, fate: Fate) -> Application:
        return Application(
            self.group.config(release, member),
            starts_ms,
            poll_every_ms=_POLL_MS if len(self.group.members) <= _LARGE else _LARGE_POLL_MS,
            stalls=(fate.stall,) if fate.stall else (),
            dies_ms=fate.dies_ms,
            closes_ms=fate.closes_ms,
        )

    def move(self, target: int, at_ms: int, away_ms: int) -> None:
        """The group moves to another broker."""
        self._pen.target = target
        self._simulation.move_coordinator(at_ms, away_ms)
        self.plan.ends_ms = max(self.plan.ends_ms, at_ms + away_ms + 4_000)

    def run_until(self, end_ms: int) -> None:
        """Simulate what happens up to a time."""
        if self.group.commits:
            for number, member in enumerate(self._cast):
                if member.commit_due_ms < end_ms and self._has_partitions(number):
                    member.commit_due_ms = end_ms + COMMIT_EVERY_MS
                    if member.partitions:
                        self._simulation.commit(number)
        self._simulation.run_until(end_ms)
        if self._fetching is not None:
            for number, member in enumerate(self._cast):
                stalls = self._simulation.applications[number].stalls
                fetches = self._has_partitions(number) and not any(begin_ms <= end_ms < until_ms for begin_ms, until_ms in stalls)
                if fetches and not member.sessions:
                    self._fetching.open(self.group, member, end_ms)
                elif member.sessions and not fetches:
                    self._fetching.stop(member)

    def _has_partitions(self, number: int) -> bool:
        return self._simulation.runs(number) and self._simulation.clients[number].state is MemberState.STABLE

    def is_over(self, now_ms: int) -> bool:
        """Whether the group is steady again."""
        simulation = self._simulation
        group = simulation.coordinator.groups.get(self.group.name)
        if now_ms < self.plan.ends_ms or group is None or group.state is not State.STABLE:
            return False
        running = sum(simulation.runs(number) for number in range(len(self._cast)))
        return running == len(group.members) and simulation.stable()

    def settle(self) -> None:
        """Take over what the simulation led to."""
        simulation, group = self._simulation, self.group
        known = simulation.coordinator.groups[group.name]
        group.generation, group.leader = known.generation, known.leader or ""
        numbers = [number for number in range(len(self._cast)) if simulation.runs(number)]
        group.members = [self._cast[number] for number in numbers]
        for number in numbers:
            self._cast[number].member_id = simulation.clients[number].member_id
        group.busy = False
