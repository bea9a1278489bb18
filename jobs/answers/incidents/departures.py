"""How brokers went away and came back, as their own logs and those of the others say (sql/views/broker_departures.sql)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from coordinator_model import events as e
from coordinator_model.diagnosis.incidents import SPAN_MS
from jobs.answers.duckdb_views import Row
from jobs.common.times import duration, epoch_ms

SHUT_DOWN: Final = "BROKER_SHUT_DOWN"
CRASHED: Final = "BROKER_CRASHED"

_REMEDIES: Final = {
    "BROKER_FAILED": "Repair the log directories of {broker}.",
    CRASHED: "Find out why {broker} died (OOM killer, kill -9, JVM crash, disk): check the end of its log.",
    SHUT_DOWN: "If this was planned, restart brokers one at a time, each once the previous one is back in all ISRs.",
    "BROKER_EXPIRED": "Find out why {broker} lost its ZooKeeper session: a long JVM pause, or its network.",
    "BROKER_LOST": "Find out why the others lost {broker}: its process, its host or its network.",
}
"""What to do, by the cause that the lines show."""


@dataclass(frozen=True)
class Departure:
    """Why groups left a broker. `signs`: rows of broker_departures, in the order of time."""

    signs: tuple[Row, ...]

    @property
    def began_at(self) -> datetime:
        """When the first line said so."""
        at: datetime = self.signs[0]["occurred_at"]
        return at

    @property
    def is_dated(self) -> bool:
        """Whether a line shows when it went. What it finds when it starts does not."""
        return any(sign["kind"] != e.BROKER_UNCLEAN for sign in self.signs)

    def sentence(self, broker: str) -> str:
        """What its lines say, for people. `broker`: its name in a sentence."""
        _, text = self._told(broker)
        started_at = self.signs[0]["started_at"]
        if started_at is not None:
            return f"{text}; down for {duration(epoch_ms(started_at) - epoch_ms(self.began_at))}."
        is_there = self._has(e.BROKER_EXPIRED) or not self.is_dated
        return f"{text}." if is_there else f"{text}; no line shows that it restarted."

    def tells(self, crash: Row) -> bool:
        """Whether it is the crash that the broker found when it started."""
        first, at = self.signs[0], crash["occurred_at"]
        return first["clean"] is False and first["occurred_at"] <= at <= (first["started_at"] or first["again_at"] or at)

    def was_lost_at(self, at: datetime) -> bool:
        """Whether it was away and had not shut down: then others wait for its replicas."""
        started_at = self.signs[0]["started_at"]
        return self.cause not in (SHUT_DOWN, "BROKER_EXPIRED") and self.began_at <= at and (started_at is None or at < started_at)

    @property
    def cause(self) -> str:
        """What its lines say, as a code of the table `incidents`."""
        return self._told("")[0]

    def remedy(self, broker: str) -> str:
        """What to do about the broker."""
        return _REMEDIES[self.cause].format(broker=broker)

    def _told(self, broker: str) -> tuple[str, str]:
        first, told = self.signs[0], self._has(e.BROKER_STOPPING)
        unclean = "was told to stop and killed before it did" if told else "crashed or was killed"
        texts = (
            (self._has(e.BROKER_FAILED), "BROKER_FAILED", f"{broker} shut itself down: all its log directories had failed"),
            (first["clean"] is False, CRASHED, f"{broker} {unclean}: no clean shutdown"),
            (first["clean"] or first["stopped_at"] is not None, SHUT_DOWN, f"{broker} was shut down cleanly"),
            (told, SHUT_DOWN, f"{broker} was told to stop"),
            (self._has(e.BROKER_EXPIRED), "BROKER_EXPIRED", f"{broker} lost its ZooKeeper session while it was running"),
            (self._has(e.BROKER_UNREACHABLE), "BROKER_LOST", f"Other brokers lost their connection to {broker}"),
            (True, "BROKER_LOST", f"The controller lost {broker}"),
        )
        return next((cause, text) for holds, cause, text in texts if holds)

    def _has(self, kind: str) -> bool:
        return any(sign["kind"] == kind for sign in self.signs)


class Departures:
    """The signs of a lakehouse."""

    def __init__(self, signs: Iterable[Row]) -> None:
        """Rows of sql/rows/departures.sql, in the order of time."""
        self._of: dict[tuple[str, str], list[Row]] = {}
        self._crashed: dict[tuple[str, str], list[Row]] = {}  # starts after a shutdown that was not clean
        for sign in signs:
            known = self._crashed if sign["kind"] == e.BROKER_UNCLEAN else self._of
            known.setdefault((sign["cluster"], sign["broker"]), []).append(sign)

    def of_another(self, cluster: str, broker: str, at_ms: int) -> str | None:
        """Another broker that went away soon before a time, and was not there again: the last of them."""
        near = [
            (epoch_ms(sign["occurred_at"]), other)
            for (of_cluster, other), signs in self._of.items()
            for sign in signs
            if of_cluster == cluster and other != broker and at_ms - SPAN_MS <= epoch_ms(sign["occurred_at"]) <= at_ms
            if sign["started_at"] is None or epoch_ms(sign["started_at"]) > at_ms
        ]
        return max(near)[1] if near else None

    def crash(self, cluster: str, broker: str, since_ms: int, until_ms: int, left_at: datetime | None = None) -> Departure | None:
        """That a broker had crashed, as its own log says where it starts again in that time. No line shows it alive `left_at` a time."""
        near = [
            one
            for one in self._crashed.get((cluster, broker), ())
            if since_ms <= epoch_ms(one["occurred_at"]) <= until_ms
            and (left_at is None or (one["heard_at"] or left_at) <= left_at <= (one["again_at"] or left_at))
        ]
        return Departure((next(one for one in near if one["heard_at"] == near[-1]["heard_at"]),)) if near else None

    def before(self, cluster: str, broker: str, first_at: datetime, last_at: datetime) -> Departure | None:
        """Why groups left a broker between two times. A sign counts if it came soon before the first of them left.

        A broker that was there again before any left did not make them leave. Where no sign shows how it went, it may find that later.
        """
        first_ms, last_ms = epoch_ms(first_at), epoch_ms(last_at)
        signs = [
            sign
            for sign in self._of.get((cluster, broker), ())
            if first_ms - SPAN_MS <= epoch_ms(sign["occurred_at"]) <= last_ms
            and (sign["started_at"] is None or epoch_ms(sign["started_at"]) > first_ms)
        ]
        known = Departure(tuple(signs)) if signs and epoch_ms(signs[0]["occurred_at"]) <= first_ms else None
        is_told = known is not None and signs[0]["clean"] is not None
        return known if is_told else self.crash(cluster, broker, first_ms - SPAN_MS, last_ms + SPAN_MS, first_at) or known
