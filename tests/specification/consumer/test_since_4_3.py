"""What Kafka 4.3 changed for consumer groups: first epochs, the assignment interval (KIP-1263), assignment epochs (KIP-1251)."""

from functools import partial

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.consumer import records
from coordinator_model.specification.consumer.config import GroupOverrides
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator
from coordinator_model.specification.consumer.effects import RecordsWritten
from coordinator_model.specification.consumer.handlers.removal import forget_topics
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit
from coordinator_model.specification.consumer.topics import Topic
from tests.specification.consumer.small_consumer_groups import IMAGE, A, C, SmallGroup, beat, joining, new_coordinator, of_a


def newer(**settings):
    return SmallGroup(release="4.3.1", **settings)


def epochs(group):
    return group.state.group_epoch, group.state.target_epoch, group.state.phase.value


@pytest.mark.parametrize(("release", "first"), [("4.2.0", 1), ("4.3.0", 2)])
def test_the_first_member_moves_a_new_group_to_its_first_epoch(release, first):
    group = SmallGroup(release=release)
    assert group.ask(joining("m")).epoch == first
    assert epochs(group) == (first, first, "Stable")


@pytest.mark.parametrize(("release", "bumps"), [("4.2.0", [records.ConsumerGroupMetadata(1)]), ("4.3.0", [])])
def test_a_first_member_that_names_no_topic_moves_nothing(release, bumps):
    group = SmallGroup(release=release)
    assert group.ask(joining("m", topics=())).epoch == 1
    assert [record for record in group.records() if isinstance(record, records.ConsumerGroupMetadata)] == bumps


def test_bumps_within_the_interval_are_answered_by_one_computation_after_it():
    """m joins at 0. n and o join within a second: they are members without partitions, and nobody moves to a new epoch."""
    group = newer().after(joining("m"))
    assert group.ask(joining("n"), 300).epoch == 2
    assert group.ask(joining("o"), 600).assignment == {}
    assert epochs(group) == (4, 2, "Assigning")
    assert group.ask(beat("m", 2), 999).assignment is None
    assert epochs(group) == (4, 2, "Assigning")
    assert group.ask(beat("n", 2), 1_000).epoch == 4
    assert epochs(group) == (4, 4, "Reconciling")
    computed = [record for record in group.records() if isinstance(record, records.TargetAssignmentMetadata)]
    assert computed == [records.TargetAssignmentMetadata(4, 1_000)]


@pytest.mark.parametrize(
    ("broker", "own", "computed_at"),
    [
        ({}, None, 1_000),
        ({"assignment_interval_ms": 0}, None, 1),
        ({"assignment_interval_ms": 300}, None, 300),
        ({"assignment_interval_ms": 300}, 0, 1),
        ({}, 700, 700),
        ({}, 20_000, 15_000),
        ({"min_assignment_interval_ms": 200}, 0, 200),
        ({"max_assignment_interval_ms": 500}, 700, 500),
    ],
)
def test_the_interval_is_that_of_the_group_within_the_bounds_of_the_broker(broker, own, computed_at):
    group = newer(**broker)
    group.coordinator.configure("g", GroupOverrides(assignment_interval_ms=own), 0)
    group.ask(joining("m"))
    if computed_at > 1:
        group.ask(joining("n"), 1)
        group.ask(beat("m", 2), computed_at - 1)
        assert group.state.target_epoch == 2
        group.ask(beat("m", 2), computed_at)
    else:
        group.ask(joining("n"), 1)
    assert group.state.target_epoch == 3


def test_the_time_of_the_last_computation_survives_a_move_of_the_group():
    group = newer().after(joining("m"))
    partition = group.coordinator.partition("g")
    group.coordinator.unload(partition, 100)
    group.coordinator.load(partition, 200)
    group.ask(joining("n"), 300)
    assert epochs(group) == (3, 2, "Assigning")


def test_a_group_that_4_2_wrote_computes_at_once_and_its_partitions_have_the_epochs_of_their_members():
    """A rolling upgrade: the records of 4.2 have neither the time of the target nor assignment epochs."""
    old = SmallGroup(release="4.2.2").after(joining("m"), joining("n"))
    new = SmallGroup(release="4.4.0")
    new.coordinator = ConsumerCoordinator(new.coordinator.config, 0, (), IMAGE)
    new.coordinator.logs = old.coordinator.logs
    new.coordinator.load(new.coordinator.partition("g"), 0)
    assert new.state.target_at_ms is None
    assert new.member("m").assignment_epochs == {(A, number): 1 for number in range(4)}
    new.ask(joining("o"), 1)
    assert epochs(new) == (3, 3, "Reconciling")


def test_partitions_of_a_static_member_that_was_away_when_4_2_wrote_it_have_epoch_0():
    old = SmallGroup(release="4.2.2").after(joining("m", instance_id="i"), beat("m", -2, instance_id="i"))
    new = SmallGroup(release="4.4.0")
    new.coordinator = ConsumerCoordinator(new.coordinator.config, 0, (), IMAGE)
    new.coordinator.logs = old.coordinator.logs
    new.coordinator.load(new.coordinator.partition("g"), 0)
    assert set(new.member("m").assignment_epochs.values()) == {0}


