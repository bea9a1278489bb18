"""Members of a consumer group that speak the classic protocol (KIP-848)."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.consumer_protocol import EmbeddedSubscription, write_subscription
from coordinator_model.specification.consumer.effects import GroupEpochBumped
from coordinator_model.specification.consumer.requests import ConsumerOffsetCommit, OffsetFetch, OffsetFetchAnswer
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


def test_a_newcomer_gets_an_id_first():
    group = SmallGroup().after(joining("m"))
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
    group = with_classic_member().after(classic_join("k", protocols=protocols(generation=2)))
    for now_ms in (9_000, 18_000, 27_000, 29_999):
        assert group.ask(Heartbeat("k", 2), now_ms).error is Error.NONE
    group.ask(beat("m", 2), 30_000)
    assert "k" not in group.state.members


def test_a_classic_member_that_waits_is_told_when_its_partitions_are_free():
    group = SmallGroup().after(joining("m"), classic_join())
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.NONE)
    group.ask(beat("m", 1))
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.NONE)
    group.ask(beat("m", 1, owned=of_a(0, 1)))
    assert group.ask(Heartbeat("k", 2)) == HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS)


def test_a_classic_static_member_takes_over_an_instance_id_in_any_case():
    group = SmallGroup().after(joining("m", instance_id="i"), joining("other"))
    answer = group.ask(classic_join(instance_id="i"))
    assert (answer.error, answer.member_id) == (Error.NONE, "k")
    assert group.state.static_members == {"i": "k"}
    assert group.ask(classic_join("k", instance_id="i", protocols=protocols("a", "b"))).error is Error.NONE
    assert group.ask(classic_join("m", instance_id="i")) == JoinAnswer(Error.FENCED_INSTANCE_ID, "")
    assert group.ask(joining("back", instance_id="i")).error is Error.NONE
    assert group.member("back").classic is None


def test_leave_group_removes_members_of_both_protocols():
    group = with_classic_member().after(joining("s", instance_id="i"))
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
    group = SmallGroup().after(joining("m"), ConsumerOffsetCommit("m", 1, "a", 0, 5), beat("m", -1))
    assert group.ask(SyncGroup("k", 2)) == SyncAnswer(Error.UNKNOWN_MEMBER_ID)
    answer = group.ask(classic_join(), 10)
    assert answer is None  # the initial delay of classic groups
    group.coordinator.advance(5_000)
    assert group.coordinator.classic.groups["g"].state is State.COMPLETING_REBALANCE
    assert group.state is None
    assert group.ask(OffsetFetch("k", 1, "a", 0), 5_000).offset == 5
    assert group.ask(DeleteGroup(), 5_000) == DeleteAnswer(Error.NON_EMPTY_GROUP)


def test_offsets_of_a_classic_group_are_kept_and_deleted():
    group = stable_classic_group()
    assert group.ask(ConsumerOffsetCommit("k", 1, "a", 0, 5, api_version=8)) == CommitAnswer(Error.NONE)
    assert group.ask(ConsumerOffsetCommit("k", 0, "a", 1, 6, api_version=8)) == CommitAnswer(Error.ILLEGAL_GENERATION)
    assert group.ask(OffsetFetch("k", 1, "a", 0)) == OffsetFetchAnswer(Error.NONE, 5)
    assert group.ask(OffsetFetch("k", 1, "a", 1)).offset == -1
    group.ask(LeaveGroup((LeavingMember("k"),)))
    assert group.ask(DeleteGroup()) == DeleteAnswer(Error.NONE)
    assert group.ask(OffsetFetch(None, -1, "a", 0)).offset == -1


def test_a_full_group_takes_no_classic_member():
    group = SmallGroup(max_size=2).after(joining("m"), classic_join())
    assert group.ask(classic_join(fresh="n")) == JoinAnswer(Error.GROUP_MAX_SIZE_REACHED, "")
    assert group.ask(classic_join("k")).error is Error.NONE


def test_a_classic_member_that_has_joined_again_in_time_stays():
    group = with_classic_member()
    group.ask(joining("n"), 1_000)
    assert group.ask(Heartbeat("k", 2), 2_000) == HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS)
    group.ask(classic_join("k", protocols=protocols(generation=2)), 3_000)
    assert group.ask(SyncGroup("k", 3), 3_000).error is Error.NONE
    for now_ms in range(8_000, 40_000, 5_000):
        assert group.ask(Heartbeat("k", 3), now_ms).error is Error.NONE


def test_a_classic_member_that_syncs_but_is_behind_has_to_join_in_time():
    group = with_classic_member()
    group.ask(joining("n"), 1_000)
    assert group.ask(SyncGroup("k", 2), 2_000) == SyncAnswer(Error.REBALANCE_IN_PROGRESS)
    for now_ms in range(3_000, 31_999, 5_000):
        group.ask(Heartbeat("k", 2), now_ms)
    for now_ms, stays in ((31_999, True), (32_000, False)):  # 30 s after the SyncGroup
        group.coordinator.advance(now_ms)
        assert ("k" in group.state.members) is stays


@pytest.mark.parametrize("request_of_k", [classic_join("k", protocols=protocols(generation=2)), SyncGroup("k", 2), Heartbeat("k", 2)])
def test_every_request_of_a_classic_member_keeps_its_session(request_of_k):
    group = with_classic_member()
    assert group.ask(request_of_k, 9_000).error is Error.NONE
    for now_ms, stays in ((18_999, True), (19_000, False)):
        group.coordinator.advance(now_ms)
        assert ("k" in group.state.members) is stays


def test_of_several_protocols_the_first_counts():
    group = SmallGroup().after(joining("m"))
    two = (*protocols("a", "b"), *protocols("b", name="sticky"))
    assert group.ask(classic_join(protocols=two)).protocol == "range"
    assert sorted(group.member("k").topics) == ["a", "b"]
    assert group.ask(SyncGroup("k", 2, protocol="range")).error is Error.NONE
    assert group.ask(SyncGroup("k", 2, protocol="sticky")).error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_that_names_no_rack_keeps_the_one_it_had():
    group = SmallGroup().after(joining("m"))
    for rack_id in ("r", None, "s"):
        group.ask(classic_join("k", protocols=(("range", write_subscription(EmbeddedSubscription(("a",), rack_id=rack_id))),)))
        assert group.member("k").rack_id == (rack_id or "r")
