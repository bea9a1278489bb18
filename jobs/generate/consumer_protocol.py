"""Subscriptions and assignments as Java consumers since 3.5 write them: version 3 of ConsumerProtocol."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from coordinator_model.specification.requests import JoinedMember

_VERSION: Final = 3
_NO_BYTES: Final = struct.pack(">i", -1)


def subscription(topic: str) -> bytes:
    """A subscription to one topic by a consumer that owns no partitions."""
    name = topic.encode()
    no_owner = struct.pack(">iih", 0, -1, -1)  # owned partitions, generation, rack
    return struct.pack(">hih", _VERSION, 1, len(name)) + name + _NO_BYTES + no_owner


def assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """An assignment of some partitions of one topic."""
    if not partitions:
        return struct.pack(">hi", _VERSION, 0) + _NO_BYTES
    name = topic.encode()
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return struct.pack(">hih", _VERSION, 1, len(name)) + name + numbers + _NO_BYTES


def assigned(data: bytes) -> tuple[int, ...]:
    """The partitions in an assignment of one topic."""
    topics = struct.unpack_from(">i", data, 2)[0] if data else 0
    if not topics:
        return ()
    (length,) = struct.unpack_from(">h", data, 6)
    (count,) = struct.unpack_from(">i", data, 8 + length)
    return struct.unpack_from(f">{count}i", data, 12 + length)


def ranges(partitions: int, members: int) -> Iterator[range]:
    """What RangeAssignor gives to each member, in their order."""
    each, more = divmod(partitions, members)
    begin = 0
    for number in range(members):
        end = begin + each + (number < more)
        yield range(begin, end)
        begin = end


def shares(member_ids: Iterable[str], partitions: int) -> list[tuple[str, range]]:
    """What RangeAssignor gives to each member, by their ids."""
    ordered = sorted(member_ids)
    return list(zip(ordered, ranges(partitions, len(ordered)), strict=True))


def range_assignor(topic: str, partitions: int, members: tuple[JoinedMember, ...]) -> tuple[tuple[str, bytes], ...]:
    """`RangeAssignor`, for one topic that all members subscribe to."""
    return tuple((name, assignment(topic, given)) for name, given in shares((m.member_id for m in members), partitions))


def text(data: bytes) -> str:
    """As the request log has bytes."""
    return base64.b64encode(data).decode("ascii")
