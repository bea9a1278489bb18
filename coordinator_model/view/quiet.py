"""What a silence of a member is judged by."""

from __future__ import annotations

from typing import Final, NamedTuple

MISSED: Final = 2
"""A member that was silent for two of its heartbeat intervals has missed a heartbeat, however late the last one was."""


class Quiet(NamedTuple):
    """The figures of a member, for diagnosis/silences.py. Times are -1 where no line shows them."""

    heard_ms: int = -1  # when it was last heard (ObservedMember.seen_ms), or the answer that others had to wait for
    interval_ms: int = -1  # between its heartbeats, on the average
    called_ms: int = -1  # last heartbeat whose answer called it to rejoin
    called: bool = False  # nothing was heard of it since
    woke_ms: int = -1  # when it was last heard again after a silence, while the group rebalanced
    woke_from: str = ""  # and what that silence was
    commit_ms: int = -1  # last accepted commit
    limit_ms: int = -1  # max.poll.interval.ms
    is_static: bool = False
    gap_ms: int = -1  # its longest silence before
    stalled_ms: int = -1  # when its client's log said that max.poll.interval.ms had passed
    over_ms: int = 0  # and how long before
    assigning: bool = False  # the group waits for the assignment that it has to make as the leader

    def misses_one(self, at_ms: int) -> bool:
        """Whether a heartbeat of the member is missing if it is not heard until then."""
        return 0 < MISSED * self.interval_ms <= at_ms - self.heard_ms
