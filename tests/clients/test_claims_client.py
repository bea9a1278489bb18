"""Claims about the consumer: its heartbeats, what it makes of answers, how it leaves.

The ids are those of docs/claims.md; K01 to K21, the reactions release by release, are in test_client.py. What real clients
did is in test_claims_recordings.py.
"""

import pytest

from coordinator_model.clients.client import Client, ClientConfig, MemberState
from coordinator_model.clients.simulation import Application
from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.effects import MemberRemoved
from coordinator_model.specification.timers import NEVER
from tests.clients.client_steps import beat, beats_until, joined, new_client, stable
from tests.clients.watched import WatchedSimulation
from tests.specification.scene import before, each, over_time, since

TASK = before("0.10.1")  # heartbeats by a task of poll()
THREAD = since("0.10.1")
STATES = (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


def in_state(release, state):
    """A client of that release in that state, which it got to by itself."""
    if state is MemberState.UNJOINED:
        return new_client(release)
    if state is MemberState.PREPARING_REBALANCE:
        client = stable(release)
        beat(client, Error.REBALANCE_IN_PROGRESS)
        client.poll(3_400)
    else:
        client = (joined if state is MemberState.COMPLETING_REBALANCE else stable)(release)
    assert client.state is state
    return client


# The heartbeat thread.


@each(THREAD)
@pytest.mark.claims("A01", "A03")
def test_nothing_happens_before_the_first_poll(release):
    # Not the constructor starts the thread but the first poll(), once the coordinator is known.
    client = new_client(release)
    assert client.next_tick_ms() == NEVER
    assert [client.tick(now_ms) for now_ms in (0, 10_000, 10_000_000)] == [[], [], []]
    assert isinstance(client.poll(10_000_000)[0], requests.JoinGroup)


@each(TASK)
@pytest.mark.claims("A01", "A09", "B18", "K07")
def test_before_0_10_1_there_is_no_thread(release):
    # Heartbeats are sent inside poll() alone: none while the application works, for however long.
    client = stable(release)
    assert client.next_tick_ms() == NEVER
    assert [client.tick(now_ms) for now_ms in (300, 10_000, 10_000_000)] == [[], [], []]
    assert client.poll(20_000) == [requests.Heartbeat("c-1", 1)]


@over_time("unjoined, preparing, completing, stable_", {"0.10.1": (False, False, False, True), "2.6.1": (False, False, True, True)})
@pytest.mark.claims("A03", "A04", "A05", "A46", "K02", "K03")
def test_in_which_states_the_thread_is_at_work(release, unjoined, preparing, completing, stable_):
    beats = []
    for state in STATES:
        client = in_state(release, state)
        client.poll(5_000)
        # poll() takes an unjoined client on to the next state, which changes nothing for the thread.
        beats.append(client.tick(5_001) == [requests.Heartbeat("c-1", 1)])
    assert beats == [unjoined, preparing, completing, stable_]


@each(since("2.3"))
@pytest.mark.claims("A06", "A44", "K14")
def test_an_exception_in_the_thread_ends_the_heartbeats(release):
    # Fenced: the next poll() throws, and the consumer does not rejoin.
    client = stable(release, group_instance_id="i")
    assert client.heartbeats_run()
    beat(client, Error.FENCED_INSTANCE_ID)
    assert client.failed is Error.FENCED_INSTANCE_ID
    assert not client.heartbeats_run()
    assert [client.tick(now_ms) + client.poll(now_ms) for now_ms in (7_000, 10_000, 100_000)] == [[], [], []]


@pytest.mark.claims("A07")
def test_a_heartbeat_names_member_generation_and_instance():
    static = stable("4.2.0", group_instance_id="i")
    assert static.tick(3_300) == [requests.Heartbeat("c-1", 1, "i")]
    assert stable("0.10.2.2").tick(3_300) == [requests.Heartbeat("c-1", 1, None)]


@each()
@pytest.mark.claims("A10", "B09")
def test_defaults(release):
    config = ClientConfig.of(release, "c")
    assert (config.heartbeat_interval_ms, config.max_poll_interval_ms) == (3_000, 300_000)
    (join,) = new_client(release).poll(0)
    assert join.rebalance_timeout_ms == 300_000  # JoinGroup v0, up to 0.10.0, has no place for it


@each(TASK)
@pytest.mark.claims("B19")
def test_when_the_heartbeat_task_sends_nothing(release):
    client = new_client(release)
    assert client.poll(0) != []  # JoinGroup
    assert client.poll(5_000) == []  # generation < 0
    client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 1, "other", None, "range"), 5_100)
    client.take_answer(requests.SyncAnswer(Error.NONE, assignment=b"P"), 5_200)
    assert client.poll(8_500) == [requests.Heartbeat("c-1", 1)]
    client.take_answer(requests.HeartbeatAnswer(Error.NOT_COORDINATOR), 8_501)
    assert client.poll(8_502) == []  # coordinator unknown
    assert client.poll(12_000) == [requests.Heartbeat("c-1", 1)]
    client.take_answer(requests.HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS), 12_001)
    assert [type(request) for request in client.poll(15_500)] == [requests.JoinGroup]  # rejoin needed
    assert client.poll(18_600) == []


