"""A rolling upgrade of three brokers, with groups of both protocols at work: what happens to each, and what the tables must say of it.

Brokers restart one after the other with the JARs of the other release, the controller last. Each group moves at least once to another
coordinator, from the old release to the new one, and some members come, go and die between the restarts. At the end each partition goes
back to its first broker, as with Kafka's own auto.leader.rebalance.enable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from coordinator_model.specification.partition import coordinator_partition
from jobs.demo import scenes
from jobs.demo.local_broker import LocalBroker
from jobs.demo.real_consumer import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from jobs.demo.scenes import Condition, Scene, Stage
from scripts.truth import staged
from scripts.truth.staged import LEFT, SILENT, THREE, TWO, Expected

BROKERS: Final = 3
MOVED: Final = "COORDINATOR_MOVED"
SESSION_MS: Final = 15_000
"""Of the classic protocol: it outlives the search for a new coordinator."""
_OFFSETS: Final = "__consumer_offsets"
_REST_SECONDS: Final = 5.0
"""Heartbeats show meanwhile that the groups are well."""


class Upgrade:
    """The upgrade of a cluster. It restarts a broker when no group has anything else to do before."""

    def __init__(self, brokers: Sequence[LocalBroker], version: str, say: Callable[[str], None]) -> None:
        self._brokers, self._version, self._say = brokers, version, say
        self._awaited: dict[str, int] = {}
        self._before: list[tuple[int, Callable[[], None]]] = []
        self._done = 0

    def plays(self, group: str) -> None:
        """Lets the upgrade wait for this group."""
        self._awaited[group] = 0

    def restarts(self, group: str, count: int) -> Condition:
        """Lets the upgrade go on; whether so many brokers have restarted. One more than there are brokers: whether all is over."""
        self._awaited[group] = count
        return lambda: self._done >= count

    def just_before(self, restart: int, action: Callable[[], None]) -> None:
        """Does this when all groups wait for the restart with this number."""
        self._before.append((restart, action))

    def coordinators(self) -> dict[int, int]:
        """The broker that coordinates, by partition of __consumer_offsets."""
        topic = self._admin().list_topics(_OFFSETS, timeout=20).topics[_OFFSETS]
        return {number: part.leader for number, part in topic.partitions.items()}

    def scene(self) -> Scene:
        """The restarts, the controller's last."""
        for broker in reversed(self._brokers):
            yield from self._rest()
            self._say(f"broker {broker.node_id} restarts with {self._version}")
            for action in [action for restart, action in self._before if restart == self._done + 1]:
                action()
            broker.stop()
            broker.version = self._version
            broker.start()
            yield self._is_in_sync
            self._done += 1
        yield from self._rest()
        self._say("leaders return")
        admin = self._admin()  # it has to live until the answer is there
        admin.elect_leaders(ElectionType.PREFERRED).result(60)
        yield lambda: len(set(self.coordinators().values())) == BROKERS
        yield from self._rest()
        self._done += 1

    def _rest(self) -> Scene:
        yield lambda: all(count > self._done for count in self._awaited.values())
        since = time.monotonic()
        yield lambda: time.monotonic() > since + _REST_SECONDS

    def _is_in_sync(self) -> bool:
        topics = self._admin().list_topics(timeout=20).topics.values()
        return all(len(part.isrs) == BROKERS for topic in topics for part in topic.partitions.values())

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": ",".join(broker.bootstrap for broker in self._brokers), "log_level": 0})


Act: TypeAlias = Callable[[Stage, Upgrade], Scene]


def _two(stage: Stage, *, static: bool = False) -> Generator[Condition, None, tuple[scenes.ConsumerProcess, scenes.ConsumerProcess]]:
    return (yield from stage.two(static=static, session_ms=SESSION_MS))


def stays(stage: Stage, upgrade: Upgrade) -> Scene:
    """Two members, to which nothing happens."""
    one, two = yield from _two(stage)
    yield upgrade.restarts(stage.group, BROKERS + 1)
    yield stage.share(one, two)


def comes_back(stage: Stage, upgrade: Upgrade) -> Scene:
    """A static member is restarted while the brokers differ."""
    one, two = yield from _two(stage, static=True)
    yield upgrade.restarts(stage.group, 1)
    two.leave()
    yield lambda: not two.running
    again = stage.enter("2", instance_id=f"{stage.group}-2", session_ms=SESSION_MS)
    yield stage.share(one, again)
    yield upgrade.restarts(stage.group, BROKERS + 1)
    yield stage.share(one, again)


def grows_and_shrinks(stage: Stage, upgrade: Upgrade) -> Scene:
    """A third member joins while the brokers differ; the second one leaves when they do no longer."""
    one, two = yield from _two(stage)
    yield upgrade.restarts(stage.group, 1)
    three = stage.enter("3", session_ms=SESSION_MS)
    yield stage.share(one, two, three)
    yield upgrade.restarts(stage.group, BROKERS)
    two.leave()
    yield stage.share(one, three)
    yield upgrade.restarts(stage.group, BROKERS + 1)


