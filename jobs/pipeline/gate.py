"""Decides which lines of a topic are repetitions, and how far each broker's logs have arrived (docs/shipping.md).

Lines of one log lie in several partitions, which are read at different speeds, and a killed shipper sends some of its lines again. A clock
record stands in every partition, behind the lines that it covers. So the lines covered by the clocks of all partitions have arrived: one
that comes later is a repetition, and time may advance to that clock. The gate keeps the positions of lines that are not covered yet.

Works without Spark: it takes a micro-batch as columns, and its state is bytes. The same batches in the same order give the same state, so
a batch that is repeated after a crash has the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from jobs.parsing.rows import clock_seconds

STATE_VERSION: Final = 1
LOGS_KEPT: Final = 10_000
"""Logs in the state: those written to last. A log that was dropped and is shipped again counts as a new one."""
READ_MARGIN_MS: Final = 1_000
"""A line may be written this long after the time that it bears: a log read up to a moment is complete up to this long before it."""

Positions = npt.NDArray[np.int64]


class LogName(NamedTuple):
    """The identity of a log."""

    cluster: str
    broker: str
    origin: str


class Reach(NamedTuple):
    """How far a log has arrived, in three ways that are independent of each other. -1: unknown."""

    position: int = -1  # lines read
    at_ms: int = -1  # newest time read
    read_ms: int = -1  # when the shipper had read all logs of the broker to their ends

    def upper(self, other: Reach) -> Reach:
        """The greater of each."""
        return Reach(*map(max, self, other))

    def lower(self, other: Reach) -> Reach:
        """The smaller of each."""
        return Reach(*map(min, self, other))


class Clock(NamedTuple):
    """A clock record of one partition."""

    log: LogName
    partition: int
    reach: Reach
    heard: str  # JSON array: first, last, first, last, … second


@dataclass(frozen=True)
class BrokerTime:
    """How far a broker's time may advance after a batch."""

    log: LogName  # whose clock advanced it
    position: int
    at_ms: int
    heard: tuple[int, ...]  # first, last, first, last, … second in which lines stand
    followed: bool  # its shipper has read all logs to their ends


@dataclass
class _LogState:
    reach: Reach = field(default_factory=Reach)  # in all partitions
    ahead: dict[int, Reach] = field(default_factory=dict)  # partitions whose clocks reach further
    heard: dict[int, str] = field(default_factory=dict)  # by position, of clocks that have not arrived in all partitions
    arrived: Positions = field(default_factory=lambda: np.empty(0, np.int64))  # lines after `reach.position`, ascending
    damages: list[str] = field(default_factory=list)  # lines about the file as a whole


_StoredLog = tuple[str, str, str, Reach, list[tuple[int, Reach]], list[tuple[int, str]], bytes, list[str]]
_StoredState = tuple[int, list[_StoredLog], list[tuple[str, str, int]]]
"""Version, logs, and (cluster, broker, time)."""


