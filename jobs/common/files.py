"""Writes files that exist completely or not at all, whenever the process ends or the power fails; judges who else may read a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jobs.common.stores import Place, StorePath


def write_whole(path: Place, data: bytes) -> None:
    """Writes a file, or replaces it."""
    if isinstance(path, StorePath):
        path.write_bytes(data)
        return
    draft = path.with_name(f"{path.name}.new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


@contextmanager
def written(path: Place) -> Iterator[BinaryIO]:
    """A file to write, which is whole when this ends. It may be there in part before."""
    with path.open("wb") as file:
        yield file
        if isinstance(path, Path):
            file.flush()
            os.fsync(file.fileno())


def sync(path: Place) -> None:
    """Makes the content of a file, or the list of a folder, survive a power failure."""
    if isinstance(path, StorePath):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def foreign_access(status: os.stat_result) -> str:
    """Which users other than its owner may read or change a file; empty if none may.

    The group may read a file that root owns: root hands secrets to services this way, and Kubernetes to containers.
    """
    mode = status.st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return f"{'read' if mode & stat.S_IROTH else 'changed'} by any user of this machine"
    if mode & stat.S_IWGRP or (mode & stat.S_IRGRP and status.st_uid != 0):
        return f"{'changed' if mode & stat.S_IWGRP else 'read'} by its whole group"
    return ""
