"""Corners of consumer groups that the recorded traces do not reach."""

import pytest

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification.consumer import records
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.group_state import ConsumerGroupState, replay_all
from coordinator_model.specification.consumer.member import ConsumerGroupMember, MemberState
from coordinator_model.specification.consumer.reconciliation import ReconciliationInput, reconcile
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit, OffsetFetch
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import DeleteAnswer, DeleteGroup, Heartbeat, HeartbeatAnswer
from tests.specification.consumer.small_consumer_groups import IMAGE, KAFKA_4_2, A, B, C, SmallGroup, beat, joining, new_coordinator, of_a

DAY_MS = 86_400_000


def given(target=None, owned=None, names=("a",), epoch=5, *, changed=False):
    return ReconciliationInput(epoch, target or {}, names, IMAGE, lambda *_: -1, owned, changed, shrink_moves_previous_epoch=False)


def test_a_member_in_a_state_of_a_newer_version_has_to_begin_again():
    member = ConsumerGroupMember("m", epoch=3, state=MemberState.UNKNOWN, assigned=of_a(0))
    for owned in (None, of_a(0)):
        with pytest.raises(RefusedRequestError) as caught:
            reconcile(member, given(of_a(1), owned))
        assert caught.value.error is Error.FENCED_MEMBER_EPOCH
    after = reconcile(member, given(of_a(1), {}))
    assert (after.state, after.epoch, after.previous_epoch, after.assigned) == (MemberState.STABLE, 5, 3, of_a(1))


def test_partitions_of_a_dropped_topic_are_gone_at_once_if_the_member_gave_them_up():
    member = ConsumerGroupMember("m", epoch=5, assigned={A: frozenset({0}), B: frozenset({1})}, assignment_epochs={(A, 0): 3, (B, 1): 5})
    after = reconcile(member, given(of_a(0), of_a(0), changed=True))
    assert (after.state, after.assigned, after.pending) == (MemberState.STABLE, of_a(0), {})
    assert after.assignment_epochs == {(A, 0): 3}
    assert reconcile(member, given(names=("a", "b"), changed=True)) is member


def test_tombstones_without_a_group_make_none():
    tombstones = [
        records.Tombstone(records.ConsumerGroupMetadata),
        records.Tombstone(records.PartitionMetadata),
        records.Tombstone(records.ConsumerGroupMemberMetadata, "m"),
        records.Tombstone(records.TargetAssignmentMetadata),
        records.Tombstone(records.TargetAssignmentMember, "m"),
        records.Tombstone(records.CurrentMemberAssignment, "m"),
        records.Tombstone(records.RegularExpression, "a*"),
    ]
    assert replay_all(None, tombstones, KAFKA_4_2) is None
    state = replay_all(None, [records.ConsumerGroupMetadata(3), *tombstones[1:]], KAFKA_4_2)
    assert (state.group_epoch, state.target_epoch) == (3, -1)
    assert replay_all(state, tombstones, KAFKA_4_2) is None


def test_a_partition_has_one_owner():
    state = ConsumerGroupState.new(KAFKA_4_2)
    state.update_member(ConsumerGroupMember("m", epoch=2, assigned=of_a(0)))
    with pytest.raises(ServerError):
        state.update_member(ConsumerGroupMember("n", epoch=2, assigned=of_a(0)))


def test_a_newer_owner_of_a_partition_stays_when_the_older_one_lets_go():
    state = ConsumerGroupState.new(KAFKA_4_2)
    state.update_member(ConsumerGroupMember("m", epoch=2, assigned=of_a(0)))
    state.update_member(ConsumerGroupMember("n", epoch=3, assigned=of_a(0)))
    state.remove_member("m")
    assert state.owner_epoch(A, 0) == 3


def test_the_log_can_tell_an_assignment_before_its_member():
    assignment = records.CurrentMemberAssignment("m", 2, 1, MemberState.STABLE, of_a(0), {})
    metadata = records.ConsumerGroupMemberMetadata("m", None, None, "c", "h", ("a",), "", 5, None, None)
    state = replay_all(None, [assignment, metadata], KAFKA_4_2)
    assert state.members["m"].assigned == of_a(0)
    assert state.members["m"].topics == ("a",)


