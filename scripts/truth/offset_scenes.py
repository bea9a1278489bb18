"""What happens to groups that read records (scripts/truth/record.py --offsets): most of it is jobs/demo/scenes.py, with a producer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from jobs.demo import scenes
from jobs.demo.consumers import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from jobs.demo.scenes import Condition, Scene, Stage
from tests.lab.reading_consumers import TRANSACTIONAL, ReadingConsumers, ReadingProcess
from tests.lab.steady_producer import TICK_SECONDS, SteadyProducer

PARTITIONS: Final = 4
EAGER: Final = "eager"
COOPERATIVE: Final = "cooperative"
_COOPERATIVE_STICKY: Final = {
    JAVA: "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    LIBRDKAFKA: "cooperative-sticky",
    TRANSACTIONAL: "cooperative-sticky",
}
_FETCH_WAIT: Final = {JAVA: "fetch.max.wait.ms", LIBRDKAFKA: "fetch.wait.max.ms", TRANSACTIONAL: "fetch.wait.max.ms"}
_FETCH: Final = {"fetch.min.bytes": "65536"}
"""So that each fetch waits: a recording would else have a line for each tick of the producer."""
_FETCH_WAIT_MS: Final = "500"
_BEFORE_SECONDS: Final = 8.0
"""How long both consumers read before anything happens to them."""
_AFTER_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 1.0
_BURST: Final = 150
_REWOUND: Final = 50


@dataclass
class Part:
    """A scene with its consumers: their kind, how they rebalance, how they commit, and how long they read before."""

    scene: Callable[[ReadingStage], Scene]
    kind: str
    rebalances: str = EAGER  # or COOPERATIVE, or CONSUMER: the protocol
    auto_commit_ms: int = 5_000  # 0: it commits by itself
    commit_every: int = 0
    reset: str = "earliest"
    before_seconds: float = _BEFORE_SECONDS
    name: str = ""
    record_seconds: float = 0  # that each takes

    @property
    def group(self) -> str:
        """The name of its group and its topic."""
        return f"{self.name or self.scene.__name__}-{self.rebalances}-{self.kind}".replace("_", "-")

    def topics(self, output_suffix: str) -> list[str]:
        """Its topic, and that to which it writes, if it does."""
        return [self.group, *([self.group + output_suffix] if self.kind == TRANSACTIONAL else [])]

    @property
    def protocol(self) -> str:
        """Its group.protocol."""
        return CONSUMER if self.rebalances == CONSUMER else CLASSIC

    @property
    def settings(self) -> dict[str, str]:
        """The settings of its clients."""
        auto = {"enable.auto.commit": "true", "auto.commit.interval.ms": str(self.auto_commit_ms)}
        sticky = {"partition.assignment.strategy": _COOPERATIVE_STICKY[self.kind]}
        return {
            "auto.offset.reset": self.reset,
            **(auto if self.auto_commit_ms else {"enable.auto.commit": "false"}),
            **(sticky if self.rebalances == COOPERATIVE else {}),
            **_FETCH,
            **({"max.poll.records": "20"} if self.record_seconds and self.kind == JAVA else {}),
            _FETCH_WAIT[self.kind]: _FETCH_WAIT_MS,
        }


class ReadingStage(Stage):
    """A stage whose topic has a producer. Its conditions hold when the group has also read what was written until then."""

    def __init__(self, consumers: ReadingConsumers, producer: SteadyProducer, part: Part) -> None:
        self.actions: list[dict[str, Any]] = []
        super().__init__(consumers, part.group, part.group, part.kind, protocol=part.protocol, say=self._note)
        self.partitions = PARTITIONS
        self.part = part
        self.producer = producer
        self.entered: list[ReadingProcess] = []
        self.admin = AdminClient({"bootstrap.servers": consumers.bootstrap, "client.id": "admin", "log_level": 0})

    def enter(self, name: str, **settings: Any) -> ReadingProcess:
        """Starts a consumer of the stage's kind."""
        habits = {"commit_every": self.part.commit_every, "record_seconds": self.part.record_seconds, "notes": True}
        consumer = super().enter(name, **{"kind": self.kind, "settings": self.part.settings, "habits": habits, **settings})
        self.entered.append(consumer)
        return consumer

    def two(self, *, static: bool = False, **settings: Any) -> Generator[Condition, None, tuple[ReadingProcess, ReadingProcess]]:
        """Starts 1 and 2, and lets both read for a while."""
        both = yield from super().two(static=static, **settings)
        yield self.written(self.part.before_seconds)
        yield self.reads_on()
        return both

    def has_all(self, consumer: ReadingProcess) -> Condition:
        """Whether it has all partitions, and the group has read on."""
        return self._then_reads_on(super().has_all(consumer))

    def share(self, *consumers: ReadingProcess) -> Condition:
        """Whether each has an equal share, and the group has read on."""
        return self._then_reads_on(super().share(*consumers))

    def reads_on(self) -> Condition:
        """Whether the group has read beyond what is written now."""
        ends = self.producer.ends(self.topic)
        return lambda: all(self.highest().get(partition, -1) >= end - 1 for partition, end in ends.items())

    def written(self, seconds: float) -> Condition:
        """Whether the producer has written for so long from now on, by the number of its records. At once if it does not write."""
        before = self.producer.ends(self.topic)
        count = round(seconds / TICK_SECONDS)

        def holds() -> bool:
            ends = self.producer.ends(self.topic)
            has_grown = len(ends) == self.partitions and all(end - before.get(part, 0) >= count for part, end in ends.items())
            return has_grown or not self.producer.writes(self.topic)

        return holds

    def highest(self) -> dict[int, int]:
        """The highest offset that any consumer has processed, by partition."""
        highest: dict[int, int] = {}
        for consumer in self.entered:
            for partition, offset in list(consumer.highest.items()):
                highest[partition] = max(offset, highest.get(partition, -1))
        return highest

    def committed(self) -> dict[int, int]:
        """The committed offsets, by partition. The group has to have a coordinator: librdkafka crashes when it is told otherwise."""
        answer = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])[self.group].result(30)
        return {part.partition: part.offset for part in answer.topic_partitions or [] if part.offset >= 0}

    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.admin.describe_consumer_groups([self.group])[self.group].result(30).state.name == "EMPTY"

    def told(self) -> dict[str, Any]:
        """Its line of groups.jsonl, when all is over."""
        part = self.part
        return {
            "group": self.group,
            "topic": self.topic,
            "scene": part.name or part.scene.__name__,
            "kind": part.kind,
            "rebalances": part.rebalances,
            "commit_every": part.commit_every,
            "record_seconds": part.record_seconds,
            "settings": part.settings,
            "until": self.actions[-1]["at"],
            "actions": self.actions,
        }

    def _then_reads_on(self, condition: Condition) -> Condition:
        reads: list[Condition] = []

        def holds() -> bool:
            if not condition():
                return False
            if not reads:
                reads.append(self.reads_on())
            return reads[0]()

        return holds

    def _note(self, text: str) -> None:
        self.actions.append({"at": time.time_ns() // 1_000_000, "text": text})


def plays(stage: ReadingStage) -> Scene:
    """The scene of the stage, from its first record until all consumers have been closed and everything is read."""
    if stage.part.scene is not idle:
        stage.producer.start(stage.topic, stage.partitions)
    yield from stage.part.scene(stage)
    yield stage.written(_AFTER_SECONDS)
    stage.say("the producer stops")
    stage.producer.stop(stage.topic)
    yield stage.reads_on()
    stage.say("the scene is over")
    for consumer in stage.entered:
        consumer.leave()
    yield lambda: not any(consumer.running for consumer in stage.entered)


def is_killed_behind(stage: ReadingStage) -> Scene:
    """One consumer is killed while it has many records in hand that it has not processed yet."""
    one, two = yield from stage.two()
    before = sum(two.highest.values())
    stage.say(f"{_BURST} more records are written to each partition")
    stage.producer.burst(stage.topic, _BURST)
    yield lambda: sum(two.highest.values()) - before >= _BURST // 2
    stage.kill(two)
    yield stage.has_all(one)


def is_closed(stage: ReadingStage) -> Scene:
    """One consumer is closed: it commits before it leaves."""
    one, two = yield from stage.two()
    stage.close(two)
    yield stage.has_all(one)


def rolls(stage: ReadingStage) -> Scene:
    """Both consumers are restarted, one after the other."""
    both = yield from stage.two()
    yield from scenes.come_back(stage, dict(zip("12", both, strict=True)), stage.protocol)


def is_killed_and_comes_back(stage: ReadingStage) -> Scene:
    """A static consumer is killed, and started again within its session: no rebalance."""
    one, two = yield from stage.two(static=True, session_ms=45_000)
    stage.kill(two)
    again = stage.enter("2", instance_id=f"{stage.group}-2", session_ms=45_000)
    yield stage.share(one, again)


def is_stuck(stage: ReadingStage, seconds: float = 40) -> Scene:
    """One consumer reads no longer from one of its partitions, and goes on with the other one."""
    one, two = yield from stage.two()
    partition, *_ = sorted(two.highest.keys() - one.highest.keys()) or sorted(two.highest)
    stage.say(f"{two.client_id} reads no longer from partition {partition}")
    two.command("pause", partition)
    yield stage.written(seconds)
    stage.say(f"{two.client_id} reads from partition {partition} again")
    two.command("resume", partition)
    yield stage.reads_on()
    yield stage.share(one, two)


def _now_and_then(condition: Condition) -> Condition:
    """The condition, looked at once a second: what asks the broker is in its log."""
    looked = 0.0

    def holds() -> bool:
        nonlocal looked
        if time.monotonic() - looked < _LOOK_SECONDS:
            return False
        looked = time.monotonic()
        return condition()

    return holds


def _stops(stage: ReadingStage) -> Scene:
    both = yield from stage.two()
    yield stage.close(*both)
    yield _now_and_then(stage.is_empty)


def _starts(stage: ReadingStage) -> Scene:
    both = [stage.enter("1"), stage.enter("2")]
    yield stage.share(*both)


def is_rewound(stage: ReadingStage) -> Scene:
    """The group is stopped, an administrator sets its offsets back, and it is started again."""
    yield from _stops(stage)
    back = [TopicPartition(stage.topic, part, offset - _REWOUND) for part, offset in sorted(stage.committed().items())]
    stage.say(f"the offsets are set back by {_REWOUND}")
    stage.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(stage.group, back)])[stage.group].result(30)
    yield from _starts(stage)


