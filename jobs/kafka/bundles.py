"""Many heartbeats of one log as the value of one record of the topic: a bundle (docs/shipping.md).

A heartbeat's line has 800 bytes, of which 25 cannot be foretold: the random part of the member id, the numbers of the connection, the
correlation id, the duration, and how the member's line lies among the others. A bundle holds these column by column, and everything that
beats share once. The producer compresses it. Each bundle can be read without any other.

This module imports neither NumPy nor PyArrow: the shipper beside a broker has to be small.
"""

from __future__ import annotations

import re
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count
from operator import sub
from typing import Annotated, Final

import msgspec

from jobs.common.times import LATEST_MS
from jobs.logs.heartbeats.beats import Group

VERSION: Final = 2
"""Of the layout. A bundle of another one is refused."""

_MOST_POSITION: Final = 1 << 53
_WORD: Final = 8  # bytes of a number in memory
_UUID_BYTES: Final = 16
_UUID: Final = re.compile(r"(.*-)([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})", re.DOTALL)
_CONNECTION: Final = re.compile(r"(.*:)(0|[1-9]\d{0,9})((?:-\d+)*-)(0|[1-9]\d{0,9})", re.DOTALL | re.ASCII)
_NO_UUID: Final = bytes(_UUID_BYTES)
_NO_CONNECTION: Final = ("", 0, "", 0)


class BundleError(ValueError):
    """The bytes are no bundle. The message says why."""


_Count = Annotated[int, msgspec.Meta(ge=1)]


_RANK_BITS: Final = 40
_made: Final = count()


class Sender:
    """What all heartbeats of one member share while nothing happens to it. Made once for many heartbeats.

    `rank`: a number that no member of another group has. Those of a group stand together in a bundle.
    """

    __slots__ = ("characters", "group", "parts", "rank")

    def __init__(self, group: Group, member_id: str, client_id: str | None, instance_id: str | None, connection: str, rank: int) -> None:
        self.group = group
        self.rank = (rank << _RANK_BITS) + next(_made)
        self.parts = (client_id, instance_id, *_member_parts(member_id, client_id), *_connection_parts(connection))
        self.characters = len(member_id) + len(connection) + len(client_id or "") + len(instance_id or "")


class Heartbeats(msgspec.Struct, frozen=True):
    """The heartbeats of a bundle, column by column. Those of a group stand together, and those of a member in it.

    `members`: how many of each group; `beats`: how many of each member.
    """

    groups: Sequence[Group]
    members: Sequence[int]
    client_ids: Sequence[str | None]
    instance_ids: Sequence[str | None]
    member_ids: Sequence[str]
    connections: Sequence[str]
    beats: Sequence[int]
    positions: Sequence[int]
    ats: Sequence[int]  # epoch ms
    correlation_ids: Sequence[int]
    durations: Sequence[int]  # µs

    def __len__(self) -> int:
        return len(self.positions)


