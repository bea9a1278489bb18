"""Locks of files of a lakehouse: who works in it, who maintains it.

They end with the process that holds them, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jobs.common.errors import LakehouseError, UserError

_LOCK_SECONDS: Final = 0.5
"""How long to try: `is_held` may have the lock, for a moment."""


@contextmanager
def held(path: Path, busy: str, *, shared: bool = False) -> Iterator[None]:
    """The lock. UserError with the text `busy`: somebody else has it. `shared`: others who share it may have it too."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write to the lakehouse {path.parent}: {error.strerror}") from None
    try:
        if not _locked(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            raise UserError(busy)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:  # noqa: PERF203
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def is_held(path: Path) -> bool:
    """Whether a process holds a lock. LakehouseError: that cannot be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LakehouseError(f"cannot read {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)  # and with it the lock, if we got it
    return False


@contextmanager
def free_of_jvm(path: Path, busy: str) -> Iterator[None]:
    """Keeps the JVMs of `hold_in_jvm` out. UserError with the text `busy`: one is still at work, its Python process gone or not.

    Java's locks are those of fcntl, which end when this process closes the file, whoever in it does: so nobody else here may open it.
    """
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(busy) from None
        yield
