"""A rolling upgrade of three brokers, with groups of both protocols at work: what happens to each, and what the tables must say of it.

Brokers restart one after the other with the JARs of the other release, the controller last. Each group moves at least once to another
coordinator, from the old release to the new one, and some members come, go and die between the restarts. At the end each partition goes
back to its first broker, as with Kafka's own auto.leader.rebalance.enable.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from coordinator_model.specification.partition import coordinator_partition
from jobs.demo import scenes
from jobs.demo.consumers import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from jobs.demo.local_broker import LocalBroker
from jobs.demo.scenes import Condition, Scene, Stage
from tests.lab import expected, further_scenes
from tests.lab.expected import LEFT, SILENT, THREE, TWO, Expected

BROKERS: Final = 3
MOVED: Final = "COORDINATOR_MOVED"
PACE: Final = 2.5
"""Of its stages: a session of the classic protocol outlives the search for a new coordinator."""
_OFFSETS: Final = "__consumer_offsets"
_REST_SECONDS: Final = 5.0
"""Heartbeats show meanwhile that the groups are well."""


class Upgrade:
    """The upgrade of a cluster. It restarts a broker when no group has anything else to do before."""

    def __init__(self, brokers: Sequence[LocalBroker], version: str) -> None:
        self._brokers, self._version = brokers, version
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
            print(f"broker {broker.node_id} restarts with {self._version}", flush=True)
            for action in [action for restart, action in self._before if restart == self._done + 1]:
                action()
            broker.stop()
            broker.version = self._version
            broker.start()
            yield self._is_in_sync
            self._done += 1
        yield from self._rest()
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


@dataclass(frozen=True)
class Part:
    """A scene with the kind of its second consumer, its protocol, and what must be told. `on`: the first coordinator, if it matters.

    `waits`: when so many of its conditions have been met, it waits until so many brokers have restarted. `unseen`: what comes then happens
    just before that restart. That the coordinator moves is told of classic groups, of others only if it costs a member its place.
    """

    scene: Callable[[Stage], Scene]
    kind: str
    protocol: str
    foretold: Expected
    waits: Mapping[int, int]
    on: int | None = None
    unseen: bool = False

    @property
    def told(self) -> Expected:
        """What must be told, with the moves of the group."""
        moves = [(MOVED, None)] if self.protocol == CLASSIC else []
        return replace(self.foretold, findings=[*self.foretold.findings, *moves])

    def group(self, coordinators: Mapping[int, int]) -> str:
        """A name of its group, which this broker coordinates."""
        name = f"{self.scene.__name__}-{self.kind}-{self.protocol}".replace("_", "-")
        names = (f"{name}-{number}" for number in range(1000))
        return next(name for name in names if self.on in {None, coordinators[coordinator_partition(name)]})

    def plays(self, stage: Stage, upgrade: Upgrade) -> Scene:
        """The scene during the upgrade, up to its end."""
        scene = self.scene(stage)
        met, begun = 0, deque[Condition]()
        while True:
            if met in self.waits:
                if self.unseen:
                    upgrade.just_before(self.waits[met], lambda: begun.append(next(scene)))
                yield upgrade.restarts(stage.group, self.waits[met])
            condition = begun.popleft() if begun else next(scene, None)
            if condition is None:
                break
            yield condition
            met += 1
        yield upgrade.restarts(stage.group, BROKERS + 1)


_STAYED: Final = Expected(TWO)
_GROWN: Final = Expected([*THREE, (LEFT, "2", 3, 2)], ends=[("2", "LEFT")])
_DIED: Final = Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)])
# It may as well live and look for its coordinator in vain: no line shows the difference.
_UNHEARD: Final = Expected([*TWO, (MOVED, "2", 2, 1)], ends=[("2", SILENT)])
_RETURNED: Final = Expected(TWO, ends=[("2", "REPLACED")])
# Kafka 4.2 raises the epoch with the first join, and again when it has looked for topics. Nobody has anything in between.
_RESOLVED: Final = Expected([TWO[0], (expected.RESOLVED, None, 1, 1), TWO[1], (expected.RESOLVED, None, 2, 2)])
_FIRST_RESTART: Final = {2: 1}  # when both members are there
_ALL_RESTARTS: Final = {2: BROKERS}
_TO_THE_END: Final = {2: BROKERS + 1}
_ONE_BY_ONE: Final = {2: 1, 3: BROKERS}
PARTS: Final[tuple[Part, ...]] = (
    Part(further_scenes.stays, LIBRDKAFKA, CLASSIC, _STAYED, _TO_THE_END, on=1),
    Part(further_scenes.stays, JAVA, CLASSIC, _STAYED, _TO_THE_END, on=2),
    Part(further_scenes.stays, LIBRDKAFKA, CONSUMER, _STAYED, _TO_THE_END, on=3),
    Part(further_scenes.stays, JAVA, CONSUMER, _STAYED, _TO_THE_END, on=1),
    Part(scenes.comes_back_static, JAVA, CLASSIC, _RETURNED, _FIRST_RESTART),
    Part(scenes.comes_back_static, LIBRDKAFKA, CONSUMER, _RETURNED, _FIRST_RESTART),
    Part(further_scenes.grows_and_shrinks, JAVA, CLASSIC, _GROWN, _ONE_BY_ONE),
    Part(further_scenes.grows_and_shrinks, LIBRDKAFKA, CONSUMER, _GROWN, _ONE_BY_ONE, on=3),
    Part(further_scenes.grows_and_shrinks, JAVA, CONSUMER, _GROWN, _ONE_BY_ONE, on=2),
    # Its coordinator is restarted just then: another one, of the new release, misses the member.
    Part(scenes.is_killed, LIBRDKAFKA, CLASSIC, _UNHEARD, {2: 2}, on=2, unseen=True),
    Part(scenes.is_killed, LIBRDKAFKA, CONSUMER, _DIED, {2: 2}, on=2, unseen=True),
    Part(scenes.is_killed, JAVA, CLASSIC, _DIED, _ALL_RESTARTS),
    Part(scenes.is_killed, JAVA, CONSUMER, _DIED, _ALL_RESTARTS),
    Part(further_scenes.subscribes_by_expression, JAVA, CONSUMER, _RESOLVED, {3: BROKERS}),
    Part(further_scenes.join_together, LIBRDKAFKA, CONSUMER, expected.OF_CONSUMER_PROTOCOL[further_scenes.join_together], {1: BROKERS}),
    Part(scenes.leaves, LIBRDKAFKA, CONSUMER, expected.PLAYED_LIVE[scenes.leaves], {0: BROKERS}),
)
