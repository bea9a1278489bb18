"""Scenes beyond those of `rebalance demo-live` (jobs/demo/scenes.py): for live tests and recordings."""

import time
from typing import Final

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from jobs.demo.consumers import CLASSIC, CONSUMER
from jobs.demo.local_broker import LocalBroker
from jobs.demo.scenes import Scene, Stage, come_back, stalls

FINDS_SECONDS: Final = 5
"""So long a client looks for its coordinator at most, before it can join."""
AFTER_ONE_ANOTHER_SECONDS: Final = 0.25
"""Three joins take less than the second that a coordinator of Kafka 4.3 lets pass between two assignments."""
HELD_UP_SECONDS: Final = 2
QUIET_SECONDS: Final = 62
"""Longer than the time without a rebalance after which restarts are told."""
PATIENT_MS: Final = 15_000
"""A session that outlives the start of a broker."""
FAILING_SECONDS: Final = 4.0
TOO_SMALL_BYTES: Final = 250
"""Less than a group of three members takes as a record."""
LARGE_BYTES: Final = 1_048_588


def stalls_static(stage: Stage) -> Scene:
    """The same with a group.instance.id."""
    yield from stalls(stage, static=True)


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
    two.command("subscribe", stage.topic, other)
    yield lambda: one.partitions == two.partitions == stage.partitions


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
    yield lambda: all("ready" in consumer.lines for consumer in more)
    ready = time.monotonic()
    yield lambda: time.monotonic() > ready + FINDS_SECONDS
    one.freeze()
    for consumer in more:
        stage.say(f"{consumer.client_id} joins")
        consumer.command("subscribe", stage.topic)
        since = time.monotonic()
        yield lambda: time.monotonic() > since + AFTER_ONE_ANOTHER_SECONDS  # noqa: B023 - asked before it changes
    joined = time.monotonic()
    yield lambda: time.monotonic() > joined + HELD_UP_SECONDS
    one.thaw()
    yield lambda: sorted(consumer.partitions for consumer in (one, *more)) == [1, 1, 2, 2]


def is_refused(stage: Stage) -> Scene:
    """A third consumer takes the group.instance.id of the second one, which the consumer protocol refuses."""
    one, two = yield from stage.two(static=True)
    double = stage.double()
    yield lambda: double.failure is not None
    yield stage.share(one, two)


def is_one_too_many(stage: Stage) -> Scene:
    """The fourth member of a group whose broker allows three."""
    one, two = yield from stage.two()
    three = stage.enter("3")
    yield stage.share(one, two, three)
    four = stage.enter("4")
    yield lambda: four.failure is not None
    yield stage.share(one, two, three)


def migrates(stage: Stage, _: LocalBroker) -> Scene:
    """Three consumers come back with the consumer protocol, and later with the classic one. Nothing happens in between."""
    running = dict(zip("12", (yield from stage.two(protocol=CLASSIC)), strict=True))
    running["3"] = stage.enter("3", protocol=CLASSIC)
    yield stage.share(*running.values())
    for protocol in (CONSUMER, CLASSIC):
        since = time.monotonic()
        yield lambda: time.monotonic() > since + QUIET_SECONDS  # noqa: B023 - asked before it changes
        yield from come_back(stage, running, protocol)


def unstored(stage: Stage, broker: LocalBroker) -> Scene:
    """With a broker for itself: a third member joins while a group of three is too large a record for `__consumer_offsets`."""
    one, two = yield from stage.two()
    _allow_bytes(broker, TOO_SMALL_BYTES)
    three = stage.enter("3")
    yield lambda: _is_not_stored(broker, stage.group)
    since = time.monotonic()
    yield lambda: time.monotonic() > since + FAILING_SECONDS
    _allow_bytes(broker, LARGE_BYTES)
    yield stage.share(one, two, three)


def orphaned(stage: Stage, broker: LocalBroker) -> Scene:
    """With a broker for itself: a member dies while the broker starts again."""
    one, two = yield from stage.two(session_ms=PATIENT_MS)
    broker.stop()
    two.kill()
    broker.start()
    yield stage.has_all(one)


def _allow_bytes(broker: LocalBroker, count: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(count), incremental_operation=AlterConfigOpType.SET)
    offsets = ConfigResource(ResourceType.TOPIC, "__consumer_offsets", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # it has to live until the answer is there
    admin.incremental_alter_configs([offsets])[offsets].result(30)


def _is_not_stored(broker: LocalBroker, group: str) -> bool:
    """Whether the broker says that an assignment of the group was not stored."""
    lines = (broker.logs / "server.log").read_text(encoding="utf-8").splitlines()
    return any("when storing group assignment" in line and f"group {group} " in line for line in lines)
