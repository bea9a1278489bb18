"""What a run of the pipeline did."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.pipeline.feeder import Feeder


@dataclass(frozen=True)
class RunResult:
    """What a run did. The accounts are totals of the whole lakehouse, before and after."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    seconds: float
    late_events: int = 0
    signal: int | None = None  # the signal that ended the run
    understood: bool = True  # whether some line of the input is one of a broker, a client or a record
    troubles: Sequence[str] = ()  # lines about files that were not read, or not to their ends
    unread: int = 0  # files that could not be read

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
    return replace(
        result,
        understood=feeder.understood,
        troubles=troubles.summary(),
        unread=len(troubles.unread),
    )
