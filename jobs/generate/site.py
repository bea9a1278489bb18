"""What all groups of a generated cluster share: its brokers' addresses, and how its lines end."""

from __future__ import annotations

import random

from jobs.generate.book import Book
from jobs.generate.groups import Member
from jobs.generate.request_text import Times, metadata_api, tail

_EPHEMERAL = range(32_768, 60_999)  # ports of clients, as Linux gives them out


class Site:
    """The brokers. The same numbers are given out in the same order, so that a seed decides every line."""

    port = 9_092

    def __init__(self, brokers: int, start_ms: int, release: str, chance: random.Random) -> None:
        self.book = Book(brokers, start_ms)
        self.times = Times(chance)
        self.tail = tail(release)
        self.metadata = metadata_api(release)
        self._java = release.startswith("4")
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
        thread = f"{number % 3}-" if self._java else ""
        return f"{self.host(broker)}:{self.port}-{member.host}:{port}-{thread}{number}"
