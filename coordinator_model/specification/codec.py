"""The stored form of a group: a MessagePack array whose first element is the version of its layout.

Another layout is refused. What can be computed from the rest is not stored. Neither are the settings: they belong to the cluster, and may
have changed when the group is decoded. Deadlines are stored relative to the group's clock, in the order in which the timers were set.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import msgspec

from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.hash_maps import MapOrder
from coordinator_model.specification.member import Member
from coordinator_model.specification.requests import Ticket
from coordinator_model.specification.timers import INITIAL_DELAY, JOIN, SESSION, SYNC, Timers
from coordinator_model.states import State

VERSION: Final = 1

# Positions are part of the layout: append, never reorder.
_STATES: Final = (State.EMPTY, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE, State.DEAD)
_STATE_CODES: Final = {state: code for code, state in enumerate(_STATES)}
_TIMERS: Final = (SESSION, JOIN, INITIAL_DELAY, SYNC)
_TIMER_CODES: Final = {kind: code for code, kind in enumerate(_TIMERS)}


class CodecError(ValueError):
    """The bytes are not a stored group of this version."""


class StoredGroup(msgspec.Struct, array_like=True, tag=VERSION):
    """The layout. A field with the name of a `GroupState` field has its value."""

    group_id: str
    now_ms: int
    state_code: int
    previous_state_code: int
    state_since_ms: int
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    member_list: tuple[Member, ...]
    map_capacity: int
    map_chained: list[str]
    supported_protocols: dict[str, int]
    pending_ids: tuple[str, ...]
    pending_sync: tuple[int | str, ...]
    """The position in `member_list` for a member; any other id as text."""
    awaiting_join: dict[str, Ticket]
    awaiting_sync: dict[str, Ticket]
    new_member_added: bool
    initial_delay_ms: int
    initial_remaining_ms: int
    running: tuple[tuple[int, int | str, int, int], ...]
    """The timers: kind, member as in `pending_sync`, number, and the time that is left."""
    session_ends: dict[str, int]
    orphans: list[tuple[int, int]]

    def group(self, config: CoordinatorConfig) -> ClassicGroup:
        """The group that was stored."""
        group = ClassicGroup(self.group_id, config, self.now_ms)
        for name in _SAME:
            setattr(group, name, getattr(self, name))
        members = self.member_list
        group.state = _STATES[self.state_code]
        group.previous_state = _STATES[self.previous_state_code]
        group.members = {member.member_id: member for member in members}
        group.static_members = {member.instance_id: member.member_id for member in members if member.instance_id is not None}
        group.map_order = MapOrder(config.version.member_map, self.map_capacity, self.map_chained)
        group.pending_members = dict.fromkeys(self.pending_ids)
        group.pending_sync_members = dict.fromkeys([self._member_id(member) for member in self.pending_sync])
        group.timers = Timers(
            {(_TIMERS[kind], self._member_id(member), number): self.now_ms + left for kind, member, number, left in self.running}
        )
        if not config.version.one_session_timer_per_member:
            for kind, member_id, number in group.timers.deadlines:
                if kind == SESSION:
                    group.open_sessions.setdefault(member_id, []).append(number)
        return group

    def _member_id(self, member: int | str) -> str:
        return self.member_list[member].member_id if isinstance(member, int) else member


_SAME: Final = tuple(field.name for field in fields(GroupState) if field.name in StoredGroup.__struct_fields__)
_DECODER: Final = msgspec.msgpack.Decoder(StoredGroup)
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(group: ClassicGroup) -> bytes:
    """The stored form of `group`."""
    position = {member_id: at for at, member_id in enumerate(group.members)}
    return _ENCODER.encode(
        StoredGroup(
            **{name: getattr(group, name) for name in _SAME},
            state_code=_STATE_CODES[group.state],
            previous_state_code=_STATE_CODES[group.previous_state],
            member_list=tuple(group.members.values()),
            map_capacity=group.map_order.capacity,
            map_chained=group.map_order.chained,
            pending_ids=tuple(group.pending_members),
            pending_sync=tuple([position.get(member_id, member_id) for member_id in group.pending_sync_members]),
            running=tuple(
                [
                    (_TIMER_CODES[kind], position.get(member_id, member_id), number, deadline - group.now_ms)
                    for (kind, member_id, number), deadline in group.timers.deadlines.items()
                ]
            ),
        )
    )


def decode(blob: bytes, config: CoordinatorConfig) -> ClassicGroup:
    """The group that was stored, under the settings that hold now. CodecError if `blob` cannot be read."""
    try:
        return _DECODER.decode(blob).group(config)
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError) as error:
        raise CodecError(f"cannot read a stored group: {error}") from error
