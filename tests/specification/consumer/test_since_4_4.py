"""What Kafka 4.4 changed for consumer groups, and what 4.3 and some patches changed for classic members in them."""

from dataclasses import replace

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.config import MigrationPolicy
from coordinator_model.specification.consumer.effects import BumpCause, GroupEpochBumped
from coordinator_model.specification.consumer.records import TIME_UNKNOWN, TargetAssignmentMember, TargetAssignmentMetadata
from coordinator_model.specification.consumer.topics import Topic, TopicImage
from coordinator_model.specification.hash_maps import hash_set
from coordinator_model.specification.requests import Heartbeat
from tests.specification.consumer.small_consumer_groups import A, SmallGroup, beat, classic_join, joining, protocols

BOTH = pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])


@BOTH
def test_a_group_that_lost_its_last_member_computes_at_once_for_the_next_one(release):
    group = SmallGroup(release=release).after(joining("m"))
    group.ask(beat("m", -1), 100)
    moved = [record for record in group.records() if isinstance(record, TargetAssignmentMetadata)]
    assert moved == ([TargetAssignmentMetadata(3, TIME_UNKNOWN)] if release == "4.4.0" else [])
    assert group.ask(joining("n"), 200).epoch == (4 if release == "4.4.0" else 2)


@BOTH
def test_the_removal_of_one_of_two_members_moves_the_group_epoch_alone(release):
    group = SmallGroup(release=release).after(joining("m"))
    group.ask(joining("n"), 2_000)
    group.ask(beat("m", -1), 4_000)
    assert (group.state.group_epoch, group.state.target_epoch) == (4, 3)


def bumps(group):
    return [effect for _, effect in group.outcome.effects if isinstance(effect, GroupEpochBumped)]


@BOTH
def test_a_vote_for_another_assignor_moves_the_group_epoch(release):
    group = SmallGroup(release=release).after(joining("m"))
    group.ask(beat("m", 2, assignor="range"), 2_000)
    assert bumps(group) == ([GroupEpochBumped(2_000, 3, BumpCause.SUBSCRIPTION, "m")] if release == "4.4.0" else [])
    group.ask(beat("m", group.member("m").epoch, assignor="range"), 4_000)
    assert bumps(group) == []


def test_a_vote_for_the_assignor_that_is_used_anyway_moves_nothing():
    group = SmallGroup(release="4.4.0").after(joining("m"))
    group.ask(beat("m", 2, assignor="uniform"), 2_000)
    assert bumps(group) == []


@BOTH
def test_an_instance_id_that_was_given_up_is_free(release):
    group = SmallGroup(release=release).after(joining("m", instance_id="i"), joining("m", instance_id="j"))
    assert group.state.static_members == ({"j": "m"} if release == "4.4.0" else {"i": "m", "j": "m"})


@BOTH
def test_a_static_member_may_come_back_to_a_full_group(release):
    group = SmallGroup(release=release, max_size=1).after(joining("m", instance_id="i"), beat("m", -2, instance_id="i"))
    returned = group.ask(joining("n", instance_id="i"))
    assert returned.error is (Error.NONE if release == "4.4.0" else Error.GROUP_MAX_SIZE_REACHED)
    assert group.ask(joining("o", instance_id="k")).error is Error.GROUP_MAX_SIZE_REACHED
    assert group.ask(joining("o")).error is Error.GROUP_MAX_SIZE_REACHED


@BOTH
def test_the_share_of_a_static_member_that_returns_is_written_once(release):
    """It comes back with another topic that it gets nothing of, so that a target is computed, and its share is the one before."""
    group = SmallGroup(release=release).after(joining("m", instance_id="i"), beat("m", -2, instance_id="i"))
    group.ask(joining("n", "a", "none", instance_id="i"), 2_000)
    shares = [record for record in group.records() if isinstance(record, TargetAssignmentMember)]
    assert [record.member_id for record in shares] == ["n"] * (1 if release == "4.4.0" else 2)


