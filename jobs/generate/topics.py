"""Topics of a generated cluster: their ids, who leads their partitions, and how far they are written at any time."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass
from typing import Final

_IDLE_EVERY_MS: Final = 20_000
_BUSY_MS: Final = 19_000
"""Of each such span; nothing is written in the rest, so that some fetches find nothing."""
_RATES: Final = (5, 10, 10, 20, 40)
_REPLICAS: Final = 3


@dataclass(frozen=True)
class Topic:
    """A topic. Its producers give each partition as many records."""

    name: str
    number: int
    topic_id: str
    partitions: int
    rate: int
    """Records a second in each partition, while producers are busy."""
    base: int
    shift_ms: int

    def end(self, at_ms: int) -> int:
        """The high watermark of its partitions. It depends on nothing but the time, so all groups that read the topic agree."""
        spans, rest_ms = divmod(at_ms + self.shift_ms, _IDLE_EVERY_MS)
        return self.base + (spans * _BUSY_MS + min(rest_ms, _BUSY_MS)) * self.rate // 1_000


def leader(partition: int, brokers: int) -> int:
    """The number of the broker that leads a partition, from 0: two neighbours have one, so most members fetch from one broker."""
    return partition // 2 % brokers


class Topics:
    """All topics by their names, as they are asked for."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._by_name: dict[str, Topic] = {}
        self.all: list[Topic] = []
        """By their numbers."""

    def topic(self, name: str, partitions: int) -> Topic:
        """A topic; the first who asks decides how many partitions it has."""
        found = self._by_name.get(name)
        if found is None:
            chance = self._chance
            found = Topic(
                name,
                len(self.all),
                self.new_id(),
                partitions,
                chance.choice(_RATES),
                chance.randrange(100_000, 1_000_000),
                chance.randrange(_IDLE_EVERY_MS),
            )
            self._by_name[name] = found
            self.all.append(found)
        return found

    def new_id(self) -> str:
        """A random `Uuid`, which Kafka never lets begin with a dash."""
        while True:
            text = base64.urlsafe_b64encode(self._chance.randbytes(16)).rstrip(b"=").decode("ascii")
            if not text.startswith("-"):
                return text


def replicas(leads: int, brokers: int) -> list[int]:
    """The node ids of a partition's replicas, its leader first."""
    return [(leads + step) % brokers + 1 for step in range(min(_REPLICAS, brokers))]
