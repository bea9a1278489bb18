"""Tells how long what this process starts would have taken, had its cores been free of other work.

The kernel says for how long each thread ran and for how long it waited for a core. While threads got half of what they wanted, up to the
cores that they may use, a second counts half. Linux only.
"""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from typing_extensions import Self

_SAMPLE_SECONDS: Final = 0.2


class Undisturbed:
    """A clock that runs while this lasts; slower while others have the cores."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._threads: dict[tuple[int, int], tuple[int, int]] = {}
        self._at = [time.time()]
        self._seconds = [0.0]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="undisturbed", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._at[-1] = time.time()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def until(self, at: float) -> float:
        """The seconds of this clock up to a time."""
        number = max(0, bisect_right(self._at, at) - 1)
        if number + 1 == len(self._at):
            return self._seconds[-1]
        share = (at - self._at[number]) / (self._at[number + 1] - self._at[number])
        return self._seconds[number] + share * (self._seconds[number + 1] - self._seconds[number])

    def _work(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._take()
        self._take()

    def _take(self) -> None:
        ran, waited = (nanoseconds / 1e9 for nanoseconds in self._sample())
        now = time.time()
        passed = now - self._at[-1]
        wanted = min(ran + waited, self._cores * passed)
        self._at.append(now)
        self._seconds.append(self._seconds[-1] + passed * (min(1.0, ran / wanted) if wanted > 0 else 1.0))

    def _sample(self) -> tuple[int, int]:
        """For how long all threads ran and waited since the last sample."""
        before, self._threads = self._threads, {}
        for process in psutil.Process().children(recursive=True):
            for thread in _threads(process.pid):
                with contextlib.suppress(OSError):  # it has ended
                    ran, waited, _ = (thread / "schedstat").read_text(encoding="ascii").split()
                    self._threads[process.pid, int(thread.name)] = int(ran), int(waited)
        since = [(now, before.get(thread, (0, 0))) for thread, now in self._threads.items()]
        return sum(now[0] - then[0] for now, then in since), sum(now[1] - then[1] for now, then in since)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
