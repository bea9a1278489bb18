"""A coordinator of consumer groups whose partitions come and go, and whose settings change: time passes first, in every call."""

import pytest

from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit
from tests.specification.consumer.small_consumer_groups import IMAGE, SmallGroup, beat, joining

DAY_MS = 86_400_000
SESSION_MS = 45_000
CALLS = {
    "settings of the group change": lambda group, now_ms: group.coordinator.configure("g", GroupOverrides(), now_ms),
    "topics change": lambda group, now_ms: group.coordinator.change_topics({}, now_ms),
    "the partition of the group leaves": lambda group, now_ms: group.coordinator.unload(group.coordinator.partition("g"), now_ms),
    "another partition is about to come": lambda group, now_ms: group.coordinator.load_begin(60, now_ms),
    "another partition comes": lambda group, now_ms: group.coordinator.load(60, now_ms),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_session_that_ran_out_before_is_ended_first(call):
    group = SmallGroup().after(joining("m"))
    group.outcome = call(group, SESSION_MS)
    (first, *_), records = group.coordinator.logs["g"], group.records()
    assert records
    assert first not in records  # what was told by an earlier call is not told again
    assert group.coordinator.logs["g"][-len(records) :] == records


def test_the_clean_up_of_offsets_begins_anew_where_a_partition_is_read_again():
    group = SmallGroup(session_timeout_ms=30 * DAY_MS).after(joining("m"), ConsumerOffsetCommit("m", 1, "b", 0, 5))
    group.ask(beat("m", -1), 1)
    moved_ms, partition = 8 * DAY_MS + 1, group.coordinator.partition("g")
    group.coordinator.unload(partition, 7 * DAY_MS - 1)  # none is old enough yet
    group.coordinator.load(partition, moved_ms)
    for now_ms, is_kept in ((moved_ms + 599_999, True), (moved_ms + 600_000, False)):
        group.coordinator.advance(now_ms)
        assert bool(group.coordinator.groups["g"].offsets) is is_kept


def test_a_partition_brings_the_groups_that_it_has():
    group = SmallGroup()
    coordinator = group.coordinator
    places = {coordinator.partition(name): name for name in ("g", "h", "i")}
    assert len(places) == 3
    for name in places.values():
        coordinator.handle(name, joining("m"), 0)
    for partition in places:
        coordinator.unload(partition, 0)
    coordinator.load(coordinator.partition("h"), 0)
    assert list(coordinator.groups) == ["h"]


def test_time_passes_in_a_group_alone():
    group = ConsumerGroup("g", ConsumerGroupConfig(), 0, image=IMAGE)
    group.handle(joining("m"), 0)
    group.handle(joining("n"), 1_000)
    group.advance(SESSION_MS)
    assert list(group.state.members) == ["n"]
