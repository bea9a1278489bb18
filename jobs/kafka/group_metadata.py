"""Records of `__consumer_offsets` that describe a classic group: GroupMetadataKey v2, GroupMetadataValue v0 to v4.

A coordinator writes one when it stores the leader's assignment, when a group becomes empty and when a static member is replaced. When the
group is removed it writes one without a value (kafka `group-coordinator/src/main/resources/common/message/GroupMetadata*.json`). Brokers
choose the version by their protocol level: v3 since 2.3; v4 is the flexible one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.kafka_bytes import FieldReader, UnreadableError

GROUP_KEY: Final = 2
"""The key type of classic groups: 0 and 1 are commits, 3 and more are other kinds of groups."""
CONSUMER_GROUP_KEYS: Final = frozenset({*range(3, 9), 16})
"""The key types of groups of the consumer protocol (jobs/parsing/consumer_group_records.py)."""

NEWEST: Final = 4
_FLEXIBLE: Final = 4
_SMALLEST_MEMBER: Final = 7  # bytes of a member in the compact encoding if all its texts are empty


class UnsupportedVersionError(UnreadableError):
    """No Kafka up to 4.4 writes this version of the value."""


class MemberMetadata(NamedTuple):
    """A member. Fields that the version of the record lacks are "" or -1."""

    member_id: str
    instance_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A group. `removed`: the record has no value, because the group is gone."""

    group_id: str
    removed: bool
    protocol_type: str = ""
    generation: int = -1
    protocol: str = ""
    leader_id: str = ""
    state_since_ms: int = -1  # when the group entered its state, which is CompletingRebalance while an assignment is being stored
    members: tuple[MemberMetadata, ...] = ()


def decode(key: bytes, value: bytes | None) -> GroupMetadata | None:
    """The group that a record describes; None if the record is about something else. UnreadableError: what is wrong with it."""
    reader = FieldReader(key)
    kind = reader.int16()
    if kind < 0:
        raise UnreadableError("a negative type of key")
    if kind != GROUP_KEY:
        return None
    group_id = reader.string()
    if reader.left:
        raise UnreadableError("bytes are left over in the key")
    return GroupMetadata(group_id, removed=True) if value is None else _value(group_id, value)


def _value(group_id: str, value: bytes) -> GroupMetadata:
    reader = FieldReader(value)
    version = reader.int16()
    if not 0 <= version <= NEWEST:
        raise UnsupportedVersionError(str(version))
    reader.compact = version >= _FLEXIBLE

    def member() -> MemberMetadata:
        member_id = reader.string()
        instance_id = reader.nullable_string() if version >= 3 else None
        client_id, client_host = reader.string(), reader.string()
        rebalance_timeout_ms = reader.int32() if version >= 1 else -1
        session_timeout_ms = reader.int32()
        subscription, assignment = reader.bytes_(), reader.bytes_()
        reader.tagged_fields()
        return MemberMetadata(
            member_id,
            instance_id or "",
            client_id,
            client_host.rpartition("/")[2],  # java.net.InetAddress prints name/address
            rebalance_timeout_ms,
            session_timeout_ms,
            subscription,
            assignment,
        )

    group = GroupMetadata(
        group_id,
        removed=False,
        protocol_type=reader.string(),
        generation=reader.int32(),
        protocol=reader.nullable_string() or "",
        leader_id=reader.nullable_string() or "",
        state_since_ms=reader.int64() if version >= 2 else -1,
        members=tuple(reader.array(member, _SMALLEST_MEMBER)),
    )
    reader.tagged_fields()
    if reader.left:
        raise UnreadableError("bytes are left over in the value")
    return group
