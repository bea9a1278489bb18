"""A cluster with consumer groups, as the logs of its brokers tell it. The same seed gives the same lines."""

from __future__ import annotations

import heapq
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from coordinator_model.events import COORDINATOR_ELECTED, COORDINATOR_RESIGNED
from coordinator_model.specification.partition import coordinator_partition
from jobs.generate.book import Book
from jobs.generate.episode import Episode
from jobs.generate.fetches import Fetching
from jobs.generate.groups import Group, Member
from jobs.generate.incidents import FEW, MIXTURE, SOON_MS, Expected, Plan, choose, visit
from jobs.generate.sizes import Size
from jobs.generate.steady import HEARTBEAT_MS, Steady

_WINDOW_MS: Final = 100
_SETTLED_EVERY_MS: Final = 500
_TRIES: Final = 20
_LARGE: Final = 1_000  # members of a group that has no time to settle in a deploy
_NAMES: Final = (
    "orders", "payments", "invoices", "shipping", "inventory", "pricing", "search-index", "emails", "fraud-check", "clickstream", "ledger",
    "refunds", "catalog", "sessions", "audit", "recommendations", "telemetry", "customer-profile", "bookings", "loyalty",
)  # fmt: skip
_TIMEOUTS_MS: Final = ((45_000, 300_000), (45_000, 300_000), (45_000, 30_000), (10_000, 30_000))
"""Session timeout and maximum poll interval; Kafka's defaults for half of the groups."""
_STATIC: Final = 0.1  # of the groups have static members
_PARTITIONS: Final = 50
_FIRST_MOVE_MS: Final = 45_000
_MOVES_EVERY_MS: Final = 300_000
_MOVES_APART_MS: Final = 1_500


class Move(NamedTuple):
    """A partition of `__consumer_offsets` moves to another broker."""

    at_ms: int
    partition: int
    source: int
    target: int


def moves(brokers: int) -> Iterator[Move]:
    """As before brokers are restarted, one after the other: every five minutes one gives up all partitions that it leads."""
    leaders = [partition % brokers for partition in range(_PARTITIONS)]
    for number in count():
        source = number % brokers
        led = [partition for partition, leader in enumerate(leaders) if leader == source]
        for place, partition in enumerate(reversed(led)):
            leaders[partition] = (source + 1 + partition % (brokers - 1)) % brokers
            yield Move(_FIRST_MOVE_MS + number * _MOVES_EVERY_MS + place * _MOVES_APART_MS, partition, source, leaders[partition])


