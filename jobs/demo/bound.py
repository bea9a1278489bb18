"""Runs a program that does not outlive the process that started it, however that ends: kill -9 of a test leaves nothing behind.

    python jobs/demo/bound.py java -cp ... Main

Linux alone can promise that; elsewhere programs have to end with their standard input, as the ones started here do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """From now on this process gets signal `number` when the thread that started it ends. A program that it becomes (exec) keeps that."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), number)


def bound(*command: str) -> list[str]:
    """The command line that runs a program this way. Its process id is the program's."""
    return [sys.executable, "-I", __file__, *command]  # by its path: whatever the folder is that we are in


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - that is what it is for
