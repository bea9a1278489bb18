"""`rebalance broker`: a real Kafka on this machine, one broker or three, until somebody stops it.

In its folder: `logs/broker-1/server.log` and `kafka-request.log`, as `rebalance ship` and `rebalance run` read them, and what the broker
keeps in `broker-1/`. Nothing outside of the folder is touched, and a folder can be started again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.demo.cluster import brokers_of
from jobs.demo.local_broker import LocalBroker

_STEP_SECONDS: Final = 0.2


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
