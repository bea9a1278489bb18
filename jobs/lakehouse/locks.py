"""Locks of a lakehouse: one process works in it, one maintains it. A lock ends with its process, however that ends.

On disk it is a lock of a file, in an object store a lease (leases.py), which ends a moment later.

The package `filelock` does not fit: its shared locks are SQLite files, which other versions of this program would not respect.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from jobs.common.errors import LakehouseError, UserError
from jobs.common.stores import Place, StorePath
from jobs.lakehouse import leases

_LOCK_SECONDS: Final = 0.5
"""How long to try: `is_held` takes the lock for a moment."""


@contextmanager
def held(path: Place, busy: str, *, shared: bool = False) -> Iterator[None]:
    """Holds the lock, alone or `shared` with others. UserError with the text `busy`: another process holds it.

    A lease cannot be shared.
    """
    if isinstance(path, StorePath):
        with leases.held([path], busy):
            yield
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write to the lakehouse {path.parent}: {error.strerror}") from None
    deadline = time.monotonic() + _LOCK_SECONDS
    try:
        while not _locked(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise UserError(busy)
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def all_held(paths: Sequence[Place], busy: str) -> Iterator[None]:
    """Holds locks of one lakehouse. UserError with the text `busy`: another process holds one."""
    with ExitStack() as stack:
        if stores := [path for path in paths if isinstance(path, StorePath)]:
            stack.enter_context(leases.held(stores, busy))
        for path in paths:
            if not isinstance(path, StorePath):
                stack.enter_context(held(path, busy))
        yield


def is_held(path: Place) -> bool:
    """Whether a process holds a lock. LakehouseError: the file cannot be read."""
    if isinstance(path, StorePath):
        return leases.is_held(path)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LakehouseError(f"cannot read {path}: {error.strerror}") from None
    try:
        return not _locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)  # releases the lock, if it was free


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def free_of_jvm(path: Place, busy: str) -> Iterator[None]:
    """Keeps out JVMs that lock the file (jobs/pipeline/jvm.py). UserError with the text `busy`: one still works, maybe without its Python.

    Java's locks are those of fcntl. They end when any part of this process closes the file, so nothing else here may open it. A lease has
    run out when the JVM has gone.
    """
    if isinstance(path, StorePath):
        yield
        return
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(busy) from None
        yield
