"""Turns Ctrl-C and SIGTERM into a request to stop, which the program checks between two steps."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from jobs.common import exit_codes

if TYPE_CHECKING:
    from typing_extensions import Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def removing_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the program as Ctrl-C does, by an exception: folders that it made for itself are removed."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(exit_codes.ENDED_BY_SIGNAL + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Interrupts:
    """A context in which the first signal is only remembered. A second signal does what it always does."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.getsignal(number) for number in _SIGNALS}
            self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    @contextmanager
    def excused(self) -> Iterator[None]:
        """Inside, what fails once a signal has come ends this and is no error: a JVM that got the same signal is often gone first."""
        try:
            yield
        except Exception:
            if self.signal is None:
                raise

    def happened(self) -> bool:
        """Whether a signal came."""
        return self.signal is not None

    def install(self) -> None:
        """Installs the handlers, again if another program has replaced them."""
        if self._previous and self.signal is None:
            for number in _SIGNALS:
                signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
