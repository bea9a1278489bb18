"""The stored form of a consumer group: storing and restoring changes nothing, at any step of the recorded traces."""

from pathlib import Path

import pytest

from coordinator_model.specification.codec import CodecError
from coordinator_model.specification.consumer.codec import CONSUMER_GROUP_VERSION, decode_consumer_group, encode_consumer_group
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit
from coordinator_model.specification.consumer.traces.trace import ConsumerTraceRun
from coordinator_model.specification.trace import run_trace
from scripts.truth.trace_files import load_consumer_traces
from tests.effort import long
from tests.specification.consumer.small_consumer_groups import IMAGE, SmallGroup, beat, joining, of_a

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "data" / "codec"
"""One blob for each layout."""


def busy_consumer_group():
    """Members of every kind in the middle of a rebalance, with offsets and an expression."""
    group = SmallGroup().after(joining("m1", "a", "b", assignor="uniform", rack_id="r"))
    group.ask(joining("m2", regex="[ab]", instance_id="i"), 10)
    group.ask(beat("m1", 1), 20)
    group.ask(ConsumerOffsetCommit("m1", 1, "a", 0, 5), 30)
    group.ask(ConsumerOffsetCommit("m1", 1, "a", 1, 6), 30)
    return group.coordinator.groups["g"]


def restored(group):
    again = decode_consumer_group(encode_consumer_group(group), group.config, group.image)
    again.overrides = group.overrides  # settings are not stored
    return again


@pytest.mark.parametrize("name", ["cases", long("random-4.2.0"), "random-4.4.0"])
def test_storing_and_restoring_at_any_step_changes_nothing(name):
    for trace in load_consumer_traces()[name][::6]:
        run = ConsumerTraceRun(trace)
        for index, step in enumerate(trace["steps"]):
            run.step(index, step)
            groups = run.coordinator.groups
            for group_id, group in groups.items():
                groups[group_id] = restored(group)
                assert encode_consumer_group(groups[group_id]) == encode_consumer_group(group)
        assert run.expects == [step["expect"] for step in run_trace(trace)["steps"]]


def test_a_copy_is_independent():
    group = busy_consumer_group()
    before = encode_consumer_group(group)
    other = group.copy()
    assert encode_consumer_group(other) == before
    other.handle(beat("m1", 1, owned=of_a(0)), 40)
    other.handle(ConsumerOffsetCommit("m1", other.state.members["m1"].epoch, "b", 0, 7), 40)
    other.handle(beat("m2", -1, instance_id="i"), 50)
    assert encode_consumer_group(group) == before


def test_the_layout_is_the_one_of_its_version():
    """Who changes the layout has to change the version: then state of the older one is refused, not misread."""
    stored = (EXAMPLES / "consumer-group-v3.msgpack").read_bytes()
    group = decode_consumer_group(stored, ConsumerGroupConfig(), IMAGE)
    assert encode_consumer_group(group) == stored == encode_consumer_group(busy_consumer_group())
    assert CONSUMER_GROUP_VERSION == 3


def test_a_place_without_a_group_is_stored_too():
    group = ConsumerGroup("g", ConsumerGroupConfig(), 7, image=IMAGE)
    assert restored(group).state is None


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x92\x02\xa1g", b"\x92\x01\xa1g", encode_consumer_group(busy_consumer_group())[:-3]])
def test_other_bytes_are_an_error(data):
    with pytest.raises(CodecError):
        decode_consumer_group(data, ConsumerGroupConfig(), IMAGE)
