"""Timers as data: a deadline for each, in the order in which they were set.

Timers end in the order of their deadlines, and those with equal deadlines in the order in which they were set. Setting a timer
again moves it to the end of that order. The dictionary keeps this order, so nothing else has to be stored or copied.

Every heartbeat sets a session timer, and almost none of these timers ends, so setting has to be cheap. `earliest` is therefore
a lower bound of the deadlines. A search makes it exact, and happens only when the bound is reached: once per session timeout in
a group with regular heartbeats.
"""

from __future__ import annotations

from typing import Final

SESSION: Final = "session"
"""The session of a member or of a pending member id. `classicGroupHeartbeatKey`, `heartbeatPurgatory`."""
JOIN: Final = "join"
"""The join phase of a group that rebalances. `classicGroupJoinKey`, DelayedJoin in `rebalancePurgatory`."""
INITIAL_DELAY: Final = "initial_delay"
"""The join phase of a group that was Empty. `tryCompleteInitialRebalanceElseSchedule`, InitialDelayedJoin."""
SYNC: Final = "sync"
"""The sync phase. `classicGroupSyncKey`, DelayedSync."""

NEVER: Final = 2**63 - 1

TimerKey = tuple[str, str, int]
"""(kind, member id or "", number). The number differs from 0 only where a member may have several session timers."""

JOIN_KEY: Final[TimerKey] = (JOIN, "", 0)
INITIAL_DELAY_KEY: Final[TimerKey] = (INITIAL_DELAY, "", 0)
SYNC_KEY: Final[TimerKey] = (SYNC, "", 0)


class Timers:
    """The running timers of one group."""

    __slots__ = ("deadlines", "earliest")

    def __init__(self, deadlines: dict[TimerKey, int] | None = None) -> None:
        self.deadlines: dict[TimerKey, int] = deadlines if deadlines is not None else {}
        self.earliest = min(self.deadlines.values(), default=NEVER)

    def copy(self) -> Timers:
        """Independent timers with the same deadlines."""
        return Timers(self.deadlines.copy())

    def set(self, key: TimerKey, deadline_ms: int) -> None:
        """Start the timer, or start it again."""
        deadlines = self.deadlines
        if key in deadlines:
            del deadlines[key]
        deadlines[key] = deadline_ms
        self.earliest = min(self.earliest, deadline_ms)

    def cancel(self, key: TimerKey) -> None:
        """Stop the timer if it runs."""
        self.deadlines.pop(key, None)

    def clear(self) -> None:
        """Stop all timers."""
        self.deadlines.clear()
        self.earliest = NEVER

    def next_due(self, now_ms: int) -> int:
        """The deadline of the next timer if that is due at `now_ms`, else NEVER."""
        if now_ms < self.earliest:
            return NEVER
        self.earliest = min(self.deadlines.values(), default=NEVER)
        return self.earliest if self.earliest <= now_ms else NEVER

    def pop_due(self, now_ms: int) -> tuple[TimerKey, int] | None:
        """Take out the next timer that is due at `now_ms`, with its deadline; None if there is none."""
        deadline = self.next_due(now_ms)
        if deadline == NEVER:
            return None
        key = next(key for key, at in self.deadlines.items() if at == deadline)
        del self.deadlines[key]
        return key, deadline
