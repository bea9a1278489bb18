"""Recognises a full disk behind any error, of Python, Delta or Java, and says which folder lies on it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jobs.common.errors import DiskFullError, UserError
from jobs.common.stores import Place

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_WORDS: Final = ("No space left on device", "Disk quota exceeded")  # of errno's texts: what Java and Rust pass on
_LITTLE: Final = 16 << 20  # bytes; a disk with more is not the one that refused a write


@contextmanager
def told_if_full(*folders: Place) -> Iterator[None]:
    """Raises DiskFullError, whatever error a full disk caused inside. `folders`: where the command writes, besides temporary files."""
    try:
        yield
    except Exception as error:
        if not any(map(_is_of_full_disk, chain := _chain(error))):
            raise
        disks = [folder for folder in folders if isinstance(folder, Path)]
        raise DiskFullError(_sentence(chain, [*disks, Path(tempfile.gettempdir())])) from error


def _chain(error: BaseException) -> list[BaseException]:
    """An error and all that it came from."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += (one.__context__, one.__cause__)
    return found


def is_full(error: OSError) -> bool:
    """Whether a disk or a quota had no room for what was to be written."""
    return error.errno in _FULL


def _is_of_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return is_full(error)
    # The text of a UserError may quote a line or a broker.
    return not isinstance(error, UserError) and any(words in str(error) for words in _WORDS)


def _sentence(chain: list[BaseException], folders: list[Path]) -> str:
    is_quota = any(_WORDS[1] in str(error) for error in chain)
    what = "the disk quota is used up" if is_quota else "the disk is full"
    return f"{what}: {_place(chain, folders)}; make room there, then repeat the command: it goes on where it stopped"


def _place(chain: list[BaseException], folders: list[Path]) -> str:
    """The folder that an error names, else the one with the least room; all of them if none has little room left."""
    texts = " ".join(str(error) for error in chain if not isinstance(error, UserError))
    for folder in folders:
        if str(folder.absolute()) in texts:
            return str(folder)
    room = {folder: _room(folder) for folder in folders}
    least = min(folders, key=room.__getitem__)
    return f"{least} ({room[least] >> 10:,} kB left)" if room[least] < _LITTLE else " or ".join(map(str, folders))


def _room(folder: Path) -> int:
    """Bytes that this user may still write on the disk of a folder, which need not exist; 0 where no file can be created."""
    present = next((path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()), Path("/"))
    disk = os.statvfs(present)
    return disk.f_bavail * disk.f_frsize if disk.f_favail or not disk.f_files else 0
