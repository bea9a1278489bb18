"""A member of a group.

A member is a value: a change makes a new one. Its parked requests are in `GroupState.awaiting_join` and `awaiting_sync`, and
its session is one of the group's timers, so that a heartbeat does not change the member. Kafka: `ClassicGroupMember` (4.x),
`MemberMetadata` (to 3.9).
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.errors import ServerError
from coordinator_model.specification.requests import Protocols


class Member(NamedTuple):
    """A member of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    """The protocols that the member supports, in its order of preference."""
    assignment: bytes = b""
    is_new: bool = False
    """True until its first join phase ends. Its session can expire although its JoinGroup is parked."""

    def metadata(self, protocol: str) -> bytes:
        """`ClassicGroupMember.metadata`: the metadata that the member sent for `protocol`."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise ServerError("IllegalArgumentException")

    def vote(self, candidates: frozenset[str]) -> str:
        """`ClassicGroupMember.vote`: the first of its protocols that is a candidate."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ServerError("IllegalArgumentException")


class StoredGroup(NamedTuple):
    """A group as the log keeps it (`GroupMetadataValue`): all that survives a fail-over."""

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple[Member, ...]
    """Each with the chosen one of its protocols alone (`GroupMetadataValue.MemberMetadata`)."""
    state_since_ms: int
