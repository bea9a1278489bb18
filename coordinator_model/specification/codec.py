"""The stored form of a group: a MessagePack array whose first element is the version of its layout.

Another layout is refused. Neither are the settings stored: they belong to the cluster, and may have changed when the group is decoded.
Members stand once, with ids and deadlines of timers relative to them and to the group's clock: most of a group is that.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, get_type_hints

import msgspec

from coordinator_model.specification.config import CoordinatorConfig, HashMapKind
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.hash_maps import MapOrder
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import Timers

VERSION: Final = 2
_OF_THE_CLUSTER: Final = {"config", "version"}
_OF_ONE_REQUEST: Final = {"append_error", "replies", "effects"}
_PACKED: Final = {"members": list[Member], "timers": list[tuple[str, int | str, int, int]]}
"""Of a timer: its kind, the position of its member or another id, its number, and the time that is left."""
_HINTS: Final = get_type_hints(GroupState)
_TYPES: Final = {
    field.name: _PACKED.get(field.name, _HINTS[field.name])
    for field in fields(GroupState)
    if field.name not in _OF_THE_CLUSTER | _OF_ONE_REQUEST
}
_Stored: Final = msgspec.defstruct("_Stored", list(_TYPES.items()), array_like=True, tag=VERSION)


class CodecError(ValueError):
    """The bytes are not a stored group of this version."""


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=lambda order: (order.capacity, order.chained))
_DECODER: Final = msgspec.msgpack.Decoder(_Stored, dec_hook=lambda _, order: MapOrder(HashMapKind.JAVA, *order))


def encode(group: ClassicGroup) -> bytes:
    """The stored form of `group`."""
    position = {member_id: at for at, member_id in enumerate(group.members)}
    values = {name: getattr(group, name) for name in _TYPES}
    values["members"] = list(group.members.values())
    values["timers"] = [
        (kind, position.get(member_id, member_id), number, at_ms - group.now_ms)
        for (kind, member_id, number), at_ms in group.timers.deadlines.items()
    ]
    return _ENCODER.encode(_Stored(**values))


def decode(blob: bytes, config: CoordinatorConfig) -> ClassicGroup:
    """The group that was stored, under the settings that hold now. CodecError if `blob` cannot be read."""
    try:
        stored: Any = _DECODER.decode(blob)
        group = ClassicGroup(stored.group_id, config, stored.now_ms)
        for name in _TYPES:
            setattr(group, name, getattr(stored, name))
        members = [member.member_id for member in stored.members]
        group.members = dict(zip(members, stored.members, strict=True))
        left = [(kind, members[who] if isinstance(who, int) else who, number, ms) for kind, who, number, ms in stored.timers]
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError) as error:
        raise CodecError(f"cannot read a stored group: {error}") from error
    group.timers = Timers({(kind, member_id, number): stored.now_ms + ms for kind, member_id, number, ms in left})
    group.map_order.kind = config.version.member_map
    return group