class _Stored(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The layout: a MessagePack array. Numbers that are no list are planes."""

    groups: list[Group]
    members: list[_Count]
    client_ids: tuple[str | None, ...]
    instance_ids: tuple[str | None, ...]
    prefixes: tuple[str | None, ...]  # of member ids, before the UUID; null: the client id and a hyphen
    uuids: bytes  # 16 for each member
    heads: tuple[str, ...]  # of connections, up to the client's port
    ports: bytes
    middles: tuple[str, ...]  # between the port and the last number
    lasts: bytes
    member_ids: dict[int, str]  # by index, those that do not end with a UUID
    connections: dict[int, str]  # by index, those of another form
    beats: list[_Count]
    first: Annotated[int, msgspec.Meta(ge=1, le=_MOST_POSITION)]  # position
    positions: bytes  # after the first
    ats: list[int]  # in the order of the positions: epoch ms, then the difference to the one before
    correlation_ids: bytes
    durations: bytes  # µs


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Stored).decode


def checksum(value: bytes) -> int:
    """CRC-32 of a bundle, for the header `crc`."""
    return zlib.crc32(value)


def encoded(
    senders: Sequence[Sender], positions: Sequence[int], ats: Sequence[int], correlation_ids: Sequence[int], durations: Sequence[int]
) -> bytes:
    """The value of heartbeats, in the order of their positions. Of each: sender, position, time (ms), correlation id, duration (µs)."""
    order = sorted(range(len(senders)), key=[sender.rank for sender in senders].__getitem__)
    runs = Counter(map(senders.__getitem__, order))
    groups = {sender.rank >> _RANK_BITS: sender.group for sender in runs}
    parts = zip(*(sender.parts for sender in runs), strict=True)
    client_ids, instance_ids, prefixes, uuids, member_ids, heads, ports, middles, lasts, connections = parts
    first = positions[0]
    return _encode(
        _Stored(
            groups=[*groups.values()],
            members=list(Counter(sender.rank >> _RANK_BITS for sender in runs).values()),
            client_ids=client_ids,
            instance_ids=instance_ids,
            prefixes=prefixes,
            uuids=b"".join(uuids),
            heads=heads,
            ports=_planes(ports),
            middles=middles,
            lasts=_planes(lasts),
            member_ids=_given(member_ids),
            connections=_given(connections),
            beats=list(runs.values()),
            first=first,
            positions=_planes([positions[index] - first for index in order]),
            ats=[ats[0], *map(sub, ats[1:], ats)],
            correlation_ids=_planes([correlation_ids[index] for index in order]),
            durations=_planes([durations[index] for index in order]),
        )
    )


def decoded(value: bytes, crc: str | None) -> Heartbeats:
    """The heartbeats that `encoded` was given. `crc`: the header. BundleError: the bytes are no bundle, or not those that were sent."""
    if crc != str(checksum(value)):
        raise BundleError("its bytes are not those that were sent")
    try:
        return _heartbeats(_decode(value))
    except (msgspec.DecodeError, ValueError, IndexError) as error:
        raise BundleError(str(error)) from None


def _heartbeats(stored: _Stored) -> Heartbeats:
    count, number = len(stored.client_ids), sum(stored.beats)
    columns = (stored.instance_ids, stored.prefixes, stored.heads, stored.middles, stored.beats)
    sound = len(stored.groups) == len(stored.members) and sum(stored.members) == count and len(stored.uuids) == count * _UUID_BYTES
    if not count or not sound or any(len(column) != count for column in columns) or len(stored.ats) != number:
        raise BundleError("its columns have different lengths")
    positions = [stored.first + after for after in _numbers(stored.positions, number)]
    ats = [0] * number
    for index, at_ms in zip(sorted(range(number), key=positions.__getitem__), accumulate(stored.ats), strict=True):
        ats[index] = at_ms
    if max(positions) > _MOST_POSITION or not 0 <= min(ats) <= max(ats) <= LATEST_MS:
        raise BundleError("a position or a time is none that can be")
    return Heartbeats(
        groups=stored.groups,
        members=stored.members,
        client_ids=stored.client_ids,
        instance_ids=stored.instance_ids,
        member_ids=_member_ids(stored),
        connections=_connections(stored, count),
        beats=stored.beats,
        positions=positions,
        ats=ats,
        correlation_ids=_numbers(stored.correlation_ids, number, 1 << 31),
        durations=_numbers(stored.durations, number, 1 << 50),
    )


def _member_parts(member_id: str, client_id: str | None) -> tuple[str | None, bytes, str | None]:
    """Prefix, UUID, and the whole id where it does not end with a UUID. A coordinator makes ids of client or instance id and a UUID."""
    match = _UUID.fullmatch(member_id)
    if match is None:
        return "", _NO_UUID, member_id
    prefix, *digits = match.groups()
    return None if client_id is not None and prefix == f"{client_id}-" else prefix, bytes.fromhex("".join(digits)), None


def _member_ids(stored: _Stored) -> list[str]:
    texts = stored.uuids.hex()
    ids = [
        f"{f'{client_id}-' if prefix is None else prefix}{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        for client_id, prefix, text in zip(
            stored.client_ids, stored.prefixes, (texts[at : at + 32] for at in range(0, len(texts), 32)), strict=True
        )
    ]
    return _replaced(ids, stored.member_ids)


def _connection_parts(connection: str) -> tuple[str, int, str, int, str | None]:
    """Text and number, twice, and the whole connection where it is not so."""
    match = _CONNECTION.fullmatch(connection)
    return (*_NO_CONNECTION, connection) if match is None else (match[1], int(match[2]), match[3], int(match[4]), None)


def _connections(stored: _Stored, count: int) -> list[str]:
    numbers = _numbers(stored.ports, count), _numbers(stored.lasts, count)
    texts = [
        f"{head}{port}{middle}{last}" for head, port, middle, last in zip(stored.heads, numbers[0], stored.middles, numbers[1], strict=True)
    ]
    return _replaced(texts, stored.connections)


def _given(values: Iterable[str | None]) -> dict[int, str]:
    return {index: value for index, value in enumerate(values) if value is not None}


def _replaced(texts: list[str], others: Mapping[int, str]) -> list[str]:
    for index, text in others.items():
        if index < 0:
            raise BundleError("an index is negative")
        texts[index] = text
    return texts


def _planes(numbers: Sequence[int]) -> bytes:
    """Numbers from 0 as their lowest bytes, then their second ones, and so on: so the compressor sees which bytes are alike."""
    words = array("Q", numbers)
    if sys.byteorder == "big":
        words.byteswap()
    data, width = words.tobytes(), max((max(numbers).bit_length() + 7) // 8, 1)
    return b"".join(data[plane::_WORD] for plane in range(width))


def _numbers(planes: bytes, count: int, end: int = 1 << 63) -> list[int]:
    """The numbers of `_planes`, each below `end`."""
    width = len(planes) // count
    if not 1 <= width <= _WORD or len(planes) != width * count:
        raise BundleError("its columns have different lengths")
    data = bytearray(count * _WORD)
    for plane in range(width):
        data[plane::_WORD] = planes[plane * count : (plane + 1) * count]
    words = array("Q", bytes(data))
    if sys.byteorder == "big":
        words.byteswap()
    numbers = words.tolist()
    if max(numbers) >= end:
        raise BundleError("a number is too large")
    return numbers
