"""Subscriptions and assignments as Java consumers since 3.5 write them: version 3 of ConsumerProtocol."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence

from coordinator_model.specification.consumer.consumer_protocol import (
    NEWEST_VERSION,
    EmbeddedSubscription,
    read_assignment,
    write_assignment,
    write_subscription,
)
from coordinator_model.specification.requests import JoinedMember


def subscription(topic: str) -> bytes:
    """A subscription to one topic by a consumer that owns no partitions."""
    return write_subscription(EmbeddedSubscription((topic,)))


def assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """An assignment of some partitions of one topic."""
    return write_assignment(((topic, tuple(partitions)),) if partitions else (), NEWEST_VERSION)


def assigned(data: bytes) -> tuple[int, ...]:
    """The partitions in an assignment of one topic."""
    return next((numbers for _, numbers in read_assignment(data).partitions), ())


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
