"""`rebalance broker`: a real Kafka on this machine, one broker or three, until somebody stops it.

In its folder: `logs/broker-1/server.log` and `kafka-request.log`, as `rebalance ship` and `rebalance run` read them, and what the broker
keeps in `broker-1/`. Nothing outside of the folder is touched, and a folder can be started again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from jobs.errors import UserError
from jobs.interrupts import Interrupts
from jobs.jars import KAFKA_VERSION
from jobs.local_broker import LocalBroker

_STEP_SECONDS: Final = 0.2
_REPLICATED: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "default.replication.factor": "3",
}


def brokers_of(
    folder: Path, count: int, *, port: int = 0, version: str = KAFKA_VERSION, settings: Mapping[str, str] | None = None
) -> list[LocalBroker]:
    """The brokers of a folder, not yet started. The first is the controller, too; it takes `port`, the next ones those behind it.

    `settings`: broker properties beyond those that a cluster of this size needs. None of them outlives this process.
    """
    brokers: list[LocalBroker] = []
    for number in range(1, count + 1):
        broker = LocalBroker(
            folder / f"broker-{number}",
            settings={**(_REPLICATED if count > 1 else {}), **(settings or {})},
            request_log=True,
            groups_only=True,
            node_id=number,
            port=port + number - 1 if port else 0,
            version=version,
            logs=folder / "logs" / f"broker-{number}",
            join=brokers[0] if brokers else None,
            bound=True,
        )
        brokers.append(broker)
    return brokers


def run(folder: Path | None, *, brokers: int, port: int, version: str, topics: list[tuple[str, int]], say: Callable[[str], None]) -> int:
    """Runs until Ctrl-C or SIGTERM; returns the exit code. UserError: it cannot start, or a broker died."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="rebalance-broker-"))
    running: list[LocalBroker] = []
    with Interrupts() as interrupts:
        try:
            _check_count(folder, brokers)
            for broker in brokers_of(folder.resolve(), brokers, port=port, version=version):
                if interrupts.signal is not None:
                    return 0
                say(f"starting broker {broker.node_id} of {brokers}, Kafka {version} ...")
                running.append(broker)
                broker.start()
            for name, partitions in topics:
                _create(running[0], name, partitions)
            say(f"bootstrap: {','.join(broker.bootstrap for broker in running)}")
            say(f"logs:      {folder.resolve() / 'logs'}/broker-N/server.log, kafka-request.log")
            say("Ctrl-C stops it.")
            while interrupts.signal is None:
                dead = [broker for broker in running if not broker.running]
                if dead:
                    raise UserError(f"broker {dead[0].node_id} ended by itself: see {dead[0].logs / 'server.log'}")
                time.sleep(_STEP_SECONDS)
        finally:
            # The controller last: the others take leave of it.
            for broker in reversed(running):
                broker.stop()
    say("stopped")
    return 0


def topic_of(text: str) -> tuple[str, int]:
    """`orders:6` or `orders`, which has one partition."""
    name, _, partitions = text.partition(":")
    number = int(partitions) if partitions.isascii() and partitions.isdigit() else 0 if partitions else 1
    if not name or not 1 <= number <= 1000:
        raise UserError(f"--topic {text}: write NAME or NAME:PARTITIONS")
    return name, number


def _check_count(folder: Path, brokers: int) -> None:
    """A cluster cannot be started with fewer brokers than it was made of, nor with more."""
    there = len(list(folder.glob("broker-*/data/meta.properties")))
    if there not in {0, brokers}:
        raise UserError(f"{folder} holds a cluster of {there}: give --brokers {there}, or another folder")


def _create(broker: LocalBroker, name: str, partitions: int) -> None:
    from confluent_kafka import KafkaError, KafkaException

    try:
        broker.create_topic(name, partitions)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise UserError(f"topic {name} cannot be made: {error.args[0].str()}") from None
