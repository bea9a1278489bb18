"""Timers as data: what ends when, in the order in which it was set.

A coordinator that is asked `what is due at this time` answers with one timer after the other: the earliest deadline
first, and of equal deadlines the one that was set first. Setting a timer again moves it to the end of that order. The
order of the dictionary is the order of setting, so nothing else needs to be kept, copied or restored.

A session timer is set again by every heartbeat and almost never ends, so setting is what has to be cheap. `earliest` is
a lower bound, not the earliest deadline: it is true again after each search, and a search is needed only when the bound
is reached, once per session timeout for a group that heartbeats.
"""

from __future__ import annotations

from typing import Final

SESSION: Final = "session"
"""A member's session, (SESSION, member id), or (SESSION, member id, number) where it may have several. Kafka's
`classicGroupHeartbeatKey`, `heartbeatPurgatory`. A pending member id has one too."""
JOIN: Final = "join"
"""The join phase of a group that rebalances. `classicGroupJoinKey`, DelayedJoin in `rebalancePurgatory`."""
INITIAL_DELAY: Final = "initial_delay"
"""The join phase of a group that was Empty. `tryCompleteInitialRebalanceElseSchedule`, InitialDelayedJoin."""
SYNC: Final = "sync"
"""The sync phase. `classicGroupSyncKey`, DelayedSync."""

NEVER: Final = 2**63 - 1

TimerKey = tuple[str, str, int]
"""(kind, member id or "", number)."""

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
        """Timers of their own, running alike."""
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
        """Stop all."""
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
