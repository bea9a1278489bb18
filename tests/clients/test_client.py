"""The client, row by row: K01 to K21 are the ids of the claims about clients that this project holds by test."""

from copy import copy
from dataclasses import replace

import pytest

from coordinator_model.clients.client import Client, ClientConfig, MemberState
from coordinator_model.clients.client_version import ClientVersion
from coordinator_model.errors import Error
from coordinator_model.specification.requests import (
    CommitAnswer,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinedMember,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncAnswer,
    SyncGroup,
)
from coordinator_model.specification.timers import NEVER

OLD, THREAD, OVERLAP, NEW = "0.10.0.1", "0.10.2.2", "2.7.2", "4.2.0"
ALL = (OLD, THREAD, OVERLAP, NEW)
SINCE_THREAD = (THREAD, OVERLAP, NEW)


def assign(members):
    return tuple((member.member_id, b"P") for member in members)


def new_client(release, **settings):
    return Client(replace(ClientConfig.of(release, "c"), **settings), assign)


def joined(release, **settings):
    """JoinGroup answered at 100, SyncGroup sent."""
    client = new_client(release, **settings)
    client.poll(0)
    (sync,) = client.take_answer(JoinAnswer(Error.NONE, "c-1", 1, "other", "consumer", "range"), 100)
    assert isinstance(sync, SyncGroup)
    return client


def stable(release, **settings):
    """SyncGroup answered at 200."""
    client = joined(release, **settings)
    assert client.take_answer(SyncAnswer(Error.NONE, assignment=b"P"), 200) == []
    assert client.state is MemberState.STABLE
    return client


def heartbeat(client):
    return Heartbeat(client.member_id, client.generation, client.config.group_instance_id)


def beat(client, error, now_ms=3_300):
    """A heartbeat and its answer. At 3300 the first one is due, of whatever release."""
    assert client.poll(now_ms) + client.tick(now_ms) == [heartbeat(client)]
    client.take_answer(HeartbeatAnswer(error), now_ms + 1)


def beats_until(client, end_ms):
    """The heartbeats of the thread before `end_ms`, each answered well. When they were sent."""
    sent = []
    while client.next_tick_ms() < end_ms:
        sent.append(client.next_tick_ms())
        assert client.tick(sent[-1]) == [heartbeat(client)]
        client.take_answer(HeartbeatAnswer(Error.NONE), sent[-1] + 1)
    return sent


@pytest.mark.claims("K01", "B18")
def test_k01_who_sends_heartbeats():
    old, new = stable(OLD), stable(NEW)
    assert (old.tick(3_300), old.next_tick_ms()) == ([], NEVER)
    assert old.poll(3_300) == [Heartbeat("c-1", 1)]
    assert new.poll(3_300) == []
    assert new.tick(3_300) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K02", "A04")
@pytest.mark.parametrize(
    ("release", "running"), [(OLD, False), (THREAD, False), ("2.5.1", False), ("2.6.0", False), ("2.6.1", True), (OVERLAP, True)]
)
def test_k02_when_heartbeats_start(release, running):
    client = joined(release)
    assert client.state is MemberState.COMPLETING_REBALANCE
    assert client.heartbeats_run() is running
    assert bool(client.tick(3_100)) is running
    assert stable(release).heartbeats_run()


@pytest.mark.claims("K03", "A05", "B19")
@pytest.mark.parametrize("release", ALL)
def test_k03_when_heartbeats_pause(release):
    client = new_client(release)
    assert not client.heartbeats_run()  # UNJOINED
    client.poll(0)
    assert not client.heartbeats_run()  # PREPARING_REBALANCE
    client = stable(release)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    client.poll(3_400)
    assert client.state is MemberState.PREPARING_REBALANCE
    assert (client.tick(7_000), client.next_tick_ms()) == ([], NEVER)
    failed = stable("2.7.2", group_instance_id="i")
    beat(failed, Error.FENCED_INSTANCE_ID)
    assert not failed.heartbeats_run()


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


@pytest.mark.claims("K05", "A08")
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


@pytest.mark.claims("K06")
@pytest.mark.parametrize(
    ("release", "session_ms"),
    [("0.9.0.1", 30_000), (OLD, 30_000), (THREAD, 10_000), ("2.8.2", 10_000), ("3.0.0", 45_000), (NEW, 45_000)],
)
def test_k06_the_default_session_timeout(release, session_ms):
    assert ClientVersion.of(release).session_timeout_ms == session_ms


