"""Commands of `rebalance` as child processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from jobs.common.places import PROJECT
from jobs.demo.bound import bound

STOP_SECONDS: Final = 300


class RebalanceCommand(AbstractContextManager["RebalanceCommand"]):
    """A command of `rebalance` that is started at once. Use it as a context, whose end kills the process unless it has ended."""

    def __init__(self, *arguments: str, log: Path) -> None:
        """`log`: the file for its output."""
        self.name = arguments[0]
        self.log = log
        self.stopped = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603
                bound(sys.executable, "-m", "jobs.cli", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=PROJECT,
                start_new_session=True,  # Ctrl-C reaches the demo alone
            )

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def stop(self) -> int:
        """Stops it with SIGTERM, as systemd does; returns the exit code."""
        self.stopped = True
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """Kills it with SIGKILL, unless it has ended."""
        self.process.kill()
        self.process.wait()

    def last_line(self) -> str:
        """The last line of its output."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def shipped_lines(state: Path) -> int:
    """How many lines have arrived according to the state of a shipper; 0 before it has written one."""
    try:
        streams = json.loads(state.read_text(encoding="utf-8"))["streams"]
    except FileNotFoundError:
        return 0
    return sum(stream["shipped"] for stream in streams)
