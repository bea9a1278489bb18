"""Tells a silence in a log from a damaged timestamp, by the lines that follow the jump in time.

A damaged digit throws a single line ahead: the lines after it go back to where the log was.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jobs.logs.times import NEVER

_DAY_MS: Final = 86_400_000


class LogEnd(enum.Enum):
    """What to do with a jump at the end of what can be read, where no line follows that would decide."""

    HOLD = "wait for the lines that follow"
    IDLE = "believe it if small; the log may go on"
    END = "believe it if small; nothing follows"


class Jump(enum.Enum):
    """What a jump in time is."""

    TRUE = "the log was silent for that long"
    OUTLIER = "a damaged timestamp"
    OPEN = "not known yet"


@dataclass(frozen=True)
class JumpLimits:
    """How far a line may be ahead of the lines before it."""

    tolerance_ms: int = 60_000  # up to this it is believed without question
    believable_ms: int = 3_600_000  # up to this it is believed where no line follows


JUMP_LIMITS: Final = JumpLimits()


def judge_jump(
    at: int, newest: int, followers: Sequence[int], limits: JumpLimits, *, complete: bool, log_end: LogEnd, witness_ms: int
) -> Jump:
    """Judges a line at `at`, more than the tolerance ahead of `newest`; of NEVER if it is the log's first.

    `followers`: times of the lines after it. `complete`: whether they are as many as are wanted. `witness_ms`: other logs reach up to this.
    """
    if _goes_back(at, newest, followers, limits.tolerance_ms) or (complete and newest == NEVER and _is_long_ago(at, followers)):
        return Jump.OUTLIER
    if complete or witness_ms >= at - limits.tolerance_ms:
        return Jump.TRUE
    if log_end is LogEnd.HOLD:
        return Jump.OPEN
    if followers or newest == NEVER or at - newest <= limits.believable_ms:
        return Jump.TRUE
    return Jump.OUTLIER if log_end is LogEnd.END else Jump.OPEN


def _goes_back(at: int, newest: int, followers: Sequence[int], tolerance_ms: int) -> bool:
    """Whether the log, after a jump to `at`, goes on where it was before the jump.

    A single line proves it if it fits the lines before the jump. Lines that fit neither side need a majority, because
    one of them may be damaged itself.
    """
    before = [follower for follower in followers if follower < at - tolerance_ms]
    if 2 * len(before) > len(followers):
        return True
    return newest != NEVER and any(follower >= newest - tolerance_ms for follower in before)


def _is_long_ago(at: int, followers: Sequence[int]) -> bool:
    """Whether a log begins with a time of long ago and goes on in the present: its first line is damaged."""
    ahead = [follower > at + _DAY_MS for follower in followers]
    return bool(ahead) and ahead[0] and 2 * sum(ahead) > len(ahead)
