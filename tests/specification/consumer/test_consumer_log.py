"""What a consumer group makes of its log: when it is loaded, and when a write fails."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.consumer import records
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.group_state import replay_all
from coordinator_model.specification.consumer.member import MemberState
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit, OffsetFetch
from coordinator_model.specification.consumer.topics import Topic
from coordinator_model.specification.requests import CommitAnswer, DeleteGroup, Heartbeat, SyncGroup
from tests.specification.consumer.small_consumer_groups import IMAGE, KAFKA_4_2, A, B, SmallGroup, beat, classic_join, joining, of_a

DAY_MS = 86_400_000


def test_a_loaded_group_looks_at_its_topics_with_the_first_heartbeat():
    group = SmallGroup().after(joining("m"))
    partition = group.coordinator.partition("g")
    group.coordinator.unload(partition, 0)
    group.coordinator.change_topics({"a": Topic("a", A, 6)}, 0)
    group.coordinator.load(partition, 0)
    assert group.ask(beat("m", 1)).assignment == of_a(*range(6))


@pytest.mark.parametrize(("fails", "last"), [(False, "Aa"), (True, "BB")])
def test_a_write_that_fails_leaves_another_order_of_members(fails, last):
    group = SmallGroup()
    for member_id in ("Aa", "BB"):  # of the same hash code: the younger one comes first
        group.ask(joining(member_id, "new"))
    if fails:
        assert group.ask(beat("Aa", 1, rack_id="r"), append_error=Error.NOT_ENOUGH_REPLICAS).error is Error.COORDINATOR_NOT_AVAILABLE
    assert group.member("Aa").rack_id is None
    group.coordinator.change_topics({"new": Topic("new", B, 1)}, 0)
    group.ask(beat("Aa", 1))
    assert [member_id for member_id, share in group.state.target.items() if share] == [last]  # it gets what is left over


def owners(state):
    return [state.owner_epoch(A, partition) for partition in range(3)]


def loaded_member():
    """A group of one member, which has a:0 and has to give up a:1."""
    member = records.ConsumerGroupMemberMetadata("m", None, None, "c", "h", ("a",), "", 5, None, None)
    assignment = records.CurrentMemberAssignment("m", 2, 1, MemberState.UNREVOKED_PARTITIONS, of_a(0), of_a(1))
    state = replay_all(None, [records.ConsumerGroupMetadata(2), member, assignment], KAFKA_4_2)
    assert owners(state) == [2, 2, -1]
    return state


def test_a_member_that_owns_nothing_any_more_frees_its_partitions_before_it_is_gone():
    state = replay_all(loaded_member(), [records.Tombstone(records.CurrentMemberAssignment, "m")], KAFKA_4_2)
    assert owners(state) == [-1, -1, -1]
    assert (state.members["m"].epoch, state.members["m"].assigned, state.members["m"].pending) == (-1, {}, {})


def test_a_member_that_is_gone_frees_its_partitions():
    state = replay_all(loaded_member(), [records.Tombstone(records.ConsumerGroupMemberMetadata, "m")], KAFKA_4_2)
    assert owners(state) == [-1, -1, -1]
    assert list(state.members) == []


def test_tombstones_of_a_group_that_was_deleted_can_come_before_the_next_of_its_name():
    state = replay_all(
        None,
        [
            records.Tombstone(records.ConsumerGroupMemberMetadata, "m"),
            records.Tombstone(records.ConsumerGroupMetadata),
            records.ConsumerGroupMetadata(3),
        ],
        KAFKA_4_2,
    )
    assert state.group_epoch == 3


def test_offsets_expire_in_the_millisecond_in_which_they_are_old_enough():
    group = SmallGroup(session_timeout_ms=30 * DAY_MS).after(joining("m"))
    for partition, now_ms in ((0, 0), (1, 1)):
        group.ask(ConsumerOffsetCommit("m", 1, "b", partition, 5), now_ms)
    for now_ms, kept in ((-1, [5, 5]), (0, [-1, 5]), (599_999, [-1, 5]), (600_000, [-1, -1])):  # the clean-up comes every 10 minutes
        assert [group.ask(OffsetFetch(None, -1, "b", at), 7 * DAY_MS + now_ms).offset for at in (0, 1)] == kept


@pytest.mark.parametrize(("epoch", "error"), [(-1, Error.NONE), (0, Error.UNKNOWN_MEMBER_ID)])
def test_a_group_without_members_takes_offsets_only_of_who_is_no_member(epoch, error):
    group = SmallGroup().after(joining("m"), beat("m", -1))
    assert group.ask(ConsumerOffsetCommit("", epoch, "a", 0, 5)).error is error


def test_the_first_offset_of_a_consumer_without_a_group_is_kept():
    group = SmallGroup()
    assert group.ask(ConsumerOffsetCommit("", -1, "a", 0, 5)) == CommitAnswer(Error.NONE)
    assert group.ask(OffsetFetch(None, -1, "a", 0)).offset == 5


@pytest.mark.parametrize(("epoch", "error"), [(-1, Error.NONE), (0, Error.UNKNOWN_SERVER_ERROR)])
def test_an_epoch_without_a_member_is_an_error_of_the_server(epoch, error):
    group = SmallGroup().after(joining("m"))
    assert group.ask(OffsetFetch(None, epoch, "a", 0)).error is error


def test_an_error_of_the_log_ends_with_the_call_that_met_it():
    group = ConsumerGroup("g", ConsumerGroupConfig(), 0, image=IMAGE)
    group.handle(joining("m"), 0)
    group.handle(joining("n"), 0, append_error=Error.NOT_ENOUGH_REPLICAS)
    group.handle(joining("n"), 45_000)  # the session of m ends before
    assert list(group.state.members) == ["n"]


def test_an_error_of_the_log_ends_with_the_time_that_passed():
    group = SmallGroup().after(joining("m"))
    group.coordinator.advance(45_000, append_error=Error.NOT_ENOUGH_REPLICAS)
    assert list(group.state.members) == ["m"]
    group.ask(joining("n"), 45_500)  # the removal of m is tried again
    assert list(group.state.members) == ["n"]


@pytest.mark.parametrize(("last_heartbeat_ms", "is_left"), [(554_999, False), (555_000, True)])
def test_in_one_millisecond_the_clean_up_comes_before_the_end_of_a_session(last_heartbeat_ms, is_left):
    group = SmallGroup().after(joining("m"))
    for now_ms in (*range(40_000, 554_000, 40_000), last_heartbeat_ms):
        group.ask(beat("m", 1), now_ms)
    group.coordinator.advance(600_000)
    assert (group.state is not None) is is_left


def test_a_clean_up_that_cannot_be_written_comes_again_after_ten_minutes():
    group = SmallGroup().after(joining("m"), beat("m", -1))
    for now_ms, error, is_left in (
        (600_000, Error.NOT_ENOUGH_REPLICAS, True),
        (1_199_999, Error.NONE, True),
        (1_200_000, Error.NONE, False),
    ):
        group.coordinator.advance(now_ms, append_error=error)
        assert (group.state is not None) is is_left


def test_an_empty_group_that_could_not_become_classic_is_left():
    group = SmallGroup().after(joining("m"), beat("m", -1))
    assert group.ask(classic_join(), append_error=Error.NOT_ENOUGH_REPLICAS).error is Error.COORDINATOR_NOT_AVAILABLE
    assert group.state.phase == "Empty"
    assert group.coordinator.classic.groups == {}


def test_a_member_that_left_takes_its_timers_along():
    group = SmallGroup().after(joining("n"), joining("m"), beat("n", 1), beat("n", 1, owned=of_a(0, 1)), joining("o"), beat("n", 2))
    assert group.member("n").state is MemberState.UNREVOKED_PARTITIONS  # it has a minute to give up a:1, in epoch 2
    for member_id in ("n", "m", "o"):
        group.ask(beat(member_id, -1))
    group.after(DeleteGroup(), joining("m"))
    assert group.ask(classic_join("n")).generation == 2  # another client of its name, in the same epoch of the next group
    group.ask(SyncGroup("n", 2))
    for now_ms in range(5_000, 61_000, 5_000):
        group.ask(beat("m", 1), now_ms)  # it gives up nothing, so that n waits
        assert group.ask(Heartbeat("n", 2), now_ms).error is Error.NONE


def test_a_topic_whose_offsets_expired_gets_a_new_place_with_the_next_one():
    group = SmallGroup(session_timeout_ms=30 * DAY_MS).after(joining("m"))
    for topic, now_ms in (("Aa", 0), ("BB", DAY_MS), ("Aa", 7 * DAY_MS)):  # of the same hash code: the younger one comes first
        group.ask(ConsumerOffsetCommit("m", 1, topic, 0, 5), now_ms)
    group.after(beat("m", -1), DeleteGroup())
    assert [record.topic for record in group.records() if isinstance(record, records.OffsetCommitted)] == ["Aa", "BB"]


@pytest.mark.parametrize(("version", "error"), [(9, Error.GROUP_ID_NOT_FOUND), (8, Error.ILLEGAL_GENERATION)])
def test_a_member_of_no_group_commits_nothing(version, error):
    assert SmallGroup().ask(ConsumerOffsetCommit("m", 0, "a", 0, 5, api_version=version)).error is error
