"""How tests wait for what other processes and threads do: for a state, never for a time."""

import inspect
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 1_800
"""For what takes a minute on a machine that has nothing else to do, as the start of a pipeline and its first rows do."""


def wait_until(look: Callable[[], Any], wanted: Any = bool) -> Any:
    """Waits until `look` returns the wanted value, or one for which `wanted` is true; returns it.

    The error says for what it waited, what it saw last, and what the variables of `look` are by then.
    """
    began = time.monotonic()
    while not (wanted(found := look()) if callable(wanted) else (found := look()) == wanted):
        waited = time.monotonic() - began
        assert waited < PATIENCE_SECONDS, _in_vain(look, found)
        time.sleep(min(max(waited / 10, 0.02), 0.5))  # to look takes time from those that are waited for
    return found


def _in_vain(look: Callable[[], Any], found: Any) -> str:
    source, variables = inspect.getsource(look).strip(), inspect.getclosurevars(look).nonlocals
    return f"waited {PATIENCE_SECONDS} s in vain for\n{source}\nsaw last: {found!r}, with {variables}"
