"""Records what happens to the offsets of groups on a real broker, with what their consumers processed. tests/acceptance reads it.

    python -m tests.lab.cost_scenes VERSION FOLDER [--only NAME]

All scenes take five minutes. The consumers are those of cost_clients.py; kafka-python has to be installed.
"""

import argparse
import gzip
import json
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from jobs.demo.consumers import JAVA, LIBRDKAFKA
from jobs.demo.scenes import ScenePlayer, Stage
from scripts.truth.record import RELEASES, SETTINGS, begin, recorded
from tests.lab.cost_clients import PYTHON, ReadingConsumers

ALSO_LOGGED = ("FETCH", "LIST_OFFSETS", "METADATA", "WRITE_TXN_MARKERS")
AT_ONCE = 7
PARTITIONS = 2
TICK_SECONDS = 0.25
PLAIN, KEYED, TRANSACTIONS = "plain", "keyed", "transactions"
COMPACT = {"cleanup.policy": "compact", "segment.ms": "3000", "min.cleanable.dirty.ratio": "0.01"}
READ_COMMITTED = {"isolation.level": "read_committed"}
COOPERATIVE = {
    LIBRDKAFKA: {"partition.assignment.strategy": "cooperative-sticky"},
    JAVA: {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
}
FETCH_WAIT = {JAVA: "fetch.max.wait.ms", LIBRDKAFKA: "fetch.wait.max.ms", PYTHON: "fetch.max.wait.ms"}
STEPS = 60
"""Of a second: a scene is looked at so often."""
ENDS_SECONDS = 5
"""So often somebody asks for the ends of all logs, as tools do that watch lag."""


class Writer(threading.Thread):
    """Writes a record to each partition of a topic every 250 ms."""

    def __init__(self, bootstrap, topic, mode):
        super().__init__(daemon=True)
        self._topic, self._mode, self.over = topic, mode, threading.Event()
        settings = {"bootstrap.servers": bootstrap, "client.id": f"{topic}-writer", "log_level": 0}
        self._producer = Producer({**settings, **({"transactional.id": topic} if mode == TRANSACTIONS else {})})
        self._settings = settings

    def run(self):
        """Writes until it is over; at a constant rate, whatever the machine does."""
        producer, due, number = self._producer, time.monotonic(), 0
        if self._mode == TRANSACTIONS:
            producer.init_transactions(60)
        while not self.over.is_set():
            if self._mode == TRANSACTIONS:
                producer.begin_transaction()
            for partition in range(PARTITIONS):
                key = {"key": str(number % 5)} if self._mode == KEYED else {}
                producer.produce(self._topic, str(number), partition=partition, on_delivery=_delivered, **key)
            if self._mode == TRANSACTIONS:
                producer.commit_transaction(60)
            number, due = number + 1, due + TICK_SECONDS
            producer.poll(max(due - time.monotonic(), 0))
            while (rest := due - time.monotonic()) > 0:
                producer.poll(rest)
        producer.flush(30)

    def hang(self):
        """Begins a transaction in partition 0; returns the producer that does not end it."""
        other = Producer({**self._settings, "transactional.id": f"{self._topic}-hangs"})
        other.init_transactions(60)
        other.begin_transaction()
        other.produce(self._topic, "hangs", partition=0, on_delivery=_delivered)
        other.flush(30)
        return other


def _delivered(error, _message):
    assert error is None, error


@dataclass
class Part:
    """A scene and its group."""

    scene: object
    kind: str
    settings: dict = field(default_factory=dict)
    habits: dict = field(default_factory=dict)
    mode: str = PLAIN
    topic: dict = field(default_factory=dict)  # its settings
    name: str = ""
    commit_ms: int = 3_000  # auto.commit.interval.ms; 0: it commits by itself

    @property
    def group(self):
        return f"{self.name or self.scene.__name__}-{self.kind}".replace("_", "-")


class CostStage(Stage):
    """A stage whose topic has a writer."""

    def __init__(self, consumers, part):
        super().__init__(consumers, part.group, part.group, part.kind, say=self._note, partitions=PARTITIONS)
        self.part, self.actions, self.entered = part, [], []
        self.admin = AdminClient({"bootstrap.servers": consumers.bootstrap, "client.id": "admin", "log_level": 0})
        self.writer = Writer(consumers.bootstrap, self.topic, part.mode)

    def plays(self):
        """The scene from its first record until all consumers were closed."""
        self.admin.create_topics([NewTopic(self.topic, PARTITIONS, config=self.part.topic)])[self.topic].result(30)
        self.writer.start()
        yield from self.part.scene(self)
        self.say("the scene is over")
        yield self.close(*(one for one in self.entered if one.running))
        self.writer.over.set()
        yield lambda: not self.writer.is_alive()

    def enter(self, name, **settings):
        part = self.part
        own = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "true" if part.commit_ms else "false",
            "auto.commit.interval.ms": str(part.commit_ms or 5_000),
            "fetch.min.bytes": "65536",  # each request waits, so that there are few lines
            FETCH_WAIT[part.kind]: "500",
        }
        consumer = super().enter(name, kind=part.kind, habits={"settings": own | part.settings, **part.habits}, **settings)
        self.entered.append(consumer)
        return consumer

    def seconds(self, count):
        """Whether so many seconds have passed."""
        until = time.monotonic() + count
        return lambda: time.monotonic() > until

    def stops(self):
        """Both consumers read for a while and are closed, and the group is empty."""
        both = yield from self.two()
        yield self.seconds(10)
        yield self.close(*both)
        yield self.seconds(1)

    def starts(self):
        """Both come back, and read for a while."""
        both = self.enter("1"), self.enter("2")
        yield self.share(*both)
        yield self.seconds(10)

    def committed(self, by=0):
        """The committed offsets, each moved by so much."""
        told = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])[self.group].result(30)
        return [TopicPartition(self.topic, one.partition, one.offset + by) for one in told.topic_partitions if one.offset >= 0]

    def set_by(self, by):
        """An administrator sets the offsets forward or back."""
        self.say(f"the offsets are set by {by}")
        self.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group, self.committed(by))])[self.group].result(30)

    def _note(self, text):
        self.actions.append({"at": time.time_ns() // 1_000_000, "text": text})


def is_well(stage):
    """Nothing happens."""
    yield from stage.two()
    yield stage.seconds(40)


def fails(stage):
    """The application fails on a record of one of its partitions again and again."""
    one = stage.enter("1")
    yield stage.has_all(one)
    yield stage.seconds(45)
    stage.say("the record is skipped")
    one.command("skip")
    yield stage.seconds(8)


def pauses(stage):
    """One consumer reads no longer from one of its partitions, which it keeps."""
    one = stage.enter("1")
    yield stage.has_all(one)
    yield stage.seconds(10)
    stage.say("partition 0 is paused")
    one.command("pause", 0)
    yield stage.seconds(38)
    stage.say("partition 0 is resumed")
    one.command("resume", 0)
    yield stage.seconds(8)


def is_out(stage):
    """All consumers are killed, and come back after 20 s."""
    both = yield from stage.two()
    yield stage.seconds(10)
    stage.kill(*both)
    yield stage.seconds(20)
    yield from stage.starts()


def comes_back(stage):
    """A static consumer is killed, and comes back within its session."""
    one, two = yield from stage.two(static=True, session_ms=45_000)
    yield stage.seconds(10)
    stage.kill(two)
    again = stage.enter("2", instance_id=f"{stage.group}-2", session_ms=45_000)
    yield stage.share(one, again)
    yield stage.seconds(10)


def assigns(stage):
    """A consumer that joins no group commits, is killed, comes back, is closed, and comes back again."""
    one = stage.enter("1")
    yield stage.seconds(12)
    stage.kill(one)
    one = stage.enter("1")
    yield stage.seconds(12)
    yield stage.close(one)
    stage.enter("1")
    yield stage.seconds(10)


def compacts(stage):
    """The group is stopped while its topic is compacted, its offsets are set back, and later one consumer is killed."""
    yield from stage.stops()
    yield stage.seconds(15)
    stage.set_by(-30)
    yield from stage.starts()
    *_, one, two = stage.entered
    stage.kill(two)
    yield stage.has_all(one)
    yield stage.seconds(8)


def dies(stage):
    """One consumer is killed."""
    one, two = yield from stage.two()
    yield stage.seconds(10)
    stage.kill(two)
    yield stage.has_all(one)
    yield stage.seconds(8)


def hangs(stage):
    """A producer does not end its transaction."""
    yield from stage.two()
    yield stage.seconds(10)
    stage.say("a transaction begins")
    producer = stage.writer.hang()
    yield stage.seconds(38)
    stage.say("the transaction is aborted")
    producer.abort_transaction(30)
    yield stage.seconds(8)


def loses_records(stage):
    """The group is stopped, and its next records are deleted."""
    yield from stage.stops()
    yield stage.seconds(6)
    stage.say("records are deleted")
    for deleted in stage.admin.delete_records(stage.committed(15)).values():
        deleted.result(30)
    yield from stage.starts()


def loses_an_offset(stage):
    """The group is stopped, and the committed offset of a partition is deleted."""
    yield from stage.stops()
    admin = stage.consumers.start(JAVA, "admin", "admin", stage.topic, habits={"settings": {"enable.auto.commit": "false"}, "numbers": [0]})
    stage.say("an offset is deleted")
    admin.command("delete_offset", stage.group, 0)
    yield lambda: "deleted" in admin.lines
    admin.kill()
    yield from stage.starts()


def is_set_forward(stage):
    """The group is stopped, and an administrator sets its offsets forward."""
    yield from stage.stops()
    yield stage.seconds(8)
    stage.set_by(20)
    yield from stage.starts()


def commits_seldom(stage):
    """Commits come every 20 s; then one consumer is killed."""
    one, two = yield from stage.two()
    yield stage.seconds(65)
    stage.say("until here the group is well")
    stage.kill(two)
    yield stage.has_all(one)
    yield stage.seconds(15)


def keeps(stage):
    """A consumer keeps a partition in a cooperative rebalance, and is killed before it commits again."""
    one = stage.enter("1")
    yield stage.has_all(one)
    yield stage.seconds(14)
    two = stage.enter("2")
    yield stage.share(one, two)
    stage.kill(one)
    yield stage.has_all(two)
    yield stage.seconds(14)


def overruns(stage):
    """A consumer takes longer than max.poll.interval.ms for the records in hand, and processes them although another one has them."""
    one, two = yield from stage.two(poll_ms=6_000)
    yield stage.seconds(10)
    stage.say("the second consumer takes 5 s for each record")
    two.command("slow", 5 if stage.kind != LIBRDKAFKA else 9)
    yield stage.has_all(one)
    two.command("slow", 0)
    yield stage.share(one, two)
    yield stage.seconds(8)


ALL = (LIBRDKAFKA, JAVA, PYTHON)
PARTS = [
    Part(commits_seldom, LIBRDKAFKA, commit_ms=20_000),
    *(Part(is_well, kind) for kind in ALL),
    *(Part(fails, kind, habits={"fails_at": 40, "commit_seconds": 2}, commit_ms=0) for kind in (LIBRDKAFKA, PYTHON)),
    *(Part(pauses, kind) for kind in (JAVA, PYTHON)),
    *(Part(hangs, kind, READ_COMMITTED) for kind in ALL),
    *(Part(compacts, kind, mode=KEYED, topic=COMPACT) for kind in (LIBRDKAFKA, JAVA)),
    *(Part(is_out, kind) for kind in ALL),
    *(Part(assigns, kind, habits={"numbers": [0, 1]}) for kind in ALL),
    *(Part(comes_back, kind) for kind in ALL),
    *(Part(dies, kind, READ_COMMITTED, mode=TRANSACTIONS, name="in_transactions") for kind in (LIBRDKAFKA, JAVA)),
    *(Part(loses_records, kind) for kind in (JAVA, PYTHON)),
    Part(loses_an_offset, LIBRDKAFKA),
    *(Part(is_set_forward, kind) for kind in (LIBRDKAFKA, PYTHON)),
    *(Part(keeps, kind, COOPERATIVE[kind], commit_ms=10_000) for kind in COOPERATIVE),
    *(Part(overruns, kind) for kind in (JAVA, PYTHON)),
]


def record(version, folder, only):
    """Plays all scenes, several side by side."""
    settings = {**SETTINGS, "log.cleaner.backoff.ms": "1000", "group.max.size": "9"}
    with recorded(folder, version, settings, ALSO_LOGGED) as broker, ReadingConsumers(broker.bootstrap) as consumers:
        begin(broker, consumers)
        stages = [CostStage(consumers, part) for part in PARTS if only in part.group]
        player = ScenePlayer([(stage.group, stage.plays()) for stage in stages], AT_ONCE)
        watched = AdminClient({"bootstrap.servers": broker.bootstrap, "client.id": "lag-exporter", "log_level": 0})
        steps = 0
        while not player.over:
            player.step()
            time.sleep(1 / STEPS)
            steps += 1
            written = [stage.topic for stage in stages if stage.writer.is_alive()]
            if steps % (ENDS_SECONDS * STEPS) == 0 and written:
                watched.list_offsets({TopicPartition(topic, part): OffsetSpec.latest() for topic in written for part in range(PARTITIONS)})
    runs, processed = Counter(), defaultdict(list)
    for consumer in consumers.started:
        runs[consumer.client_id] += 1
        for line in consumer.lines:
            if line.startswith("read ") and line.count(" ") == 3:  # the last one of a process that was killed may be cut off
                at, number, offset = map(int, line.split()[1:])
                processed[consumer.client_id, runs[consumer.client_id], number].append((at, offset))
    _write(folder, "processed", ({"client": c, "run": r, "partition": p, "read": read} for (c, r, p), read in processed.items()))
    _write(folder, "groups", ({"group": stage.group, "actions": stage.actions} for stage in stages))


def _write(folder, name, lines):
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main():
    """Records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="only the groups with this in their names")
    chosen = parser.parse_args()
    if find_spec("kafka") is None:
        parser.error("it needs kafka-python: pip install kafka-python")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    record(chosen.version, chosen.folder, chosen.only)


if __name__ == "__main__":
    main()
