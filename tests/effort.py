"""How much of many equal cases `make test` tries. `make test-long` tries the others."""

from collections.abc import Iterable

import pytest


def every(step: int, cases: Iterable[object]) -> list[object]:
    """All cases: every `step`th, from the first on, for `make test`, and the others for `make test-long`."""
    return [case if number % step == 0 else long(*case if isinstance(case, tuple) else (case,)) for number, case in enumerate(cases)]


def long(*values: object, id: str | None = None) -> object:  # noqa: A002 - pytest's name
    """A case for `make test-long` alone, with these values of its parameters."""
    return pytest.param(*values, marks=pytest.mark.long, id=id)
