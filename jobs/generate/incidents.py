"""What happens to groups: restarts, crashes, rolling deploys, flapping consumers, stalled ones. Chance decides the details."""

from __future__ import annotations

import random
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jobs.generate.groups import Group

SOON_MS: Final = 10_000
_SETTLING_MS: Final = 3_000
_MOST_STALL_MS: Final = 60_000
_GUESSED: Final = 10


@dataclass
class Fate:
    """What happens to one process."""

    closes_ms: int | None = None
    dies_ms: int | None = None
    stall: tuple[int, int] | None = None


class Newcomer(NamedTuple):
    """A process that takes the place of a member."""

    place: int
    """The number of the member."""
    starts_ms: int
    fate: Fate


@dataclass
class Plan:
    """An incident of one group."""

    begins_ms: int
    """Until then the group is steady, but for members that are dead."""
    ends_ms: int = 0
    """Nothing happens from then on, except what follows from it."""
    dead: list[int] = field(default_factory=list)
    """Members that die at once."""
    fates: dict[int, Fate] = field(default_factory=dict)
    newcomers: list[Newcomer] = field(default_factory=list)
    rebalances: list[int] = field(default_factory=list)
    """When rebalances begin, as far as that is known."""

    def start(self, place: int, starts_ms: int, fate: Fate | None = None) -> None:
        """A process takes the place of a member."""
        self.newcomers.append(Newcomer(place, starts_ms, fate or Fate()))
        self.rebalances.append(starts_ms)
        self.ends_ms = max(self.ends_ms, starts_ms + _SETTLING_MS)

    def close(self, place: int, at_ms: int) -> None:
        """A member shuts down."""
        self.fates[place] = Fate(closes_ms=at_ms)
        self.rebalances.append(at_ms)


def restart(group: Group, now_ms: int, chance: random.Random) -> Plan:
    """A process shuts down and starts again."""
    plan, place = Plan(now_ms), chance.randrange(len(group.members))
    closes_ms = now_ms + chance.randint(100, 2_000)
    plan.close(place, closes_ms)
    plan.start(place, closes_ms + chance.randint(2_000, 12_000))
    return plan


def crash(group: Group, now_ms: int, chance: random.Random) -> Plan:
    """A process is killed. It starts again soon, while its former self is still a member, or after that one's session."""
    place = chance.randrange(len(group.members))
    soon = chance.random() < 0.3
    starts_ms = now_ms + (chance.randint(2_000, 5_000) if soon else group.session_timeout_ms + chance.randint(3_000, 20_000))
    expires_ms = group.members[place].last_ms + group.session_timeout_ms
    plan = Plan(starts_ms if soon else max(expires_ms - 500, now_ms), dead=[place])
    plan.fates[place] = Fate(dies_ms=now_ms)
    plan.start(place, starts_ms)
    if not soon:
        plan.rebalances.append(expires_ms)
    return plan


def deploy(group: Group, now_ms: int, chance: random.Random) -> Plan:
    """All processes are replaced, a tenth of them at a time."""
    plan = Plan(now_ms)
    at_once = max(len(group.members) // 10, 1)
    every_ms = chance.randint(8_000, 15_000)
    for place in range(len(group.members)):
        closes_ms = now_ms + place // at_once * every_ms + chance.randint(100, 600)
        plan.close(place, closes_ms)
        plan.start(place, closes_ms + chance.randint(2_000, 4_000))
    return plan


def flap(group: Group, now_ms: int, chance: random.Random) -> Plan:
    """A process starts and ends again and again."""
    plan, place = Plan(now_ms), chance.randrange(len(group.members))
    at_ms = now_ms + 500
    plan.close(place, at_ms)
    for _ in range(chance.randint(3, 7)):
        at_ms += chance.randint(2_000, 6_000)
        ends_ms = at_ms + chance.randint(6_000, 15_000)
        plan.start(place, at_ms, Fate(closes_ms=ends_ms))
        plan.rebalances.append(ends_ms)
        at_ms = ends_ms
    plan.start(place, at_ms + 5_000)
    return plan


def stall(group: Group, now_ms: int, chance: random.Random) -> Plan:
    """A consumer does not call poll() for longer than `max.poll.interval.ms`. A patient group has a restart instead."""
    if group.max_poll_interval_ms > _MOST_STALL_MS:
        return restart(group, now_ms, chance)
    plan, place = Plan(now_ms), chance.randrange(len(group.members))
    ends_ms = now_ms + group.max_poll_interval_ms
    back_ms = ends_ms + chance.randint(2_000, 15_000)
    plan.fates[place] = Fate(stall=(now_ms, back_ms))
    plan.rebalances += [ends_ms, back_ms]
    plan.ends_ms = back_ms + _SETTLING_MS
    return plan


def visit(now_ms: int) -> Plan:
    """Nothing happens but what the coordinator does, such as to move."""
    return Plan(now_ms, ends_ms=now_ms + _SETTLING_MS)


Incident = Callable[[Group, int, random.Random], Plan]
MIXTURE: Final[dict[Incident, int]] = {restart: 50, crash: 20, deploy: 8, flap: 12, stall: 10}
"""How often each of them happens, in percent."""
FEW: Final[dict[Incident, int]] = {restart: 70, crash: 30}
"""The same in a very large group, which would not settle in between."""


def choose(mixture: dict[Incident, int], chance: random.Random) -> Incident:
    """One of them, by chance."""
    return chance.choices(list(mixture), list(mixture.values()))[0]


class Expected:
    """Rebalances that incidents should cause.

    Some do not come: the group rebalances already, or the member is static. The share that came is expected of the others too.
    """

    def __init__(self) -> None:
        self._times: list[int] = []
        self._past = 0

    def add(self, times: Iterable[int]) -> None:
        """Rebalances of an incident, by the time at which they should begin."""
        for at_ms in times:
            insort(self._times, at_ms)

    def soon(self, now_ms: int, came: int) -> float:
        """How many begin within ten seconds. `came`: how many there were so far."""
        over = bisect_right(self._times, now_ms)
        self._past += over
        del self._times[:over]
        share = (came + _GUESSED) / (self._past + 2 * _GUESSED)  # a half, until there are figures
        return share * bisect_right(self._times, now_ms + SOON_MS)
