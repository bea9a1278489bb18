"""The client's heartbeats and what it makes of their answers: the claims K01 to K05 and K09 to K14, which tests hold."""

import pytest

from coordinator_model.clients.client import MemberState
from coordinator_model.errors import Error
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, JoinGroup, LeaveGroup, LeavingMember, SyncAnswer
from coordinator_model.specification.timers import NEVER
from tests.clients.client_steps import NEW, OLD, OVERLAP, THREAD, beat, beats_until, joined, stable


@pytest.mark.claims("K01", "B18")
def test_k01_who_sends_heartbeats():
    old, new = stable(OLD), stable(NEW)
    assert (old.tick(3_300), old.next_tick_ms()) == ([], NEVER)
    assert old.poll(3_300) == [Heartbeat("c-1", 1)]
    assert new.poll(3_300) == []
    assert new.tick(3_300) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K04", "K02", "B09")
@pytest.mark.parametrize(("release", "first_ms"), [(THREAD, 3_200), ("2.6.0", 3_200), (OVERLAP, 3_100), (NEW, 3_100)])
def test_k04_the_period_of_heartbeats(release, first_ms):
    # The first one too is an interval away: from the answer that starts them, JoinGroup's at 100 or SyncGroup's at 200.
    assert beats_until(stable(release), 12_000) == [first_ms, first_ms + 3_000, first_ms + 6_000]
    client = stable(release)
    assert client.tick(first_ms - 1) == []


@pytest.mark.claims("K04")
@pytest.mark.parametrize(("release", "sent"), [(OLD, 1), (THREAD, 3), (OVERLAP, 3), (NEW, 3)])
def test_k04_whether_the_next_heartbeat_waits_for_the_answer_to_the_last(release, sent):
    client = stable(release)
    beats = [beat for now_ms in range(300, 9_500, 100) for beat in client.poll(now_ms) + client.tick(now_ms)]
    assert beats == [Heartbeat("c-1", 1)] * sent
    client.take_answer(HeartbeatAnswer(Error.NONE), 9_500)
    assert bool(client.poll(9_501) + client.tick(9_501)) is (release == OLD)  # what has waited goes out


@pytest.mark.claims("K04", "A46")
@pytest.mark.parametrize("release", ["2.6.1", OVERLAP, NEW])
def test_k04_heartbeats_queue_behind_a_slow_sync(release):
    client = joined(release)
    for now_ms in (3_100, 6_100, 9_100):
        assert client.next_tick_ms() == now_ms
        assert client.tick(now_ms) == [Heartbeat("c-1", 1)]
    client.take_answer(SyncAnswer(Error.NONE, assignment=b"P"), 9_200)
    for now_ms in (9_201, 9_202, 9_203):
        client.take_answer(HeartbeatAnswer(Error.NONE), now_ms)
    assert client.state is MemberState.STABLE
    assert client.next_tick_ms() == 12_100  # the answer to SyncGroup changes nothing for the heartbeats


@pytest.mark.claims("K05", "A08")
@pytest.mark.parametrize(
    ("release", "silence_ends_ms", "found_until_heard_ms"),
    [
        ("2.0.1", 10_201, 3_000),  # from 200 on, exceeded
        (THREAD, 10_201, 3_000),
        (OVERLAP, 10_100, 0),  # from 100 on, reached
        (NEW, 33_101, 0),  # request.timeout.ms, of the first heartbeat
    ],
)
def test_k05_no_answer_for_the_session_timeout(release, silence_ends_ms, found_until_heard_ms):
    client = stable(release)
    beats = 0
    while client.next_tick_ms() < silence_ends_ms:
        beats += len(client.tick(client.next_tick_ms()))
    assert beats == (silence_ends_ms - 100) // 3_000
    assert client.next_tick_ms() == silence_ends_ms
    assert client.tick(silence_ends_ms) == []  # looks for the coordinator
    assert (client.state, client.member_id, client.generation) == (MemberState.STABLE, "c-1", 1)
    again = silence_ends_ms + 100 + found_until_heard_ms
    assert client.tick(again - 1) == []
    assert client.tick(again) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K05", "A08", "A39")
