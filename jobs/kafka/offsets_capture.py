"""`rebalance run --offsets-from`: keeps a dump of `__consumer_offsets` in the lakehouse, which every run continues.

The pipeline reads the dump as a file of its input, so that its records and the lines of logs are processed side by side in time. A run with
`--once` continues the dump first; otherwise a thread continues it while the pipeline runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.kafka.clients import Cluster, check_cluster_name
from jobs.kafka.dump_offsets import dump_to_file

if TYPE_CHECKING:
    from typing_extensions import Self

_FILE: Final = "captured.jsonl"
_STOP_SECONDS: Final = 10


@dataclass(frozen=True)
class OffsetsFrom:
    """The cluster to read from, and its name in the tables. `commits`: read the committed offsets, too."""

    bootstrap: str
    cluster: str = "default"
    config: Path | None = None
    commits: bool = False


class OffsetsCapture:
    """The dump of one cluster in a folder, which is continued for as long as this context lasts; `once`: up to now, before it begins.

    UserError: the cluster cannot be reached, or the topic cannot be read. `error`: why the thread failed, if it did.
    """

    def __init__(self, source: OffsetsFrom, folder: Path, stopped: Callable[[], bool], *, once: bool) -> None:
        """`stopped`: whether to end before all is read."""
        check_cluster_name("--offsets-cluster", source.cluster)
        self.folder = folder
        self.error: BaseException | None = None
        self._path = folder / source.cluster / "offsets" / _FILE
        self._commits = source.commits
        self._cluster = Cluster(source.bootstrap, source.config)
        self._stopped, self._once = stopped, once
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="offsets", daemon=True)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        if self._once:
            dump_to_file(self._cluster, self._path, stopped=self._stopped, commits=self._commits)
        else:
            self._cluster.admin()  # which says at once whether it can be reached
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _follow(self) -> None:
        try:
            dump_to_file(self._cluster, self._path, stopped=self._stop.is_set, commits=self._commits, follow=True)
        except Exception as error:  # noqa: BLE001 - the main thread reports it
            self.error = error
