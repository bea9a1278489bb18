"""The stored form of a consumer group: a MessagePack array whose first element is the version of its layout.

Another layout is refused. What can be computed from the rest is not stored. Neither are the settings and the topics: they belong to
the cluster. Deadlines are stored relative to the group's clock, in the order in which the timers were set. Tables are stored with their
size and bucket by bucket, because a revert may have left an order that no other history leads to.
"""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from coordinator_model.specification.codec import CodecError
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.core import REBALANCE
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.group_state import ConsumerGroupState, ResolvedRegularExpression
from coordinator_model.specification.consumer.member import (
    NO_EPOCHS,
    NO_PARTITIONS,
    ConsumerGroupMember,
    OrderedPartitions,
    as_sets,
    each_partition,
    in_order,
)
from coordinator_model.specification.consumer.records import MetadataHash, OffsetCommitted
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import TopicImage
from coordinator_model.specification.hash_maps import TimelineHashMap
from coordinator_model.specification.timers import JOIN, SESSION, SYNC, Timers

CONSUMER_GROUP_VERSION: Final = 3

_TIMERS: Final = (SESSION, REBALANCE, JOIN, SYNC)  # positions are part of the layout: append, never reorder


class StoredState(msgspec.Struct, array_like=True):
    """The state of a group that exists. Fields have the names of its own."""

    group_epoch: int
    target_epoch: int
    target_at_ms: int | None
    metadata_hash: MetadataHash
    member_buckets: int
    member_list: list[tuple[ConsumerGroupMember, OrderedPartitions, OrderedPartitions, list[int]]]
    """Each without partitions, then what is assigned and what is pending, and the assignment epochs of both."""
    target: dict[str, OrderedPartitions]
    static_members: dict[str, str]
    regexes: TimelineHashMap[str, int]
    resolved: TimelineHashMap[str, ResolvedRegularExpression]
    assignors: TimelineHashMap[str, int]
    subscription: SubscriptionType
    refresh_at_ms: int
    refresh_epoch: int

    def state(self, release: KafkaVersion) -> ConsumerGroupState:
        """The state that was stored. What members say is counted again."""
        state = ConsumerGroupState.new(release)
        members = [
            member._replace(
                assigned=as_sets(own),
                pending=as_sets(pending),
                assignment_epochs=dict(zip(each_partition(own, pending), epochs, strict=True)),
            )
            for member, own, pending, epochs in self.member_list
        ]
        for member in members:
            state.update_member(member)
        state.members = TimelineHashMap.restored(self.member_buckets, [(member.member_id, member) for member in members])
        for name in _SAME:
            setattr(state, name, getattr(self, name))
        state.count_resolved()
        return state


class StoredGroup(msgspec.Struct, array_like=True, tag=CONSUMER_GROUP_VERSION):
    """The layout."""

    group_id: str
    now_ms: int
    stored: StoredState | None
    running: list[tuple[int, str, int]]
    """The timers: kind, member, and the time that is left."""
    revoking_epochs: dict[str, int]
    offsets: TimelineHashMap[str, TimelineHashMap[int, OffsetCommitted]]

    def group(self, config: ConsumerGroupConfig, image: TopicImage) -> ConsumerGroup:
        """The group that was stored."""
        state = None if self.stored is None else self.stored.state(config.version)
        timers = Timers({(_TIMERS[kind], member_id, 0): self.now_ms + left for kind, member_id, left in self.running})
        group = ConsumerGroup(self.group_id, config, self.now_ms, GroupOverrides(), image, state, timers, self.revoking_epochs)
        group.offsets = self.offsets
        return group


def _table(kind: Any, stored: Any) -> TimelineHashMap[Any, Any]:
    capacity, entries = stored
    key_and_value: Any = tuple[get_args(kind)]  # type: ignore[misc]  # known when it runs
    return TimelineHashMap.restored(capacity, msgspec.convert(entries, list[key_and_value], dec_hook=_table))


_SAME: Final = tuple(name for name in StoredState.__struct_fields__ if not name.startswith("member_"))
_DECODER: Final = msgspec.msgpack.Decoder(StoredGroup, dec_hook=_table)
_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic", enc_hook=lambda table: (table.capacity(), table.stored()))


def encode_consumer_group(group: ConsumerGroup) -> bytes:
    """The stored form of `group`."""
    now_ms, state = group.now_ms, group.state
    timers = [(_TIMERS.index(kind), member_id, at_ms - now_ms) for (kind, member_id, _), at_ms in group.timers.deadlines.items()]
    stored = None
    if state is not None:
        members = [_stored_member(member) for _, member in state.members.stored()]
        same = {name: getattr(state, name) for name in _SAME}
        stored = StoredState(**same, member_buckets=state.members.capacity(), member_list=members)
    return _ENCODER.encode(StoredGroup(group.group_id, now_ms, stored, timers, group.revoking_epochs, group.offsets))


def _stored_member(member: ConsumerGroupMember) -> tuple[ConsumerGroupMember, OrderedPartitions, OrderedPartitions, list[int]]:
    own, pending = in_order(member.assigned), in_order(member.pending)
    epochs = [member.assignment_epochs[partition] for partition in each_partition(own, pending)]
    return member._replace(assigned=NO_PARTITIONS, pending=NO_PARTITIONS, assignment_epochs=NO_EPOCHS), own, pending, epochs


def decode_consumer_group(data: bytes, config: ConsumerGroupConfig, image: TopicImage) -> ConsumerGroup:
    """The group of which `data` is the stored form. CodecError: it is none that this release knows."""
    try:
        return _DECODER.decode(data).group(config, image)
    except (msgspec.DecodeError, LookupError, ValueError) as error:
        raise CodecError(f"cannot read a stored consumer group: {error}") from error