class Cluster:
    """Everything that happens in a cluster, from a steady state on. Times are milliseconds since the start."""

    def __init__(self, size: Size, *, release: str, brokers: int, start_ms: int, seed: int) -> None:
        self._chance = random.Random(seed)
        self.book = Book(brokers, start_ms, release, random.Random(seed + 1))
        self._fetching = Fetching(self.book, random.Random(seed + 3)) if size.fetches else None
        self._steady = Steady(self.book, random.Random(seed + 2), self._fetching)
        self._size = size
        self._salt = f"{seed}/"
        self._expected = Expected()
        self._incidents = 0
        self._plans: dict[str, Plan] = {}
        """Of groups that are steady until their plan begins."""
        self._agenda: list[tuple[int, str]] = []
        self._episodes: dict[str, Episode] = {}
        self.now_ms = 0
        self.groups = [self._group(number, members) for number, members in enumerate(size.sizes(self._chance))]
        self._moves = moves(brokers) if brokers > 1 else iter(())
        self._move = next(self._moves, None)
        self._epochs = Counter[int]()
        self._by_name = {group.name: group for group in self.groups}
        for group in self.groups:
            self._steady.add(group, 0)
            if self._fetching is not None:
                self._fetching.begin(group)

    def _group(self, number: int, members: int) -> Group:
        chance = self._chance
        name = f"{_NAMES[number % len(_NAMES)]}-{number:05d}"
        partition = coordinator_partition(name)
        session_ms, poll_ms = chance.choice(_TIMEOUTS_MS)
        group = Group(name, partition, partition % len(self.book.requests), session_ms, poll_ms, self._size.commits)
        group.partitions = 2 * members
        group.generation = chance.randint(1, 60)
        static = chance.random() < _STATIC
        for index in range(members):
            member = Member(f"{name}-{index}", f"{name}-{index}" if static else None, self.book.new_host())
            member.member_id = f"{member.client_id}-{uuid.UUID(int=chance.getrandbits(128), version=4)}"
            member.broker = group.broker
            member.connection = self.book.connection(member, group.broker)
            member.correlation_id = chance.randrange(100, 100_000)
            member.last_ms = -1 - chance.randrange(HEARTBEAT_MS)
            member.commit_due_ms = chance.randrange(5_000)
            member.offset = chance.randrange(1_000_000)
            group.members.append(member)
        group.leader = chance.choice(group.members).member_id
        return group

    def advance(self, until_ms: int) -> Iterator[int]:
        """Let time pass up to `until_ms`, in short steps; the end of each. Take the lines out of `book` after each."""
        while self.now_ms < until_ms:
            end_ms = min(self.now_ms + _WINDOW_MS, until_ms)
            self._step(end_ms)
            self.now_ms = end_ms
            yield end_ms

    def _step(self, end_ms: int) -> None:
        begin_ms, book = self.now_ms, self.book
        book.now_ms = begin_ms
        if self._move is not None and begin_ms >= self._move.at_ms:
            self._write_move(self._move, begin_ms)
            self._move = next(self._moves, None)
        self._start_incidents(begin_ms)
        while self._agenda and self._agenda[0][0] < end_ms:
            _, name = heapq.heappop(self._agenda)
            if name in self._plans:
                self._begin(self._by_name[name], self._plans.pop(name), begin_ms)
        for episode in self._episodes.values():
            episode.run_until(end_ms - 1)
        self._steady.write(begin_ms, end_ms)
        if begin_ms // _SETTLED_EVERY_MS != end_ms // _SETTLED_EVERY_MS:
            self._settle(end_ms)

    def _start_incidents(self, now_ms: int) -> None:
        """Start as many incidents as it takes to have the wanted number of rebalances soon."""
        wanted, came = self._size.rebalances, self.book.rebalances
        for _ in range(_TRIES):
            enough = came + self._expected.soon(now_ms, came) >= wanted * (now_ms + SOON_MS) / 1_000
            if enough or self._incidents > wanted * now_ms / 1_000:
                return
            group = self._chance.choice(self.groups)
            if not group.busy:
                incident = choose(FEW if len(group.members) > _LARGE else MIXTURE, self._chance)
                self._plan(group, incident(group, now_ms, self._chance))

    def _plan(self, group: Group, plan: Plan) -> None:
        self._incidents += 1
        group.busy = True
        self._plans[group.name] = plan
        heapq.heappush(self._agenda, (plan.begins_ms, group.name))
        self._expected.add(plan.rebalances)
        for number in plan.dead:
            group.members[number].due_ms = -1
            if self._fetching is not None:
                self._fetching.stop(group.members[number])

    def _begin(self, group: Group, plan: Plan, now_ms: int) -> None:
        self._episodes[group.name] = Episode.of(self.book, group, plan, now_ms, salt=self._salt, fetching=self._fetching)
        self._steady.remove(group)

    def _write_move(self, move: Move, now_ms: int) -> None:
        """Both brokers tell of a move, and its groups leave the old one."""
        self._epochs[move.partition] += 1
        for late_ms, broker, kind in ((0, move.source, COORDINATOR_RESIGNED), (1, move.target, COORDINATOR_ELECTED)):
            self.book.say(now_ms + late_ms, broker, self.book.words.moved(kind, move.partition, self._epochs[move.partition]))
        for group in [group for group in self.groups if group.partition == move.partition]:
            if group.name not in self._episodes:
                plan = self._plans.pop(group.name) if group.busy else visit(now_ms)
                group.busy = True
                self._begin(group, plan, now_ms)
            self._episodes[group.name].move_to(move.target, now_ms + 1, 60 + move.partition)

    def _settle(self, now_ms: int) -> None:
        for name in [name for name, episode in self._episodes.items() if episode.is_over(now_ms)]:
            episode = self._episodes.pop(name)
            episode.settle()
            self._steady.add(episode.group, now_ms)
