"""The logs of a generated cluster's brokers, and connections to them."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any, Final

from jobs.common.times import EPOCH
from jobs.generate.groups import Member
from jobs.generate.request_text import Api, Times, metadata_api, pieces, tail
from jobs.generate.sentences import Words

PORT: Final = 9_092
RING: Final = 8_192  # milliseconds, more than any interval; a power of two
MASK: Final = RING - 1
DRIFTS: Final = (0, 1, 1, 1, 2, 2, 3, 5)
POOL: Final = 8_179
_EPHEMERAL: Final = range(32_768, 60_999)  # ports of clients, as Linux gives them out


class Book:
    """The brokers. The same numbers are given out in the same order, so that a seed decides every line.

    Lines wait in order of time. Times are milliseconds since `start_ms`, a whole second.
    """

    def __init__(self, brokers: int, start_ms: int, release: str, chance: random.Random) -> None:
        self.requests: list[list[str]] = [[] for _ in range(brokers)]
        """Lines of the request logs."""
        self.sayings: list[list[str]] = [[] for _ in range(brokers)]
        """Lines of the coordinators."""
        self.later: dict[int, list[tuple[list[str], str]]] = {}
        """By their time, lines that are due: the log, and the line without its time."""
        self.now_ms = 0
        self.rebalances = 0
        """That coordinators said they began."""
        self.release = release
        self.words = Words(release)
        self.times = Times(chance)
        self.tail = tail(release)
        self.metadata_api = metadata_api(release)
        self._start_ms = start_ms
        self._stamp = -1, ""
        self._connections = 0
        self._hosts = 0

    def host(self, broker: int) -> str:
        """A broker's address."""
        return f"10.0.0.{broker + 1}"

    def new_host(self) -> str:
        """The address of a new process."""
        self._hosts += 1
        return f"10.{1 + (self._hosts >> 16) % 250}.{self._hosts >> 8 & 255}.{self._hosts & 255}"

    def connection(self, member: Member, broker: int) -> str:
        """A new connection, as brokers name it: 4.x names the network thread too."""
        self._connections += 1
        number = self._connections
        port = _EPHEMERAL[number * 7 % len(_EPHEMERAL)]
        thread = f"{number % 3}-" if self.release.startswith("4") else ""
        return f"{self.host(broker)}:{PORT}-{member.host}:{port}-{thread}{number}"

    def stamp(self, at_ms: int) -> str:
        """A time as log4j writes it, with its brackets, UTC."""
        second, rest = divmod(at_ms, 1_000)
        if second != self._stamp[0]:
            moment = EPOCH + timedelta(milliseconds=self._start_ms + second * 1_000)
            self._stamp = second, f"{moment:[%Y-%m-%d %H:%M:%S,}"
        return f"{self._stamp[1]}{rest:03d}]"

    def say(self, at_ms: int, broker: int, sentence: str, partition: int | None = None) -> None:
        """A sentence of a coordinator: about a group of a partition, or about none."""
        self._put(at_ms, self.sayings[broker], self.words.line(broker, sentence, partition))

    def ask(self, at_ms: int, member: Member, api: Api, bodies: dict[str, Any], waited_ms: int = 0) -> None:
        """A request on a member's connection, and its answer."""
        member.correlation_id += 1
        times = self.times.waited(waited_ms) if waited_ms else self.times.prompt()
        text = "".join(pieces(member.client_id, api, bodies, member.connection))
        self._put(at_ms, self.requests[member.broker], f"{api.header}{member.correlation_id}{text}{times}{self.tail}")

    def _put(self, at_ms: int, log: list[str], line: str) -> None:
        """A line that is due; one of the past is due now."""
        self.later.setdefault(max(at_ms, self.now_ms), []).append((log, line))

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
