"""What comes through a pipe, as a file: commands that read their input more than once take both."""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from jobs.cli.output.terminal import warn
from jobs.common.disks import told_if_full
from jobs.common.errors import UserError

STANDARD_INPUT: Final = "standard input"
"""The name of that in all output, and of the file that holds its lines."""


def is_pipe(path: Path) -> bool:
    """Whether a path is a pipe, such as the shell's <( )."""
    return path.exists() and stat.S_ISFIFO(path.stat().st_mode)


@contextmanager
def as_file(path: Path) -> Iterator[tuple[Path, str]]:
    """The file or folder to read, and its name for people. What a pipe brings lies in a file meanwhile; - is standard input."""
    if str(path) == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UserError("standard input is closed: give PATH, or lines in a pipe")
        if sys.stdin.isatty():
            warn("paste the lines, then press Enter and Ctrl-D")
        with _copied(sys.stdin.buffer, STANDARD_INPUT) as copy:
            yield copy, STANDARD_INPUT
    elif is_pipe(path):
        with path.open("rb") as pipe, _copied(pipe, path.name) as copy:
            yield copy, str(path)
    else:
        yield path, str(path)


@contextmanager
def _copied(lines: BinaryIO, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rebalance-input-") as folder:
        file = Path(folder, name)
        with told_if_full(Path(folder)), file.open("wb") as copy:
            shutil.copyfileobj(lines, copy)
        try:
            yield file
        except UserError as error:
            raise UserError(str(error).replace(str(file), name)) from None
