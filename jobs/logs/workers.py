"""Processes beside this one, to which work on large plain logs can be given: Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")


class Distribute(Protocol):
    """Calls a function in other processes. Function, work and results are pickled."""

    def __call__(self, function: Callable[[Work], Result], work: Sequence[Work], /) -> Sequence[Result]:
        """The results, in the order of the work."""
        ...


@dataclass(frozen=True)
class Workers:
    """`cores`: how many work at the same time. They may lie on other machines, which do not see the logs: then a function returns None."""

    cores: int
    map: Distribute