def test_a_group_without_partitions_in_its_topics_has_empty_shares():
    group = SmallGroup(TopicImage([Topic("a", A, 1)]))
    for member_id in ("m", "n"):
        group.ask(joining(member_id, "nothing", assignor="range"))
    assert group.state.target == {"m": (), "n": ()}
    group.ask(joining("o", "a", assignor="range"))
    assert group.member("o").assigned == of_a(0)


def test_of_two_heartbeats_that_name_a_topic_twice_the_second_changes_nothing():
    group = SmallGroup().after(joining("m", "b", "a", "b"))
    assert group.ask(beat("m", 1, topics=("a", "b"))).epoch == 1
    assert group.records() == []


def test_a_static_member_that_is_away_answers_to_nobody():
    group = SmallGroup().after(joining("m", instance_id="i"), beat("m", -2, instance_id="i"))
    assert group.ask(beat("m", -2)).error is Error.INVALID_REQUEST
    assert group.ask(beat("n", -1, instance_id="i")).error is Error.FENCED_INSTANCE_ID
    assert group.ask(beat("m", -1)).error is Error.NONE
    assert group.state.static_members == {}


def test_texts_of_blanks_are_empty():
    assert SmallGroup().ask(joining(" ")).message == "MemberId can't be empty."


def test_a_member_that_did_not_give_up_partitions_is_removed_later_if_that_cannot_be_written():
    group = SmallGroup().after(joining("m", rebalance_timeout_ms=20_000), joining("n"), beat("m", 1))
    assert group.member("m").state is MemberState.UNREVOKED_PARTITIONS
    group.coordinator.advance(20_000, append_error=Error.NOT_ENOUGH_REPLICAS)
    assert group.member("m").state is MemberState.UNREVOKED_PARTITIONS
    group.coordinator.advance(20_499)
    assert "m" in group.state.members
    group.coordinator.advance(20_500)
    assert list(group.state.members) == ["n"]


def test_what_a_heartbeat_that_was_not_written_left_behind_comes_to_nothing():
    group = SmallGroup()
    group.ask(joining("m"), append_error=Error.NOT_ENOUGH_REPLICAS)
    assert group.coordinator.groups["g"].timers.deadlines == {("session", "m", 0): 45_000}
    group.coordinator.advance(600_000)  # the session ends, and the clean-up passes
    assert group.coordinator.groups["g"].timers.deadlines == {}
    assert group.state is None


def test_a_leave_that_cannot_be_written_leaves_a_member_without_a_session():
    group = SmallGroup().after(joining("m"))
    assert group.ask(beat("m", -1), append_error=Error.NOT_ENOUGH_REPLICAS).error is Error.COORDINATOR_NOT_AVAILABLE
    assert group.coordinator.groups["g"].timers.deadlines == {}
    group.coordinator.advance(100_000)
    assert "m" in group.state.members
    group.ask(beat("m", 1), 100_000)
    assert group.coordinator.groups["g"].timers.deadlines == {("session", "m", 0): 145_000}


def test_a_classic_member_of_no_group_is_unknown():
    place = ConsumerGroup("g", ConsumerGroupConfig(), 0)
    assert place.handle(Heartbeat("k", 1), 0).answer == HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)


# Regular expressions.


def test_a_resolution_for_a_group_that_was_not_written_finds_no_group():
    group = SmallGroup()
    assert group.ask(joining("m", regex="a.*"), append_error=Error.NOT_ENOUGH_REPLICAS).error is Error.COORDINATOR_NOT_AVAILABLE
    assert group.state is None
    assert group.ask(joining("m", regex="a.*")).epoch == 1
    assert group.state.group_epoch == 2


