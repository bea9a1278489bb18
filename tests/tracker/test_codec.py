"""The tracker's stored state: a shard goes on as if it had not been stored, and state of another version is refused."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from msgspec import msgpack

from coordinator_model.group_beats import Shared
from coordinator_model.tracker import codec
from coordinator_model.tracker.quiet.resting import Resting
from coordinator_model.tracker.shard import Shard
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
    state.views = {group_id: zlib.decompress(view) for group_id, view in state.views.items()}
    return state


def test_no_field_of_any_record_is_lost() -> None:
    """In this example every record occurs and every field is filled."""
    example = (STORED / f"tracker-v{codec.MODEL_VERSION}-full.msgpack").read_bytes()
    shard = Shard.decode(example)
    assert shard.encode() == example
    state = codec.decode_shard(example)
    assert sorted(state.views) == ["orders", "payments", "telemetry"]
    views = {group_id: codec.encode_view(codec.decode_view(blob)) for group_id, blob in state.views.items()}
    assert {group_id: zlib.decompress(view) for group_id, view in views.items()} == unpacked(example).views
    assert codec.decode_calm(state.calm["orders"]) == CALM
    assert codec.encode_calm(CALM) == state.calm["orders"]
    (bucket,) = state.resting.values()
    assert (bucket.groups, bucket.oldest_ms, bucket.partitions) == (1, START_MS, [7])
    Resting(state).wake("console-1")
    assert (state.views["console-1"], state.brokers["console-1"], state.horizons["console-1"]) == (b"view", ["broker-1"], START_MS + 5)
    assert (state.idle["console-1"], state.partitions["console-1"], state.since["console-1"]) == (START_MS, 7, START_MS - 9)


HEARING = codec.Hearing(
    "i-1", 20_000, START_MS, START_MS + 1, "4\0c-1\0a\0h\0s 1\0i-1",
    count=4, first_ms=START_MS - 90, last_ms=START_MS - 10, last_position=12, last_source=0, gap_ms=40,
)  # fmt: skip
CALM = codec.Calm(
    "broker-1", 3, {"a-1": HEARING}, [told().events[-1]],
    due_ms=START_MS + 9, since_ms=START_MS - 1, until_ms=START_MS + 8, sources=[Shared("broker-1", "f", "orders", 7, 3)],
    base=(START_MS, 70), beats=struct.pack("<HHii", 0, 0, 5, -3), queued=6, least_ms=20,
)  # fmt: skip


@pytest.mark.parametrize("other", [-1, 1])
def test_a_shard_of_another_version_is_refused(other: int) -> None:
    blob = msgpack.encode((codec.MODEL_VERSION + other, []))
    with pytest.raises(ValueError, match=f"version {codec.MODEL_VERSION + other} cannot be read by version {codec.MODEL_VERSION}"):
        Shard.decode(blob)
