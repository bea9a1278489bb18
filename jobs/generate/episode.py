"""An incident of one group: the group leaves its steady state, is simulated request by request, and becomes steady again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator_model.clients.client import MemberState
from coordinator_model.clients.simulation import Application, Beats
from coordinator_model.states import State
from jobs.generate.consumer_protocol import range_assignor
from jobs.generate.fetches import Fetching
from jobs.generate.groups import COMMIT_EVERY_MS, Group, Member
from jobs.generate.incidents import Fate, Plan
from jobs.generate.logged_group import LoggedGroup
from jobs.generate.pen import TextPen
from jobs.generate.sentences import words_of
from jobs.generate.site import Site

_POLL_MS: Final = 1_000
_LARGE: Final = 1_000
_LARGE_POLL_MS: Final = 3_000
"""Of the members of a large group: polls are most of what is simulated."""


class Episode:
    """A group while something happens to it."""

    def __init__(
        self,
        site: Site,
        release: str,
        group: Group,
        plan: Plan,
        now_ms: int,
        *,
        salt: str,
        on_rebalance: Callable[[], None],
        fetching: Fetching | None = None,
    ) -> None:
        self.group = group
        self.plan = plan
        self._fetching = fetching
        self._cast = list(group.members)
        applications = [
            _application(group, release, member, member.last_ms - _POLL_MS, plan.fates.get(number, Fate()))
            for number, member in enumerate(group.members)
        ]
        for newcomer in plan.newcomers:
            former = group.members[newcomer.place]
            member = Member(former.client_id, former.instance_id, site.new_host())
            member.offset = former.offset
            member.fetcher = former.fetcher.successor() if former.fetcher is not None else None
            self._cast.append(member)
            applications.append(_application(group, release, member, newcomer.starts_ms, newcomer.fate))
        configs = [application.config for application in applications]
        self._pen = TextPen(site, words_of(release), group, self._cast, configs, on_rebalance)
        self._simulation = LoggedGroup(
            release,
            applications,
            self._pen,
            group_id=group.name,
            assignor=partial(range_assignor, group.topic, group.partitions),
            begin_ms=now_ms,
            salt=salt,
        )
        beats = [Beats(number, member.last_ms, max(member.due_ms, now_ms + 1)) for number, member in enumerate(group.members)]
        self._simulation.resume(group.stored(), beats)

    def move(self, target: int, at_ms: int, away_ms: int) -> None:
        """The group moves to another broker."""
        self._pen.target = target
        self._simulation.move_coordinator(at_ms, away_ms)
        self.plan.ends_ms = max(self.plan.ends_ms, at_ms + away_ms + 4_000)

    def run_until(self, end_ms: int) -> None:
        """Simulate what happens up to a time."""
        if self.group.commits:
            self._commit(end_ms)
        self._simulation.run_until(end_ms)
        if self._fetching is not None:
            for number, member in enumerate(self._cast):
                self._fetch(self._fetching, number, member, end_ms)

    def _fetch(self, fetching: Fetching, number: int, member: Member, now_ms: int) -> None:
        """Let a consumer fetch as long as it has partitions and calls poll()."""
        fetcher, client = member.fetcher, self._simulation.clients[number]
        assert fetcher is not None
        runs = self._simulation.runs(number)
        if runs and client.state is MemberState.STABLE and not self._stalled(number, now_ms):
            if not fetcher.active or fetcher.fresh is not None:
                fetching.assign(member, now_ms)
        elif fetcher.active and runs:
            fetching.pause(member)
        elif fetcher.sessions and not runs:
            if client.closed:
                fetching.close(member, now_ms)
            else:
                fetching.kill(member)

    def _stalled(self, number: int, now_ms: int) -> bool:
        return any(begins_ms <= now_ms < ends_ms for begins_ms, ends_ms in self._simulation.applications[number].stalls)

    def _commit(self, end_ms: int) -> None:
        simulation = self._simulation
        for number, member in enumerate(self._cast):
            if member.commit_due_ms < end_ms and simulation.runs(number) and simulation.clients[number].state is MemberState.STABLE:
                member.commit_due_ms = end_ms + COMMIT_EVERY_MS
                if member.partitions:
                    simulation.commit(number)

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


def _application(group: Group, release: str, member: Member, starts_ms: int, fate: Fate) -> Application:
    return Application(
        group.config(release, member),
        starts_ms,
        poll_every_ms=_POLL_MS if len(group.members) <= _LARGE else _LARGE_POLL_MS,
        stalls=(fate.stall,) if fate.stall else (),
        dies_ms=fate.dies_ms,
        closes_ms=fate.closes_ms,
    )
