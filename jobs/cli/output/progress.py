"""Shows how far a run is: one line that changes on a terminal, elsewhere a short line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.status import Status
from rich.text import Text

from jobs.pipeline.run_progress import RunProgress

if TYPE_CHECKING:
    from typing_extensions import Self

_PLAIN_SECONDS: Final = 5.0


class Progress:
    """Writes to a console, which knows whether it is a terminal. As a context, it removes the changing line at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._shown = RunProgress("")
        self._shown_at = 0.0
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(Text(""))
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, progress: RunProgress) -> None:
        """Shows the newest state, if there is something new to say."""
        seconds = time.monotonic() - self._started
        if self._status is not None:
            self._status.update(Text(f"{seconds:3.0f} s  {progress.text()}"))
            return
        due = progress.stage != self._shown.stage or time.monotonic() - self._shown_at >= _PLAIN_SECONDS
        if due and progress != self._shown:
            self._console.print(Text(f"{seconds:4.0f} s  {progress.text()}"), soft_wrap=True)
            self._shown, self._shown_at = progress, time.monotonic()
