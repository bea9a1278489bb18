"""Records a real broker while consumers that read records suffer accidents (scripts/truth/offset_scenes.py), with what that cost.

    python -m scripts.truth.record_offsets VERSION FOLDER [--only NAME]

README.md in FOLDER says what it writes. A recording takes three minutes. The logs are those of a real run and are not edited.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jobs.demo.cluster import brokers_of
from jobs.demo.consumers import CONSUMER_GROUP_SETTINGS, Consumers
from jobs.demo.local_broker import free_port
from jobs.demo.real_consumer import CONSUMER, LIBRDKAFKA
from jobs.demo.scenes import ScenePlayer
from jobs.kafka.clients import Cluster
from jobs.kafka.poll import Poller, follow
from scripts.truth.offset_scenes import PARTITIONS, PARTS, Part, ReadingStage, plays
from scripts.truth.offset_truth import SILENT_MS, Processed, Produced, after_actions, hand_overs
from scripts.truth.record import RELEASES, wait
from tests.lab.steady_producer import TICK_SECONDS, SteadyProducer
from tests.lab.transactional_consumer import KINDS, OUTPUT_SUFFIX, TRANSACTIONAL

ALSO_LOGGED: Final = ("FETCH", "LIST_OFFSETS", "METADATA")
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5000",
}
AT_ONCE: Final = 12
POLL_SECONDS: Final = 2.0
_WARM_UP: Final = "warm-up"
README: Final = """\
# What rebalances cost in records: Kafka {version}

Written by `make record`: one Kafka {version} broker, which was alone, with consumers of librdkafka and of Kafka's Java client, and a
producer that wrote a record to each partition every {tick_ms} ms. Each group has a topic of its own name with {partitions} partitions.
No line of a log is edited. Time zone of the brokers: **UTC**. All times are epoch ms by one clock.

| file | content |
|---|---|
| `broker-1/server.log.gz`, `broker-1/kafka-request.log.gz` | the broker's logs; the latter with the requests {also} |
| `poll/poll.jsonl.gz` | what `rebalance poll` wrote, every {poll:g} s |
| `processed.jsonl.gz` | a line for each record that a consumer processed; `run`: how often this client had been started |
| `produced.jsonl.gz` | a line for each record that was written, with its timestamp |
| `groups.jsonl` | a line for each group: its scene, its clients' settings, and what was done when, up to `until`, when all was over |
| `truth.jsonl` | a line for each hand-over of a partition, computed from `processed` and `produced` (scripts/truth/offset_truth.py) |

A hand-over is told when another process goes on with a partition, and when the same process goes back, leaves records out, or processes
nothing for {silent:g} s although a record waits. A line has the old and the new client and their runs; `stopped_at`: when the old one
processed its last record; `stopped_offset`: the highest offset that anybody had processed; `resumed_at` and `resumed_offset`: the first
record of the new one; `reread`: records it processed again, up to the next hand-over; `skipped`: records between the two offsets that
nobody ever processed; `lag_added`: records written between the two times; `zombie`: the partition stayed where it was, and a former
owner that woke up processed what it still had in hand; `actions`: what was done to the group between the two times, else the last
before.