# Answers to heartbeats.


@over_time("restarts, limit", {"0.10.1": (True, 1), "2.1": (False, 0)})
@pytest.mark.claims("A08", "A39")
def test_silence_of_the_coordinator_for_the_session_timeout(release, restarts, limit):
    # Each good answer starts the client's own session clock again. When it runs out the coordinator is looked up; the member
    # stays who it is. Up to 2.0 a limit has to be exceeded, and a coordinator that was found begins a new interval.
    client = stable(release, session_timeout_ms=10_000)
    for now_ms in (3_300, 6_300, 9_300):
        beat(client, Error.NONE, now_ms)
    for now_ms in (12_300, 15_300, 18_300):  # not answered
        assert client.poll(now_ms) + client.tick(now_ms) == [requests.Heartbeat("c-1", 1)]
    ends = 19_301 + limit  # 10 s after 9301
    assert client.next_tick_ms() == ends
    assert client.tick(ends) == []
    assert client.poll(ends) + client.tick(ends + 99) == []  # looks for the coordinator, asks nobody
    again = ends + 100 + (3_000 if restarts else 0)
    assert (client.tick(again - 1), client.tick(again)) == ([], [requests.Heartbeat("c-1", 1)])


@each(since("3.0"))
@pytest.mark.claims("A08", "K05")
def test_since_3_0_the_request_takes_too_long_before_the_session_ends(release):
    client = stable(release)
    assert (client.config.session_timeout_ms, client.config.request_timeout_ms) == (45_000, 30_000)
    while client.connection == 0:
        silent_ms = client.next_tick_ms()
        client.tick(silent_ms)
    assert silent_ms == 3_100 + 30_001
    assert (client.state, client.member_id) == (MemberState.STABLE, "c-1")


@over_time("again", {"0.9": 11_301, "2.1": 8_301})
@pytest.mark.claims("A40", "K10")
def test_another_coordinator(release, again):
    for error in (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR):
        client = stable(release, retry_backoff_ms=5_000)
        beat(client, error)
        assert (client.state, client.member_id, client.generation) == (MemberState.STABLE, "c-1", 1)
        assert client.poll(again - 1) + client.tick(again - 1) == []
        assert client.poll(again) + client.tick(again) == [requests.Heartbeat("c-1", 1)]


@each()
@pytest.mark.claims("A41", "C04", "K11")
def test_a_stable_member_that_hears_of_a_rebalance_rejoins(release):
    client = stable(release)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    assert client.heartbeats_run()  # until the application polls again
    (join,) = client.poll(4_000)
    assert (type(join), join.member_id, client.state) == (requests.JoinGroup, "c-1", MemberState.PREPARING_REBALANCE)


@over_time("heard", {"0.10.1": False, "2.6.1": True})
@pytest.mark.claims("A41", "A04", "B21", "K02", "K11")
def test_a_member_that_waits_for_its_assignment_and_hears_of_a_rebalance(release, heard):
    # Since 2.6.1 it may hear of it, and ignores it: the answer to its SyncGroup will tell. Before, it asks in STABLE only, where
    # the answer always means to rejoin.
    client = joined(release)
    assert bool(client.tick(3_200)) is heard
    client.take_answer(requests.HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS), 3_201)
    assert (client.state, client.rejoin_needed) == (MemberState.COMPLETING_REBALANCE, False)
    client.take_answer(requests.SyncAnswer(Error.NONE, assignment=b"P"), 3_300)
    assert client.heartbeats_run()


