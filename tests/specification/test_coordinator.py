"""The coordinator around the groups: partitions that come and go, the log, clean-up, many groups at once.

What the recorded traces reach is not repeated here, with the exception of what makes a rule easier to read.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.effects import ExceptionThrown, Transition
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.specification.play import RELEASES, Player, check_books, check_timers, steps
from tests.specification.small_groups import errors, new_coordinator

JOIN = requests.JoinGroup("", 10_000, 30_000, "consumer", (("range", b"a"),), api_version=1)


def stable(coordinator, group_id, member_id, now_ms):
    coordinator.handle(group_id, JOIN._replace(fresh_member_id=member_id), now_ms, f"join {member_id}")
    generation = coordinator.groups[group_id].generation
    coordinator.handle(group_id, requests.SyncGroup(member_id, generation, ((member_id, b"P"),)), now_ms, f"sync {member_id}")


def test_groups_live_beside_each_other_and_time_passes_in_all():
    coordinator = new_coordinator("4.2.0")
    names = [f"group-{number}" for number in range(200)]
    for number, name in enumerate(names):
        stable(coordinator, name, f"{name}-member", number)
    outcome = coordinator.advance(20_000)
    expired = [
        (effect.at_ms, group_id)
        for group_id, effect in outcome.effects
        if isinstance(effect, Transition) and effect.to_state is State.EMPTY
    ]
    assert expired == [(10_000 + number, name) for number, name in enumerate(names)]


def test_a_partition_that_is_moved_takes_its_groups_along_and_no_others():
    coordinator = new_coordinator("4.2.0")
    stable(coordinator, "orders", "a", 0)
    stable(coordinator, "payments", "b", 0)
    partition = coordinator.partition("orders")
    assert partition != coordinator.partition("payments")
    coordinator.unload(partition, 1_000)
    assert errors(coordinator.handle("orders", requests.Heartbeat("a", 1), 1_001, 1)) == {1: "NOT_COORDINATOR"}
    assert errors(coordinator.handle("payments", requests.Heartbeat("b", 1), 1_001, 2)) == {2: "NONE"}
    coordinator.load_begin(partition, 2_000)
    assert errors(coordinator.handle("orders", requests.OffsetCommit("a", 1), 2_001, 3)) == {3: "COORDINATOR_LOAD_IN_PROGRESS"}
    assert errors(coordinator.handle("orders", requests.DeleteGroup(), 2_001, 4)) == {4: "COORDINATOR_LOAD_IN_PROGRESS"}
    coordinator.load(partition, 3_000)
    assert errors(coordinator.handle("orders", requests.Heartbeat("a", 1), 3_001, 5)) == {5: "NONE"}


def test_loading_a_partition_again_leaves_its_groups_as_they_are():
    coordinator = new_coordinator("4.2.0")
    stable(coordinator, "orders", "a", 0)
    group = coordinator.groups["orders"]
    coordinator.load(coordinator.partition("orders"), 1_000)
    assert coordinator.groups["orders"] is group


@pytest.mark.parametrize("release", ["2.0.1", "3.9.1", "4.2.0"])
def test_the_empty_group_id(release):
    coordinator = new_coordinator(release)
    assert errors(coordinator.handle("", JOIN, 0, 1)) == {1: "INVALID_GROUP_ID"}
    assert errors(coordinator.handle("", requests.Heartbeat("a", 1), 0, 2)) == {2: "INVALID_GROUP_ID"}
    assert errors(coordinator.handle("", requests.OffsetCommit("", -1), 0, 3)) == {3: "NONE"}
    assert errors(coordinator.handle("", requests.DeleteGroup(), 0, 4)) != {4: "INVALID_GROUP_ID"}


def test_delete_groups_came_with_1_1():
    old, new = new_coordinator("1.0.2"), new_coordinator("1.1.1")
    assert errors(old.handle("g", requests.DeleteGroup(), 0, 1)) == {1: "UNSUPPORTED_VERSION"}
    assert errors(new.handle("g", requests.DeleteGroup(), 0, 1)) == {1: "GROUP_ID_NOT_FOUND"}
    stable(old, "g", "a", 0)
    assert errors(old.handle("g", requests.DeleteGroup(), 1, 2)) == {2: "UNSUPPORTED_VERSION"}


def test_a_deleted_group_is_gone_from_the_log_with_its_offsets():
    coordinator = new_coordinator("4.2.0")
    stable(coordinator, "g", "a", 0)
    coordinator.handle("g", requests.OffsetCommit("a", 1), 1, 1)
    coordinator.handle("g", requests.LeaveGroup((requests.LeavingMember("a"),)), 2, 2)
    assert "g" in coordinator.log
    assert "g" in coordinator.offsets
    failed = coordinator.handle("g", requests.DeleteGroup(), 3, 3, append_error=Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(failed) == {3: "NOT_COORDINATOR"}
    assert coordinator.groups["g"].state is State.EMPTY
    assert "g" in coordinator.offsets
    deleted = coordinator.handle("g", requests.DeleteGroup(), 4, 4)
    assert deleted.replies == [requests.Reply(4, 4, requests.DeleteAnswer(Error.NONE))]
    assert [effect.trigger for _, effect in deleted.effects if isinstance(effect, Transition)] == [Trigger.DELETED]
    assert not coordinator.groups
    assert not coordinator.log
    assert not coordinator.offsets
    coordinator.advance(2_000_000)


def test_a_failed_commit_leaves_no_offsets():
    coordinator = new_coordinator("3.9.1")
    outcome = coordinator.handle("g", requests.OffsetCommit("", -1), 0, 1, append_error=Error.NOT_ENOUGH_REPLICAS)
    assert outcome.replies == [requests.Reply(1, 0, requests.CommitAnswer(Error.COORDINATOR_NOT_AVAILABLE))]
    assert not coordinator.offsets


@pytest.mark.claims("C06")
def test_0_10_0_keeps_offsets_without_a_group():
    coordinator = new_coordinator("0.10.0.1")
    assert errors(coordinator.handle("g", requests.OffsetCommit("", -1), 5, 1)) == {1: "NONE"}
    assert errors(coordinator.handle("g", requests.OffsetCommit("", 3), 6, 2)) == {2: "ILLEGAL_GENERATION"}
    assert coordinator.offsets == {"g": 5}
    assert not coordinator.groups
    partition = coordinator.partition("g")
    coordinator.unload(partition, 10)
    coordinator.load(partition, 20)
    assert not coordinator.groups


def test_the_offsets_of_an_empty_group_expire_counted_from_when_it_became_empty():
    coordinator = new_coordinator("4.2.0", offsets_retention_minutes=20)
    stable(coordinator, "g", "a", 0)
    coordinator.handle("g", requests.OffsetCommit("a", 1), 0, 1)
    coordinator.handle("g", requests.LeaveGroup((requests.LeavingMember("a"),)), 5_000, 2)
    coordinator.advance(1_200_000)
    assert "g" in coordinator.groups
    coordinator.advance(1_800_000)
    assert "g" not in coordinator.groups
    assert "g" not in coordinator.log


def test_4_0_cleans_each_partition_counted_from_its_loading():
    coordinator = new_coordinator("4.2.0")
    stable(coordinator, "orders", "a", 0)
    stable(coordinator, "payments", "b", 0)
    partition = coordinator.partition("orders")
    coordinator.unload(partition, 100_000)
    coordinator.load(partition, 200_000)
    coordinator.advance(700_000)  # both are Empty, neither has offsets
    assert list(coordinator.groups) == ["orders"]
    coordinator.advance(800_000)
    assert not coordinator.groups


def test_a_new_group_that_cannot_be_written_after_its_join_was_answered():
    # The id has been handed out by then: the answer stands, and the group is gone.
    coordinator = new_coordinator("4.2.0")
    join = JOIN._replace(api_version=9, fresh_member_id="a")
    outcome = coordinator.handle("g", join, 0, 1, append_error=Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(outcome) == {1: "MEMBER_ID_REQUIRED"}
    assert not coordinator.groups
    coordinator.advance(1_000_000)


# 0.10.0: what an unloaded group leaves behind (rebalance.check_orphans).


def poisoned():
    """A group that was unloaded while it prepared, and loaded again.

    When it was unloaded the session of its last member had until 20 040, and its join phase until 25 000: in between,
    who looks at the join phase of the new group meets the old one. The new group prepares since 20 000: a has joined,
    b has not.
    """
    coordinator = new_coordinator("0.10.0.1")
    partition = coordinator.partition("g")
    stable(coordinator, "g", "a", 0)
    coordinator.handle("g", JOIN._replace(session_timeout_ms=20_000, fresh_member_id="b"), 10, 1)
    coordinator.handle("g", JOIN._replace(member_id="a"), 20, 2)
    coordinator.handle("g", requests.SyncGroup("a", 2, (("a", b"P"),)), 30, 3)
    coordinator.handle("g", requests.SyncGroup("b", 2), 40, 4)
    coordinator.handle("g", requests.Heartbeat("a", 2), 3_000, 5)
    coordinator.handle("g", JOIN._replace(member_id="a"), 5_000, 6)
    assert coordinator.groups["g"].state is State.PREPARING_REBALANCE
    coordinator.unload(partition, 6_000)
    coordinator.load(partition, 6_100)
    for now_ms in (9_000, 12_000, 15_000, 18_000):
        for member_id in ("a", "b"):
            coordinator.handle("g", requests.Heartbeat(member_id, 2), now_ms, 7)
    coordinator.handle("g", JOIN._replace(member_id="a"), 20_000, "parked")
    assert coordinator.groups["g"].orphans == [(20_040, 25_000)]
    return coordinator, partition


@pytest.mark.claims("A29")
def test_the_orphan_spoils_a_leave_whose_effect_stays():
    coordinator, _ = poisoned()
    outcome = coordinator.handle("g", requests.LeaveGroup((requests.LeavingMember("b"),)), 21_000, "leave")
    assert errors(outcome) == {"leave": "UNKNOWN_SERVER_ERROR"}
    group = coordinator.groups["g"]
    assert list(group.members) == ["a"]
    assert group.state is State.PREPARING_REBALANCE  # though all have joined
    assert errors(coordinator.advance(40_000)) == {"parked": "NONE"}  # at the join timer


@pytest.mark.parametrize("left_ms", [20_040, 24_999])
def test_the_orphan_is_met_at_both_ends_of_its_time(left_ms):
    coordinator, _ = poisoned()
    outcome = coordinator.handle("g", requests.LeaveGroup((requests.LeavingMember("b"),)), left_ms, "leave")
    assert errors(outcome) == {"leave": "UNKNOWN_SERVER_ERROR"}


@pytest.mark.parametrize("left_ms", [20_039, 25_000])
def test_the_orphan_does_nothing_outside_its_time(left_ms):
    coordinator, _ = poisoned()
    outcome = coordinator.handle("g", requests.LeaveGroup((requests.LeavingMember("b"),)), left_ms, "leave")
    assert errors(outcome) == {"leave": "NONE", "parked": "NONE"}


@pytest.mark.claims("A29", "D06")
def test_the_orphan_stops_an_unloading_half_way():
    coordinator, partition = poisoned()
    outcome = coordinator.unload(partition, 22_000)
    assert errors(outcome) == {"parked": "NOT_COORDINATOR"}
    coordinator.load(partition, 23_000)
    assert coordinator.groups["g"].state is State.DEAD
    assert errors(coordinator.handle("g", requests.Heartbeat("a", 2), 23_001, 1)) == {1: "UNKNOWN_MEMBER_ID"}
    assert errors(coordinator.handle("g", JOIN._replace(fresh_member_id="d"), 23_002, 2)) == {2: "UNKNOWN_MEMBER_ID"}
    coordinator.unload(partition, 24_000)
    assert coordinator.groups["g"].state is State.DEAD


@pytest.mark.parametrize(("request_", "where"), [(requests.LeaveGroup((requests.LeavingMember("b"),)), "request"), (None, "timer")])
def test_the_orphan_throws_once(request_, where):
    player = Player(CoordinatorConfig.of("0.10.0.1"))
    group = player.group
    group.handle(JOIN._replace(fresh_member_id="a"), 0, 1)
    group.handle(requests.SyncGroup("a", 1), 0, 2)
    group.handle(JOIN._replace(fresh_member_id="b", session_timeout_ms=60_000), 10, 3)
    group.orphans.append((0, 1_000_000))
    outcome = group.handle(request_, 20, 4) if request_ else group.advance(11_000)
    assert [effect.exception for effect in outcome.effects if isinstance(effect, ExceptionThrown)] == ["IllegalStateException"]
    assert group.orphans == []
    if where == "request":
        assert errors(outcome) == {4: "UNKNOWN_SERVER_ERROR"}
        assert "b" not in group.members


# Many groups, random lives, partitions that move.


class CoordinatorPlayer:
    """Several groups, each with a script of its own, on one coordinator whose partitions move."""

    def __init__(self, release):
        self.coordinator = Coordinator(CoordinatorConfig.of(release), 0, range(50))
        self.players = {}
        self.now_ms = 0
        self.replies = []

    def play(self, script, moves):
        for number, step in enumerate(script):
            name = f"group-{step.who % 3}"
            player = self.players.setdefault(name, Player(self.coordinator.config))
            self.now_ms += step.wait_ms
            player.asked = number
            group = self.coordinator.groups.get(name)
            if group:
                player.state, player.generation, player.leader = group.state, group.generation, group.leader
                player.members = list(group.members.values())
            request = player.request(step)
            outcome = self.coordinator.handle(name, request, self.now_ms, number, append_error=step.append_error)
            self.note(outcome)
            partition = self.coordinator.partition(name)
            for op in moves.get(number, ()):
                outcome = getattr(self.coordinator, op)(partition, self.now_ms)
                self.note(outcome)
            for group in self.coordinator.groups.values():
                check_books(group)
                if not any(isinstance(effect, ExceptionThrown) for _, effect in outcome.effects):
                    check_timers(group)

    def note(self, outcome):
        self.replies += outcome.replies
        for group_id, effect in outcome.effects:
            if group_id in self.players:
                self.players[group_id].note(type("", (), {"replies": [], "effects": [effect]}))


@given(
    release=st.sampled_from([release for release in RELEASES if not release.startswith(("0.9", "0.10"))]),
    script=steps(),
    moves=st.dictionaries(st.integers(0, 40), st.sampled_from([("unload",), ("load",), ("load_begin",), ("unload", "load")]), max_size=5),
)
def test_a_coordinator_answers_everything(release, script, moves):
    player = CoordinatorPlayer(release)
    player.play(script, moves)
    coordinator = player.coordinator
    tickets = [reply.ticket for reply in player.replies]
    assert len(set(tickets)) == len(tickets)
    outcome = coordinator.restart(coordinator.config, player.now_ms + 1)
    for reply in outcome.replies:
        assert reply.answer.error in (Error.NOT_COORDINATOR, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS)
    assert not any(group.awaiting_join or group.awaiting_sync for group in coordinator.groups.values())
    coordinator.advance(player.now_ms + 3_000_000)
    assert all(not group.members for group in coordinator.groups.values())