def is_deleted(stage: ReadingStage) -> Scene:
    """The group is stopped and deleted, and started again: it begins where auto.offset.reset says."""
    yield from _stops(stage)
    stage.say("the group is deleted, and its offsets with it")
    stage.admin.delete_consumer_groups([stage.group])[stage.group].result(30)
    yield stage.written(2)
    yield from _starts(stage)


def expires(stage: ReadingStage) -> Scene:
    """The group is stopped until the broker has removed its offsets, and started again."""
    yield from _stops(stage)
    yield _now_and_then(lambda: not stage.committed())
    stage.say("the offsets have expired")
    yield from _starts(stage)


def is_outlived(stage: ReadingStage) -> Scene:
    """The group is stopped, and its next records are gone when it is started again, as with a retention that is too short."""
    yield from _stops(stage)
    yield stage.written(5)
    gone = [TopicPartition(stage.topic, part, end) for part, end in sorted(stage.producer.ends(stage.topic).items())]
    stage.say("the records are deleted")
    for deleted in stage.admin.delete_records(gone).values():
        deleted.result(30)
    yield from _starts(stage)


def all_are_killed(stage: ReadingStage) -> Scene:
    """Both consumers are killed, and started again when the group is empty."""
    both = yield from stage.two()
    stage.kill(*both)
    yield _now_and_then(stage.is_empty)
    yield from _starts(stage)


