"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.common.times import instant
from jobs.health.tally import Tally


@dataclass(frozen=True)
class RunProgress:
    """How far the stages are."""

    stage: str  # the stage that the run waits for
    lines: int = 0
    share: float | None = None  # of the input's bytes; None: the input has no end
    slices: int = 0  # cut from the input
    tracked: int = 0  # micro-batches of the tracker
    event_ms: int | None = None
    groups: int = 0
    rebalances: int = 0
    late_events: int = 0

    def text(self) -> str:
        """One line for a terminal."""
        if not self.lines and not self.tracked:
            return self.stage
        parts = [self.stage, f"{self.lines:,} lines" + ("" if self.share is None else f" ({self.share:.0%})")]
        parts.append(f"{self.slices} slice{'' if self.slices == 1 else 's'}")
        if self.event_ms is not None:
            parts.append(f"at {instant(self.event_ms)[:19]}")
            parts.append(f"{self.groups} groups")
            parts.append(f"{self.rebalances} rebalances")
        return "  ".join(parts)


def run_progress(stage: str, tally: Tally, *, lines: int = 0, share: float | None = None, slices: int = 0) -> RunProgress:
    """How far the tracker is by its tally, in a run that has cut this much from its input."""
    summaries = tally.summaries()
    return RunProgress(
        stage,
        lines=lines,
        share=share,
        slices=slices,
        tracked=tally.tracked_batches,
        event_ms=max((summary["at_ms"] for summary in summaries), default=None),
        groups=sum(summary["groups"] for summary in summaries),
        rebalances=tally.rebalances,
        late_events=sum(summary["late_events"] for summary in summaries),
    )