def test_an_expression_whose_heartbeat_was_not_written_is_not_resolved():
    group = SmallGroup().after(joining("m"))
    group.ask(joining("n", regex="b"), append_error=Error.NOT_ENOUGH_REPLICAS)
    assert dict(group.state.resolved.items()) == {}
    assert "n" not in group.state.members


def test_an_expression_whose_heartbeat_was_refused_is_not_resolved_but_those_of_others_are():
    group = SmallGroup().after(joining("m", regex="b"), joining("n"))
    unknown = group.member("n")._replace(state=MemberState.UNKNOWN)  # as a newer version of Kafka wrote it
    group.state.update_member(unknown)
    assert group.ask(beat("n", unknown.epoch, regex="a"), 20_000).error is Error.FENCED_MEMBER_EPOCH
    assert {regex: resolved.at_ms for regex, resolved in group.state.resolved.items()} == {"b": 20_000}


def test_a_second_new_expression_within_ten_seconds_waits():
    group = SmallGroup().after(joining("m", regex="a"), joining("n", regex="b"), joining("o", regex="b"))
    assert list(group.state.resolved) == ["a"]
    group.ask(beat("m", group.member("m").epoch), 10_001)
    assert sorted(group.state.resolved) == ["a", "b"]


def test_a_failed_write_after_a_bump_makes_the_next_heartbeat_look_again():
    group = SmallGroup().after(joining("m"), beat("m", 1))
    group.coordinator.change_topics({"a": Topic("a", A, 6)}, 0)
    assert group.ask(beat("m", 1), append_error=Error.KAFKA_STORAGE_ERROR).error is Error.NOT_COORDINATOR
    assert group.state.group_epoch == 1
    assert group.ask(beat("m", 1)).assignment == of_a(*range(6))


# The coordinator.


def test_old_offsets_of_topics_without_subscribers_expire_and_then_the_group():
    group = SmallGroup(session_timeout_ms=30 * DAY_MS).after(joining("m"), ConsumerOffsetCommit("m", 1, "a", 0, 5))
    group.ask(ConsumerOffsetCommit("m", 1, "b", 0, 6))
    group.ask(ConsumerOffsetCommit("m", 1, "b", 1, 7), 15_000)
    group.ask(beat("m", 1), 8 * DAY_MS)
    fetch = OffsetFetch(None, -1, "b", 0)
    assert group.ask(fetch).offset == -1
    assert group.ask(fetch._replace(topic="a")).offset == 5
    group.ask(beat("m", -1))
    group.coordinator.advance(group.now_ms + 600_000)
    assert group.state is None


def test_a_group_is_deleted_with_its_offsets():
    group = SmallGroup()
    assert group.ask(DeleteGroup()) == DeleteAnswer(Error.GROUP_ID_NOT_FOUND)
    group.after(joining("m"), ConsumerOffsetCommit("m", 1, "a", 0, 5), ConsumerOffsetCommit("m", 1, "a", 1, 5), beat("m", -1))
    assert group.ask(DeleteGroup()) == DeleteAnswer(Error.NONE)
    assert group.ask(OffsetFetch(None, -1, "a", 1)).offset == -1


def test_a_delete_that_cannot_be_written_leaves_the_group():
    group = SmallGroup().after(joining("m"), beat("m", -1))
    assert group.ask(DeleteGroup(), append_error=Error.NOT_ENOUGH_REPLICAS) == DeleteAnswer(Error.COORDINATOR_NOT_AVAILABLE)
    assert (group.state.group_epoch, group.state.target_epoch) == (2, 1)


def test_an_error_without_a_translation_is_passed_on():
    assert SmallGroup().ask(joining("m"), append_error=Error.GROUP_AUTHORIZATION_FAILED).error is Error.GROUP_AUTHORIZATION_FAILED


