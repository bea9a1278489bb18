"""The files of a spool: slices, which ingest takes one after the other, and parts, which slices name.

A slice counts once `newest` has its number; it never changes afterwards. Ingest deletes it when it has written its rows.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.common.files import write_whole
from jobs.common.stores import Place

_SLICE: Final = re.compile(r"slice-(\d{9})\.parquet")


class SliceFiles:
    """Where they lie. One spool writes them, one query deletes them."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self.slices = folder / "slices"
        self.parts = folder / "parts"
        self.state = folder / "state.json"
        self._newest = folder / "newest"

    def make(self) -> None:
        """Makes the folders."""
        self.slices.mkdir(parents=True, exist_ok=True)
        self.parts.mkdir(exist_ok=True)

    def path(self, number: int) -> Place:
        """The file of a slice."""
        return self.slices / f"slice-{number:09d}.parquet"

    def part(self, number: int, name: object) -> Place:
        """A part of a slice."""
        return self.parts / f"{_prefix(number)}{name}.parquet"

    def newest(self) -> int:
        """The number of the newest slice; 0: there was none."""
        try:
            return int(self._newest.read_bytes())
        except FileNotFoundError:
            return 0

    def publish(self, number: int) -> None:
        """Lets ingest take the slices up to this one."""
        write_whole(self._newest, str(number).encode())

    def present(self) -> list[int]:
        """The slices that were not taken, and those that were never published, ascending."""
        return sorted(int(found[1]) for path in self.slices.iterdir() if (found := _SLICE.fullmatch(path.name)))

    def delete_up_to(self, number: int) -> None:
        """Deletes slices that were taken."""
        for taken in self.present():
            if taken <= number:
                self.path(taken).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Deletes the parts of slices that are not there, or not any more."""
        prefixes = tuple(map(_prefix, self.present()))
        for path in self.parts.iterdir():
            if not path.name.startswith(prefixes):
                path.unlink(missing_ok=True)


def _prefix(number: int) -> str:
    return f"part-{number:09d}-"
