"""Records real brokers while real consumers suffer accidents, with what the tables must say of it.

    python -m scripts.truth.record VERSION FOLDER [--protocol consumer]
    python -m scripts.truth.record VERSION FOLDER --upgrade-from VERSION

It writes the logs of the brokers, truth.jsonl and a README.md to FOLDER. The first form plays the scenes of tests/lab/expected.py in two
minutes, those of the consumer protocol and of migrations in four; the second one upgrades three brokers in three minutes
(scripts/truth/upgrade.py). Both foretell what is true of each group. The logs are those of a real run and are not edited.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from jobs.common.places import KAFKA_VERSION, OTHER_KAFKA
from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_GROUP_SETTINGS, LIBRDKAFKA
from jobs.demo.local_broker import LocalBroker, brokers_of, free_port
from jobs.demo.scenes import Scene, ScenePlayer, Stage
from scripts.truth import upgrade
from tests.lab import expected
from tests.lab.expected import Expected
from tests.lab.further_consumers import FurtherConsumers

RELEASES: Final = (KAFKA_VERSION, *OTHER_KAFKA)
TOPIC: Final = "orders"
_PARTITIONS: Final = 6
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000"}
SETTINGS_OF_STAGED: Final = SETTINGS | {"group.max.size": "3"}
_STEP_SECONDS: Final = 0.1
_TAIL_SECONDS: Final = 5.0
_WARM_UP: Final = "first"


class Recorder:
    """Running brokers, and the folder that the recording is written to."""

    def __init__(self, brokers: Sequence[LocalBroker], scratch: Path, folder: Path) -> None:
        self.brokers, self.scratch, self.folder = brokers, scratch, folder
        self.bootstrap = ",".join(broker.bootstrap for broker in brokers)

    def consumers(self) -> FurtherConsumers:
        """Consumers of the cluster."""
        return FurtherConsumers(self.bootstrap, self.scratch / "clients")

    def begin(self, consumers: FurtherConsumers) -> None:
        """Lets one consumer join, for which the cluster makes __consumer_offsets and gets to know the topic."""
        self.brokers[0].create_topic(TOPIC, _PARTITIONS)
        first = consumers.start(LIBRDKAFKA, _WARM_UP, f"{_WARM_UP}-1", TOPIC)
        play([(_WARM_UP, iter([lambda: first.partitions == _PARTITIONS]))])

    def write(self, name: str, content: bytes | Iterable[Mapping[str, Any]]) -> None:
        """Writes a file of the recording: bytes, or lines of JSON. One whose name ends with .gz is compressed."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, bytes) else "".join(f"{json.dumps(line)}\n" for line in content).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)

    def describe(self, settings: Mapping[str, str], **words: str) -> None:
        """Writes README.md."""
        text = Path(__file__).with_name("readme_of_staged.md").read_text(encoding="utf-8")
        said = ", ".join(f"{name}={value}" for name, value in settings.items())
        self.write("README.md", text.format(settings=said, **words).encode())


@contextmanager
def recorded(folder: Path, version: str, settings: Mapping[str, str], count: int = 1) -> Iterator[Recorder]:
    """Starts brokers, and writes their logs to the folder when all is over."""
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        scratch = Path(name)
        brokers = brokers_of(scratch / "kafka", count, version=version, settings=settings, port=free_port())
        try:
            for broker in brokers:
                broker.start()
            recorder = Recorder(brokers, scratch, folder)
            yield recorder
        finally:
            for broker in reversed(brokers):
                broker.kill()
        for broker in brokers:
            for log in ("server.log", "kafka-request.log"):
                recorder.write(f"broker-{broker.node_id}/{log}.gz", (broker.logs / log).read_bytes())


def play(parts: Iterable[tuple[str, Scene]]) -> None:
    """Plays scenes side by side to their ends."""
    player = ScenePlayer(parts)
    while not player.over:
        player.step()
        time.sleep(_STEP_SECONDS)


def _true(group: str, foretold: Expected) -> dict[str, Any]:
    """What is true of a group until now. Later its consumers are killed, so that the next act has the broker for itself."""
    return {"group": group, "until": time.time_ns() // 1_000_000, **asdict(foretold)}


def record_staged(version: str, folder: Path, protocol: str) -> None:
    """Plays all scenes of a protocol side by side, then each act that needs the broker for itself."""
    settings = SETTINGS_OF_STAGED | (CONSUMER_GROUP_SETTINGS if protocol == CONSUMER else {})
    with recorded(folder, version, settings) as recorder:
        with recorder.consumers() as consumers:
            recorder.begin(consumers)
            stages = [
                (Stage(consumers, f"{scene.__name__}-{kind}".replace("_", "-"), TOPIC, kind, protocol=protocol), scene, foretold)
                for scene, kinds, foretold in expected.recorded(protocol)
                for kind in kinds
            ]
            print(f"{len(stages)} scenes side by side", flush=True)
            play((stage.group, scene(stage)) for stage, scene, _ in stages)
            truth = [_true(stage.group, foretold) for stage, _, foretold in stages]
        for act, kind, foretold in expected.alone(protocol):
            with recorder.consumers() as consumers:
                stage = Stage(consumers, act.__name__, TOPIC, kind)
                print(stage.group, flush=True)
                play([(stage.group, act(stage, recorder.brokers[0]))])
                truth.append(_true(stage.group, foretold))
                time.sleep(_TAIL_SECONDS)  # heartbeats show that the group is well
    recorder.write("truth.jsonl", truth)
    said = f"one Kafka {version} broker, which was alone"
    recorder.describe(settings, version=version, brokers=said, author="tests/lab/expected.py")


def record_upgrade(version: str, folder: Path, old: str) -> None:
    """Upgrades three brokers while groups of both protocols are at work."""
    settings = SETTINGS | CONSUMER_GROUP_SETTINGS
    with recorded(folder, old, settings, upgrade.BROKERS) as recorder, recorder.consumers() as consumers:
        recorder.begin(consumers)
        upgrading = upgrade.Upgrade(recorder.brokers, version)
        leaders = upgrading.coordinators()
        stages = [
            (part, Stage(consumers, part.group(leaders), TOPIC, part.kind, protocol=part.protocol, pace=upgrade.PACE))
            for part in upgrade.PARTS
        ]
        for _, stage in stages:
            upgrading.plays(stage.group)
        play([("upgrade", upgrading.scene()), *((stage.group, part.plays(stage, upgrading)) for part, stage in stages)])
        recorder.write("truth.jsonl", [{**_true(stage.group, part.told), "protocol": part.protocol} for part, stage in stages])
    said = f"three Kafka {old} brokers that were upgraded to {version} one after the other"
    recorder.describe(settings, version=f"{old} to {version}", brokers=said, author="scripts/truth/upgrade.py")


def main(argv: Sequence[str] | None = None) -> int:
    """Records; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocol", choices=(CLASSIC, CONSUMER), default=CLASSIC, help="group.protocol of the consumers")
    parser.add_argument("--upgrade-from", choices=RELEASES, metavar="VERSION", help="a rolling upgrade from this release instead")
    chosen = parser.parse_args(argv)
    if chosen.upgrade_from:
        record_upgrade(chosen.version, chosen.folder, chosen.upgrade_from)
    else:
        record_staged(chosen.version, chosen.folder, chosen.protocol)
    print(f"wrote {chosen.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
