"""Records real brokers while real consumers suffer the accidents of scripts/truth/staged.py, with what the tables must say of it.

    python -m scripts.truth.record VERSION FOLDER [--protocol consumer]
    python -m scripts.truth.record VERSION FOLDER --upgrade-from VERSION

It writes to FOLDER what tests/acceptance/test_staged.py reads: the logs of the brokers, and truth.jsonl with a line for each group. One
recording takes two minutes, that of the consumer protocol and of migrations four, that of the rolling upgrade of three brokers
(scripts/truth/upgrade.py) three. The logs are those of a real run and are not edited.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from jobs.common.places import KAFKA_VERSION, OTHER_KAFKA
from jobs.demo.cluster import brokers_of
from jobs.demo.consumers import CONSUMER_GROUP_SETTINGS, Consumers
from jobs.demo.local_broker import LocalBroker, free_port
from jobs.demo.real_consumer import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from jobs.demo.scenes import Scene, ScenePlayer, Stage
from scripts.truth import staged, upgrade
from scripts.truth.staged import Expected

RELEASES: Final = (KAFKA_VERSION, *OTHER_KAFKA)
TOPIC: Final = "orders"
PARTITIONS: Final = 6
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000", "group.max.size": "3"}
UPGRADE_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000", **CONSUMER_GROUP_SETTINGS}
PATIENT_MS: Final = 15_000
"""A session that outlives the start of a broker."""
FAILING_SECONDS: Final = 4.0
TOO_SMALL_BYTES: Final = 250
"""Less than a group of three members takes as a record."""
LARGE_BYTES: Final = 1_048_588
_STEP_SECONDS: Final = 0.1
_TAIL_SECONDS: Final = 5.0
README: Final = """\
# Staged accidents: Kafka {version}

Written by `make record`: {brokers}. The consumers are of librdkafka and of Kafka's
Java client. No line is edited. Time zone of the brokers: **UTC**. `truth.jsonl` has a line for each group: its rebalances, findings and
ends of memberships, as scripts/truth/{author}.py foretold them, up to the time `until` (epoch ms), after which its consumers were killed.

