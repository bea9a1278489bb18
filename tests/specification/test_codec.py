"""The stored form of a group."""

from pathlib import Path

import msgspec
import pytest

from coordinator_model.specification.codec import VERSION, CodecError, decode, encode
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.requests import Heartbeat, JoinGroup, SyncGroup

EXAMPLES = Path(__file__).parent.parent / "data" / "codec"
"""A blob of this version."""


def busy_group(release="4.2.0"):
    """Members of every kind, mid-rebalance: dynamic, static, parked, pending."""
    group = ClassicGroup("orders", CoordinatorConfig.of(release), 1_700_000_000_000)
    now_ms = 1_700_000_000_000
    protocols = (("range", b"\x00\x01topics"), ("cooperative-sticky", b"\x00\x01topics+owned"))
    join = JoinGroup("", 45_000, 300_000, "consumer", protocols, "i1", client_id="c1", client_host="/10.0.0.1")
    group.handle(join._replace(fresh_member_id="i1-aaaa"), now_ms, 1)
    group.handle(join._replace(instance_id=None, api_version=3, fresh_member_id="c2-bbbb"), now_ms + 5, 2)
    group.advance(now_ms + 10_000)
    group.handle(SyncGroup("i1-aaaa", 1, (("i1-aaaa", b"P0"), ("c2-bbbb", b"P1"))), now_ms + 10_001, 3)
    group.handle(Heartbeat("c2-bbbb", 1), now_ms + 12_000, 4)
    group.handle(join._replace(instance_id=None, fresh_member_id="c3-cccc"), now_ms + 13_000, 5)
    group.handle(join._replace(instance_id=None, api_version=2, fresh_member_id="c4-dddd"), now_ms + 14_000, "k-6")
    return group


def test_a_new_group_is_stored_as_it_begins():
    new, old = (encode(ClassicGroup("g", CoordinatorConfig.of(release), 7)) for release in ("4.2.0", "0.10.0.1"))
    nobody = [[16, []], "Dead", 0, None, None, None, [], {}, {}, {}, {}, {}, {}, False, 0, 0, [], {}, {}, []]
    assert msgspec.msgpack.decode(new) == [2, "g", 7, "Empty", 7, *nobody]
    assert msgspec.msgpack.decode(old) == [2, "g", 7, "Stable", 7, *nobody]


def test_the_example_is_what_this_version_writes():
    # If this fails, the layout has changed: raise VERSION, and write the example anew.
    assert encode(busy_group()) == (EXAMPLES / f"v{VERSION}.msgpack").read_bytes()


@pytest.mark.parametrize("release", ["0.10.0.1", "0.10.2.2", "2.3.1", "3.9.1", "4.2.0"])
def test_what_was_stored_comes_back(release):
    group = busy_group(release)
    blob = encode(group)
    restored = decode(blob, CoordinatorConfig.of(release))
    assert encode(restored) == blob
    for name in ("members", "static_members", "supported_protocols", "open_sessions", "session_ends", "orphans"):
        assert getattr(restored, name) == getattr(group, name), name
    assert restored.map_order.keys(restored.members) == group.map_order.keys(group.members)
    assert list(restored.timers.deadlines.items()) == list(group.timers.deadlines.items())


def test_an_id_that_is_no_members_may_still_have_to_sync():
    # A static member that restarts before it syncs leaves its old id behind, as in Kafka.
    config = CoordinatorConfig.of("4.2.0")
    group = busy_group()
    group.pending_sync_members = {"i1-aaaa": None, "gone": None}
    assert list(decode(encode(group), config).pending_sync_members) == ["i1-aaaa", "gone"]


OTHERS = ([], 7, {"version": 1}, [VERSION, "g"], [VERSION] + [None] * 23, [VERSION + 1])


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"garbage", *map(msgspec.msgpack.encode, OTHERS)])
def test_what_is_no_blob_of_this_version_is_refused(blob):
    with pytest.raises(CodecError, match="cannot read a stored group"):
        decode(blob, CoordinatorConfig.of("4.2.0"))
