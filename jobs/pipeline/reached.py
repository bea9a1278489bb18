"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.common.times import instant

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Reached:
    """How far the stages are."""

    stage: str  # what is being waited for
    lines: int = 0
    share: float | None = None  # of the input's bytes; None: it has no end
    slices: int = 0  # cut from the input
    tracked: int = 0  # micro-batches of the tracker
    event_ms: int | None = None
    groups: int = 0
    rebalances: int = 0
    late_events: int = 0

    def text(self) -> str:
        """For a person, on one line."""
        if not self.lines and not self.tracked:
            return self.stage
        parts = [self.stage, f"{self.lines:,} lines" + ("" if self.share is None else f" ({self.share:.0%})")]
        parts.append(f"{self.slices} slice{'' if self.slices == 1 else 's'}")
        if self.event_ms is not None:
            parts.append(f"at {instant(self.event_ms)[:19]}")
            parts.append(f"{self.groups} groups")
            parts.append(f"{self.rebalances} rebalances")
        return "  ".join(parts)