@over_time("member_id", {"0.9": "c-1", "0.10.1": "", "3.2": "c-1"})
@pytest.mark.claims("A42", "K12")
def test_another_generation(release, member_id):
    client = stable(release)
    beat(client, Error.ILLEGAL_GENERATION)
    assert (client.state, client.generation) == (MemberState.UNJOINED, -1)
    (join,) = client.poll(4_000)
    assert join.member_id == member_id


@each()
@pytest.mark.claims("A43", "K13")
def test_an_unknown_member(release):
    client = stable(release)
    beat(client, Error.UNKNOWN_MEMBER_ID)
    assert (client.state, client.member_id) == (MemberState.UNJOINED, "")
    (join,) = client.poll(4_000)
    assert join.member_id == ""


@each(since("2.6"))
@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID])
@pytest.mark.claims("A45", "A43", "A44", "K12", "K13", "K14")
def test_which_errors_concern_the_present_generation(release, error):
    client = stable(release, group_instance_id="i")
    client.tick(3_300)
    client.rejoin_needed = True
    client.poll(3_310)
    client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 2, "other", None, "range"), 3_320)
    client.take_answer(requests.HeartbeatAnswer(error), 3_330)  # to the heartbeat of generation 1
    assert (client.state, client.member_id, client.failed) == (MemberState.COMPLETING_REBALANCE, "c-1", None)
    # A heartbeat sent before the answer to SyncGroup is one of the same generation: this one counts.
    assert client.tick(6_400) == [requests.Heartbeat("c-1", 2, "i")]
    client.take_answer(requests.SyncAnswer(Error.NONE, assignment=b"P"), 6_410)
    client.take_answer(requests.HeartbeatAnswer(error), 6_420)
    assert client.state is MemberState.UNJOINED


@pytest.mark.claims("A45", "K12", "K13")
def test_up_to_2_5_errors_of_an_older_generation_count_too():
    for release in ("0.10.2.2", "2.5.1"):
        client = stable(release)
        client.tick(3_300)
        client.rejoin_needed = True
        client.poll(3_310)
        client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 2, "other", None, "range"), 3_320)
        client.take_answer(requests.HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), 3_330)
        assert (client.state, client.member_id) == (MemberState.UNJOINED, "")


# Leaving.


@each(THREAD)
@pytest.mark.claims("A09", "A13", "A14")
def test_an_application_that_does_not_poll_leaves_once(release):
    client = stable(release)
    client.poll(1_000)
    beats_until(client, 301_000)
    assert client.tick(301_001) == [requests.LeaveGroup((requests.LeavingMember("c-1"),))]
    assert (client.state, client.member_id, client.generation) == (MemberState.UNJOINED, "", -1)
    # Best effort: what is answered does not matter, and nothing is sent again.
    refused = requests.LeaveAnswer(Error.NONE, (requests.MemberResponse("c-1", None, Error.NOT_COORDINATOR),))
    assert client.take_answer(refused, 301_010) == []
    assert [client.tick(now_ms) for now_ms in (301_011, 310_000, 600_000)] == [[], [], []]
    (join,) = client.poll(700_000)
    assert (type(join), join.member_id) == (requests.JoinGroup, "")


@pytest.mark.claims("A09", "B18")
@pytest.mark.parametrize(("release", "ends"), [("0.10.0.1", "session_expired"), ("0.10.2.2", "leave"), ("4.2.0", "leave")])
def test_a_long_gap_between_polls_seen_from_the_broker(release, ends):
    # Before 0.10.1 a long gap ends the session instead (30 s there), whatever the application is busy with.
    application = Application(ClientConfig.of(release, "c"), stalls=((60_000, 900_000),))
    simulation = WatchedSimulation(release, [application])
    simulation.run_until(800_000)
    (gone,) = [effect for _, effect in simulation.effects if isinstance(effect, MemberRemoved)]
    assert gone.cause.value == ends
    assert (gone.at_ms > 300_000) is (ends == "leave")