class Gate:
    """The state after a batch. `logs_kept`: see LOGS_KEPT."""

    def __init__(self, logs_kept: int = LOGS_KEPT) -> None:
        self._logs: dict[LogName, _LogState] = {}
        self._times: dict[tuple[str, str], int] = {}  # the time of each (cluster, broker)
        self._logs_kept = logs_kept

    def lines(self, log: LogName, positions: Positions, texts: Mapping[int, str]) -> Positions:
        """Takes the lines of a log in a batch, in the order of the topic; returns the indices of repeated ones.

        `texts`: the lines about the file as a whole, which have position 0, by index.
        """
        state = self._logs.setdefault(log, _LogState())
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        repeated = np.zeros(len(positions), bool)
        repeated[order[1:]] = ordered[1:] == ordered[:-1]
        repeated |= (positions <= state.reach.position) | np.isin(positions, state.arrived)
        for index, text in sorted(texts.items()):
            repeated[index] = text in state.damages
            if not repeated[index]:
                state.damages.append(text)
        fresh = positions[~repeated & (positions > 0)]
        if len(fresh):
            state.arrived = np.union1d(state.arrived, fresh)
        return np.flatnonzero(repeated)

    def clocks(self, clocks: Iterable[Clock], partitions: int) -> list[BrokerTime]:
        """Takes the clocks of a batch, after its lines; returns the times to which brokers advance.

        `partitions`: how many the topic had when the batch was made.
        """
        moved: set[LogName] = set()
        for clock in clocks:
            state = self._logs.setdefault(clock.log, _LogState())
            if clock.reach.position > state.reach.position and clock.heard not in {"", "[]"}:
                state.heard.setdefault(clock.reach.position, clock.heard)
            ahead = state.ahead.get(clock.partition, state.reach).upper(clock.reach)
            if ahead != state.reach:
                state.ahead[clock.partition] = ahead
                moved.add(clock.log)
        times: dict[tuple[str, str], BrokerTime] = {}
        for log in sorted(moved):
            time = _time(log, *_advance(self._logs[log], partitions))
            if time is not None:
                before = times.get(log[:2])
                times[log[:2]] = time if before is None else _merged(before, time)
        advanced = [time for broker, time in sorted(times.items()) if time.heard or time.at_ms > self._times.get(broker, -1)]
        self._times.update({time.log[:2]: max(time.at_ms, self._times.get(time.log[:2], -1)) for time in advanced})
        self._drop_oldest()
        return advanced

    def _drop_oldest(self) -> None:
        if len(self._logs) > self._logs_kept:
            oldest = sorted(self._logs, key=lambda log: (self._logs[log].reach.at_ms, log))
            for log in oldest[: len(self._logs) - self._logs_kept]:
                del self._logs[log]

    def encode(self) -> bytes:
        """The state as bytes."""
        logs = [
            (*log, state.reach, list(state.ahead.items()), list(state.heard.items()), state.arrived.tobytes(), state.damages)
            for log, state in self._logs.items()
        ]
        return msgspec.msgpack.encode((STATE_VERSION, logs, [(*broker, at_ms) for broker, at_ms in self._times.items()]))

    @classmethod
    def decode(cls, data: bytes) -> Gate:
        """The state that `encode` wrote. ValueError: another version wrote it."""
        version = msgspec.msgpack.decode(data)[0]
        if version != STATE_VERSION:
            raise ValueError(f"the topic's state is of version {version}, this program reads {STATE_VERSION}")
        _, logs, times = msgspec.msgpack.decode(data, type=_StoredState)
        gate = cls()
        for cluster, broker, origin, reach, ahead, heard, arrived, damages in logs:
            state = _LogState(reach, dict(ahead), dict(heard), np.frombuffer(arrived, np.int64), damages)
            gate._logs[LogName(cluster, broker, origin)] = state
        gate._times = {(cluster, broker): at_ms for cluster, broker, at_ms in times}
        return gate


def _advance(state: _LogState, partitions: int) -> tuple[Reach, tuple[int, ...]]:
    """Advances to what all partitions have; returns the new reach, and the seconds in which the log now certainly has lines."""
    reach = state.ahead.get(0, state.reach)
    for partition in range(1, partitions):
        reach = reach.lower(state.ahead.get(partition, state.reach))
    state.reach = state.reach.upper(reach)
    state.ahead = {partition: ahead for partition, ahead in state.ahead.items() if ahead != state.reach}
    state.arrived = state.arrived[np.searchsorted(state.arrived, state.reach.position, "right") :]
    covered = sorted(position for position in state.heard if position <= state.reach.position)
    return state.reach, tuple(second for position in covered for second in clock_seconds(state.heard.pop(position)))


def _time(log: LogName, reach: Reach, heard: tuple[int, ...]) -> BrokerTime | None:
    at_ms = max(reach.at_ms, reach.read_ms - READ_MARGIN_MS)
    return BrokerTime(log, reach.position, at_ms, heard, reach.read_ms >= 0) if at_ms >= 0 else None


def _merged(one: BrokerTime, other: BrokerTime) -> BrokerTime:
    """The later of two times of a broker, with the seconds of both."""
    later = other if other.at_ms > one.at_ms else one
    return BrokerTime(later.log, later.position, later.at_ms, one.heard + other.heard, one.followed or other.followed)
