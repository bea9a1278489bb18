"""Scenes: what happens to consumer groups, played by real consumers. For `rebalance demo-live`, live tests and recordings.

Each scene has its own group. It is a generator that acts, yields a condition, and continues when the condition holds. So many scenes play
side by side in one thread, and none of them depends on how fast the machine is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_SESSION_MS, LIBRDKAFKA, SESSION_MS, ConsumerProcess, Consumers

Condition: TypeAlias = Callable[[], bool]
Scene: TypeAlias = Generator[Condition, None, None]

POLL_MS: Final = 8_000
OVERDUE_SECONDS: Final = 5
"""How much longer than its poll timeout, and than the session after it if it is static, a consumer does not poll."""
REVOCATION_SECONDS: Final = 17
"""Longer than what the tables report as STUCK_RECONCILING."""
GOES_ON_SECONDS: Final = 600


@dataclass
class Stage:
    """The group and the topic of a scene, and its consumers.

    They are called 1 and 2, with client ids such as `billing-1`. Consumer 1 uses librdkafka and is left alone.
    """

    consumers: Consumers
    group: str
    topic: str
    kind: str
    """Of the consumers but for the first."""
    protocol: str = CLASSIC
    """Their group.protocol."""
    pace: float = 1
    """By how much the timeouts of clients are longer than usual, for machines that have other work."""
    say: Callable[[str], None] = lambda _: None
    """Is called with a line about each action."""
    partitions: int = 6

    def enter(self, name: str, **settings: Any) -> ConsumerProcess:
        """Starts a consumer; `settings`: those of Consumers.start, and its kind and topic if they are not as usual."""
        named = "protocol" in settings
        settings = {
            "kind": LIBRDKAFKA if name == "1" else self.kind,
            "topic": self.topic,
            "protocol": self.protocol,
            "session_ms": round(SESSION_MS * self.pace),
            **settings,
        }
        consumer = self.consumers.start(group=self.group, client_id=f"{self.group}-{name}", **settings)
        if settings["topic"]:
            self.say(f"{consumer.client_id} joins{' with group.protocol=' + settings['protocol'] if named else ''}")
        return consumer

    def close(self, *consumers: ConsumerProcess) -> Condition:
        """Closes them; whether they have ended."""
        for consumer in consumers:
            self.say(f"{consumer.client_id} is closed")
            consumer.leave()
        return lambda: not any(consumer.running for consumer in consumers)

    def kill(self, *consumers: ConsumerProcess) -> None:
        """Kills them."""
        for consumer in consumers:
            self.say(f"{consumer.client_id}: kill -9")
            consumer.kill()

    def double(self) -> ConsumerProcess:
        """Starts one more with the group.instance.id of 2."""
        instance = f"{self.group}-2"
        double = self.enter("double", instance_id=instance)
        self.say(f"{double.client_id} has group.instance.id {instance}, too")
        return double

    def own_topic(self, suffix: str = "") -> Generator[Condition, None, str]:
        """Creates a topic for this group alone and waits until brokers know it; returns its name."""
        admin, name = AdminClient({"bootstrap.servers": self.consumers.bootstrap}), f"{self.group}{suffix}"
        admin.create_topics([NewTopic(name, self.partitions)])[name].result(30)
        yield lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == self.partitions
        return name

    def grow(self, partitions: int) -> None:
        """Adds partitions to its topic, so that there are so many."""
        self.say(f"{self.topic} gets {partitions - self.partitions} more partitions")
        admin = AdminClient({"bootstrap.servers": self.consumers.bootstrap})
        admin.create_partitions([NewPartitions(self.topic, partitions)])[self.topic].result(30)
        self.partitions = partitions

    def two(self, *, static: bool = False, **settings: Any) -> Generator[Condition, None, tuple[ConsumerProcess, ConsumerProcess]]:
        """Starts 1 and waits until it has all partitions, then 2 and waits until both share them. Returns both."""
        instances = [{"instance_id": f"{self.group}-{name}"} if static else {} for name in "12"]
        one = self.enter("1", **settings, **instances[0])
        yield self.has_all(one)
        two = self.enter("2", **settings, **instances[1])
        yield self.share(one, two)
        return one, two

    def has_all(self, consumer: ConsumerProcess) -> Condition:
        """Whether it has all partitions."""
        return lambda: consumer.partitions == self.partitions

    def share(self, *consumers: ConsumerProcess) -> Condition:
        """Whether each of these has an equal share of the partitions."""
        return lambda: {consumer.partitions for consumer in consumers} == {self.partitions // len(consumers)}


def leaves(stage: Stage) -> Scene:
    """Both consumers leave, one after the other."""
    one, two = yield from stage.two()
    stage.close(two)
    yield stage.has_all(one)
    yield stage.close(one)


def is_killed(stage: Stage) -> Scene:
    """One consumer is killed."""
    one, two = yield from stage.two()
    stage.kill(two)
    yield stage.has_all(one)


def is_frozen(stage: Stage) -> Scene:
    """One consumer is frozen until the group has rebalanced without it, and comes back as a zombie."""
    one, two = yield from stage.two()
    stage.say(f"{two.client_id} is frozen (SIGSTOP)")
    two.freeze()
    yield stage.has_all(one)
    stage.say(f"{two.client_id} wakes up (SIGCONT)")
    two.thaw()
    yield stage.share(one, two)


def stalls(stage: Stage, *, static: bool = False) -> Scene:
    """One consumer does not poll for longer than max.poll.interval.ms."""
    poll_ms = round(POLL_MS * stage.pace)
    # A static member does not leave for good: its session has to end, and the group to rebalance, before it polls again.
    session_ms = CONSUMER_SESSION_MS if stage.protocol == CONSUMER else SESSION_MS * stage.pace
    stalled = (poll_ms + (session_ms if static else 0)) / 1000 + OVERDUE_SECONDS
    one, two = yield from stage.two(static=static, poll_ms=poll_ms)
    stage.say(f"{two.client_id}{', static,' if static else ''} does not poll for {stalled:.0f} s, max.poll.interval.ms is {poll_ms}")
    two.stall(stalled)
    yield stage.has_all(one)
    yield stage.share(one, two)


def is_fenced(stage: Stage) -> Scene:
    """A third consumer takes the group.instance.id of the second one."""
    one, two = yield from stage.two(static=True)
    double = stage.double()
    yield lambda: stage.share(one, double)() and two.failure is not None


def revokes_slowly(stage: Stage) -> Scene:
    """A third consumer joins, and the rebalance listener of the second one takes its time."""
    one = stage.enter("1")
    yield stage.has_all(one)
    two = stage.enter("2", habits={"revocation_seconds": REVOCATION_SECONDS})
    yield stage.share(one, two)
    stage.say(f"{two.client_id} takes {REVOCATION_SECONDS} s to give partitions up")
    three = stage.enter("3")
    yield stage.share(one, two, three)


def has_a_growing_topic(stage: Stage) -> Scene:
    """Partitions are added to the topic."""
    stage.topic = yield from stage.own_topic()
    one, two = yield from stage.two()
    stage.grow(2 * stage.partitions)
    yield stage.share(one, two)


def comes_back_static(stage: Stage) -> Scene:
    """A static consumer is closed, which is no leaving, and comes back within its session."""
    one, two = yield from stage.two(static=True)
    yield stage.close(two)
    again = stage.enter("2", instance_id=f"{stage.group}-2")
    yield stage.share(one, again)


def becomes_a_consumer_group(stage: Stage) -> Scene:
    """The consumers of a classic group come back with the consumer protocol, one after the other."""
    running = dict(zip("12", (yield from stage.two(protocol=CLASSIC)), strict=True))
    yield from come_back(stage, running, CONSUMER)


def becomes_a_classic_group(stage: Stage) -> Scene:
    """The consumers of a consumer group come back with the classic protocol, one after the other."""
    running = dict(zip("12", (yield from stage.two(protocol=CONSUMER)), strict=True))
    yield from come_back(stage, running, CLASSIC)


def come_back(stage: Stage, running: dict[str, ConsumerProcess], protocol: str) -> Scene:
    """Restarts consumers, each with this group.protocol, and waits each time until the group has settled."""
    for name in sorted(running):
        stage.close(running.pop(name))
        yield stage.share(*running.values())
        running[name] = stage.enter(name, protocol=protocol)
        yield stage.share(*running.values())


class ScenePlayer:
    """Plays scenes side by side, each with the name of its group."""

    def __init__(self, scenes: Iterable[tuple[str, Scene]], at_once: int | None = None) -> None:
        """`at_once`: how many are played side by side at most; the others follow in their order. None: all."""
        self._to_come = deque(scenes)
        self._at_once = at_once or len(self._to_come)
        self._waiting: dict[str, tuple[Scene, Condition, float]] = {}

    @property
    def over(self) -> bool:
        """Whether all scenes have ended."""
        return not self._waiting and not self._to_come

    def step(self) -> None:
        """Advances each scene whose condition holds. TimeoutError: one has waited too long."""
        while self._to_come and len(self._waiting) < self._at_once:
            self._advance(*self._to_come.popleft())
        for group, (scene, condition, since) in list(self._waiting.items()):
            if condition():
                self._advance(group, scene)
            elif time.monotonic() - since > GOES_ON_SECONDS:
                raise TimeoutError(f"the consumers of {group} did not reach their next state within {GOES_ON_SECONDS} s")

    def _advance(self, group: str, scene: Scene) -> None:
        condition = next(scene, None)
        if condition is None:
            self._waiting.pop(group, None)
        else:
            self._waiting[group] = scene, condition, time.monotonic()
