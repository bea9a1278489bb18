"""The tracker's stored state: a shard goes on as if it had not been stored, and state of another version is refused."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct, msgpack

from coordinator_model.states import State
from coordinator_model.tracker import codec
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.view import View
from tests.tracker.story import START_MS, Story, play, table

STORED = Path(__file__).parents[1] / "data" / "codec"
"""Blobs of this version. Who changes the layout has to raise the version, and to write them anew."""

CUT_MS = 21_015


def told() -> Story:
    """A story of both logs. The stored shards were told it up to CUT_MS, amid the second rebalance."""
    story = Story()
    story.at(0).join("a-1", 1, "a-1", ("a-1",), waited=3_000)
    story.at(5).sync("a-1", 1, {"a-1": ("orders-0", "orders-1")})
    story.beats(["a-1"], 1, 3_000, 20_000)
    story.at(20_010).log_preparing(1, "Adding new member b-1 with group instance id null; client reason: not provided.", member="b-1")
    story.at(21_000).heartbeat("a-1", 1, error=27)
    story.at(21_010).log_stabilized(2, members=2)
    story.at(21_011).join("a-1", 2, "a-1", ("a-1", "b-1"), waited=5)
    story.at(21_012).join("b-1", 2, "a-1", waited=1_002)
    story.at(21_020).log_assignment(2, leader="a-1", members=2)
    story.at(21_021).sync("a-1", 2, {"a-1": ("orders-0",), "b-1": ("orders-1",)})
    story.at(21_022).sync("b-1", 2, {"b-1": ("orders-1",)})
    story.beats(["a-1", "b-1"], 2, 24_000, 40_000)
    return story.at(41_000).leave("b-1")


def test_a_stored_shard_goes_on() -> None:
    story = told()
    shard = Shard.decode((STORED / f"tracker-v{codec.MODEL_VERSION}.msgpack").read_bytes())
    rest = [event for event in story.events if event.at_ms > START_MS + CUT_MS]
    rows = play([[*rest, *story.heard()]], shard=shard)
    whole = story.rows()
    for name in ("rebalances", "group_transitions", "member_sessions"):
        later = [row for row in table(whole, name) if row.get("ended_at", row.get("occurred_at")) > CUT_MS]
        assert [row for row in table(rows, name) if row.get("ended_at", row.get("occurred_at")) > CUT_MS] == later
    assert Shard.decode(shard.encode()).encode() == shard.encode()


def test_the_examples_are_what_this_version_writes() -> None:
    # If this fails, the layout has changed: raise MODEL_VERSION, and write the examples anew.
    story = told()
    shard = Shard()
    shard.observe([*(event for event in story.events if event.at_ms <= START_MS + CUT_MS), *story.heard(CUT_MS)])
    assert unpacked(shard.encode()) == unpacked((STORED / f"tracker-v{codec.MODEL_VERSION}.msgpack").read_bytes())


def unpacked(blob: bytes) -> codec.ShardState:
    """A stored shard, its views without compression: versions of zlib differ in how they compress."""
    state = codec.decode_shard(blob)
    for group in state.groups.values():
        group.view = zlib.decompress(group.view)
    return state


def filled(kind: Any, count: Iterator[int]) -> Any:
    """A value of a type: in every record that it has, every field differs from its default."""
    of, parts = get_origin(kind), get_args(kind)
    if of in (Union, UnionType):
        return filled(next(part for part in parts if part is not NoneType), count)
    if of is tuple:
        return tuple(filled(part, count) for part in parts if part is not Ellipsis)
    if of is list:
        return [filled(parts[0], count)]
    if of is dict:
        return {filled(parts[0], count): filled(parts[1], count)}
    if isinstance(kind, type) and issubclass(kind, Struct | tuple):
        hints = get_type_hints(kind)
        return kind(*(filled(hints[name], count) for name in getattr(kind, "__struct_fields__", None) or kind._fields))
    plain = {str: f"text {next(count)}", bytes: b"%d" % next(count), bool: True, Any: next(count), State: State.COMPLETING_REBALANCE}
    return plain.get(kind, next(count))


def test_no_field_of_any_record_is_lost() -> None:
    count = itertools.count(1)
    view, state, calm = (filled(kind, count) for kind in (View, codec.ShardState, codec.Calm))
    followed = Shard()
    followed.observe([*told().events, *told().heard(CUT_MS)])
    group = codec.decode_view(codec.decode_shard(followed.encode()).groups["orders"].view).prediction.group
    assert group is not None
    view.prediction.group, view.prediction.earlier, view.release = group, [(9, group)], "4.4.0"  # the rules of the group
    again = codec.decode_view(codec.encode_view(view))
    assert codec.encode_view(again) == codec.encode_view(view)
    assert [getattr(again, name) for name in View.__struct_fields__ if name != "prediction"] == [
        getattr(view, name) for name in View.__struct_fields__ if name != "prediction"
    ]
    assert codec.decode_shard(codec.encode_shard(state)) == state
    assert codec.decode_calm(codec.encode_calm(calm)) == calm


@pytest.mark.parametrize("other", [-1, 1])
def test_a_shard_of_another_version_is_refused(other: int) -> None:
    blob = msgpack.encode((codec.MODEL_VERSION + other, []))
    with pytest.raises(ValueError, match=f"version {codec.MODEL_VERSION + other} cannot be read by version {codec.MODEL_VERSION}"):
        Shard.decode(blob)