def dies_unseen(stage: Stage, upgrade: Upgrade) -> Scene:
    """A member dies just before its coordinator is restarted: another one, of the new release, misses it."""
    one, two = yield from _two(stage)
    upgrade.just_before(2, two.kill)
    yield upgrade.restarts(stage.group, 2)
    yield stage.has_all(one)
    yield upgrade.restarts(stage.group, BROKERS + 1)


def dies_after(stage: Stage, upgrade: Upgrade) -> Scene:
    """A member dies when all brokers have the new release."""
    one, two = yield from _two(stage)
    yield upgrade.restarts(stage.group, BROKERS)
    two.kill()
    yield stage.has_all(one)
    yield upgrade.restarts(stage.group, BROKERS + 1)


def subscribes_by_expression(stage: Stage, upgrade: Upgrade) -> Scene:
    """A second topic that the members' regular expression matches comes when all brokers have the new release."""
    return _afterwards(stage, upgrade, scenes.subscribes_by_expression(stage), 3)


def join_together(stage: Stage, upgrade: Upgrade) -> Scene:
    """A member is there before the upgrade; three join after it."""
    return _afterwards(stage, upgrade, scenes.join_together(stage), 1)


def is_new(stage: Stage, upgrade: Upgrade) -> Scene:
    """A group that begins when all brokers have the new release."""
    return _afterwards(stage, upgrade, scenes.leaves(stage), 0)


def _afterwards(stage: Stage, upgrade: Upgrade, scene: Scene, settled: int) -> Scene:
    """Plays a scene, and waits for the upgrade when so many of its conditions have been met."""
    for _ in range(settled):
        yield next(scene)
    yield upgrade.restarts(stage.group, BROKERS)
    yield from scene
    yield upgrade.restarts(stage.group, BROKERS + 1)


@dataclass(frozen=True)
class Part:
    """An act with the kind of its second consumer, its protocol, and what must be told. `on`: the first coordinator, if it matters.

    That the coordinator moves is told of classic groups, of others only if it costs a member its place.
    """

    act: Act
    kind: str
    protocol: str
    expected: Expected
    on: int | None = None

    @property
    def told(self) -> Expected:
        """What must be told, with the moves of the group."""
        moves = [(MOVED, None)] if self.protocol == CLASSIC else []
        return replace(self.expected, findings=[*self.expected.findings, *moves])

    def group(self, coordinators: Mapping[int, int]) -> str:
        """A name of its group, which this broker coordinates."""
        name = f"{self.act.__name__}-{self.kind}-{self.protocol}".replace("_", "-")
        names = (f"{name}-{number}" for number in range(1000))
        return next(name for name in names if self.on in {None, coordinators[coordinator_partition(name)]})


_STAYED: Final = Expected(TWO)
_GROWN: Final = Expected([*THREE, (LEFT, "2", 3, 2)], ends=[("2", "LEFT")])
_DIED: Final = Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)])
# It may as well live and look for its coordinator in vain: no line shows the difference.
_UNHEARD: Final = Expected([*TWO, (MOVED, "2", 2, 1)], ends=[("2", SILENT)])
_RETURNED: Final = Expected(TWO, ends=[("2", "REPLACED")])
# Kafka 4.2 raises the epoch with the first join, and again when it has looked for topics. Nobody has anything in between.
_RESOLVED: Final = Expected([TWO[0], (staged.RESOLVED, None, 1, 1), TWO[1], (staged.RESOLVED, None, 2, 2)])
PARTS: Final[tuple[Part, ...]] = (
    Part(stays, LIBRDKAFKA, CLASSIC, _STAYED, on=1),
    Part(stays, JAVA, CLASSIC, _STAYED, on=2),
    Part(stays, LIBRDKAFKA, CONSUMER, _STAYED, on=3),
    Part(stays, JAVA, CONSUMER, _STAYED, on=1),
    Part(comes_back, JAVA, CLASSIC, _RETURNED),
    Part(comes_back, LIBRDKAFKA, CONSUMER, _RETURNED),
    Part(grows_and_shrinks, JAVA, CLASSIC, _GROWN),
    Part(grows_and_shrinks, LIBRDKAFKA, CONSUMER, _GROWN, on=3),
    Part(grows_and_shrinks, JAVA, CONSUMER, _GROWN, on=2),
    Part(dies_unseen, LIBRDKAFKA, CLASSIC, _UNHEARD, on=2),
    Part(dies_unseen, LIBRDKAFKA, CONSUMER, _DIED, on=2),
    Part(dies_after, JAVA, CLASSIC, _DIED),
    Part(dies_after, JAVA, CONSUMER, _DIED),
    Part(subscribes_by_expression, JAVA, CONSUMER, _RESOLVED),
    Part(join_together, LIBRDKAFKA, CONSUMER, staged.OF_CONSUMER_PROTOCOL[scenes.join_together]),
    Part(is_new, LIBRDKAFKA, CONSUMER, staged.PLAYED_LIVE[scenes.leaves]),
)
