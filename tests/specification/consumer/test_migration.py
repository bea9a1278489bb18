"""Groups that change their protocol while they have members (KIP-848, online migration)."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.config import MigrationPolicy
from coordinator_model.specification.consumer.consumer_protocol import read_assignment, write_assignment
from coordinator_model.specification.consumer.records import ClassicGroupWritten, ConsumerGroupMetadata, Tombstone
from coordinator_model.specification.requests import Heartbeat, JoinAnswer, LeaveGroup, LeavingMember, SyncAnswer, SyncGroup
from coordinator_model.states import State
from tests.specification.consumer.small_consumer_groups import (
    SmallGroup,
    beat,
    classic_join,
    joining,
    of_a,
    protocols,
    stable_classic_group,
    with_classic_member,
)


def test_an_upgrade_asks_those_who_wait_to_join_again():
    group = SmallGroup().after(classic_join(protocols=protocols()))
    group.ask(classic_join(fresh="k2"), 1)
    group.coordinator.advance(10_000)
    assert group.ask(SyncGroup("k2", 1), 10_000) is None
    group.ask(joining("m"), 10_001)
    (sync,) = [reply.answer for reply in group.outcome.replies if isinstance(reply.answer, SyncAnswer)]
    assert sync == SyncAnswer(Error.REBALANCE_IN_PROGRESS)
    assert sorted(group.state.members) == ["k", "k2", "m"]
    group = stable_classic_group()
    assert group.ask(classic_join(fresh="late")) is None
    group.ask(joining("m"))
    (join,) = [reply.answer for reply in group.outcome.replies if isinstance(reply.answer, JoinAnswer)]
    assert join.error is Error.REBALANCE_IN_PROGRESS


def test_an_upgraded_member_keeps_its_assignment_as_far_as_its_topics_exist():
    group = stable_classic_group().after(joining("m"))
    assert group.member("k").assigned == of_a(0, 1, 2, 3)
    assert group.member("k").epoch == 1
    assert group.coordinator.classic.groups == {}


CANNOT = "Cannot upgrade classic group g to consumer group because "


@pytest.mark.parametrize(
    ("message", "settings"),
    [
        (CANNOT + "online upgrade is disabled.", {"migration_policy": MigrationPolicy.DOWNGRADE}),
        (CANNOT + "the group size exceeds the consumer group maximum size.", {"max_size": 0}),
        (CANNOT + "the embedded consumer protocol is malformed.", {"metadata": b"?"}),
        (
            CANNOT + "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade.",
            {"assignment": write_assignment((), 3)[:-4] + b"\x00\x00\x00\x01!"},
        ),
    ],
)
def test_some_groups_cannot_be_upgraded(message, settings):
    group = stable_classic_group(**settings)
    answer = group.ask(joining("m"))
    assert (answer.error, answer.message) == (Error.GROUP_ID_NOT_FOUND, message)
    assert group.coordinator.classic.groups["g"].state is State.STABLE


def test_a_group_of_another_type_cannot_be_upgraded():
    group = SmallGroup().after(classic_join(protocol_type="connect"))
    answer = group.ask(joining("m"))
    assert answer.message == CANNOT + "the group does not use the consumer embedded protocol."
    assert group.ask(beat("m", 3)).message == "Group g is not a consumer group."


def test_an_upgrade_that_cannot_be_written_leaves_the_group_classic():
    group = stable_classic_group()
    answer = group.ask(joining("m"), append_error=Error.NOT_ENOUGH_REPLICAS)
    assert answer.error is Error.COORDINATOR_NOT_AVAILABLE
    assert group.coordinator.classic.groups["g"].state is State.STABLE
    assert group.ask(joining("m")).epoch == 2


def test_when_the_last_consumer_leaves_the_group_is_classic_and_rebalances():
    group = with_classic_member().after(beat("m", -1))
    classic = group.coordinator.classic.groups["g"]
    assert (classic.state, classic.generation, classic.leader, classic.protocol) == (State.PREPARING_REBALANCE, 2, "k", "range")
    assert read_assignment(classic.members["k"].assignment).partitions == (("a", (2, 3)),)
    assert group.state is None
    group.ask(classic_join("k", protocols=protocols(generation=2)), 500)
    assert classic.generation == 3
    # ... and it survives a fail-over.
    partition = group.coordinator.partition("g")
    group.coordinator.unload(partition, 1_000)
    group.coordinator.load(partition, 2_000)
    assert group.coordinator.classic.groups["g"].generation == 2  # the assignment of 3 was not stored


def test_a_session_that_ends_can_downgrade_too():
    group = with_classic_member()
    for now_ms in range(0, 45_000, 5_000):
        group.ask(Heartbeat("k", 2), now_ms)
    group.ask(Heartbeat("k", 2), 45_000)
    assert group.coordinator.classic.groups["g"].state is State.PREPARING_REBALANCE


@pytest.mark.parametrize(
    "settings",
    [
        {"migration_policy": MigrationPolicy.UPGRADE},
        {"migration_policy": MigrationPolicy.DISABLED},
        {"classic": CoordinatorConfig(CoordinatorConfig.of("4.2.0").version, group_max_size=0)},
    ],
)
def test_a_group_that_may_not_be_downgraded_stays_a_consumer_group(settings):
    group = SmallGroup(**settings).after(joining("m"), classic_join(), beat("m", -1))
    assert list(group.state.members) == ["k"]
    group.ask(LeaveGroup((LeavingMember("k"),)))
    assert group.state.phase == "Empty"


def test_a_full_classic_group_is_upgraded_by_its_own_member_only():
    group = stable_classic_group(max_size=1)
    assert group.ask(joining("m")).error is Error.GROUP_MAX_SIZE_REACHED
    assert group.coordinator.classic.groups["g"].state is State.STABLE
    assert group.ask(joining("k")).error is Error.NONE
    assert group.member("k").classic is None


def test_a_consumer_group_becomes_as_large_a_classic_group_as_may_be():
    group = SmallGroup(classic=CoordinatorConfig(CoordinatorConfig.of("4.2.0").version, group_max_size=1)).after(joining("m"))
    group.after(classic_join(), beat("m", -1))
    assert list(group.coordinator.classic.groups["g"].members) == ["k"]


def test_a_downgraded_group_takes_along_only_who_stays_and_their_protocol_type():
    group = with_classic_member()
    group.after(classic_join(fresh="k2"), LeaveGroup((LeavingMember("k"), LeavingMember("m"))))
    assert list(group.coordinator.classic.groups["g"].members) == ["k2"]
    assert group.ask(classic_join(fresh="n", protocol_type="connect")).error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_of_a_downgraded_group_that_is_silent_loses_its_session():
    group = with_classic_member()
    group.ask(beat("m", -1), 1_000)
    for now_ms, members in ((10_999, ["k"]), (11_000, [])):  # before the 30 s in which it may join again are over
        group.coordinator.advance(now_ms)
        assert list(group.coordinator.classic.groups["g"].members) == members


def test_a_member_of_an_upgraded_group_that_is_silent_loses_its_session():
    group = stable_classic_group()
    group.ask(joining("m"), 1_000)
    for now_ms, members in ((10_999, ["k", "m"]), (11_000, ["m"])):
        group.coordinator.advance(now_ms)
        assert sorted(group.state.members) == members


def test_a_session_that_ended_before_a_classic_member_joined_is_written_once():
    group = SmallGroup().after(joining("m"))
    group.ask(classic_join(), 50_000)  # nobody asked anything when the session of m ended
    written = [
        record for record in group.records() if isinstance(record, ConsumerGroupMetadata) or record == Tombstone(ConsumerGroupMetadata)
    ]
    assert written == [ConsumerGroupMetadata(2), Tombstone(ConsumerGroupMetadata)]


def test_the_log_of_a_group_has_what_was_written_in_both_protocols():
    group = SmallGroup()
    written = []
    for request in (joining("m"), beat("m", -1), classic_join(), SyncGroup("k", 1), joining("n"), LeaveGroup((LeavingMember("k"),))):
        group.ask(request, group.now_ms + 4_000)
        written += group.records()
    assert group.coordinator.logs["g"] == written
    assert any(isinstance(record, ClassicGroupWritten) and record.stored is not None for record in written)
