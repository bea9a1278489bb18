"""Processes beside this one, to which work on large plain logs can be given: Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec


class Workers(msgspec.Struct, frozen=True):
    """`cores`: how many work at the same time. `map`: calls a function with each piece of work; function, work and results are pickled.

    They may lie on other machines, which do not see the logs: then a function returns None.
    """

    cores: int
    map: Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]


THIS_PROCESS: Final = Workers(1, lambda function, work: [*map(function, work)])
"""Does the work itself."""
