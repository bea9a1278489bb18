"""The interface by which the log reader asks about each line, for every kind of log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from jobs.logs.bytes import LogBytes
from jobs.logs.mark import Mark


class LineJudge(ABC):
    """Decides which lines of one log are kept. It may remember earlier lines, in the mark alone."""

    bare: Callable[[bytes], bytes] | None = None  # takes off what stands around a line; None if nothing ever does
    # The indexes of those lines around which something may stand, of a text and its lines; None if none can be ruled out.
    candidates: Callable[[bytes, Sequence[bytes]], Iterable[int]] | None = None
    leaves_own = False  # whether `bare` leaves each line as it is that begins as Kafka's own configuration writes it
    repeats = False  # whether lines of heartbeats that repeat others may be taken without asking (jobs/logs/heartbeats/beats.py)
    has_context = False  # whether `context` says anything

    def __init__(self, mark: Mark) -> None:
        self.mark = mark

    def begin(self, lines: Iterable[bytes], log: Callable[[], LogBytes]) -> None:  # noqa: B027 - most kinds of logs need no look ahead
        """Receives the first lines of the log before it judges any of them. `log` opens it."""

    @abstractmethod
    def timed(self, line: bytes, fault: str) -> str | None:
        """Judges a line with a time: None to skip it, "" to keep it, else why it cannot be trusted. `fault`: that of its bytes.

        An API of `fetches.BY_NUMBERS`: numbers may be taken of it, else it is skipped.
        """

    @abstractmethod
    def untimed(self, line: bytes, fault: str) -> str:
        """Judges a line without a time: "" to skip it, else why it cannot be trusted. `fault`: that of its bytes."""

    def concerns(self, line: bytes) -> bool:  # noqa: ARG002
        """Whether a line with a damaged time is kept."""
        return True

    def context(self, line: bytes) -> str:  # noqa: ARG002
        """What other lines say about a kept line."""
        return ""
