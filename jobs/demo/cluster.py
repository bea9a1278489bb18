"""The brokers of one folder: a single broker, or a cluster of three."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs.common.places import KAFKA_VERSION
from jobs.demo.local_broker import LocalBroker


def brokers_of(
    folder: Path,
    count: int,
    *,
    port: int = 0,
    version: str = KAFKA_VERSION,
    settings: Mapping[str, str] | None = None,
    also_logged: Sequence[str] = (),
) -> list[LocalBroker]:
    """The brokers of a folder, not yet started. The first one is also the controller. It listens on `port`, the others on the next ports.

    `settings`: further broker properties. `also_logged`: further APIs whose requests are logged.
    """
    brokers: list[LocalBroker] = []
    for number in range(1, count + 1):
        broker = LocalBroker(
            folder / f"broker-{number}",
            settings=settings,
            request_log=True,
            also_logged=also_logged,
            node_id=number,
            port=port + number - 1 if port else 0,
            version=version,
            logs=folder / "logs" / f"broker-{number}",
            join=brokers[0] if brokers else None,
            replicas=count,
        )
        brokers.append(broker)
    return brokers
