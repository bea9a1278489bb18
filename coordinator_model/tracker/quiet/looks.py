"""When to look again at what is due but waits for something else: the next request, the specification, a member that starts.

The times follow from the time at which it was due, whatever comes in between: so rows do not depend on how often a group is handled. Their
distance is a power of 2, and a wait reaches the next distance at a time that is a multiple of both.
"""

from __future__ import annotations

from typing import Final

_FIRST_MS: Final = 1 << 10
_LOOKS: Final = 1 << 6
"""What waits is looked at every second, and later so many times until its wait has doubled."""


def again_ms(due_ms: int, now_ms: int) -> int:
    """The first look after `now_ms` at what was due at `due_ms`, by then or before."""
    waited_ms = now_ms - due_ms
    step_ms = max(_FIRST_MS, 1 << (waited_ms // _LOOKS).bit_length())
    return due_ms + (waited_ms // step_ms + 1) * step_ms
