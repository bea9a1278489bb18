"""The stored form of the tracker's state.

The records are MessagePack arrays in the order of their fields, without field names: msgspec derives the form from the types of the
records. A version stands in front, and no other one is read.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any, Final

from msgspec import Raw, Struct, field, msgpack
from msgspec.structs import replace

from coordinator_model.events import Event
from coordinator_model.group_beats import Shared
from coordinator_model.offsets.ledger import Topics
from coordinator_model.specification import codec as model_codec
from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker.rebase import rules
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.view import View

MODEL_VERSION: Final = 31
"""State of another version is refused: `rebalance replay` makes it anew of the events."""

_MOST_IDS: Final = 64


class KnownGroup(Struct, array_like=True):
    """What a shard keeps of a group. One without members and without anything due rests in a bucket (tracker/quiet/resting.py)."""

    view: bytes = b""  # its View; empty: nothing proves yet that there is such a group
    brokers: list[str] = []  # the brokers that spoke for it
    horizon_ms: int = -1  # its events before this were handled
    idle_ms: int = NEVER  # its last event, if it has no members and nothing is due
    partition: int = -1  # its partition of __consumer_offsets, as the coordinator logs it
    since_ms: int = NEVER  # when the coordinator logged that first
    offsets: bytes = b""  # its Ledger (coordinator_model/offsets)


class Bucket(Struct, array_like=True):
    """Some of the groups that rest, and what can be known of them without unpacking them."""

    groups: int  # how many
    oldest_ms: int  # the least of their `idle_ms`
    partitions: list[int]
    packed: bytes  # group: KnownGroup


class Hearing(Struct, array_like=True):
    """A member of a calm group."""

    instance_id: str
    widest_ms: int  # of its signs, a longer gap is not calm
    since_ms: int  # since when it is silent
    newest_ms: int  # when its last sign came
    sender: str = ""  # of its heartbeats in `Calm.beats`, and of those that are counted
    count: int = 0  # heartbeats that are counted: they came before those in `Calm.beats`
    first_ms: int = -1  # arrival of the first of them
    last_ms: int = -1  # ... of the last one
    last_position: int = -1
    last_source: int = -1  # its place in `Calm.sources`
    gap_ms: int = -1  # the longest pause between two of them


class Calm(Struct, array_like=True):
    """A group in which nothing happens (tracker/quiet/calm.py): what a sign of life must be like to change nothing, and those that wait."""

    broker: str
    generation: int
    members: dict[str, Hearing]
    commits: list[Event] = []  # that wait
    due_ms: int = -1  # when something falls due, whatever signs come, but for sessions that end after `since_ms`
    since_ms: int = -1  # since when it is calm
    until_ms: int = -1  # when the signs that wait are handled at the latest; -1: none waits
    sources: list[Shared] = []  # of `beats`, and of what members count
    base: tuple[int, int] = (0, 0)  # arrival and position from which those in `beats` count
    beats: bytes = b""  # heartbeats that wait as numbers: of each its member, its source, its arrival and its position
    queued: int = 0  # requests that waited for the specification when it became calm
    least_ms: int = 1 << 31  # the shortest pause of a member since then


class ShardState(Struct, array_like=True):
    """What a shard keeps between batches."""

    clocks: dict[str, BrokerClock] = {}
    groups: dict[str, KnownGroup] = {}
    due: dict[str, int] = {}  # group: when it has something due
    waiting: list[Event] = []  # events that are not handled yet
    unplaced: list[Event] = []  # lines about a group that they do not name
    instances: dict[str, dict[str, dict[str, int]]] = {}  # group.instance.id: the groups that use it, under which member ids, since when
    late: int = 0  # events that came after their group's horizon
    resting: dict[int, Bucket] = {}  # groups that are not in `groups`, but may be in `instances`
    calm: dict[str, bytes] = {}  # group: its Calm
    unexplained: list[str] = []  # groups in whose Ledger something waits
    unwritten: dict[str, int] = {}  # group: when its first rebalance began whose row is not written yet
    concerned: dict[str, dict[str, tuple[int, int]]] = {}  # client (reads.client_key), partition: its groups, when heard of first and last
    topics: Topics = field(default_factory=Topics)

    def known(self, group_id: str) -> KnownGroup:
        """What is known of a group that does not rest, to be read."""
        return self.groups.get(group_id, _UNKNOWN)

    def group(self, group_id: str) -> KnownGroup:
        """The same, to be written."""
        return self.groups.setdefault(group_id, KnownGroup())

    def note_instance(self, event: Event) -> None:
        """Keeps who uses an instance id. Two processes that take it from each other get a new member id each time: not all are kept."""
        since = self.instances.setdefault(event.instance_id, {}).setdefault(event.group_id, {})
        for member_id in (event.member_id, event.answer_member_id):
            since[member_id] = min(since.get(member_id, event.at_ms), event.at_ms)
        while len(since) > _MOST_IDS:
            del since[min(since, key=lambda member_id: (since[member_id], member_id))]


def encode_view(view: View) -> bytes:
    """The stored form of a view."""
    prediction = view.prediction
    if prediction.group is not None:
        earlier = [(until, model_codec.encode(group)) for until, group in prediction.earlier]
        view = replace(view, prediction=replace(prediction, group=model_codec.encode(prediction.group), earlier=earlier))
    return zlib.compress(_ENCODER.encode(view), _LEVEL)


def decode_view(blob: bytes) -> View:
    """The view that `encode_view` stored."""
    view = _views().decode(plain_view(blob))
    prediction: Any = view.prediction  # its groups are still bytes: the release that they follow is stored after them
    if prediction.group is not None:
        config = rules(view)
        prediction.group = model_codec.decode(prediction.group, config)
        prediction.earlier = [(until, model_codec.decode(group, config)) for until, group in prediction.earlier]
    return view


def plain_view(blob: bytes) -> bytes:
    """A stored view that is not compressed. It can be stored, too."""
    return zlib.decompress(blob) if blob.startswith(_ZLIB) else blob


def encode_shard(state: ShardState) -> bytes:
    """The stored form of a shard."""
    return _ENCODER.encode((MODEL_VERSION, state))


def decode_shard(blob: bytes) -> ShardState:
    """The state that `encode_shard` stored. ValueError if another version wrote it."""
    version, body = _VERSIONED.decode(blob)
    if version != MODEL_VERSION:
        raise ValueError(f"state of model version {version} cannot be read by version {MODEL_VERSION}")
    return _SHARDS.decode(body)


def pack_groups(groups: dict[str, KnownGroup]) -> bytes:
    """The stored form of the groups of a bucket, which passes through most batches as it is."""
    return zlib.compress(_ENCODER.encode(groups), _LEVEL)


def unpack_groups(packed: bytes) -> dict[str, KnownGroup]:
    """The groups that `pack_groups` stored."""
    return _GROUPS.decode(zlib.decompress(packed))


def encode_calm(calm: Calm) -> bytes:
    """The stored form of a calm group."""
    return _ENCODER.encode(calm)


def decode_calm(blob: bytes) -> Calm:
    """What `encode_calm` stored."""
    return _CALM.decode(blob)


_UNKNOWN: Final = KnownGroup()
_LEVEL: Final = 1
_ZLIB: Final = b"\x78"
"""The first byte of what is compressed. No MessagePack array begins with it."""
_ENCODER: Final = msgpack.Encoder()
_VERSIONED: Final = msgpack.Decoder(tuple[int, Raw])
_SHARDS: Final = msgpack.Decoder(ShardState)
_CALM: Final = msgpack.Decoder(Calm)
_GROUPS: Final = msgpack.Decoder(dict[str, KnownGroup])


@cache
def _views() -> msgpack.Decoder[View]:
    """To make it takes as long as to make all other records. A short log stores no view."""
    return msgpack.Decoder(View)
