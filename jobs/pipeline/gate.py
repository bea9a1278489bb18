"""What has arrived of each log that a topic carries: tells repeated lines, and how far each broker's logs are known (docs/shipping.md).

Lines of one log lie in several partitions, which are read at different speeds, and a shipper that was killed sends some of
them again. A clock stands in every partition, behind the lines that it covers. So what the clocks of all partitions cover has
arrived: a line of it that comes later is a repetition, and time may go on to it. Of lines that are not covered yet, the
positions are kept.

Without Spark: a micro-batch goes in as columns, what follows for it comes out, and the state is bytes. The same batches in the
same order give the same state, so a batch that is run again after a crash comes out as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgpack
import numpy as np
import numpy.typing as npt

from jobs.parsing.heard import heard_seconds

STATE_VERSION: Final = 1
LOGS_KEPT: Final = 10_000
"""Logs remembered, those that were written to last. A log that is forgotten and shipped again is taken for a new one."""
READ_MARGIN_MS: Final = 1_000
"""A line may be written so much later than the time that it bears: what was read by a moment is complete up to this long before it."""

Positions = npt.NDArray[np.int64]


class LogName(NamedTuple):
    """What tells a log from all others."""

    cluster: str
    broker: str
    origin: str


class Reach(NamedTuple):
    """How far a log is known; each by itself, -1 if nothing is known."""

    position: int = -1  # lines read
    at_ms: int = -1  # newest time read
    read_ms: int = -1  # when all logs of its broker had nothing more

    def upper(self, other: Reach) -> Reach:
        """The greater of each."""
        return Reach(max(self.position, other.position), max(self.at_ms, other.at_ms), max(self.read_ms, other.read_ms))

    def lower(self, other: Reach) -> Reach:
        """The smaller of each."""
        return Reach(min(self.position, other.position), min(self.at_ms, other.at_ms), min(self.read_ms, other.read_ms))


class Clock(NamedTuple):
    """A clock record, as it lies in one partition."""

    log: LogName
    partition: int
    reach: Reach
    heard: str  # JSON array: first, last, first, last, … second


@dataclass(frozen=True)
class BrokerTime:
    """What may be said of a broker's time after a batch."""

    log: LogName  # whose clock moved it
    position: int
    at_ms: int
    heard: tuple[int, ...]  # first, last, first, last, … second in which lines stand
    followed: bool  # its shipper has said that it had read all


@dataclass
class _Log:
    known: Reach = field(default_factory=Reach)  # in all partitions
    ahead: dict[int, Reach] = field(default_factory=dict)  # partitions whose clocks say more
    heard: dict[int, str] = field(default_factory=dict)  # by position, of clocks that are not in all partitions yet
    seen: Positions = field(default_factory=lambda: np.empty(0, np.int64))  # lines after `known.position`, ascending
    damages: list[str] = field(default_factory=list)  # what was said of the file as a whole


