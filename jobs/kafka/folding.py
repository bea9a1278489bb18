"""Heartbeats that a shipper takes out of the lines of a slice, to send them in bundles (bundles.py).

A line is taken if it has the exact shape of a heartbeat (jobs/logs/heartbeats/beats.py), whatever came before it: so a line that is sent
again after a crash is taken again. What a member's lines share is remembered from slice to slice, so that its next line costs a look into a
dictionary and not a pattern.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from jobs.kafka.bundles import Sender, encoded
from jobs.logs.heartbeats.beats import (
    LONGEST_MS,
    NAMES,
    SHAPE,
    TIMES_TOLERANCE_MS,
    Beats,
    Group,
    Repeats,
    Taken,
    Told,
    numbers_in,
    places_in,
    told_by,
)
from jobs.logs.times import LENGTH

MOST_SENDERS: Final = 65_536
"""Members that are remembered, about 1 kB each."""
MOST_BEATS: Final = 10_000
"""In a bundle: a reader must be able to hold some of them."""
_BEAT_BYTES: Final = 28  # of a beat in a bundle, about
_SENDER_BYTES: Final = 40  # of a member without its texts
_GROUP_BYTES: Final = 40
_TIMES: Final = 7  # durations of a line
_US: Final = 1_000  # in a millisecond

# Much faster than int and float of each.
_integers: Final = msgspec.json.Decoder(list[int]).decode
_floats: Final = msgspec.json.Decoder(list[float]).decode


class Senders:
    """The members whose heartbeats a shipper has seen."""

    def __init__(self, most: int = MOST_SENDERS) -> None:
        self._most = most
        # By the part of a line that names the member: who it is, what stands before the correlation id, and what after the durations.
        self._known: dict[bytes, tuple[Sender, bytes, bytes]] = {}
        self._groups: dict[Group, tuple[Group, int]] = {}  # each once, with a number that no other has ever had
        self._number = itertools.count()
        self._texts: dict[bytes, bytes] = {}

    def taker(self, taken: Taken) -> Repeats:
        """Takes the heartbeats of a log."""
        find, learn = self._known.get, self._learn
        add = taken.add

        def take(line: bytes, position: int, at_ms: int) -> bool:
            places = places_in(line)
            known = find(line[places[1] : places[2]])
            own = None if known is None else numbers_in(line, places, known[1], known[2])
            if known is None or own is None:
                return learn(line, position, at_ms, taken)
            add(known[0], position, at_ms, own[0], own[1])
            return True

        return take

    def _learn(self, line: bytes, position: int, at_ms: int, taken: Taken) -> bool:
        """Takes a line of a member that is new, or that differs from those before in something else."""
        found = SHAPE.fullmatch(line, LENGTH)
        if found is None or at_ms < 0:  # no record has such a time
            return False
        if len(self._known) >= self._most:
            for known in (self._known, self._groups, self._texts):
                known.clear()
        places, once = places_in(line), self._texts.setdefault
        before, after = line[LENGTH : places[0]], line[found.end("times") :]
        sender = self._sender(told_by(found))
        self._known[line[places[1] : places[2]]] = sender, once(before, before), once(after, after)
        taken.add(sender, position, at_ms, found["correlation_id"], found["times"])
        return True

    def _sender(self, told: Told) -> Sender:
        group, member_id, client_id, instance_id, connection = told
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = group, next(self._number)
        return Sender(known[0], member_id, client_id, instance_id, connection, rank=known[1])


class Bundle(NamedTuple):
    """What a record holds: the position of its first line, how many there are, and the value."""

    position: int
    lines: int
    value: bytes


class FoldedBeats(Beats):
    """The heartbeats of a slice, by the log that they were read from."""

    def __init__(self, senders: Senders) -> None:
        super().__init__()
        self._senders = senders
        self._taken: dict[object, Taken] = {}

    def of_log(self, log: object, next_row: Callable[[], int]) -> Repeats:  # noqa: ARG002 - each line is taken, so none is kept as a row
        """Takes the lines of one log."""
        return self._senders.taker(self._taken.setdefault(log, Taken([], [], [], [], [])))

    def bundles(self, log: object, most_bytes: int) -> Iterator[Bundle]:
        """The heartbeats of a log, in the order in which they were read, in bundles of so many bytes at most."""
        taken = self._taken.get(log)
        if taken is not None:
            for begin in range(0, len(taken.of), MOST_BEATS):
                yield from _bundles(taken.part(begin, begin + MOST_BEATS), most_bytes)


def _bundles(taken: Taken, most_bytes: int) -> Iterator[Bundle]:
    senders = set(taken.of)
    count, groups = len(taken.of), {sender.group for sender in senders}
    size = count * _BEAT_BYTES + sum(_SENDER_BYTES + sender.characters for sender in senders)
    size += sum(_GROUP_BYTES + len(group.group_id) + len(group.software) for group in groups)
    if size > most_bytes and count > 1:
        yield from _bundles(taken.part(0, count // 2), most_bytes)
        yield from _bundles(taken.part(count // 2, count), most_bytes)
        return
    numbers = _integers(b"[%b]" % b",".join(taken.numbers))
    value = encoded(taken.of, taken.positions, taken.ats, numbers, durations_us(taken.times))
    yield Bundle(taken.positions[0], count, value)


def durations_us(times: Sequence[bytes]) -> list[int]:
    """How long the broker had each request; 0 where the numbers contradict each other. As `beat_numbers.durations_us`, without NumPy."""
    numbers = _floats(b"[%b]" % b",".join(times).translate(None, NAMES))
    total, queue, local, remote, _, answer, send = (numbers[column::_TIMES] for column in range(_TIMES))
    return [
        round(t * _US) if t <= LONGEST_MS and q + l + r + a + s <= t + (0.0 if r else l) + TIMES_TOLERANCE_MS else 0
        for t, q, l, r, a, s in zip(total, queue, local, remote, answer, send, strict=True)  # noqa: E741 - the sum has the order of the line
    ]
