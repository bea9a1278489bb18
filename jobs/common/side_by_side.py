"""Work that mostly waits for a disk or a store, done at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_AT_ONCE: Final = 16

One = TypeVar("One")
Found = TypeVar("Found")


def side_by_side(work: Callable[[One], Found], items: Iterable[One]) -> list[Found]:
    """The results in the order of the items. All have ended when this ends. Raises the first error."""
    given = list(items)
    if len(given) < 2:
        return [work(item) for item in given]
    with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as pool:
        return list(pool.map(work, given))
