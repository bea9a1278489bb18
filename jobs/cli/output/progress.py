"""Shows how far a run is: one line that changes on a terminal, elsewhere a short line now and then once it has taken a while."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from jobs.pipeline.run_progress import RunProgress

if TYPE_CHECKING:
    from rich.status import Status
    from typing_extensions import Self

_TICK_SECONDS: Final = 0.25
_QUIET_SECONDS: Final = 2.0  # who waits for less need not be told
_PLAIN_SECONDS: Final = 5.0


class Progress:
    """Writes to a console, which knows whether it is a terminal. As a context, it removes the changing line at its end.

    A thread writes, so that a stage which takes long shows its time without being asked.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._newest = RunProgress("")
        self._shown, self._shown_at = ("", ""), 0.0  # the stage, and the text
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="progress", daemon=True)
        self._error: OSError | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(Text(""))
            self._status.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._status is not None:
            self._status.stop()

    def show(self, progress: RunProgress) -> None:
        """Shows the newest state soon. OSError: nobody reads the output any more."""
        self._newest = progress
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            while not self._ended.wait(_TICK_SECONDS):
                self._write(self._newest, time.monotonic() - self._started)
        except OSError as error:
            self._error = error

    def _write(self, progress: RunProgress, seconds: float) -> None:
        stage, text = progress.stage, progress.text()
        if self._status is not None:
            self._status.update(Text(f"{seconds:3.0f} s  {text}"))
        elif (
            seconds >= _QUIET_SECONDS and text != self._shown[1] and (stage != self._shown[0] or seconds - self._shown_at >= _PLAIN_SECONDS)
        ):
            self._console.print(Text(f"{seconds:4.0f} s  {text}"), soft_wrap=True)
            self._shown, self._shown_at = (stage, text), seconds
