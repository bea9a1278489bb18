"""How rebalances end: the values of `rebalances.outcome`."""

from __future__ import annotations

from typing import Final

COMPLETED: Final = "COMPLETED"
SUPERSEDED: Final = "SUPERSEDED"
EMPTIED: Final = "EMPTIED"
ABANDONED: Final = "ABANDONED"
