"""Members of a consumer group that speak the classic protocol, and groups that change their protocol (KIP-848, online migration)."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.config import MigrationPolicy
from coordinator_model.specification.consumer.consumer_protocol import (
    read_assignment,
    write_assignment,
)
from coordinator_model.specification.consumer.effects import GroupEpochBumped
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit, OffsetFetch
from coordinator_model.specification.requests import (
    CommitAnswer,
    DeleteAnswer,
    DeleteGroup,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    MemberResponse,
    SyncAnswer,
    SyncGroup,
)
from coordinator_model.states import State
from tests.specification.consumer.small_consumer_groups import SmallGroup, beat, classic_join, joining, of_a, protocols


def with_classic_member():
    """m has a:0,1; k, which speaks the classic protocol, has a:2,3. Stable in epoch 2."""
    group = SmallGroup()
    group.ask(joining("m"))
    assert group.ask(classic_join()) == JoinAnswer(Error.NONE, "k", 2, protocol_type="consumer", protocol="range")
    group.ask(beat("m", 1))
    group.ask(beat("m", 1, owned=of_a(0, 1)))
    group.ask(classic_join("k", protocols=protocols(generation=2)))
    assert read_assignment(group.ask(SyncGroup("k", 2)).assignment).partitions == (("a", (2, 3)),)
    assert group.state.phase == "Stable"
    return group


def test_a_newcomer_gets_an_id_first():
    group = SmallGroup()
    group.ask(joining("m"))
    assert group.ask(classic_join(api_version=4)) == JoinAnswer(Error.MEMBER_ID_REQUIRED, "k")
    assert group.ask(classic_join(api_version=4, instance_id="i")).error is Error.NONE
    assert group.member("k").instance_id == "i"


def test_protocols_have_to_fit_those_of_the_other_classic_members():
    group = with_classic_member()
    refused = JoinAnswer(Error.INCONSISTENT_GROUP_PROTOCOL, "")
    assert group.ask(classic_join(fresh="n", protocols=protocols(name="custom"))) == refused
    assert group.ask(classic_join(fresh="n", protocol_type="connect")) == refused
    assert group.ask(SyncGroup("k", 2, protocol="sticky")) == SyncAnswer(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert group.ask(SyncGroup("k", 2, protocol_type="connect")) == SyncAnswer(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert group.ask(SyncGroup("k", 2, protocol_type="consumer", protocol="range")).error is Error.NONE


def test_a_subscription_that_cannot_be_read_is_an_error_of_the_server():
    group = with_classic_member()
    assert group.ask(classic_join(fresh="n", protocols=(("range", b"?"),))) == JoinAnswer(Error.UNKNOWN_SERVER_ERROR, "")


def test_only_a_classic_member_of_this_generation_is_answered():
    group = with_classic_member()
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.NONE)
    assert group.ask(Heartbeat("k", 1)) == HeartbeatAnswer(Error.ILLEGAL_GENERATION)
    assert group.ask(Heartbeat("m", 2)) == HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)
    assert group.ask(Heartbeat("x", 2)) == HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)
    assert group.ask(Heartbeat("k", 2, "nobody")) == HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID)
    assert group.ask(SyncGroup("x", 2)) == SyncAnswer(Error.UNKNOWN_MEMBER_ID)


def test_a_classic_member_that_is_behind_has_to_join_in_time():
    group = with_classic_member()
    group.ask(joining("n"), 1_000)
    assert group.ask(Heartbeat("k", 2), 2_000) == HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS)
    assert group.ask(SyncGroup("k", 2), 3_000) == SyncAnswer(Error.REBALANCE_IN_PROGRESS)
    for now_ms in range(5_000, 31_999, 5_000):
        group.ask(Heartbeat("k", 2), now_ms)
    group.ask(beat("m", 2), 31_999)
    assert group.member("k").epoch == 2
    group.ask(beat("m", 2), 32_000)  # 30 s after the first answer that told it to join
    assert "k" not in group.state.members


def test_a_classic_member_has_its_own_session_and_has_to_sync():
    group = with_classic_member()
    group.ask(beat("m", 2), 9_999)
    assert "k" in group.state.members
    group.ask(beat("m", 2), 10_000)
    assert "k" not in group.state.members
    group = with_classic_member()
    group.ask(classic_join("k", protocols=protocols(generation=2)))
    for now_ms in (9_000, 18_000, 27_000, 29_999):
        assert group.ask(Heartbeat("k", 2), now_ms).error is Error.NONE
    group.ask(beat("m", 2), 30_000)
    assert "k" not in group.state.members


def test_a_classic_member_that_waits_is_told_when_its_partitions_are_free():
    group = SmallGroup()
    group.ask(joining("m"))
    group.ask(classic_join())
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.NONE)
    group.ask(beat("m", 1))
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.NONE)
    group.ask(beat("m", 1, owned=of_a(0, 1)))
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS)


def test_a_classic_static_member_takes_over_an_instance_id_in_any_case():
    group = SmallGroup()
    group.ask(joining("m", instance_id="i"))
    group.ask(joining("other"))
    answer = group.ask(classic_join(instance_id="i"))
    assert (answer.error, answer.member_id) == (Error.NONE, "k")
    assert group.state.static_members == {"i": "k"}
    assert group.ask(classic_join("k", instance_id="i", protocols=protocols("a", "b"))).error is Error.NONE
    assert group.ask(classic_join("m", instance_id="i")) == JoinAnswer(Error.FENCED_INSTANCE_ID, "")
    assert group.ask(joining("back", instance_id="i")).error is Error.NONE
    assert group.member("back").classic is None


def test_leave_group_removes_members_of_both_protocols():
    group = with_classic_member()
    group.ask(joining("s", instance_id="i"))
    entries = (LeavingMember("k"), LeavingMember("k"), LeavingMember("x"), LeavingMember("", "i"), LeavingMember("s", "nobody"))
    epoch = group.state.group_epoch
    assert group.ask(LeaveGroup(entries)) == LeaveAnswer(
        Error.NONE,
        (
            MemberResponse("k", None, Error.NONE),
            MemberResponse("k", None, Error.NONE),
            MemberResponse("x", None, Error.UNKNOWN_MEMBER_ID),
            MemberResponse("", "i", Error.NONE),
            MemberResponse("s", "nobody", Error.UNKNOWN_MEMBER_ID),
        ),
    )
    assert list(group.state.members) == ["m"]
    assert group.state.group_epoch == epoch + 1
    assert [effect.member_id for _, effect in group.outcome.effects if isinstance(effect, GroupEpochBumped)] == ["k"]
    group.ask(LeaveGroup((LeavingMember("x"),)))
    assert group.state.group_epoch == epoch + 1


def test_a_group_without_members_becomes_a_classic_one_and_keeps_its_offsets():
    group = SmallGroup()
    group.ask(joining("m"))
    group.ask(ConsumerOffsetCommit("m", 1, "a", 0, 5))
    group.ask(beat("m", -1))
    assert group.ask(SyncGroup("k", 2)) == SyncAnswer(Error.UNKNOWN_MEMBER_ID)
    answer = group.ask(classic_join(), 10)
    assert answer is None  # the initial delay of classic groups
    group.coordinator.advance(5_000)
    assert group.coordinator.classic.groups["g"].state is State.COMPLETING_REBALANCE
    assert group.state is None
    assert group.ask(OffsetFetch("k", 1, "a", 0), 5_000).offset == 5
    assert group.ask(DeleteGroup(), 5_000) == DeleteAnswer(Error.NON_EMPTY_GROUP)


def stable_classic_group(assignment=b"", metadata=None, **settings):
    settings.setdefault("classic", CoordinatorConfig(CoordinatorConfig.of("4.2.0").version, group_initial_rebalance_delay_ms=0))
    group = SmallGroup(**settings)
    group.ask(classic_join(protocols=(("range", metadata),) if metadata is not None else protocols()))
    group.ask(SyncGroup("k", 1, (("k", assignment or write_assignment((("a", (0, 1, 2, 3)), ("gone", (0,))), 3)),)))
    return group


def test_offsets_of_a_classic_group_are_kept_and_deleted():
    group = stable_classic_group()
    assert group.ask(ConsumerOffsetCommit("k", 1, "a", 0, 5, api_version=8)) == CommitAnswer(Error.NONE)
    assert group.ask(ConsumerOffsetCommit("k", 0, "a", 1, 6, api_version=8)) == CommitAnswer(Error.ILLEGAL_GENERATION)
    assert group.ask(OffsetFetch("k", 1, "a", 0)).offset == 5
    assert group.ask(OffsetFetch("k", 1, "a", 1)).offset == -1
    group.ask(LeaveGroup((LeavingMember("k"),)))
    assert group.ask(DeleteGroup()) == DeleteAnswer(Error.NONE)
    assert group.ask(OffsetFetch(None, -1, "a", 0)).offset == -1


def test_an_upgrade_asks_those_who_wait_to_join_again():
    group = SmallGroup()
    group.ask(classic_join(protocols=protocols()))
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
    group = stable_classic_group()
    group.ask(joining("m"))
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
    group = SmallGroup()
    group.ask(classic_join(protocol_type="connect"))
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
    group = with_classic_member()
    group.ask(beat("m", -1))
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
    group = SmallGroup(**settings)
    group.ask(joining("m"))
    group.ask(classic_join())
    group.ask(beat("m", -1))
    assert list(group.state.members) == ["k"]
    group.ask(LeaveGroup((LeavingMember("k"),)))
    assert group.state.phase == "Empty"