class Gate:
    """The state after some batch."""

    def __init__(self) -> None:
        self._logs: dict[LogName, _Log] = {}
        self._told: dict[tuple[str, str], int] = {}  # (cluster, broker): the time that was told last

    def lines(self, log: LogName, positions: Positions, texts: Mapping[int, str]) -> Positions:
        """Takes the lines of a log in a batch, in the order of the topic; returns the indices of those that came before.

        `texts`: by index, of lines with position 0, which tell of the file as a whole.
        """
        state = self._logs.setdefault(log, _Log())
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        known = np.zeros(len(positions), bool)
        known[order[1:]] = ordered[1:] == ordered[:-1]
        known |= (positions <= state.known.position) | np.isin(positions, state.seen)
        for index, text in sorted(texts.items()):
            known[index] = text in state.damages
            if not known[index]:
                state.damages.append(text)
        fresh = positions[~known & (positions > 0)]
        if len(fresh):
            state.seen = np.union1d(state.seen, fresh)
        return np.flatnonzero(known)

    def clocks(self, clocks: Iterable[Clock], partitions: int) -> list[BrokerTime]:
        """Takes the clocks of a batch, after its lines; returns what brokers' times are moved to.

        `partitions`: of the topic, when the batch was made.
        """
        moved: set[LogName] = set()
        for clock in clocks:
            state = self._logs.setdefault(clock.log, _Log())
            if clock.reach.position > state.known.position and clock.heard not in {"", "[]"}:
                state.heard.setdefault(clock.reach.position, clock.heard)
            ahead = state.ahead.get(clock.partition, state.known).upper(clock.reach)
            if ahead != state.known:
                state.ahead[clock.partition] = ahead
                moved.add(clock.log)
        times: dict[tuple[str, str], BrokerTime] = {}
        for log in sorted(moved):
            heard = self._settle(self._logs[log], partitions)
            time = self._time(log, heard)
            if time is not None:
                before = times.get(log[:2])
                times[log[:2]] = time if before is None else _both(before, time)
        told = [time for key, time in sorted(times.items()) if time.heard or time.at_ms > self._told.get(key, -1)]
        self._told.update({time.log[:2]: max(time.at_ms, self._told.get(time.log[:2], -1)) for time in told})
        self._forget()
        return told

    @staticmethod
    def _settle(state: _Log, partitions: int) -> tuple[int, ...]:
        """Moves on to what all partitions say; returns the seconds in which the log is now known to have lines."""
        reach = state.ahead.get(0, state.known)
        for partition in range(1, partitions):
            reach = reach.lower(state.ahead.get(partition, state.known))
        state.known = state.known.upper(reach)
        state.ahead = {partition: ahead for partition, ahead in state.ahead.items() if ahead != state.known}
        state.seen = state.seen[np.searchsorted(state.seen, state.known.position, "right") :]
        settled = sorted(position for position in state.heard if position <= state.known.position)
        return tuple(second for position in settled for second in heard_seconds(state.heard.pop(position)))

    def _time(self, log: LogName, heard: tuple[int, ...]) -> BrokerTime | None:
        known = self._logs[log].known
        at_ms = max(known.at_ms, known.read_ms - READ_MARGIN_MS)
        return BrokerTime(log, known.position, at_ms, heard, known.read_ms >= 0) if at_ms >= 0 else None

    def _forget(self) -> None:
        if len(self._logs) > LOGS_KEPT:
            oldest = sorted(self._logs, key=lambda log: (self._logs[log].known.at_ms, log))
            for log in oldest[: len(self._logs) - LOGS_KEPT]:
                del self._logs[log]

    def encode(self) -> bytes:
        """The state as bytes."""
        logs = [
            (*log, state.known, list(state.ahead.items()), list(state.heard.items()), state.seen.tobytes(), state.damages)
            for log, state in self._logs.items()
        ]
        data: bytes = msgpack.packb((STATE_VERSION, logs, [(*key, at_ms) for key, at_ms in self._told.items()]))
        return data

    @classmethod
    def decode(cls, data: bytes) -> Gate:
        """The state that `encode` wrote. ValueError: another version did."""
        version, logs, told = msgpack.unpackb(data, strict_map_key=False)
        if version != STATE_VERSION:
            raise ValueError(f"the topic's state is of version {version}, this program reads {STATE_VERSION}")
        gate = cls()
        for cluster, broker, origin, known, ahead, heard, seen, damages in logs:
            gate._logs[LogName(cluster, broker, origin)] = _Log(
                Reach(*known),
                {partition: Reach(*reach) for partition, reach in ahead},
                dict(heard),
                np.frombuffer(seen, np.int64),
                damages,
            )
        gate._told = {(cluster, broker): at_ms for cluster, broker, at_ms in told}
        return gate


def _both(one: BrokerTime, other: BrokerTime) -> BrokerTime:
    """The later of two times of a broker, and all that was heard."""
    later = other if other.at_ms > one.at_ms else one
    return BrokerTime(later.log, later.position, later.at_ms, one.heard + other.heard, one.followed or other.followed)