@each(since("2.3"))
@pytest.mark.claims("A11", "A12", "A14", "K08")
def test_when_leave_group_is_sent(release):
    left = [requests.LeaveGroup((requests.LeavingMember("c-1"),))]
    closed = stable(release)
    assert closed.close() == left
    assert closed.poll(4_000) == closed.tick(4_000) == closed.take_answer(requests.HeartbeatAnswer(Error.NONE), 4_000) == []
    assert joined(release).close() == left
    # Not by a static member, not before it has joined, not without an id.
    assert stable(release, group_instance_id="i").close() == []
    assert new_client(release).close() == []
    joining = new_client(release)
    joining.poll(0)
    assert joining.close() == []
    # Not while nobody knows the coordinator; then it is too late to close, but not for an application that hangs.
    for late in ("close", "tick"):
        client = stable(release, max_poll_interval_ms=5_000, retry_backoff_ms=7_000)
        client.poll(200)
        client.tick(3_300)
        client.take_answer(requests.HeartbeatAnswer(Error.NOT_COORDINATOR), 3_301)
        if late == "close":
            assert client.close(6_000) == []
        else:
            assert client.tick(6_000) == []
            assert client.next_tick_ms() == 10_301
            assert client.tick(10_301) == left
    # Nor if it is looked for because nobody answered.
    client = stable(release, session_timeout_ms=10_000)
    for now_ms in (3_300, 6_300, 9_300, 10_200):
        client.tick(now_ms)
    assert client.close(10_299) == []


@each(since("2.3"))
@pytest.mark.claims("A12", "A14", "K07")
def test_a_static_member_that_hangs_falls_silent(release):
    static = stable(release, group_instance_id="i")
    static.poll(1_000)
    beats_until(static, 301_000)
    assert static.tick(301_001) == []
    assert (static.state, static.member_id, static.generation) == (MemberState.UNJOINED, "", -1)
    assert static.next_tick_ms() == NEVER
    (join,) = static.poll(400_000)
    assert (join.member_id, join.instance_id) == ("", "i")


# Joining.


@each()
@pytest.mark.claims("C15", "C16", "C20", "B12", "B16", "B21")
def test_a_follower_joins_then_asks_then_has_partitions(release):
    client = Client(ClientConfig.of(release, "c", (("range", b"my topics"),)), lambda _: pytest.fail("a follower assigns nothing"))
    (join,) = client.poll(0)
    assert join.protocols == (("range", b"my topics"),)
    (sync,) = client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 1, "other", None, "range"), 100)
    assert (type(sync), sync.assignments) == (requests.SyncGroup, ())
    assert client.assignment is None  # nothing to fetch yet
    assert client.take_answer(requests.SyncAnswer(Error.NONE, assignment=b"P"), 200) == []
    assert client.assignment == b"P"


@each()
@pytest.mark.claims("B12", "B13")
def test_the_leader_assigns_and_sends_the_plan_with_its_sync(release):
    asked = []

    def assignor(members):
        asked.append(members)
        return (("c-1", b"0 1"), ("d-1", b"2 3"))

    client = Client(ClientConfig.of(release, "c"), assignor)
    client.poll(0)
    members = (requests.JoinedMember("c-1", None, b"topics"), requests.JoinedMember("d-1", None, b"topics"))
    (sync,) = client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 1, "c-1", None, "range", members=members), 5)
    assert asked == [members]
    assert sync.assignments == (("c-1", b"0 1"), ("d-1", b"2 3"))


@each()
@pytest.mark.claims("C02", "C03")
def test_what_makes_a_client_join_again(release):
    # Other topics: any member, with new metadata. More partitions: the leader's client sees them, and rejoins with the same.
    client = stable(release)
    assert [request for request in client.poll(1_000) if isinstance(request, requests.JoinGroup)] == []
    client.subscribe((("range", b"other topics"),))
    (join,) = client.poll(2_000)
    assert (join.member_id, join.protocols) == ("c-1", (("range", b"other topics"),))
    leader = stable(release)
    leader.subscribe(leader.config.protocols)
    (join,) = leader.poll(2_000)
    assert (join.member_id, join.protocols) == ("c-1", leader.config.protocols)


@each()
@pytest.mark.claims("D05", "K16")
def test_who_is_told_that_its_id_is_unknown_joins_without_it(release):
    client = stable(release)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    client.poll(3_400)
    (join,) = client.take_answer(requests.JoinAnswer(Error.UNKNOWN_MEMBER_ID, "c-1"), 3_410)
    assert join.member_id == ""