def test_partitions_move_alone():
    coordinator = new_coordinator()
    first, second = (coordinator_partition(name) for name in ("g", "h"))
    assert first != second
    for name in ("g", "h"):
        coordinator.handle(name, joining("m"), 0)
    coordinator.unload(first, 1)
    coordinator.configure("g", GroupOverrides(session_timeout_ms=1_000), 1)
    assert list(coordinator.groups) == ["h"]
    coordinator.load(first, 2)
    assert coordinator.groups["g"].state.group_epoch == 1
    coordinator.advance(1_002)
    assert coordinator.groups["g"].state.phase == "Empty"
    assert coordinator.groups["h"].state.phase == "Stable"


def test_two_partitions_are_cleaned_up_each_at_its_time():
    coordinator = new_coordinator()
    partition = coordinator.partition("g")
    coordinator.unload(partition, 1_000)
    coordinator.load(partition, 1_000)
    for name in ("g", "h"):
        coordinator.handle(name, joining("m"), 2_000)
        coordinator.handle(name, beat("m", -1), 2_000)
    coordinator.advance(600_000)
    assert (coordinator.groups["g"].state is None, coordinator.groups["h"].state is None) == (False, True)
    coordinator.advance(601_000)
    assert coordinator.groups["g"].state is None


def test_a_topic_of_another_group_makes_no_heartbeat_look():
    group = SmallGroup().after(joining("m"), beat("m", 1))
    group.coordinator.change_topics({"z": Topic("z", TopicId(0, 9), 1)}, 0)
    assert group.state.refresh_at_ms > 0
    group.coordinator.change_topics({"a": None}, 0)
    assert group.state.refresh_at_ms == 0


def test_an_image_knows_when_topics_came():
    image = IMAGE.changed({"c": Topic("c", C, 1)})
    assert (image.version, image.version_with_new_topics) == (1, 1)
    image = image.changed({"c": Topic("c", C, 2), "a": None})
    assert (image.version, image.version_with_new_topics) == (2, 1)
    assert image.names() == ["b", "c"]
    assert (image.named("a"), image.with_id(A)) == (None, None)
    assert image.new_up_to(2).version_with_new_topics == 2
    assert image.new_up_to(1) is image


def test_a_loaded_group_resolves_its_expressions_anew_and_others_do_not():
    image = IMAGE.changed({"a": Topic("a", A, 5)})
    coordinator = new_coordinator(IMAGE)
    for name in ("g", "h"):
        coordinator.handle(name, joining("m", regex="c"), 0)
        coordinator.handle(name, beat("m", 1), 1)
    coordinator.change_topics({"a": image.named("a")}, 2)
    coordinator.unload(coordinator.partition("g"), 3)
    coordinator.load(coordinator.partition("g"), 4)
    coordinator.change_topics({"b": Topic("b", B, 5)}, 5)
    for name in ("g", "h"):
        coordinator.handle(name, beat("m", coordinator.groups[name].state.members["m"].epoch), 20_000)
    assert [coordinator.groups[name].state.resolved["c"].at_ms for name in ("g", "h")] == [20_000, 0]


def test_a_classic_record_says_nothing_to_a_consumer_group():
    group = SmallGroup().after(joining("m"))
    place = group.coordinator.groups["g"]
    place.take_records([records.ClassicGroupWritten(None)])
    assert place.state.group_epoch == 1


def test_a_removed_expression_takes_its_topics_along():
    group = SmallGroup().after(joining("m", topics=(), regex="[ab]"))
    assert sorted(group.state.names) == ["a", "b"]
    group.after(joining("n", topics=(), regex="[ab]"), beat("m", -1))
    assert sorted(group.state.names) == ["a", "b"]
    group.ask(beat("n", -1))
    assert group.state.names == {}


def test_an_acknowledgement_stops_the_timer():
    group = SmallGroup().after(joining("m"), joining("n"), beat("m", 1))
    place = group.coordinator.groups["g"]
    assert ("rebalance", "m", 0) in place.timers.deadlines
    assert place.revoking_epochs == {"m": 1}
    group.ask(beat("m", 1, owned=of_a(0, 1)))
    assert ("rebalance", "m", 0) not in place.timers.deadlines
    assert place.revoking_epochs == {}
