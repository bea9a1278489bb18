"""Whole groups over time: what users see, and what must hold whatever happens to a group."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_model.clients.client import ClientConfig
from coordinator_model.clients.simulation import Application, Beats
from coordinator_model.errors import Error
from coordinator_model.specification.effects import MemberRemoved, StaticMemberReplaced, Transition
from coordinator_model.specification.member import Member, StoredGroup
from coordinator_model.specification.requests import Heartbeat, JoinAnswer, JoinGroup, LeaveGroup, SyncGroup
from coordinator_model.states import State
from tests.clients.watched import GROUP_ID, BrokerFailedError, WatchedSimulation

RELEASES = ("0.10.0.1", "0.10.2.2", "2.5.1", "3.9.1", "4.2.0")


def simulate(release, *applications, until_ms, moves=()):
    simulation = WatchedSimulation(release, applications)
    for at_ms, away_ms in moves:
        simulation.move_coordinator(at_ms, away_ms)
    simulation.run_until(until_ms)
    return simulation


def consumers(release, count, **settings_):
    return [Application(ClientConfig.of(release, f"c{number}"), number * 100, **settings_) for number in range(count)]


def rebalances(simulation):
    return [
        effect.trigger.value
        for _, effect in simulation.effects
        if isinstance(effect, Transition) and effect.to_state is State.PREPARING_REBALANCE
    ]


def assigned(simulation):
    """The partitions that the running clients believe to own."""
    return sorted(
        int(number)
        for position, client in enumerate(simulation.clients)
        if client.assignment and simulation.runs(position)
        for number in client.assignment.split()
    )


@pytest.mark.parametrize(("release", "generations"), [("0.10.2.2", 2), ("4.2.0", 1)])
def test_three_consumers_start_together(release, generations):
    simulation = simulate(release, *consumers(release, 3), until_ms=20_000)
    assert simulation.stable()
    assert assigned(simulation) == list(range(12))
    assert simulation.coordinator.groups[GROUP_ID].generation == generations


@pytest.mark.parametrize("release", ["3.9.1", "4.2.0"])
def test_a_group_that_was_stable_for_a_while_goes_on(release):
    """A third member died before the simulation begins: its session runs since its last heartbeat, and nobody rejoins before it ends."""
    applications = [
        Application(ClientConfig.of(release, f"c{number}"), -5_000, dies_ms=98_500 if number == 2 else None) for number in range(3)
    ]
    members = tuple(
        Member(f"c{number}-x", None, f"c{number}", "/h", 45_000, 300_000, (("range", b""),), b"%d" % number)
        for number in range(len(applications))
    )
    simulation = WatchedSimulation(release, applications, begin_ms=100_000, group_id="orders")
    stored = StoredGroup(7, "consumer", "range", "c0-x", members, 0)
    simulation.resume(stored, [Beats(0, 99_000, 102_000), Beats(1, 98_000, 101_000), Beats(2, 97_500, 100_500)])
    simulation.run_until(104_000)
    heartbeats = [(m.at_ms, m.client) for m in simulation.messages if isinstance(m.content, Heartbeat)]
    assert heartbeats == [(100_998, 1), (101_998, 0), (103_998, 1)]
    assert [client.assignment for client in simulation.clients] == [b"0", b"1", b"2"]
    assert rebalances(simulation) == []
    simulation.run_until(160_000)
    assert rebalances(simulation) == ["session_expired"]
    (gone,) = [effect for _, effect in simulation.effects if isinstance(effect, MemberRemoved)]
    assert (gone.member_id, gone.at_ms) == ("c2-x", 97_500 + 45_000)
    assert simulation.stable()
    assert simulation.coordinator.groups["orders"].generation == 8


@pytest.mark.claims("A33")
@pytest.mark.parametrize("release", RELEASES)
def test_a_killed_consumer_is_noticed_after_its_session(release):
    applications = consumers(release, 2)
    applications.append(Application(ClientConfig.of(release, "victim"), dies_ms=60_000))
    simulation = simulate(release, *applications, until_ms=180_000)
    assert simulation.stable()
    assert assigned(simulation) == list(range(12))
    (gone,) = [effect for _, effect in simulation.effects if isinstance(effect, MemberRemoved)]
    session_ms = applications[2].config.session_timeout_ms
    assert 60_000 + session_ms - 3_100 <= gone.at_ms <= 60_000 + session_ms
    assert rebalances(simulation)[-1] == "session_expired"


@pytest.mark.claims("A09")
def test_a_consumer_that_stalls_holds_everybody_up_until_its_poll_interval_ends():
    # It heartbeats all the while, so its session lives, and the rebalance that a newcomer starts waits for it.
    applications = consumers("4.2.0", 2)
    applications.append(Application(ClientConfig.of("4.2.0", "stuck"), stalls=((60_000, 900_000),)))
    applications.append(Application(ClientConfig.of("4.2.0", "newcomer"), starts_ms=90_000))
    simulation = simulate("4.2.0", *applications, until_ms=1_000_000)
    (left,) = [message for message in simulation.messages if isinstance(message.content, LeaveGroup)]
    assert (left.client, left.at_ms) == (2, pytest.approx(359_500, abs=1_001))
    ended = [effect.at_ms for _, effect in simulation.effects if getattr(effect, "to_state", None) is State.STABLE]
    assert [at_ms for at_ms in ended if 90_000 < at_ms < 900_000] == [pytest.approx(left.at_ms, abs=1_000)]
    assert simulation.stable()


@pytest.mark.claims("A12", "C01")
def test_a_rolling_restart_of_static_members_does_not_rebalance():
    def instance(number, starts_ms, **settings_):
        config = ClientConfig.of("4.2.0", f"c{number}-{starts_ms}").__dict__
        return Application(ClientConfig(**{**config, "group_instance_id": f"i{number}"}), starts_ms, **settings_)

    first = [instance(number, 0, closes_ms=60_000 + number * 30_000) for number in range(3)]
    second = [instance(number, 65_000 + number * 30_000) for number in range(3)]
    simulation = simulate("4.2.0", *first, *second, until_ms=300_000)
    assert rebalances(simulation) == ["new_member"]
    assert sum(isinstance(effect, StaticMemberReplaced) for _, effect in simulation.effects) == 3
    assert simulation.stable()
    assert assigned(simulation) == list(range(12))


@pytest.mark.parametrize("release", RELEASES)
def test_a_coordinator_that_moves_costs_no_rebalance(release):
    applications = consumers(release, 3)
    still = simulate(release, *applications, until_ms=120_000)
    moved = simulate(release, *applications, until_ms=120_000, moves=[(60_000, 3_000)])
    assert moved.stable()
    assert rebalances(moved) == rebalances(still)


def test_who_was_killed_does_not_close_any_more():
    application = Application(ClientConfig.of("4.2.0", "c"), dies_ms=10_000, closes_ms=20_000)
    simulation = simulate("4.2.0", application, until_ms=30_000)
    assert not any(isinstance(message.content, LeaveGroup) for message in simulation.messages)


@pytest.mark.claims("A15")
def test_a_closing_consumer_leaves_at_once():
    applications = [*consumers("4.2.0", 2), Application(ClientConfig.of("4.2.0", "last"), closes_ms=60_000)]
    simulation = simulate("4.2.0", *applications, until_ms=90_000)
    assert rebalances(simulation) == ["new_member", "leave"]
    assert simulation.stable()


def test_what_is_seen_is_in_order_and_heartbeats_come_every_three_seconds():
    simulation = simulate("4.2.0", *consumers("4.2.0", 1), until_ms=60_000)
    times = [message.at_ms for message in simulation.messages]
    assert times == sorted(times)
    beats = [message.at_ms for message in simulation.messages if isinstance(message.content, Heartbeat)]
    (joined_ms,) = [
        message.at_ms for message in simulation.messages if isinstance(message.content, JoinAnswer) and message.content.error is Error.NONE
    ]
    assert {later - earlier for earlier, later in pairwise([joined_ms, *beats])} == {3_000}
    assert sum(isinstance(message.content, SyncGroup) for message in simulation.messages) == 1


def leader_dies_before_it_has_assigned(release, session_ms):
    """Three join; the leader does not live to hear so, and the others wait for the assignment till its session is over."""
    applications = consumers(release, 3)
    heard = [message for message in simulate(release, *applications, until_ms=10_000).messages if isinstance(message.content, JoinAnswer)]
    (leads,) = [message for message in heard if message.content.members]
    config = replace(applications[leads.client].config, session_timeout_ms=session_ms)
    applications[leads.client] = replace(applications[leads.client], config=config, dies_ms=leads.at_ms)
    return leads, simulate(release, *applications, until_ms=120_000)


@pytest.mark.claims("K04", "A46")
def test_heartbeats_wait_at_the_broker_behind_a_sync_that_waits_for_the_leader():
    # As in the recordings: what a member sent meanwhile is handled when its SyncGroup has been.
    leads, simulation = leader_dies_before_it_has_assigned("2.7.2", 9_300)
    for client in {0, 1, 2} - {leads.client}:
        after = [message for message in simulation.messages if message.client == client and message.at_ms > leads.at_ms]
        told = [(message.at_ms - leads.at_ms, type(message.content).__name__) for message in after]
        assert told[:3] == [(3_000, "Heartbeat"), (6_000, "Heartbeat"), (9_000, "Heartbeat")]
        assert [what for _, what in told[3:8]] == ["SyncAnswer", *["HeartbeatAnswer"] * 3, "JoinGroup"]
        assert told[3][0] >= 9_300
        assert told[6][0] - told[3][0] < 20
    assert simulation.stable()


@pytest.mark.claims("K05")
def test_who_gives_up_the_connection_does_not_hear_what_is_answered_on_it():
    # 4.2.0: the leader's session is 45 s, the others wait for 30 s.
    leads, simulation = leader_dies_before_it_has_assigned("4.2.0", 45_000)
    for client in {0, 1, 2} - {leads.client}:
        after = [message for message in simulation.messages if message.client == client and message.at_ms > leads.at_ms]
        join = next(message for message in after if isinstance(message.content, JoinGroup))
        assert join.content.member_id
        assert join.at_ms - leads.at_ms == pytest.approx(30_100, abs=501)
        assert {type(message.content) for message in after if message.at_ms < join.at_ms} == {Heartbeat}
    assert simulation.stable()


spans = st.tuples(st.integers(5_000, 600_000), st.integers(1_000, 400_000))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@example(
    "0.10.0.1",
    [
        (440, 100, [(5_000, 1_000), (6_814, 82_791)], None, None, False),
        *((starts, 100, [], None, None, False) for starts in (979, 5_973, 279)),
        (442, 100, [], None, 10_000, False),
    ],
    [(25_671, 14_265)],
)
@given(
    release=st.sampled_from(RELEASES),
    lives=st.lists(
        st.tuples(
            st.integers(0, 300_000),
            st.sampled_from((100, 500, 2_000)),
            st.lists(spans, max_size=2),
            st.none() | st.integers(10_000, 700_000),
            st.none() | st.integers(10_000, 700_000),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    moves=st.lists(spans, max_size=2),
)
def test_whatever_happened_the_survivors_end_up_with_every_partition_once(release, lives, moves):
    applications = []
    for number, (starts, every, stalls, dies, closes, static) in enumerate(lives):
        config = ClientConfig.of(release, f"c{number}")
        if static and release in ("2.5.1", "3.9.1", "4.2.0"):
            config = ClientConfig(**{**config.__dict__, "group_instance_id": f"i{number}"})
        stalled = tuple((start, start + length) for start, length in stalls)
        applications.append(Application(config, starts, every, stalled, dies, closes))
    try:
        simulation = simulate(release, *applications, until_ms=1_700_000, moves=moves)
    except BrokerFailedError:
        assert release == "0.10.0.1"  # a timer of the group as it was before it was unloaded throws amid a JoinGroup
        return
    running = [number for number in range(len(applications)) if simulation.runs(number)]
    assert not any(simulation.clients[number].failed for number in running)
    assert simulation.stable()
    assert assigned(simulation) == (list(range(12)) if running else [])
    group = simulation.coordinator.groups.get(GROUP_ID)
    assert len(running) == (len(group.members) if group else 0)
