"""Runs a program that ends with the process that started it, even if that is killed: kill -9 of a test leaves nothing behind.

    python jobs/demo/bound.py java -cp ... Main

Only Linux can do this. Elsewhere programs must end when their standard input is closed, as the ones started here do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Makes the kernel kill this process when the thread that started it ends. A program that it becomes (exec) inherits this."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def bound(*command: str) -> list[str]:
    """The command line that runs a program this way. The process id stays the same."""
    return [sys.executable, "-I", __file__, *command]  # by path, so that it works in any folder


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted
