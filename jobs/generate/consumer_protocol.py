"""Which partitions the members of a generated group get: RangeAssignor, in the bytes that Java consumers since 3.5 write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator_model.specification.consumer.consumer_protocol import NEWEST_VERSION, read_assignment, write_assignment
from coordinator_model.specification.requests import JoinedMember


def assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """An assignment of some partitions of one topic."""
    return write_assignment(((topic, tuple(partitions)),) if partitions else (), NEWEST_VERSION)


def assigned(data: bytes) -> tuple[int, ...]:
    """The partitions in an assignment of one topic."""
    return next((numbers for _, numbers in read_assignment(data).partitions), ())


def shares(member_ids: Iterable[str], partitions: int) -> dict[str, range]:
    """What RangeAssignor gives to each member, in the order of their ids."""
    ordered = sorted(member_ids)
    each, more = divmod(partitions, len(ordered))
    begins = [number * each + min(number, more) for number in range(len(ordered) + 1)]
    return {member_id: range(begin, end) for member_id, begin, end in zip(ordered, begins, begins[1:], strict=False)}


def range_assignor(topic: str, partitions: int, members: tuple[JoinedMember, ...]) -> tuple[tuple[str, bytes], ...]:
    """`RangeAssignor`, for one topic that all members subscribe to."""
    return tuple((name, assignment(topic, given)) for name, given in shares((m.member_id for m in members), partitions).items())
