"""Leaves out what libraries import for nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Final


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - its signature
        """Raises ImportError for pandas; leaves others to the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


_NO_PANDAS: Final = _NoPandas()


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hides pandas, which takes half a second to import, unless it is there already.

    DuckDB would import it with the first bound value, and PyArrow with the first array of NumPy, each to know its types.
    """
    sys.meta_path.insert(0, _NO_PANDAS)
    try:
        yield
    finally:
        sys.meta_path.remove(_NO_PANDAS)