@pytest.mark.claims("K07", "A09", "A10", "A14")
@pytest.mark.parametrize(("release", "over_ms"), [(THREAD, 301_001), ("2.0.1", 301_001), ("2.1.0", 301_000), (NEW, 301_000)])
def test_k07_a_poll_gap_makes_the_thread_leave(release, over_ms):
    client = stable(release)
    assert client.config.max_poll_interval_ms == 300_000
    client.poll(1_000)
    beats_until(client, over_ms)
    assert client.next_tick_ms() == over_ms
    client.tick(over_ms - 1)
    assert client.state is MemberState.STABLE
    assert client.tick(over_ms) == [LeaveGroup((LeavingMember("c-1"),))]
    assert (client.state, client.member_id, client.generation) == (MemberState.UNJOINED, "", -1)
    assert isinstance(client.poll(400_000)[0], JoinGroup)


@pytest.mark.claims("K07")
@pytest.mark.parametrize(("release", "after_ms"), [(THREAD, 200), ("2.6.0", 200), (OVERLAP, 100), (NEW, 100)])
def test_k07_the_limit_begins_with_the_heartbeats(release, after_ms):
    client = stable(release, max_poll_interval_ms=2_000)
    assert client.next_tick_ms() == after_ms + 2_000 + (release == THREAD)


@pytest.mark.claims("K07", "A09", "A12")
def test_k07_before_the_thread_there_was_no_such_limit_and_a_static_member_says_nothing():
    assert stable(OLD).tick(10_000_000) == []
    static = stable(NEW, group_instance_id="i")
    static.poll(1_000)
    beats_until(static, 301_000)
    assert static.tick(301_000) == []
    assert not static.heartbeats_run()
    (join,) = static.poll(400_000)
    assert (join.member_id, join.instance_id) == ("", "i")


@pytest.mark.claims("K08", "A11", "A12")
def test_k08_when_a_closing_client_leaves():
    assert new_client(NEW).close() == []  # never joined
    joining = new_client(NEW)
    joining.poll(0)
    assert joining.close() == []  # has no id yet
    assert stable(NEW).close() == [LeaveGroup((LeavingMember("c-1"),))]
    assert stable(NEW, group_instance_id="i").close() == []
    closed = stable(NEW)
    closed.close()
    assert closed.poll(4_000) == closed.tick(4_000) == closed.take_answer(HeartbeatAnswer(Error.NONE), 4_000) == []


@pytest.mark.claims("K08", "A11")
@pytest.mark.parametrize("release", SINCE_THREAD)
def test_k08_whoever_looks_for_the_coordinator_cannot_leave(release):
    # Whether it was sent away or only heard nothing.
    sent_away = stable(release)
    beat(sent_away, Error.NOT_COORDINATOR)
    silent = stable(release, session_timeout_ms=10_000)
    for now_ms in (3_200, 6_200, 9_200, 10_201):
        silent.tick(now_ms)
    for client, found_ms in ((sent_away, 3_401), (silent, 10_301)):
        later = copy(client)
        assert client.close(found_ms - 1) == []
        assert later.close(found_ms) == [LeaveGroup((LeavingMember("c-1"),))]


@pytest.mark.claims("K09", "A39")
def test_k09_a_good_heartbeat_restarts_the_clients_own_clock():
    client = stable(THREAD)
    assert beats_until(client, 60_000) == list(range(3_200, 60_000, 3_000))


@pytest.mark.claims("K10", "A40")
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize(("release", "again"), [(OLD, 13_301), (THREAD, 13_301), ("2.0.1", 13_301), ("2.1.0", 10_301), (NEW, 10_301)])
def test_k10_the_coordinator_is_elsewhere(release, again, error):
    # Found at 10301. Up to 2.0 this begins a new interval, since 2.1 the heartbeat that failed is due.
    client = stable(release, retry_backoff_ms=7_000)
    beat(client, error)
    assert (client.state, client.member_id, client.generation) == (MemberState.STABLE, "c-1", 1)
    assert client.poll(again - 1) + client.tick(again - 1) == []
    assert client.poll(again) + client.tick(again) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K10", "K07")