@BOTH
def test_a_static_member_that_returns_makes_the_table_of_members_grow_up_to_4_3(release):
    """The order of a hash map depends on its size. Twelve members fit into one of 16 buckets, thirteen do not."""
    group = SmallGroup(TopicImage([Topic("a", A, 12)]), release=release)
    ids = [f"m{number:02}" for number in range(12)]
    for number, member_id in enumerate(ids):
        group.ask(joining(member_id, instance_id=f"i{number}"), 2_000 * number)
    group.ask(beat("m11", -2, instance_id="i11"), 30_000)
    group.coordinator.change_topics({"a": Topic("a", A, 24)}, 30_001)  # everybody's share changes
    group.ask(joining("p", instance_id="i11"), 32_000)
    written = [record.member_id for record in group.records() if isinstance(record, TargetAssignmentMember) and record.partitions]
    assert written[-12:] == list(hash_set([*ids[:-1], "p"], 16 if release == "4.4.0" else 32))


@BOTH
def test_a_subscription_that_cannot_be_read(release):
    group = SmallGroup(release=release).after(joining("m"))
    answer = group.ask(classic_join(protocols=(("range", b"\x00"),)))
    assert answer.error is (Error.INCONSISTENT_GROUP_PROTOCOL if release == "4.4.0" else Error.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize(("release", "refused"), [("4.2.1", False), ("4.2.2", True), ("4.3.0", False), ("4.3.1", True), ("4.4.0", True)])
def test_classic_members_are_refused_where_migration_is_disabled(release, refused):
    group = SmallGroup(release=release, migration_policy=MigrationPolicy.DISABLED).after(joining("m"))
    assert group.ask(classic_join()).error is (Error.INCONSISTENT_GROUP_PROTOCOL if refused else Error.NONE)
    other = SmallGroup(release=release, migration_policy=MigrationPolicy.UPGRADE).after(joining("m"))
    assert other.ask(classic_join()).error is Error.NONE


@pytest.mark.parametrize("release", ["4.2.0", "4.3.1"])
def test_a_group_without_members_may_become_classic_even_so(release):
    group = SmallGroup(release=release, migration_policy=MigrationPolicy.DISABLED).after(joining("m"), beat("m", -1), classic_join())
    assert group.coordinator.classic.groups["g"].members.keys() == {"k"}


@pytest.mark.parametrize(("release", "error"), [("4.2.0", Error.REBALANCE_IN_PROGRESS), ("4.3.0", Error.NONE)])
def test_a_classic_member_is_called_when_there_is_a_target_for_it(release, error):
    """m grows the group while the assignment interval runs: from 4.3 on there is nothing yet that k could fetch."""
    group = SmallGroup(release=release).after(joining("m"))
    group.ask(classic_join(), 2_000)
    epoch = group.member("k").epoch
    group.ask(joining("n"), 2_010)
    assert group.ask(Heartbeat("k", epoch), 2_020).error is error


@pytest.mark.parametrize("release", ["4.2.0", "4.3.1"])
@pytest.mark.parametrize(("topics", "state"), [(("a",), "Stable"), (("b",), "PreparingRebalance")])
def test_a_classic_static_member_in_the_place_of_the_last_consumer_makes_the_group_classic(release, topics, state):
    """It rebalances if what it would inherit is not what it has to get."""
    config = replace(CoordinatorConfig.of(release), group_max_size=1)  # there is room for one
    group = SmallGroup(release=release, classic=config)
    first = group.ask(joining("m", instance_id="i")).epoch
    answer = group.ask(classic_join(instance_id="i", protocols=protocols(*topics), api_version=5), 2_000)
    classic = group.coordinator.classic.groups["g"]
    assert (classic.state.value, list(classic.members)) == (state, ["k"])
    assert answer.generation == (first if state == "Stable" else 0)


@pytest.mark.parametrize(("release", "state"), [("4.2.0", "Stable"), ("4.3.1", "PreparingRebalance")])
def test_a_stale_target_makes_it_rebalance_since_4_3(release, state):
    """n leaves, which moves the group epoch. m has not computed for that when a classic member takes its place."""
    group = SmallGroup(release=release).after(joining("m", instance_id="i"))
    group.ask(joining("n"), 2_000)
    group.ask(beat("n", -1), 2_010)
    group.ask(classic_join(instance_id="i", api_version=5), 2_020)
    assert group.coordinator.classic.groups["g"].state.value == state
