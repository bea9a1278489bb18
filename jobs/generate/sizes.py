"""The clusters that can be generated."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_LARGEST: Final = 2_000  # of the groups with Zipf sizes


@dataclass(frozen=True)
class Size:
    """How many groups of how many members, and how much happens to them."""

    groups: int
    members: int
    """Of each group; of the largest one if `zipf`."""
    rebalances: float
    """Begin in a second, about."""
    zipf: bool = False
    """The n-th largest group has an n-th of the largest group's members, and one at least."""
    commits: bool = False
    fetches: bool = False
    """Of groups that commit and are of one size: those that read the same topic agree how many partitions it has."""

    def sizes(self, chance: random.Random) -> list[int]:
        """The members of each group."""
        if not self.zipf:
            return [self.members] * self.groups
        sizes = [max(self.members // rank, 1) for rank in range(1, self.groups + 1)]
        chance.shuffle(sizes)
        return sizes

    def text(self) -> str:
        """For help texts."""
        groups = f"{self.groups:,} group{'s' if self.groups > 1 else ''} of"
        members = f"1 to {self.members:,} members (Zipf)" if self.zipf else f"{self.members:,} members"
        more = [name for name, has in (("commits", self.commits), ("fetches", self.fetches)) if has]
        return f"{groups} {members}" + (f", with {' and '.join(more)}" if more else "")


SIZES: Final = {
    "S": Size(100, 5, 0.2),
    "M": Size(2_000, 25, 3.0),
    "L": Size(10_000, 50, 3.0),
    "Z": Size(5_000, _LARGEST, 3.0, zipf=True, commits=True),
    "F": Size(2_000, 25, 3.0, commits=True, fetches=True),
    "one": Size(1, 10_000, 1 / 60),
}
"""By the name that `--size` takes."""