@pytest.mark.parametrize(("release", "leaves_ms"), [(THREAD, 8_402), ("2.0.1", 8_402), ("2.1.0", 8_300), (NEW, 8_300)])
def test_k10_whether_a_coordinator_that_was_found_gives_the_application_more_time(release, leaves_ms):
    client = stable(release, max_poll_interval_ms=5_000)
    beat(client, Error.NOT_COORDINATOR)  # polls at 3300; found at 3401
    beats_until(client, leaves_ms)
    assert client.next_tick_ms() == leaves_ms
    assert client.tick(leaves_ms) == [LeaveGroup((LeavingMember("c-1"),))]


@pytest.mark.claims("K11", "A41")
@pytest.mark.parametrize("release", ALL)
def test_k11_a_rebalance(release):
    client = stable(release)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    assert client.heartbeats_run()  # until the application polls again
    (join,) = client.poll(4_000)
    assert (join.member_id, client.state) == ("c-1", MemberState.PREPARING_REBALANCE)


@pytest.mark.claims("K11", "A41")
@pytest.mark.parametrize(("release", "counts"), [(OLD, False), (THREAD, True), (NEW, True)])
def test_k11_the_answer_that_a_rebalance_is_under_way_counts_as_a_heartbeat(release, counts):
    client = stable(release, session_timeout_ms=10_000)
    beat(client, Error.REBALANCE_IN_PROGRESS, 9_000)
    client.rejoin_needed = False  # as if the application were slow to poll: only the clock matters here
    client.poll(12_500)
    assert bool(client.poll(12_501) + client.tick(12_501)) is counts


@pytest.mark.claims("K11", "A41")
def test_k11_a_rebalance_while_completing_is_left_to_the_sync():
    client = joined(OVERLAP)
    client.tick(3_100)
    client.take_answer(HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS), 3_101)
    assert not client.rejoin_needed


@pytest.mark.claims("K12", "A42")
@pytest.mark.parametrize(("release", "kept"), [(OLD, True), (THREAD, False), ("3.1.2", False), ("3.2.0", True)])
def test_k12_an_illegal_generation(release, kept):
    client = stable(release)
    beat(client, Error.ILLEGAL_GENERATION)
    assert client.generation == -1
    (join,) = client.poll(4_000)
    assert join.member_id == ("c-1" if kept else "")


@pytest.mark.claims("K13", "A43")
@pytest.mark.parametrize("release", ALL)
def test_k13_an_unknown_member(release):
    client = stable(release)
    beat(client, Error.UNKNOWN_MEMBER_ID)
    (join,) = client.poll(4_000)
    assert join.member_id == ""


@pytest.mark.claims("K12", "K13", "A45")
@pytest.mark.parametrize(("release", "ignored"), [("2.5.1", False), (OVERLAP, True), (NEW, True)])
def test_k12_k13_an_answer_to_a_heartbeat_of_an_older_generation(release, ignored):
    client = stable(release)
    client.tick(3_300)
    client.rejoin_needed = True
    client.poll(3_310)
    client.take_answer(JoinAnswer(Error.NONE, "c-1", 2, "other", None, "range"), 3_320)
    client.take_answer(HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), 3_330)
    assert (client.member_id == "c-1") is ignored


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


@pytest.mark.claims("K14", "A44", "A06")
def test_k14_a_fenced_instance_is_fatal():
    client = stable(NEW, group_instance_id="i")
    beat(client, Error.FENCED_INSTANCE_ID)
    assert client.failed is Error.FENCED_INSTANCE_ID
    assert client.poll(7_000) == client.tick(7_000) == client.close() == []


@pytest.mark.claims("K15", "B12", "B13")
@pytest.mark.parametrize("release", ALL)
def test_k15_the_leader_assigns(release):
    client = new_client(release)
    client.poll(0)
    members = (JoinedMember("c-1", None, b""), JoinedMember("d-1", None, b""))
    protocol_type = "consumer" if release == NEW else None
    (sync,) = client.take_answer(JoinAnswer(Error.NONE, "c-1", 1, "c-1", protocol_type, "range", members=members), 5)
    assert sync.assignments == (("c-1", b"P"), ("d-1", b"P"))
    assert sync.protocol == ("range" if release == NEW else None)
    assert (joined(release).state, joined(release).assignment) == (MemberState.COMPLETING_REBALANCE, None)


@pytest.mark.claims("K15")
def test_k15_a_leader_that_shall_skip_the_assignment_sends_none():
    client = new_client(NEW, group_instance_id="i")
    client.poll(0)
    members = (JoinedMember("i-1", "i", b""),)
    answer = JoinAnswer(Error.NONE, "i-1", 1, "i-1", "consumer", "range", skip_assignment=True, members=members)
    assert client.take_answer(answer, 5)[0].assignments == ()


