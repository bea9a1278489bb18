"""The stored form of a group: versioned, compact, explicit.

A blob is one msgpack array whose first element is the version of its layout. Whoever changes the layout raises
`VERSION`, writes a new encoder, and leaves the decoder of every older version in `_DECODERS`, with an example of it
in tests/data/codec: state that was stored by an older release of this project has to be read by every later one.

What can be computed from the rest is not stored. The settings are not either: they belong to the cluster, and may be
others when the group is decoded. Timers are stored relative to the group's clock, in the order in which they were
set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgpack

from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.map_order import MapOrder
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import INITIAL_DELAY, JOIN, SESSION, SYNC, TimerKey, Timers
from coordinator_model.states import State

VERSION: Final = 1

# Positions are part of the layout: append, never reorder.
_STATES: Final = (
    State.EMPTY,
    State.PREPARING_REBALANCE,
    State.COMPLETING_REBALANCE,
    State.STABLE,
    State.DEAD,
)
_STATE_CODES: Final = {state: code for code, state in enumerate(_STATES)}
_TIMERS: Final = (SESSION, JOIN, INITIAL_DELAY, SYNC)
_TIMER_CODES: Final = {kind: code for code, kind in enumerate(_TIMERS)}


class CodecError(ValueError):
    """A blob that is none, or that a later release of this project has written."""


def encode(group: ClassicGroup) -> bytes:
    """The stored form of `group`."""
    now = group.now_ms
    index = {member_id: i for i, member_id in enumerate(group.members)}
    blob: bytes = msgpack.packb(
        (
            VERSION,
            group.group_id,
            now,
            _STATE_CODES[group.state],
            _STATE_CODES[group.previous_state],
            group.state_since_ms,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader,
            tuple(group.members.values()),
            group.map_order.capacity,
            group.map_order.chained,
            group.supported_protocols,
            tuple(group.pending_members),
            tuple([index.get(member_id, member_id) for member_id in group.pending_sync_members]),
            group.awaiting_join,
            group.awaiting_sync,
            group.new_member_added,
            group.initial_delay_ms,
            group.initial_remaining_ms,
            [
                (_TIMER_CODES[kind], index.get(name, name), number, deadline - now)
                for (kind, name, number), deadline in group.timers.deadlines.items()
            ],
            group.session_ends,
            group.orphans,
        )
    )
    return blob


def decode(blob: bytes, config: CoordinatorConfig) -> ClassicGroup:
    """The group that was stored, under the settings that hold now. CodecError if `blob` cannot be read."""
    try:
        fields = msgpack.unpackb(blob, use_list=False, strict_map_key=False)
        version = fields[0]
        if version in _DECODERS:
            return _DECODERS[version](fields, config)
    except (ValueError, TypeError, LookupError, msgpack.UnpackException) as error:
        raise CodecError(f"not a stored group: {error}") from error
    raise CodecError(f"a stored group of version {version}, but this release reads up to {VERSION}")


def _decode_1(fields: tuple[Any, ...], config: CoordinatorConfig) -> ClassicGroup:
    (
        _,
        group_id,
        now,
        state,
        previous_state,
        state_since_ms,
        generation,
        protocol_type,
        protocol,
        leader,
        members,
        capacity,
        chained,
        supported_protocols,
        pending_members,
        pending_sync_members,
        awaiting_join,
        awaiting_sync,
        new_member_added,
        initial_delay_ms,
        initial_remaining_ms,
        timers,
        session_ends,
        orphans,
    ) = fields
    group = ClassicGroup(group_id, config, now)
    group.state = _STATES[state]
    group.previous_state = _STATES[previous_state]
    group.state_since_ms = state_since_ms
    group.generation = generation
    group.protocol_type = protocol_type
    group.protocol = protocol
    group.leader = leader
    ids = [member[0] for member in members]
    group.members = dict(zip(ids, map(Member._make, members), strict=True))
    group.static_members = {member[1]: member[0] for member in members if member[1] is not None}
    group.map_order = MapOrder(config.version.member_map, capacity, chained)
    group.supported_protocols = supported_protocols
    group.pending_members = dict.fromkeys(pending_members)
    group.pending_sync_members = dict.fromkeys([_name(ids, member) for member in pending_sync_members])
    group.awaiting_join = awaiting_join
    group.awaiting_sync = awaiting_sync
    group.new_member_added = new_member_added
    group.initial_delay_ms = initial_delay_ms
    group.initial_remaining_ms = initial_remaining_ms
    deadlines: dict[TimerKey, int] = {
        (_TIMERS[kind], ids[name] if type(name) is int else name, number): now + length for kind, name, number, length in timers
    }
    group.timers = Timers(deadlines)
    group.session_ends = session_ends
    if not config.version.one_session_timer_per_member:
        for kind, member_id, number in deadlines:
            if kind == SESSION:
                group.open_sessions.setdefault(member_id, []).append(number)
    group.orphans = list(orphans)
    return group


def _name(ids: list[str], member: int | str) -> str:
    """A member is stored by its position, an id that is no member's as it is."""
    return ids[member] if isinstance(member, int) else member


_DECODERS: Final[dict[int, Callable[[tuple[Any, ...], CoordinatorConfig], ClassicGroup]]] = {1: _decode_1}
