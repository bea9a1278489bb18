"""`rebalance run --offsets-from`: a dump of `__consumer_offsets` that lies in the lakehouse and is continued by every run.

The pipeline reads it as a file of its input, so that its records and the lines of logs are told side by side in time. With `once` it
is continued first; else a thread goes on with it while the pipeline follows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.common.errors import UserError
from jobs.kafka import dump_offsets
from jobs.kafka.clients import Cluster, check_cluster_name

_FILE: Final = "captured.jsonl"
_STOP_SECONDS: Final = 10


@dataclass(frozen=True)
class OffsetsFrom:
    """Which cluster to read from, and its name in the tables."""

    bootstrap: str
    cluster: str = "default"
    config: Path | None = None


class OffsetsCapture:
    """The dump of one cluster in a folder. `error` is what it failed with, if it did."""

    def __init__(self, source: OffsetsFrom, folder: Path) -> None:
        check_cluster_name("--offsets-cluster", source.cluster)
        self.folder = folder
        self.error: BaseException | None = None
        self._path = folder / source.cluster / "offsets" / _FILE
        self._cluster = Cluster(source.bootstrap, source.config)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="offsets", daemon=True)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def fetch(self, stopped: Callable[[], bool]) -> None:
        """Continues the dump up to now. UserError: the topic cannot be read."""
        self._dump(stopped, follow=False)

    def start(self) -> None:
        """Continues the dump until `stop`. UserError: the cluster cannot be reached."""
        self._cluster.admin()
        self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end; waits for it, but not for long."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _work(self) -> None:
        try:
            self._dump(self._stop.is_set, follow=True)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            self.error = error

    def _dump(self, stopped: Callable[[], bool], *, follow: bool) -> None:
        after = dump_offsets.continued(self._path)
        try:
            with self._path.open("a", encoding="ascii") as file:

                def write(text: str) -> None:
                    file.write(text + "\n")
                    if follow:
                        file.flush()

                dump_offsets.dump(self._cluster, write, stopped=stopped, follow=follow, after=after)
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from None