def test_topics_that_are_forgotten_are_all_that_the_call_tells():
    group = newer().after(joining("m"), ConsumerOffsetCommit("m", 2, "a", 0, 7))
    outcome = group.coordinator.groups["g"].decide(partial(forget_topics, gone=[IMAGE.named("a")]), 45_001, Error.NONE)
    told = [record for effect in outcome.effects if isinstance(effect, RecordsWritten) for record in effect.records]
    assert [record.offset for record in told if isinstance(record, records.OffsetCommitted)] == [None]
    assert group.state.phase.value == "Empty"  # its session ended before


def with_two_members():
    """m keeps a:0,1, which it has had since epoch 2; n has got a:2,3 in epoch 3."""
    group = newer().after(joining("m"))
    group.ask(joining("n"), 2_000)
    group.ask(beat("m", 2), 2_010)
    group.ask(beat("m", 2, owned=of_a(0, 1)), 2_020)
    group.ask(beat("n", 3), 2_030)
    return group


@pytest.mark.parametrize(
    ("member", "epoch", "topic", "partition", "error"),
    [
        ("m", 3, "a", 3, Error.NONE),  # the present epoch: whatever the partition
        ("m", 2, "a", 0, Error.NONE),
        ("m", 1, "a", 0, Error.STALE_MEMBER_EPOCH),
        ("m", 2, "a", 2, Error.STALE_MEMBER_EPOCH),  # no longer its own
        ("m", 2, "gone", 0, Error.STALE_MEMBER_EPOCH),
        ("m", 4, "a", 0, Error.STALE_MEMBER_EPOCH),
        ("n", 3, "a", 2, Error.NONE),
        ("n", 2, "a", 2, Error.STALE_MEMBER_EPOCH),
    ],
)
def test_a_commit_may_have_an_older_epoch_back_to_that_of_the_assignment(member, epoch, topic, partition, error):
    group = with_two_members()
    assert group.ask(ConsumerOffsetCommit(member, epoch, topic, partition, 7)).error is error


def test_before_4_3_a_commit_needs_the_present_epoch():
    group = SmallGroup().after(joining("m"), joining("n"), beat("m", 1), beat("m", 1, owned=of_a(0, 1)))
    assert group.ask(ConsumerOffsetCommit("m", 1, "a", 0, 7)).error is Error.STALE_MEMBER_EPOCH


def test_a_partition_that_waits_for_its_revocation_can_be_committed_and_keeps_its_epoch():
    group = newer().after(joining("m"))
    group.ask(joining("n"), 2_000)
    group.ask(beat("m", 2), 2_010)
    assert group.member("m").pending == of_a(2, 3)
    assert group.ask(ConsumerOffsetCommit("m", 2, "a", 3, 7)).error is Error.NONE
    assert group.member("m").assignment_epochs == {(A, number): 2 for number in range(4)}


def test_a_static_member_that_is_away_has_partitions_of_epoch_0():
    group = newer().after(joining("m", instance_id="i"), beat("m", -2, instance_id="i"))
    (stored,) = (record for record in group.records() if isinstance(record, records.CurrentMemberAssignment))
    assert set(stored.assignment_epochs.values()) == {0}
    assert group.ask(ConsumerOffsetCommit("m", 2, "a", 0, 7)).error is Error.STALE_MEMBER_EPOCH


def test_a_member_that_drops_a_topic_has_its_epoch_as_the_previous_one_too():
    """The heartbeat of the epoch before is fenced then, although it reports partitions that fit."""
    group = newer().after(joining("m", "a", "b"))
    group.ask(beat("m", 2, topics=("a",), owned=of_a(0, 1, 2, 3)), 500)
    assert (group.member("m").epoch, group.member("m").previous_epoch) == (2, 2)


def test_offsets_of_a_deleted_topic_are_dropped_with_it():
    group = newer().after(joining("m", "a", "b"))
    for number, topic in enumerate("aab"):
        group.ask(ConsumerOffsetCommit("m", 2, topic, number % 2, 7))
    group.ask(ConsumerOffsetCommit("m", 2, "later", 0, 7))  # there is no such topic yet: the offset has no id

    def dropped(changes):
        effects = group.coordinator.change_topics(changes, 10).effects
        forgotten = [record for _, effect in effects for record in effect.records if isinstance(record, records.OffsetCommitted)]
        assert {record.offset for record in forgotten} <= {None}
        return {(record.topic, record.partition) for record in forgotten}

    assert dropped({"a": Topic("a", C, 4), "later": Topic("later", A._replace(least_significant=9), 1)}) == {("a", 0), ("a", 1)}
    assert dropped({"later": None}) == {("later", 0)}


def test_before_4_3_the_coordinator_keeps_them():
    group = SmallGroup().after(joining("m", "a", "b"), ConsumerOffsetCommit("m", 1, "a", 0, 7))
    assert group.coordinator.change_topics({"a": None}, 10).effects == []


def test_a_group_that_is_not_there_is_refused_by_any_release():
    coordinator = new_coordinator(release="4.4.0")
    (reply,) = coordinator.handle("g", beat("m", 1), 0).replies
    assert reply.answer.error is Error.GROUP_ID_NOT_FOUND
