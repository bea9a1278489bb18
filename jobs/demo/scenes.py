"""Scenes: what happens to consumer groups, played by real consumers. For live tests and `rebalance demo-live`.

Each scene has its own group. It is a generator that acts, yields a condition, and continues when the condition holds. So many scenes play
side by side in one thread, and none of them depends on how fast the machine is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeAlias

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from jobs.demo.consumers import CONSUMER_SESSION_MS, SESSION_MS, ConsumerProcess, Consumers
from jobs.demo.real_consumer import CLASSIC, CONSUMER, LIBRDKAFKA

Condition: TypeAlias = Callable[[], bool]
Scene: TypeAlias = Generator[Condition, None, None]

POLL_MS: Final = 8_000
OVERDUE_SECONDS: Final = 5
"""How much longer than its poll timeout, and than the session after it if it is static, a consumer does not poll."""
REVOCATION_SECONDS: Final = 17
"""Longer than what the tables report as STUCK_RECONCILING."""
FINDS_SECONDS: Final = 5
"""So long a client looks for its coordinator at most, before it can join."""
AFTER_ONE_ANOTHER_SECONDS: Final = 0.25
"""Three joins take less than the second that a coordinator of Kafka 4.3 lets pass between two assignments."""
HELD_UP_SECONDS: Final = 2
GOES_ON_SECONDS: Final = 600


class Stage:
    """The group and the topic of a scene, and its consumers.

    They are called 1 and 2, with client ids such as `billing-1`. Consumer 1 uses librdkafka and is left alone. `kind`: that of the others.
    """

    def __init__(
        self,
        consumers: Consumers,
        group: str,
        topic: str,
        kind: str,
        *,
        protocol: str = CLASSIC,
        pace: float = 1,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`protocol`: group.protocol of its consumers. `say` is called with a line about each action.

        `pace`: by how much the timeouts of clients are longer than usual, for machines that have other work.
        """
        self.group = group
        self.say = say
        self.topic = topic
        self.partitions = 6
        self.pace = pace
        self.kind = kind
        self.protocol = protocol
        self._consumers = consumers

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
        consumer = self._consumers.start(group=self.group, client_id=f"{self.group}-{name}", **settings)
        if settings["topic"]:
            self.say(f"{consumer.client_id} joins{' with group.protocol=' + settings['protocol'] if named else ''}")
        return consumer

    def own_topic(self, suffix: str = "") -> Generator[Condition, None, str]:
        """Creates a topic for this group alone and waits until brokers know it; returns its name."""
        admin, name = AdminClient({"bootstrap.servers": self._consumers.bootstrap}), f"{self.group}{suffix}"
        admin.create_topics([NewTopic(name, self.partitions)])[name].result(30)
        yield lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == self.partitions
        return name

    def grow(self, partitions: int) -> None:
        """Adds partitions to its topic, so that there are so many."""
        self.say(f"{self.topic} gets {partitions - self.partitions} more partitions")
        admin = AdminClient({"bootstrap.servers": self._consumers.bootstrap})
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
    stage.say(f"{two.client_id} is closed")
    two.leave()
    yield stage.has_all(one)
    stage.say(f"{one.client_id} is closed")
    one.leave()
    yield lambda: not one.running


def is_killed(stage: Stage) -> Scene:
    """One consumer is killed."""
    one, two = yield from stage.two()
    stage.say(f"{two.client_id}: kill -9")
    two.kill()
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


def stalls_static(stage: Stage) -> Scene:
    """The same with a group.instance.id."""
    yield from stalls(stage, static=True)


def is_fenced(stage: Stage) -> Scene:
    """A third consumer takes the group.instance.id of the second one."""
    one, two = yield from stage.two(static=True)
    instance = f"{stage.group}-2"
    double = stage.enter("double", instance_id=instance)
    stage.say(f"{double.client_id} has group.instance.id {instance}, too")
    yield lambda: stage.share(one, double)() and two.failure is not None


def revokes_slowly(stage: Stage) -> Scene:
    """A third consumer joins, and the rebalance listener of the second one takes its time."""
    one = stage.enter("1")
    yield stage.has_all(one)
    two = stage.enter("2", revocation_seconds=REVOCATION_SECONDS)
    yield stage.share(one, two)
    stage.say(f"{two.client_id} takes {REVOCATION_SECONDS} s to give partitions up")
    three = stage.enter("3")
    yield stage.share(one, two, three)


def rolls(stage: Stage) -> Scene:
    """Three consumers are restarted, one after the other."""
    running = dict(zip("12", (yield from stage.two()), strict=True))
    running["3"] = stage.enter("3")
    yield stage.share(*running.values())
    yield from come_back(stage, running, CONSUMER)


def changes_subscription(stage: Stage) -> Scene:
    """One consumer subscribes to a second topic."""
    other = yield from stage.own_topic("-returns")
    one, two = yield from stage.two()
    stage.say(f"{two.client_id} subscribes to {other}, too")
    two.subscribe(stage.topic, other)
    yield lambda: one.partitions == two.partitions == stage.partitions


def has_a_growing_topic(stage: Stage) -> Scene:
    """Partitions are added to the topic."""
    stage.topic = yield from stage.own_topic()
    one, two = yield from stage.two()
    stage.grow(2 * stage.partitions)
    yield stage.share(one, two)


def subscribes_by_expression(stage: Stage) -> Scene:
    """Both consumers subscribe to a regular expression, and later there is a second topic that it matches."""
    stage.topic = f"^{stage.group}-[ab]$"
    yield from stage.own_topic("-a")
    one = stage.enter("1", kind=stage.kind)
    yield stage.has_all(one)
    two = stage.enter("2")
    yield stage.share(one, two)
    yield from stage.own_topic("-b")
    stage.partitions *= 2
    yield stage.share(one, two)


def join_together(stage: Stage) -> Scene:
    """Three more consumers join, while the first one is held up and cannot give anything to any of them."""
    one = stage.enter("1")
    yield stage.has_all(one)
    more = [stage.enter(name, topic="") for name in "234"]
    yield lambda: all(consumer.ready for consumer in more)
    ready = time.monotonic()
    yield lambda: time.monotonic() > ready + FINDS_SECONDS
    one.freeze()
    for consumer in more:
        stage.say(f"{consumer.client_id} joins")
        consumer.subscribe(stage.topic)
        since = time.monotonic()
        yield lambda: time.monotonic() > since + AFTER_ONE_ANOTHER_SECONDS  # noqa: B023 - asked before it changes
    joined = time.monotonic()
    yield lambda: time.monotonic() > joined + HELD_UP_SECONDS
    one.thaw()
    yield lambda: sorted(consumer.partitions for consumer in (one, *more)) == [1, 1, 2, 2]


def comes_back_static(stage: Stage) -> Scene:
    """A static consumer is closed, which is no leaving, and comes back within its session."""
    one, two = yield from stage.two(static=True)
    stage.say(f"{two.client_id}, static, is restarted")
    two.leave()
    yield lambda: not two.running
    again = stage.enter("2", instance_id=f"{stage.group}-2")
    yield stage.share(one, again)


def is_refused(stage: Stage) -> Scene:
    """A third consumer takes the group.instance.id of the second one, which the consumer protocol refuses."""
    one, two = yield from stage.two(static=True)
    instance = f"{stage.group}-2"
    double = stage.enter("double", instance_id=instance)
    stage.say(f"{double.client_id} has group.instance.id {instance}, too")
    yield lambda: double.failure is not None
    yield stage.share(one, two)


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
        stage.say(f"{running[name].client_id} is closed")
        running.pop(name).leave()
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