def test_k05_the_task_of_0_10_0_waits_as_long_as_its_request_may_take():
    client = stable(OLD)
    assert client.poll(3_300) == [Heartbeat("c-1", 1)]
    assert [client.poll(now_ms) for now_ms in (30_300, 43_300)] == [[], []]
    assert client.connection == 0
    assert client.poll(43_301) == []
    assert client.connection == 1
    assert client.poll(46_400) == []
    assert client.poll(46_401) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K05")
@pytest.mark.parametrize(("release", "heard"), [(THREAD, True), ("1.0.1", True), ("1.0.2", False), (NEW, False)])
def test_k05_whether_an_answer_is_heard_that_comes_when_the_coordinator_is_looked_for(release, heard):
    client = stable(release, session_timeout_ms=10_000)
    for now_ms in (3_200, 6_200, 9_200, 10_201):
        client.tick(now_ms)
    assert client.connection == (0 if heard else 1)
    client.take_answer(HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), 10_202)
    assert client.member_id == ("" if heard else "c-1")


@pytest.mark.claims("K05", "K20")
@pytest.mark.parametrize(("release", "gives_up_ms"), [(THREAD, 305_101), ("2.6.0", 30_101), (OVERLAP, 10_100), (NEW, 30_101)])
def test_k05_a_sync_that_is_not_answered(release, gives_up_ms):
    client = joined(release)
    while client.next_tick_ms() < gives_up_ms:
        client.tick(client.next_tick_ms())
    assert (client.state, client.next_tick_ms()) == (MemberState.COMPLETING_REBALANCE, gives_up_ms)
    assert client.tick(gives_up_ms) == []
    assert client.state is MemberState.UNJOINED
    assert client.take_answer(SyncAnswer(Error.NONE, assignment=b"P"), gives_up_ms + 1) == []
    (join,) = client.poll(gives_up_ms + 100)
    assert (type(join), join.member_id) == (JoinGroup, "c-1")


@pytest.mark.claims("K09", "A39")
def test_k09_a_good_heartbeat_restarts_the_clients_own_clock():
    client = stable(THREAD)
    assert beats_until(client, 60_000) == list(range(3_200, 60_000, 3_000))


@pytest.mark.claims("K10", "K07")
@pytest.mark.parametrize(("release", "leaves_ms"), [(THREAD, 8_402), ("2.0.1", 8_402), ("2.1.0", 8_300), (NEW, 8_300)])
def test_k10_whether_a_coordinator_that_was_found_gives_the_application_more_time(release, leaves_ms):
    client = stable(release, max_poll_interval_ms=5_000)
    beat(client, Error.NOT_COORDINATOR)  # polls at 3300; found at 3401
    beats_until(client, leaves_ms)
    assert client.next_tick_ms() == leaves_ms
    assert client.tick(leaves_ms) == [LeaveGroup((LeavingMember("c-1"),))]


@pytest.mark.claims("K11", "A41")
@pytest.mark.parametrize(("release", "counts"), [(OLD, False), (THREAD, True), (NEW, True)])
def test_k11_the_answer_that_a_rebalance_is_under_way_counts_as_a_heartbeat(release, counts):
    client = stable(release, session_timeout_ms=10_000)
    beat(client, Error.REBALANCE_IN_PROGRESS, 9_000)
    client.rejoin_needed = False  # as if the application were slow to poll: only the clock matters here
    client.poll(12_500)
    assert bool(client.poll(12_501) + client.tick(12_501)) is counts


@pytest.mark.claims("K13", "A45")
@pytest.mark.parametrize("release", ["2.6.1", OVERLAP, NEW])
def test_k13_heartbeats_behind_a_sync_of_a_member_that_was_removed(release):
    # All that was sent is answered alike. The first answer drops the id; the others concern who the client was.
    client = joined(release)
    for now_ms in (3_100, 6_100):
        client.tick(now_ms)
    client.take_answer(SyncAnswer(Error.UNKNOWN_MEMBER_ID), 6_200)
    client.poll(6_300)
    for now_ms in (6_301, 6_302):
        client.take_answer(HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), now_ms)
    assert client.state is MemberState.PREPARING_REBALANCE