def is_well(stage: ReadingStage) -> Scene:
    """Nothing happens for a while."""
    yield from stage.two()
    yield stage.written(30)


def goes_quiet(stage: ReadingStage) -> Scene:
    """The producer stops, all offsets are committed, and then a consumer is killed."""
    one, two = yield from stage.two()
    stage.say("the producer stops")
    stage.producer.stop(stage.topic)
    yield stage.reads_on()
    yield _now_and_then(lambda: stage.committed() == stage.producer.ends(stage.topic))
    stage.kill(two)
    yield stage.has_all(one)


def idle(stage: ReadingStage) -> Scene:
    """Nothing is ever written, and a consumer is killed."""
    return scenes.is_killed(stage)


PARTS: Final[tuple[Part, ...]] = (
    # Those that take long come first.
    Part(expires, LIBRDKAFKA, reset="latest"),
    Part(is_stuck, JAVA),
    Part(scenes.is_killed, LIBRDKAFKA, auto_commit_ms=20_000, before_seconds=30, name="commits_slowly"),
    Part(is_well, JAVA, COOPERATIVE),
    Part(scenes.is_killed, JAVA),
    Part(scenes.is_killed, LIBRDKAFKA),
    Part(scenes.is_killed, JAVA, COOPERATIVE),
    Part(scenes.is_killed, LIBRDKAFKA, COOPERATIVE),
    Part(scenes.is_killed, JAVA, CONSUMER),
    Part(scenes.is_killed, LIBRDKAFKA, CONSUMER),
    Part(scenes.stalls, JAVA),
    Part(scenes.stalls, LIBRDKAFKA, COOPERATIVE),
    Part(scenes.is_frozen, JAVA),
    Part(scenes.is_frozen, LIBRDKAFKA, CONSUMER),
    Part(rolls, JAVA, COOPERATIVE),
    Part(rolls, LIBRDKAFKA),
    Part(is_closed, JAVA),
    Part(is_closed, LIBRDKAFKA, CONSUMER),
    Part(scenes.is_killed, JAVA, auto_commit_ms=0, commit_every=40, name="commits_itself"),
    Part(scenes.is_killed, LIBRDKAFKA, COOPERATIVE, auto_commit_ms=0, commit_every=40, name="commits_itself"),
    Part(scenes.is_killed, TRANSACTIONAL, auto_commit_ms=0, commit_every=40),
    Part(is_rewound, LIBRDKAFKA, auto_commit_ms=2_000, before_seconds=15),
    Part(is_deleted, LIBRDKAFKA, reset="latest", name="is_deleted_latest"),
    Part(is_deleted, JAVA, reset="earliest", name="is_deleted_earliest"),
    Part(is_killed_behind, LIBRDKAFKA, record_seconds=0.03),
    Part(is_killed_behind, JAVA, record_seconds=0.03),
    Part(all_are_killed, JAVA),
    Part(all_are_killed, LIBRDKAFKA, CONSUMER),
    Part(is_outlived, LIBRDKAFKA),
    Part(is_killed_and_comes_back, LIBRDKAFKA),
    Part(goes_quiet, LIBRDKAFKA, auto_commit_ms=2_000),
    Part(idle, JAVA),
)
