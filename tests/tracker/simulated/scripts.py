"""Random scripts of the members of one group: who starts, stalls, dies, closes and comes back; failing writes; moves to another broker."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from coordinator_model.clients.client import ClientConfig
from coordinator_model.clients.simulation import Application
from coordinator_model.errors import Error

RELEASES = ("3.9.1", "4.2.0")
LENGTH_MS = 150_000
_APPEND_ERRORS = (Error.NOT_ENOUGH_REPLICAS, Error.MESSAGE_TOO_LARGE)


@dataclass(frozen=True)
class Script:
    """One run of a group."""

    release: str
    applications: tuple[Application, ...]
    append_errors: tuple[tuple[int, int, Error], ...] = ()
    moves: tuple[tuple[int, int], ...] = ()  # when another broker takes the group over, and how long that takes


def script(seed: int) -> Script:
    """The script of a seed. The same seed gives the same script."""
    chance = random.Random(seed)
    release = chance.choice(RELEASES)
    applications: list[Application] = []
    for number in range(chance.randint(1, 5)):
        name = f"app{number}"
        config = replace(
            ClientConfig.of(release, name, (("range", b"t"),)),
            session_timeout_ms=chance.choice((6_000, 10_000)),
            max_poll_interval_ms=chance.choice((15_000, 30_000)),
            heartbeat_interval_ms=chance.choice((1_000, 2_000)),
            request_timeout_ms=60_000,
            group_instance_id=f"{name}-instance" if chance.random() < 0.3 else None,
        )
        starts_ms = chance.randrange(0, LENGTH_MS // 2)
        for _ in range(chance.randint(1, 3)):  # one process after the other
            ends_ms = starts_ms + chance.randrange(2_000, LENGTH_MS // 2)
            how = chance.choice(("dies", "closes", "runs on"))
            stalls = ()
            if chance.random() < 0.3:
                begin = chance.randrange(starts_ms, ends_ms)
                stalls = ((begin, begin + chance.randrange(1_000, 60_000)),)
            applications.append(
                Application(
                    config,
                    starts_ms,
                    poll_every_ms=chance.choice((300, 1_000, 3_000)),
                    stalls=stalls,
                    dies_ms=ends_ms if how == "dies" else None,
                    closes_ms=ends_ms if how == "closes" else None,
                )
            )
            if how == "runs on":
                break
            starts_ms = ends_ms + chance.randrange(100, 30_000)
    errors: tuple[tuple[int, int, Error], ...] = ()
    if chance.random() < 0.3:
        begin = chance.randrange(0, LENGTH_MS)
        errors = ((begin, begin + chance.randrange(100, 10_000), chance.choice(_APPEND_ERRORS)),)
    moves = ((chance.randrange(1_000, LENGTH_MS), chance.randrange(10, 8_000)),) if chance.random() < 0.3 else ()
    return Script(release, tuple(applications), errors, moves)
