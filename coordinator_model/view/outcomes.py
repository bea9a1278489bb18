"""How rebalances end: the values of `rebalances.outcome`."""

from __future__ import annotations

from typing import Final

COMPLETED: Final = "COMPLETED"
SUPERSEDED: Final = "SUPERSEDED"
EMPTIED: Final = "EMPTIED"
ABANDONED: Final = "ABANDONED"
OPEN: Final = "OPEN"
"""It has not ended, as far as the lines so far show: only in rebalances_provisional."""
ENDED: Final = "ENDED"
"""It is OPEN no more: only in rebalances_provisional, where it takes back what was told, and in no view."""
