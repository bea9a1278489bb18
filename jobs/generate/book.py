"""Lines on their way into the logs of a cluster's brokers, in order of time."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from jobs.common.times import EPOCH

_THREE: Final = tuple(f"{number:03d}]" for number in range(1_000))


class Book:
    """The lines of a short while, by broker. Times are milliseconds since `start_ms`, a whole second."""

    def __init__(self, brokers: int, start_ms: int) -> None:
        self.requests: list[list[str]] = [[] for _ in range(brokers)]
        self.sayings: list[list[str]] = [[] for _ in range(brokers)]
        """Lines of the coordinators."""
        self.start_ms = start_ms
        self.now_ms = 0
        self.later: dict[int, list[tuple[list[str], str]]] = {}
        """By their time, lines that are due: the log, and the line without its time."""
        self._second = -1
        self._stamp = ""

    def put(self, at_ms: int, log: list[str], line: str) -> None:
        """A line that is due; one of the past is due now."""
        self.later.setdefault(max(at_ms, self.now_ms), []).append((log, line))

    def stamp(self, at_ms: int) -> str:
        """A time as log4j writes it, with its brackets, UTC."""
        second, rest = divmod(at_ms, 1_000)
        if second != self._second:
            self._second = second
            moment = EPOCH + timedelta(milliseconds=self.start_ms + second * 1_000)
            self._stamp = f"{moment:[%Y-%m-%d %H:%M:%S},"
        return self._stamp + _THREE[rest]

    def write(self, at_ms: int) -> None:
        """Write the lines that are due in a millisecond."""
        stamp = self.stamp(at_ms)
        for log, line in self.later.pop(at_ms):
            log.append(f"{stamp}{line}")

    def take(self) -> list[tuple[bool, int, list[str]]]:
        """The lines written since the last call: whether they are requests, the broker, the lines."""
        taken = []
        for is_request, logs in ((True, self.requests), (False, self.sayings)):
            for broker, lines in enumerate(logs):
                if lines:
                    taken.append((is_request, broker, lines.copy()))
                    lines.clear()
        return taken
