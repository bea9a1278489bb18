"""Tells a silence in a log from a damaged timestamp, by the lines that follow the jump in time.

A damaged digit throws a single line ahead: the lines after it go back to where the log was.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

from jobs.logs.times import NEVER

TOLERANCE_MS: Final = 60_000
"""By default, how far a line may be ahead of the lines before it: a smaller jump is always believed."""
_BELIEVABLE_MS: Final = 3_600_000  # a smaller jump is believed where no line follows
_DAY_MS: Final = 86_400_000
_ZONE_MS: Final = 900_000  # time zones differ by multiples of it
LEAST_STEP_MS: Final = 1_000
"""How far the time of a broker's log goes back at least where its clock was set back. Threads write some milliseconds out of order."""


class LogEnd(enum.Enum):
    """What to do with a jump at the end of the readable bytes, where no later line decides."""

    HOLD = "wait for the lines that follow"
    IDLE = "believe it if small; the log may continue"
    END = "believe it if small; nothing follows"


class Jump(enum.Enum):
    """What a jump in time is."""

    TRUE = "the log was silent for that long"
    OUTLIER = "a damaged timestamp"
    OPEN = "not known yet"
    BACK = "the time goes back, perhaps as the clock was set back"


def judge_jump(
    at: int, newest: int, last: int, followers: Sequence[int], tolerance_ms: int, *, complete: bool, log_end: LogEnd, witness_ms: int
) -> Jump:
    """Judges a line whose time `at` is more than the tolerance ahead of `newest` (NEVER if the line is the log's first).

    `last`: the time of the line before it. `followers`: times of the lines after it. `complete`: whether there are enough of them.
    `witness_ms`: how far other logs reach.
    """
    # An export may list its newest line first: the first of a few lines is damaged only if it is far from all of them.
    few = newest == NEVER and not complete and at - min(followers, default=at) <= _DAY_MS
    if (not few and _goes_back(at, last, followers, tolerance_ms)) or (complete and newest == NEVER and _is_long_ago(at, followers)):
        return Jump.OUTLIER
    if complete or witness_ms >= at - tolerance_ms:
        return Jump.TRUE
    if log_end is LogEnd.HOLD:
        return Jump.OPEN
    if followers or newest == NEVER or at - newest <= _BELIEVABLE_MS:
        return Jump.TRUE
    return Jump.OUTLIER if log_end is LogEnd.END else Jump.OPEN


def _goes_back(at: int, last: int, followers: Sequence[int], tolerance_ms: int) -> bool:
    """Whether the lines after a jump to `at` continue from the line before the jump, whose time is `last`.

    A single line proves it. Lines of an earlier time do not: another excerpt begins with them. Nor does any line if the one behind the jump
    goes on from there: both were written so, and what follows is another excerpt, too. But several lines may come from a clock of
    another time zone.
    """
    before = [follower for follower in followers if last - tolerance_ms <= follower < at - tolerance_ms]
    if last == NEVER:
        return 2 * len(before) > len(followers)
    is_block = bool(followers) and followers[0] >= at and (at - last + tolerance_ms) % _ZONE_MS > 2 * tolerance_ms
    return bool(before) and not is_block


def _is_long_ago(at: int, followers: Sequence[int]) -> bool:
    """Whether the first line is much older than the lines after it: its time is damaged."""
    ahead = [follower > at + _DAY_MS for follower in followers]
    return bool(ahead) and ahead[0] and 2 * sum(ahead) > len(ahead)
