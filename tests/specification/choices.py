"""Many small choices from few numbers.

Hypothesis takes longer to draw a number than most tests take to use it. So one number stands for several choices, as its digits.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from hypothesis import strategies as st

_EVEN: Final = 1 << 24
"""Hypothesis draws evenly from ranges up to this size. Of larger ones it prefers small numbers."""


def chosen(make: Callable[..., Any], /, **options: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Calls `make` with one of the options of each argument, all equally likely. A failing case shrinks towards the first ones."""
    numbers: list[dict[str, Sequence[Any]]] = [{}]
    for name, some in options.items():
        if prod(map(len, numbers[-1].values())) * len(some) > _EVEN:
            numbers.append({})
        numbers[-1][name] = some

    def made(drawn: tuple[int, ...]) -> Any:
        arguments = {}
        for number, digits in zip(drawn, numbers, strict=True):
            rest = number
            for name, some in digits.items():
                rest, digit = divmod(rest, len(some))
                arguments[name] = some[digit]
        return make(**arguments)

    return st.tuples(*(st.integers(0, prod(map(len, digits.values())) - 1) for digits in numbers)).map(made)