@pytest.mark.claims("K16", "D05")
def test_k16_an_unknown_member_joins_again_at_once_without_its_id():
    client = stable(NEW)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    client.poll(3_400)
    (join,) = client.take_answer(JoinAnswer(Error.UNKNOWN_MEMBER_ID, "c-1"), 3_410)
    assert join.member_id == ""


@pytest.mark.claims("K17")
@pytest.mark.parametrize(
    "error",
    [
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.REBALANCE_IN_PROGRESS,
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
    ],
)
def test_k17_a_coordinator_that_is_loading_is_asked_again_later(error):
    client = new_client(NEW)
    client.poll(0)
    assert client.take_answer(JoinAnswer(error, ""), 10) == []
    assert client.poll(109) == []
    assert isinstance(client.poll(110)[0], JoinGroup)


@pytest.mark.claims("K18", "D04")
@pytest.mark.parametrize(
    "error",
    [
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
        Error.INVALID_GROUP_ID,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.FENCED_INSTANCE_ID,
    ],
)
@pytest.mark.parametrize("release", ALL)
def test_k18_what_no_retry_can_mend(release, error):
    client = new_client(release)
    client.poll(0)
    assert client.take_answer(JoinAnswer(error, ""), 10) == []
    assert client.failed is error
    assert client.poll(60_000) == []


@pytest.mark.claims("K19", "A38")
def test_k19_the_id_that_is_required():
    client = new_client(NEW)
    (first,) = client.poll(0)
    (second,) = client.take_answer(JoinAnswer(Error.MEMBER_ID_REQUIRED, "c-7"), 10)
    assert (first.member_id, second.member_id) == ("", "c-7")


@pytest.mark.claims("K20", "C04")
@pytest.mark.parametrize(
    ("release", "error", "member_id"),
    [
        (OLD, Error.REBALANCE_IN_PROGRESS, "c-1"),
        (OLD, Error.ILLEGAL_GENERATION, ""),
        (NEW, Error.REBALANCE_IN_PROGRESS, "c-1"),
        (NEW, Error.ILLEGAL_GENERATION, "c-1"),
        (OVERLAP, Error.ILLEGAL_GENERATION, ""),
        (NEW, Error.UNKNOWN_MEMBER_ID, ""),
        (NEW, Error.NOT_COORDINATOR, "c-1"),
    ],
)
def test_k20_a_refused_sync_means_joining_again(release, error, member_id):
    client = joined(release)
    assert client.take_answer(SyncAnswer(error), 200) == []
    assert client.state is MemberState.UNJOINED
    (join,) = client.poll(1_000)
    assert join.member_id == member_id


@pytest.mark.claims("K20")
def test_k20_a_fenced_sync_is_fatal():
    client = joined(NEW, group_instance_id="i")
    client.take_answer(SyncAnswer(Error.FENCED_INSTANCE_ID), 200)
    assert client.failed is Error.FENCED_INSTANCE_ID


@pytest.mark.claims("K21")
def test_k21_an_answer_that_comes_after_the_client_has_left_is_ignored():
    client = stable(NEW)
    beats_until(client, 300_100)
    client.tick(300_100)
    assert client.state is MemberState.UNJOINED
    assert client.take_answer(JoinAnswer(Error.NONE, "c-1", 2, "c-1", "consumer", "range"), 300_101) == []
    assert client.take_answer(SyncAnswer(Error.NONE, assignment=b"Q"), 300_102) == []
    assert client.assignment is None


def test_other_answers_are_none_of_its_business():
    assert stable(NEW).take_answer(CommitAnswer(Error.NONE), 300) == []


def test_a_new_subscription_is_told_with_the_next_poll():
    client = stable(NEW)
    client.subscribe((("range", b"more topics"),))
    (join,) = client.poll(1_000)
    assert join.protocols == (("range", b"more topics"),)


@pytest.mark.parametrize(
    ("release", "version"), [(OLD, 0), (THREAD, 1), ("0.11.0.3", 2), ("2.0.1", 3), ("2.2.2", 4), ("2.3.1", 5), (NEW, 9)]
)
def test_join_versions(release, version):
    (join,) = new_client(release).poll(0)
    assert join.api_version == version
