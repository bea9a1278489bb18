"""How far a run is, and what it did in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jobs.common.times import instant

if TYPE_CHECKING:
    from jobs.health.tally import Tally
    from jobs.pipeline.feeder import Feeder


class RunProgress(msgspec.Struct, frozen=True):
    """How far the stages are."""

    stage: str  # the stage that the run waits for
    lines: int = 0
    share: Callable[[], float | None] | None = None  # of the input's bytes, read by now; None: the input has no end, or is not open yet
    slices: int = 0  # cut from the input
    tracked: int = 0  # micro-batches of the tracker
    event_ms: int | None = None
    groups: int = 0
    rebalances: int = 0
    late_events: int = 0

    def text(self) -> str:
        """One line for a terminal."""
        share = self.share() if self.share is not None else None
        if not self.lines and not self.tracked:
            return self.stage if share is None else f"{self.stage}  {share:.0%} of the input"
        parts = [self.stage, f"{self.lines:,} lines" + ("" if share is None else f" ({share:.0%})")]
        parts += [f"{self.slices} slice{'' if self.slices == 1 else 's'}"] if self.slices else []
        if self.event_ms is not None:
            parts.append(f"at {instant(self.event_ms)[:19]}")
            parts.append(f"{self.groups} groups tracked")
            parts.append(f"{self.rebalances} rebalances")
        return "  ".join(parts)


def run_progress(
    stage: str, tally: Tally, *, lines: int = 0, share: Callable[[], float | None] | None = None, slices: int = 0
) -> RunProgress:
    """How far the tracker is by its tally, in a run that has cut this much from its input."""
    summaries = tally.summaries()
    return RunProgress(
        stage,
        lines=lines,
        share=share,
        slices=slices,
        tracked=tally.batches["track"],
        event_ms=max((summary["at_ms"] for summary in summaries), default=None),
        groups=sum(summary["groups"] for summary in summaries),
        rebalances=tally.rebalances,
        late_events=sum(summary["late_events"] for summary in summaries),
    )


class RunResult(msgspec.Struct, frozen=True):
    """What a run did. The accounts are totals of the whole lakehouse, before and after."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    seconds: float
    late_events: int = 0
    signal: int | None = None  # the signal that ended the run
    understood: bool = True  # whether some line of the input is one of a broker, a client or a record
    troubles: Sequence[str] = ()  # lines about files that were not read, or not to their ends
    unread: int = 0  # files that could not be read, or not to their ends

    @property
    def added(self) -> dict[str, int]:
        """The account of this run alone."""
        return {name: total - self.before[name] for name, total in self.after.items()}

    @property
    def nothing_new(self) -> bool:
        """Whether the input held nothing new."""
        return not any(self.added.values())


def result_of(before: Mapping[str, int], after: Mapping[str, int], started: float, feeder: Feeder | None, **more: int | None) -> RunResult:
    """The result of a run that began at this monotonic second. `before` and `after`: accounts of the lakehouse."""
    read = after["lines_read"] > before["lines_read"]
    result = RunResult(before, after, time.monotonic() - started, **more)  # type: ignore[arg-type]  # its own fields
    if feeder is None:
        # Lines of a topic: all that no shipper wrote are refused.
        return replace(result, understood=not read or result.added["quarantined"] < result.added["lines_read"])
    troubles = feeder.troubles
    return replace(result, understood=feeder.understood, troubles=troubles.summary(), unread=len(troubles))
