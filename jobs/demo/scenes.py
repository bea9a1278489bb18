"""Scenes: what happens to consumer groups, done to real consumers. For live tests and `rebalance demo-live`.

A scene has a group of its own. It is a generator: it does something, and yields a condition that has to be so before it goes on. So many
scenes play side by side in one thread, and none waits by the clock for what another machine would do sooner or later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeAlias

from jobs.demo.client import LIBRDKAFKA
from jobs.demo.consumers import Consumers, LiveConsumer

Condition: TypeAlias = Callable[[], bool]
Scene: TypeAlias = Generator[Condition, None, None]

POLL_MS: Final = 8_000
STALL_SECONDS: Final = 12
"""Past POLL_MS."""
STATIC_STALL_SECONDS: Final = 20
"""Past POLL_MS and the session behind it: a static member does not leave, it falls silent."""
GOES_ON_SECONDS: Final = 300


class Stage:
    """Where a scene plays: a group and a topic, and who takes part.

    Members are called 1 and 2, their clients after the group: `billing-1`. Nothing happens to 1, of librdkafka. `kind`: of the others.
    """

    def __init__(
        self, consumers: Consumers, group: str, topic: str, kind: str, *, partitions: int = 6, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """`say` is told what is done."""
        self.group = group
        self.say = say
        self.partitions = partitions
        self._consumers, self._topic, self._kind = consumers, topic, kind

    def enter(self, name: str, **settings: Any) -> LiveConsumer:
        """A consumer starts; `settings` as of Consumers.start."""
        kind = LIBRDKAFKA if name == "1" else self._kind
        consumer = self._consumers.start(kind, self.group, f"{self.group}-{name}", self._topic, **settings)
        self.say(f"{consumer.client_id} joins")
        return consumer

    def two(self, *, static: bool = False, **settings: Any) -> Generator[Condition, None, tuple[LiveConsumer, LiveConsumer]]:
        """Until 1 has all partitions, then until 1 and 2 share them: these are the result."""
        who = [{"instance_id": f"{self.group}-{name}"} if static else {} for name in "12"]
        one = self.enter("1", **settings, **who[0])
        yield self.has_all(one)
        two = self.enter("2", **settings, **who[1])
        yield self.share(one, two)
        return one, two

    def has_all(self, consumer: LiveConsumer) -> Condition:
        """Whether it is alone."""
        return lambda: consumer.partitions == self.partitions

    def share(self, *consumers: LiveConsumer) -> Condition:
        """Whether these have the partitions among them."""
        return lambda: {consumer.partitions for consumer in consumers} == {self.partitions // len(consumers)}


def leaves(stage: Stage) -> Scene:
    """Both leave, one after the other."""
    one, two = yield from stage.two()
    stage.say(f"{two.client_id} is closed")
    two.leave()
    yield stage.has_all(one)
    stage.say(f"{one.client_id} is closed")
    one.leave()
    yield lambda: not one.running


def is_killed(stage: Stage) -> Scene:
    """One dies."""
    one, two = yield from stage.two()
    stage.say(f"{two.client_id}: kill -9")
    two.kill()
    yield stage.has_all(one)


def is_frozen(stage: Stage) -> Scene:
    """One is frozen until the group goes on without it, and comes back as a zombie."""
    one, two = yield from stage.two()
    stage.say(f"{two.client_id} is frozen (SIGSTOP)")
    two.freeze()
    yield stage.has_all(one)
    stage.say(f"{two.client_id} wakes up (SIGCONT)")
    two.thaw()
    yield stage.share(one, two)


def stalls(stage: Stage) -> Scene:
    """One does not poll for longer than max.poll.interval.ms."""
    one, two = yield from stage.two(poll_ms=POLL_MS)
    stage.say(f"{two.client_id} does not poll for {STALL_SECONDS} s, max.poll.interval.ms is {POLL_MS}")
    two.stall(STALL_SECONDS)
    yield stage.has_all(one)
    yield stage.share(one, two)


def stalls_static(stage: Stage) -> Scene:
    """The same of a member with a group.instance.id."""
    one, two = yield from stage.two(static=True, poll_ms=POLL_MS)
    stage.say(f"{two.client_id}, static, does not poll for {STATIC_STALL_SECONDS} s, max.poll.interval.ms is {POLL_MS}")
    two.stall(STATIC_STALL_SECONDS)
    yield stage.has_all(one)
    yield stage.share(one, two)


def is_fenced(stage: Stage) -> Scene:
    """A second client takes the group.instance.id of one."""
    one, two = yield from stage.two(static=True)
    instance = f"{stage.group}-2"
    double = stage.enter("double", instance_id=instance)
    stage.say(f"{double.client_id} has group.instance.id {instance}, too")
    yield lambda: stage.share(one, double)() and two.failure is not None


class Play:
    """Scenes under way, by group. `step` moves those on that can; TimeoutError: one does not go on."""

    def __init__(self, scenes: Iterable[tuple[str, Scene]]) -> None:
        self._waiting = {group: (scene, next(scene), time.monotonic()) for group, scene in scenes}

    @property
    def over(self) -> bool:
        """Whether all came to their ends."""
        return not self._waiting

    def step(self) -> None:
        """Looks at each scene once."""
        for group, (scene, condition, since) in list(self._waiting.items()):
            if condition():
                try:
                    self._waiting[group] = scene, next(scene), time.monotonic()
                except StopIteration:
                    del self._waiting[group]
            elif time.monotonic() - since > GOES_ON_SECONDS:
                raise TimeoutError(f"the consumers of {group} did not come to what they were to do within {GOES_ON_SECONDS} s")
