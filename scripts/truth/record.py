"""Records a real broker while real consumers suffer accidents, with what the tables must say of it.

    python -m scripts.truth.record VERSION FOLDER [--protocol consumer]

It writes the logs of the broker, truth.jsonl and a README.md to FOLDER. It plays the scenes of tests/lab/expected.py in two minutes, those
of the consumer protocol and of migrations in four. They foretell what is true of each group. The logs are those of a real run and are not
edited.
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
from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_GROUP_SETTINGS, LIBRDKAFKA, Consumers
from jobs.demo.local_broker import LocalBroker, free_port
from jobs.demo.scenes import Scene, ScenePlayer, Stage
from tests.lab import expected
from tests.lab.expected import Expected
from tests.lab.further_consumers import FurtherConsumers

RELEASES: Final = (KAFKA_VERSION, *OTHER_KAFKA)
TOPIC: Final = "orders"
PARTITIONS: Final = 6
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000", "group.max.size": "3"}
_STEP_SECONDS: Final = 0.1
_TAIL_SECONDS: Final = 5.0
_WARM_UP: Final = "first"


@contextmanager
def recorded(folder: Path, version: str, settings: Mapping[str, str], also_logged: Sequence[str] = ()) -> Iterator[LocalBroker]:
    """A broker whose logs are written to the folder when all is over. `also_logged`: further APIs whose requests are."""
    with tempfile.TemporaryDirectory(prefix="record-") as scratch:
        broker = LocalBroker(Path(scratch), version=version, settings=settings, port=free_port(), also_logged=also_logged)
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()
        place = folder / "broker-1"
        place.mkdir(parents=True, exist_ok=True)
        for log in ("server.log", "kafka-request.log"):
            (place / f"{log}.gz").write_bytes(gzip.compress((broker.logs / log).read_bytes(), mtime=0))


def play(parts: Iterable[tuple[str, Scene]]) -> None:
    """Plays scenes side by side to their ends."""
    player = ScenePlayer(parts)
    while not player.over:
        player.step()
        time.sleep(_STEP_SECONDS)


def begin(broker: LocalBroker, consumers: Consumers) -> None:
    """Lets one consumer join, for which the broker makes __consumer_offsets and gets to know the topic."""
    broker.create_topic(TOPIC, PARTITIONS)
    first = consumers.start(LIBRDKAFKA, _WARM_UP, f"{_WARM_UP}-1", TOPIC)
    play([(_WARM_UP, iter([lambda: first.partitions == PARTITIONS]))])


def _true(group: str, foretold: Expected) -> dict[str, Any]:
    """What is true of a group until now. Later its consumers are killed, so that the next act has the broker for itself."""
    return {"group": group, "until": time.time_ns() // 1_000_000, **asdict(foretold)}


def record(version: str, folder: Path, protocol: str) -> None:
    """Plays all scenes of a protocol side by side, then each act that needs the broker for itself."""
    settings = SETTINGS | (CONSUMER_GROUP_SETTINGS if protocol == CONSUMER else {})
    with recorded(folder, version, settings) as broker:
        with FurtherConsumers(broker.bootstrap) as consumers:
            begin(broker, consumers)
            stages = [
                (Stage(consumers, f"{scene.__name__}-{kind}".replace("_", "-"), TOPIC, kind, protocol=protocol), scene, foretold)
                for scene, kinds, foretold in expected.recorded(protocol)
                for kind in kinds
            ]
            print(f"{len(stages)} scenes side by side", flush=True)
            play((stage.group, scene(stage)) for stage, scene, _ in stages)
            truth = [_true(stage.group, foretold) for stage, _, foretold in stages]
        for act, kind, foretold in expected.alone(protocol):
            with FurtherConsumers(broker.bootstrap) as consumers:
                stage = Stage(consumers, act.__name__, TOPIC, kind)
                print(stage.group, flush=True)
                play([(stage.group, act(stage, broker))])
                truth.append(_true(stage.group, foretold))
                time.sleep(_TAIL_SECONDS)  # heartbeats show that the group is well
    (folder / "truth.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in truth), encoding="utf-8")
    text = Path(__file__).with_name("readme_of_staged.md").read_text(encoding="utf-8")
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    (folder / "README.md").write_text(text.format(version=version, settings=said), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Records; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocol", choices=(CLASSIC, CONSUMER), default=CLASSIC, help="group.protocol of the consumers")
    chosen = parser.parse_args(argv)
    record(chosen.version, chosen.folder, chosen.protocol)
    print(f"wrote {chosen.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