Settings of the broker: {settings}.
"""


def record(version: str, folder: Path, only: str = "") -> Iterator[str]:
    """Plays the scenes and writes the recording; yields what it does. `only`: those of the groups with this in their names."""
    newer = not version.startswith("3.")
    settings = SETTINGS | (CONSUMER_GROUP_SETTINGS if newer else {})
    parts = [part for part in PARTS if (newer or part.rebalances != CONSUMER) and only in part.group]
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        scratch = Path(name)
        (broker,) = brokers_of(scratch / "kafka", 1, version=version, settings=settings, port=free_port(), also_logged=ALSO_LOGGED)
        broker.start()
        try:
            for part in parts:
                broker.create_topic(part.group, PARTITIONS)
                if part.kind == TRANSACTIONAL:
                    broker.create_topic(part.group + OUTPUT_SUFFIX, PARTITIONS)
            broker.create_topic(_WARM_UP, PARTITIONS)
            yield f"{len(parts)} scenes"
            groups = _play(broker.bootstrap, parts, scratch)
        finally:
            broker.kill()
        _write(scratch, broker.logs, folder, groups)
    text = README.format(
        version=version,
        tick_ms=round(TICK_SECONDS * 1000),
        partitions=PARTITIONS,
        also=", ".join(ALSO_LOGGED),
        poll=POLL_SECONDS,
        silent=SILENT_MS / 1000,
        settings=", ".join(f"{name}={value}" for name, value in settings.items()),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
    yield f"wrote {folder}"


def _play(bootstrap: str, parts: Sequence[Part], scratch: Path) -> list[dict[str, Any]]:
    """Plays the scenes while the cluster is polled; returns the lines about groups."""
    over = threading.Event()
    with Consumers(bootstrap, scratch / "clients", scratch / "processed", KINDS) as consumers:
        first = consumers.start(LIBRDKAFKA, _WARM_UP, f"{_WARM_UP}-1", _WARM_UP)  # the broker makes __consumer_offsets for it
        wait(lambda: first.partitions == PARTITIONS)
        first.leave()
        poller = threading.Thread(target=_poll, args=(bootstrap, scratch / "poll", over))
        poller.start()
        try:
            with SteadyProducer(bootstrap, scratch / "produced.jsonl") as producer:
                stages = [ReadingStage(consumers, producer, part) for part in parts]
                player = ScenePlayer(((stage.group, plays(stage)) for stage in stages), AT_ONCE)
                while not player.over:
                    player.step()
                    over.wait(0.1)
        finally:
            over.set()
            poller.join()
    return [_group_line(stage) for stage in stages]


def _poll(bootstrap: str, folder: Path, over: threading.Event) -> None:
    poller = Poller(Cluster(bootstrap), offsets_each=1)
    follow(poller, folder, every=POLL_SECONDS, once=False, stopped=over.is_set, complain=lambda said: print(said, flush=True))


def _group_line(stage: ReadingStage) -> dict[str, Any]:
    part = stage.part
    return {
        "group": stage.group,
        "topic": stage.topic,
        "scene": part.name or part.scene.__name__,
        "kind": part.kind,
        "rebalances": part.rebalances,
        "commit_every": part.commit_every,
        "record_seconds": part.record_seconds,
        "settings": part.settings,
        "until": stage.actions[-1]["at"],
        "actions": stage.actions,
    }


def read_processed(folder: Path) -> list[Processed]:
    """What all consumers of a folder processed, in order of time. The last line of one that was killed may be cut off."""
    runs: Counter[str] = Counter()
    lines: list[Processed] = []
    files = [(path.stem.rpartition("."), path) for path in folder.glob("*.jsonl")]
    for (client, _, _), path in sorted(files, key=lambda file: int(file[0][2])):
        runs[client] += 1
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        for line in map(json.loads, whole.splitlines()):
            place = {"partition": line["partition"], "offset": line["offset"]}
            lines.append(Processed(at=line["at"], group=line["topic"], client=client, run=runs[client], **place))
    return sorted(lines)


def _write(scratch: Path, logs: Path, folder: Path, groups: Sequence[Mapping[str, Any]]) -> None:
    """Writes the recording."""
    for name in ("server.log", "kafka-request.log"):
        _gzip(folder / "broker-1" / f"{name}.gz", (logs / name).read_bytes())
    _gzip(folder / "poll" / "poll.jsonl.gz", b"".join(path.read_bytes() for path in sorted((scratch / "poll").glob("*.jsonl"))))
    written = (scratch / "produced.jsonl").read_text(encoding="utf-8")
    processed, produced = read_processed(scratch / "processed"), sorted(Produced(**json.loads(line)) for line in written.splitlines())
    _gzip(folder / "processed.jsonl.gz", _lines(line._asdict() for line in processed))
    _gzip(folder / "produced.jsonl.gz", _lines(line._asdict() for line in produced))
    (folder / "groups.jsonl").write_bytes(_lines(groups))
    told = after_actions(hand_overs(processed, produced), {line["group"]: line["actions"] for line in groups})
    (folder / "truth.jsonl").write_bytes(_lines(told))


def _gzip(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0))


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows).encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Records; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="only the groups with this in their names")
    chosen = parser.parse_args(argv)
    for said in record(chosen.version, chosen.folder, chosen.only):
        print(said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
