"""Which files of the input were not read, or not to their ends, and why: nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from jobs.common.text import many, some

_NAMED: Final = 3  # files of one reason that are named; the others are counted

_HALF: Final = "read except for the last line"
_SHORTER: Final = "cut short"
GONE: Final = "gone before the end was read"
DEAD_LINK: Final = "a link to a missing file"


class Troubles:
    """What stands in the way now. `tell` gets a line for each reason when files come to it, once for each file and reason."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self.tell = tell
        self.unread: dict[Path, str] = {}  # files that cannot be read
        self.damaged: dict[Path, str] = {}  # files that were read until they turned out damaged
        self.half: dict[Path, str] = {}  # files whose last line has no end yet
        self.lost: dict[Path, str] = {}  # files that lost lines after these had been read

    def at_scan(self, unread: Mapping[Path, str]) -> None:
        """Takes what a look at all files found. Files that are gone stay in the account."""
        fresh = {path: reason for path, reason in unread.items() if self.unread.get(path) != reason}
        self.unread = {path: reason for path, reason in self.unread.items() if reason == GONE} | dict(unread)
        for line in by_reason("not read", fresh):
            self.tell(line)

    def has_lost(self, path: Path, lines: int, line: int) -> None:
        """Takes that lines which were read are gone from a file, as after a loss of power. `line`: the lines before them."""
        self.lost[path] = f"{many(lines, 'line')} that had been read are gone; reading continues after line {line:,}"
        for told in by_reason(_SHORTER, {path: self.lost[path]}):
            self.tell(told)

    def note_half(self, path: Path, *, waits: bool) -> None:
        """Takes whether a file ends with a line that waits for its end."""
        self.half.pop(path, None)
        if waits:
            self.half[path] = "it has no line end yet; the next run reads it"

    def __len__(self) -> int:
        """How many files were not read, or not to their ends."""
        return len(self.unread.keys() | self.damaged.keys())

    def summary(self) -> list[str]:
        """A line for each reason."""
        troubles = {"not read": self.unread, "damaged, read up to there": self.damaged, _SHORTER: self.lost, _HALF: self.half}
        return [line for what, files in troubles.items() for line in by_reason(what, files)]


def by_reason(what: str, files: Mapping[Path, str]) -> list[str]:
    """`2 files not read: Permission denied: a.log, b.log`, a line for each reason."""
    lines = []
    for reason in sorted(set(files.values())):
        paths = sorted(path for path, its_reason in files.items() if its_reason == reason)
        names = some([*map(str, paths)], _NAMED)
        lines.append(f"{len(paths):,} file{'' if len(paths) == 1 else 's'} {what}: {reason}: {names}")
    return lines
