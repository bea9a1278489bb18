"""Scenes: what happens to consumer groups, played by real consumers. For live tests and `rebalance demo-live`.

Each scene has its own group. It is a generator that acts, yields a condition, and continues when the condition holds. So many scenes play
side by side in one thread, and none of them depends on how fast the machine is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeAlias

from jobs.demo.consumers import ConsumerProcess, Consumers
from jobs.demo.real_consumer import LIBRDKAFKA

Condition: TypeAlias = Callable[[], bool]
Scene: TypeAlias = Generator[Condition, None, None]

POLL_MS: Final = 8_000
STALL_SECONDS: Final = 12
"""Longer than POLL_MS."""
STATIC_STALL_SECONDS: Final = 20
"""Longer than POLL_MS and the session after it: a static member does not leave, it only stops its heartbeats."""
GOES_ON_SECONDS: Final = 600


class Stage:
    """The group and the topic of a scene, and its consumers.

    They are called 1 and 2, with client ids such as `billing-1`. Consumer 1 uses librdkafka and is left alone. `kind`: that of the others.
    """

    def __init__(
        self, consumers: Consumers, group: str, topic: str, kind: str, *, partitions: int = 6, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """`say` is called with a line about each action."""
        self.group = group
        self.say = say
        self.partitions = partitions
        self._consumers, self._topic, self._kind = consumers, topic, kind

    def enter(self, name: str, **settings: Any) -> ConsumerProcess:
        """Starts a consumer; `settings`: those of Consumers.start."""
        kind = LIBRDKAFKA if name == "1" else self._kind
        consumer = self._consumers.start(kind, self.group, f"{self.group}-{name}", self._topic, **settings)
        self.say(f"{consumer.client_id} joins")
        return consumer

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


def stalls(stage: Stage, *, static: bool = False, seconds: float = STALL_SECONDS) -> Scene:
    """One consumer does not poll for longer than max.poll.interval.ms."""
    one, two = yield from stage.two(static=static, poll_ms=POLL_MS)
    stage.say(f"{two.client_id}{', static,' if static else ''} does not poll for {seconds} s, max.poll.interval.ms is {POLL_MS}")
    two.stall(seconds)
    yield stage.has_all(one)
    yield stage.share(one, two)


def stalls_static(stage: Stage) -> Scene:
    """The same with a group.instance.id."""
    yield from stalls(stage, static=True, seconds=STATIC_STALL_SECONDS)


def is_fenced(stage: Stage) -> Scene:
    """A third consumer takes the group.instance.id of the second one."""
    one, two = yield from stage.two(static=True)
    instance = f"{stage.group}-2"
    double = stage.enter("double", instance_id=instance)
    stage.say(f"{double.client_id} has group.instance.id {instance}, too")
    yield lambda: stage.share(one, double)() and two.failure is not None


class ScenePlayer:
    """Plays scenes side by side, each with the name of its group."""

    def __init__(self, scenes: Iterable[tuple[str, Scene]]) -> None:
        self._waiting = {group: (scene, next(scene), time.monotonic()) for group, scene in scenes}

    @property
    def over(self) -> bool:
        """Whether all scenes have ended."""
        return not self._waiting

    def step(self) -> None:
        """Advances each scene whose condition holds. TimeoutError: one has waited too long."""
        for group, (scene, condition, since) in list(self._waiting.items()):
            if condition():
                try:
                    self._waiting[group] = scene, next(scene), time.monotonic()
                except StopIteration:
                    del self._waiting[group]
            elif time.monotonic() - since > GOES_ON_SECONDS:
                raise TimeoutError(f"the consumers of {group} did not reach their next state within {GOES_ON_SECONDS} s")