Settings of the broker: {settings}.
"""


def play(parts: Sequence[tuple[str, Scene]]) -> None:
    """Plays scenes side by side to their ends."""
    player = ScenePlayer(parts)
    while not player.over:
        player.step()
        time.sleep(_STEP_SECONDS)


def wait(condition: Callable[[], bool]) -> None:
    """Waits until it holds."""
    while not condition():
        time.sleep(_STEP_SECONDS)


def unstored(stage: Stage, broker: LocalBroker) -> Scene:
    """A third member joins while a group with its members is too large a record for `__consumer_offsets`."""
    one, two = yield from stage.two()
    _allow_bytes(broker, TOO_SMALL_BYTES)
    three = stage.enter("3")
    yield lambda: _failures(broker, stage.group) >= 1
    since = time.monotonic()
    yield lambda: time.monotonic() > since + FAILING_SECONDS
    _allow_bytes(broker, LARGE_BYTES)
    yield stage.share(one, two, three)


def migrates(stage: Stage, _: LocalBroker) -> Scene:
    """Members come back with the other protocol."""
    return staged.migrates_there_and_back(stage)


def orphaned(stage: Stage, broker: LocalBroker) -> Scene:
    """A member dies while the broker starts again."""
    one, two = yield from stage.two(session_ms=PATIENT_MS)
    broker.stop()
    two.kill()
    broker.start()
    yield stage.has_all(one)


ACTS: Final[dict[str, tuple[tuple[str, str, Callable[[Stage, LocalBroker], Scene], Expected], ...]]] = {
    CLASSIC: (("unstored", LIBRDKAFKA, unstored, staged.UNSTORED), ("orphaned", JAVA, orphaned, staged.ORPHANED)),
    CONSUMER: (("migrates", JAVA, migrates, staged.THERE_AND_BACK),),
}
"""What needs the broker for itself, by protocol: group, kind of its second consumer, the act, and what must be told."""


def _allow_bytes(broker: LocalBroker, count: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(count), incremental_operation=AlterConfigOpType.SET)
    offsets = ConfigResource(ResourceType.TOPIC, "__consumer_offsets", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # it has to live until the answer is there
    admin.incremental_alter_configs([offsets])[offsets].result(30)


def _failures(broker: LocalBroker, group: str) -> int:
    """How many assignments of the group were not stored."""
    text = (broker.logs / "server.log").read_text(encoding="utf-8")
    return sum("when storing group assignment" in line and f"group {group} " in line for line in text.splitlines())


def record(version: str, folder: Path, protocol: str) -> Iterator[str]:
    """Plays all scenes of a protocol and writes the recording; yields what it does."""
    truth: list[dict[str, Any]] = []
    settings = SETTINGS if protocol == CLASSIC else SETTINGS | CONSUMER_GROUP_SETTINGS
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        (broker,) = brokers_of(Path(name) / "kafka", 1, version=version, settings=settings, port=free_port())
        broker.start()
        try:
            broker.create_topic(TOPIC, PARTITIONS)
            with Consumers(broker.bootstrap, Path(name) / "clients") as consumers:
                if protocol == CONSUMER:  # of a topic that a broker does not know yet the members would be told later
                    first = consumers.start(LIBRDKAFKA, "first", "first-1", TOPIC)
                    wait(lambda: first.partitions == PARTITIONS)
                stages = [
                    (Stage(consumers, f"{scene.__name__}-{kind}".replace("_", "-"), TOPIC, kind, protocol=protocol), scene, expected)
                    for scene, kinds, expected in _scenes(protocol)
                    for kind in kinds
                ]
                yield f"{len(stages)} scenes side by side"
                play([(stage.group, scene(stage)) for stage, scene, _ in stages])
                truth += [_line(stage.group, expected) for stage, _, expected in stages]
            for group, kind, act, expected in ACTS[protocol]:
                yield group
                with Consumers(broker.bootstrap, Path(name) / "clients") as consumers:
                    stage = Stage(consumers, group, TOPIC, kind)
                    play([(group, act(stage, broker))])
                    truth.append(_line(group, expected))
                    time.sleep(_TAIL_SECONDS)  # heartbeats show that the group is well
        finally:
            broker.kill()
        _write([broker.logs], folder, version, f"one Kafka {version} broker, which was alone", settings, truth)
    yield f"wrote {folder}"


def record_upgrade(old: str, version: str, folder: Path) -> Iterator[str]:
    """Upgrades three brokers while groups of both protocols are at work, and writes the recording; yields what it does."""
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        brokers = brokers_of(Path(name) / "kafka", upgrade.BROKERS, version=old, settings=UPGRADE_SETTINGS, port=free_port())
        try:
            for broker in brokers:
                broker.start()
            brokers[0].create_topic(TOPIC, PARTITIONS)
            bootstrap = ",".join(broker.bootstrap for broker in brokers)
            with Consumers(bootstrap, Path(name) / "clients") as consumers:
                first = consumers.start(LIBRDKAFKA, "first", "first-1", TOPIC)  # the cluster makes __consumer_offsets for it
                wait(lambda: first.partitions == PARTITIONS)
                upgrading = upgrade.Upgrade(brokers, version, lambda said: print(said, flush=True))
                leaders = upgrading.coordinators()
                stages = [(part, Stage(consumers, part.group(leaders), TOPIC, part.kind, protocol=part.protocol)) for part in upgrade.PARTS]
                for _, stage in stages:
                    upgrading.plays(stage.group)
                yield f"{len(stages)} groups"
                play([("upgrade", upgrading.scene()), *((stage.group, part.act(stage, upgrading)) for part, stage in stages)])
                truth = [{**_line(stage.group, part.told), "protocol": part.protocol} for part, stage in stages]
        finally:
            for broker in reversed(brokers):
                broker.kill()
        said = f"three Kafka {old} brokers that were upgraded to {version} one after the other"
        _write([broker.logs for broker in brokers], folder, f"{old} to {version}", said, UPGRADE_SETTINGS, truth)
    yield f"wrote {folder}"


def _line(group: str, expected: Expected) -> dict[str, Any]:
    """What is true of a group until now. Later its consumers are killed, so that the next act has the broker for itself."""
    return {"group": group, "until": time.time_ns() // 1_000_000, **asdict(expected)}


def _scenes(protocol: str) -> Iterator[tuple[Callable[[Stage], Scene], Sequence[str], Expected]]:
    if protocol == CLASSIC:
        yield from ((scene, kinds, expected) for scene, (kinds, expected) in staged.RECORDED.items())
    else:
        yield from ((scene, kinds, staged.OF_CONSUMER_PROTOCOL[scene]) for scene, kinds in staged.CONSUMER_RECORDED.items())


def _write(
    logs: Sequence[Path], folder: Path, version: str, brokers: str, settings: Mapping[str, str], truth: Sequence[dict[str, Any]]
) -> None:
    for source in logs:
        target = folder / f"broker-{logs.index(source) + 1}"
        target.mkdir(parents=True, exist_ok=True)
        for name in ("server.log", "kafka-request.log"):
            (target / f"{name}.gz").write_bytes(gzip.compress((source / name).read_bytes(), mtime=0))
    (folder / "truth.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in truth), encoding="utf-8")
    text = ", ".join(f"{name}={value}" for name, value in settings.items())
    author = "staged" if len(logs) == 1 else "upgrade"
    readme = README.format(version=version, brokers=brokers, author=author, settings=text)
    (folder / "README.md").write_text(readme, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Records; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocol", choices=(CLASSIC, CONSUMER), default=CLASSIC, help="group.protocol of the consumers")
    parser.add_argument("--upgrade-from", choices=RELEASES, metavar="VERSION", help="a rolling upgrade from this release instead")
    chosen = parser.parse_args(argv)
    if chosen.upgrade_from:
        recording = record_upgrade(chosen.upgrade_from, chosen.version, chosen.folder)
    else:
        recording = record(chosen.version, chosen.folder, chosen.protocol)
    for said in recording:
        print(said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
