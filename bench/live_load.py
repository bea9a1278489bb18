"""A cluster's logs, written as it happens: for bench/bench_live.py.

Writes FOLDER/kafka-request.log and FOLDER/server.log, each line when its time has come. The lines are those of `rebalance generate`:
groups of 15 members, so many that their heartbeats make up the rate.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO, Final

from jobs.generate.cluster import Cluster
from jobs.generate.sizes import Size
from jobs.generate.steady import HEARTBEAT_MS

MEMBERS: Final = 15
_ROTATE_BYTES: Final = 256 << 20
_PAUSE_SECONDS: Final = 0.02


def write(folder: Path, rate: int, seconds: float, rebalances: float) -> None:
    """Writes about so many lines a second as their time comes, and begins about so many rebalances."""
    folder.mkdir(parents=True, exist_ok=True)
    size = Size(max(round(rate * HEARTBEAT_MS / 1_000 / MEMBERS), 1), MEMBERS, rebalances)
    start_ms = time.time_ns() // 1_000_000_000 * 1_000
    cluster = Cluster(size, release="4.2.0", brokers=1, start_ms=start_ms, seed=1)
    paths = {True: folder / "kafka-request.log", False: folder / "server.log"}
    files: dict[bool, IO[bytes]] = {kind: path.open("ab", buffering=0) for kind, path in paths.items()}
    while (passed_ms := time.time_ns() // 1_000_000 - start_ms) < seconds * 1_000:
        for _ in cluster.advance(passed_ms):
            for is_request, _, lines in cluster.book.take():
                files[is_request].write("".join(lines).encode("ascii"))
        for kind, file in files.items():
            if file.tell() > _ROTATE_BYTES:
                file.close()
                paths[kind].replace(paths[kind].with_name(f"{paths[kind].name}.1"))
                files[kind] = paths[kind].open("ab", buffering=0)
        time.sleep(_PAUSE_SECONDS)
    for file in files.values():
        file.close()
