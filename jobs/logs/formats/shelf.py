"""Keeps archives open: each member would otherwise cost a look through its whole archive."""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from jobs.logs.formats.archives import Archive, opened_archive
from jobs.logs.formats.sources import FileSource, special_kind

_MOST_OPEN: Final = 24
_LOCK: Final = threading.RLock()
_OPEN: Final[OrderedDict[str, tuple[tuple[int, int, int], Archive]]] = OrderedDict()  # by path, with what the file was


def archive_at(path: Path) -> Archive | None:
    """The archive in a file; None if it is none. OSError: it cannot be read, or there is no room to unpack it."""
    key = str(path)
    with _LOCK:
        status = path.stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = _OPEN.get(key)
        if known is not None and known[0] == identity:
            _OPEN.move_to_end(key)
            return known[1]
        _OPEN.pop(key, None)
        archive = opened_archive(FileSource(path))
        if archive is not None:
            _OPEN[key] = (identity, archive)
            if len(_OPEN) > _MOST_OPEN:
                _OPEN.popitem(last=False)
        return archive


def member_at(path: Path) -> tuple[Archive, str]:
    """The archive that a path leads into, and the member's name in it. OSError: there is none."""
    archive = archive_at(file_of(path))
    rest = path.parts[len(file_of(path).parts) :]
    while archive is not None:
        name = "/".join(rest)
        if name in archive.members:
            return archive, name
        outer = next((n for n in range(1, len(rest)) if "/".join(rest[:n]) in archive.members), None)
        if outer is None:
            break
        archive, rest = archive.nested("/".join(rest[:outer])), rest[outer:]
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def file_of(path: Path) -> Path:
    """The file that a path is, or leads into. OSError: there is none."""
    for parent in (path, *path.parents):
        try:
            mode = parent.stat().st_mode
        except NotADirectoryError:
            continue
        if parent != path and special_kind(mode):
            break
        return parent
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
