"""A server on this machine that is one process: what a broker and an object store have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

    from typing_extensions import Self


class LocalServer(ABC):
    """Use it as a context, or call `start` and `stop`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Starts it and waits until it answers. UserError: it cannot start, and why."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it."""

    def kill(self) -> None:
        """Ends it at once, as `kill -9` and power cuts do."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None
