"""The client, row by row: K01 to K21 are the ids of the claims about clients that this project holds by test."""

from dataclasses import replace

import pytest

from coordinator_model.client import Client, ClientConfig, ClientVersion, MemberState
from coordinator_model.errors import Error
from coordinator_model.requests import (
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
from coordinator_model.timers import NEVER

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
    (sync,) = client.answered(JoinAnswer(Error.NONE, "c-1", 1, "other", "consumer", "range"), 100)
    assert isinstance(sync, SyncGroup)
    return client


def stable(release, **settings):
    """SyncGroup answered at 200."""
    client = joined(release, **settings)
    assert client.answered(SyncAnswer(Error.NONE, assignment=b"P"), 200) == []
    assert client.state is MemberState.STABLE
    return client


def beat(client, error, now_ms=300):
    """A heartbeat and its answer."""
    client.poll(now_ms)
    sent = client.tick(now_ms) if client.version.heartbeat_thread else []
    assert sent or not client.version.heartbeat_thread
    client.answered(HeartbeatAnswer(error), now_ms + 1)


@pytest.mark.claims("K01", "B18")
def test_k01_who_sends_heartbeats():
    old, new = stable(OLD), stable(NEW)
    assert (old.tick(300), old.next_tick_ms()) == ([], NEVER)
    assert old.poll(300) == [Heartbeat("c-1", 1)]
    assert new.poll(300) == []
    assert new.tick(300) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K02", "A04")
@pytest.mark.parametrize(("release", "running"), [(OLD, False), (THREAD, False), ("2.5.1", False), (OVERLAP, True)])
def test_k02_when_heartbeats_start(release, running):
    client = joined(release)
    assert client.state is MemberState.COMPLETING_REBALANCE
    assert client.heartbeats_run() is running
    assert bool(client.tick(101)) is running
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
    client.poll(400)
    assert client.state is MemberState.PREPARING_REBALANCE
    assert (client.tick(4_000), client.next_tick_ms()) == ([], NEVER)
    failed = stable("2.7.2", group_instance_id="i")
    beat(failed, Error.FENCED_INSTANCE_ID)
    assert not failed.heartbeats_run()


@pytest.mark.claims("K04", "B09")
def test_k04_the_period_of_heartbeats():
    client = stable(NEW)
    assert client.next_tick_ms() == 200
    assert client.tick(200)
    client.answered(HeartbeatAnswer(Error.NONE), 210)
    assert client.next_tick_ms() == 3_200
    assert client.tick(3_199) == []
    assert client.tick(3_200) == [Heartbeat("c-1", 1)]
    assert client.tick(6_500) == []  # one at a time: the last is not answered yet


@pytest.mark.claims("K05", "A08")
@pytest.mark.parametrize("release", ALL)
def test_k05_no_answer_for_the_session_timeout(release):
    client = stable(release)
    client.poll(300)
    client.tick(300)
    ends = 200 + client.config.session_timeout_ms
    client.poll(ends)
    if client.version.heartbeat_thread:
        assert client.next_tick_ms() == ends
    assert client.tick(ends) == []  # looks for the coordinator
    assert (client.member_id, client.generation) == ("c-1", 1)
    again = client.poll(ends + 100) + client.tick(ends + 100)
    assert again == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K06")
@pytest.mark.parametrize(
    ("release", "session_ms"),
    [("0.9.0.1", 30_000), (OLD, 30_000), (THREAD, 10_000), ("2.8.2", 10_000), ("3.0.0", 45_000), (NEW, 45_000)],
)
def test_k06_the_default_session_timeout(release, session_ms):
    assert ClientVersion.of(release).session_timeout_ms == session_ms


@pytest.mark.claims("K07", "A09", "A10", "A14")
@pytest.mark.parametrize("release", SINCE_THREAD)
def test_k07_a_poll_gap_makes_the_thread_leave(release):
    client = stable(release)
    assert client.config.max_poll_interval_ms == 300_000
    client.poll(1_000)
    client.tick(1_000)
    client.answered(HeartbeatAnswer(Error.NONE), 1_001)
    assert client.next_tick_ms() == 4_000
    client.tick(301_000)
    assert client.state is MemberState.STABLE
    assert client.tick(301_001) == [LeaveGroup((LeavingMember("c-1"),))]
    assert (client.state, client.member_id, client.generation) == (MemberState.UNJOINED, "", -1)
    assert isinstance(client.poll(400_000)[0], JoinGroup)


@pytest.mark.claims("K07", "A09", "A12")
def test_k07_before_the_thread_there_was_no_such_limit_and_a_static_member_says_nothing():
    assert stable(OLD).tick(10_000_000) == []
    static = stable(NEW, group_instance_id="i")
    static.poll(1_000)
    assert static.tick(302_000) == []
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
    assert closed.poll(1_000) == closed.tick(1_000) == closed.answered(HeartbeatAnswer(Error.NONE), 1_000) == []


@pytest.mark.claims("K09", "A39")
def test_k09_a_good_heartbeat_restarts_the_clients_own_clock():
    client = stable(THREAD)
    for now_ms in range(3_000, 60_000, 3_000):
        client.poll(now_ms)
        assert client.tick(now_ms) == [Heartbeat("c-1", 1)]
        client.answered(HeartbeatAnswer(Error.NONE), now_ms + 5)


@pytest.mark.claims("K10", "A40")
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("release", ALL)
def test_k10_the_coordinator_is_elsewhere(release, error):
    client = stable(release, retry_backoff_ms=7_000)
    beat(client, error)
    assert (client.state, client.member_id, client.generation) == (MemberState.STABLE, "c-1", 1)
    assert client.poll(7_300) + client.tick(7_300) == []  # still looking
    assert client.poll(7_301) + client.tick(7_301) == [Heartbeat("c-1", 1)]


@pytest.mark.claims("K11", "A41")
@pytest.mark.parametrize("release", ALL)
def test_k11_a_rebalance(release):
    client = stable(release)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    assert client.heartbeats_run()  # until the application polls again
    (join,) = client.poll(1_000)
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
    client.tick(101)
    client.answered(HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS), 102)
    assert not client.rejoin_needed


@pytest.mark.claims("K12", "A42")
@pytest.mark.parametrize(("release", "kept"), [(OLD, True), (THREAD, False), ("3.1.2", False), ("3.2.0", True)])
def test_k12_an_illegal_generation(release, kept):
    client = stable(release)
    beat(client, Error.ILLEGAL_GENERATION)
    assert client.generation == -1
    (join,) = client.poll(1_000)
    assert join.member_id == ("c-1" if kept else "")


@pytest.mark.claims("K13", "A43")
@pytest.mark.parametrize("release", ALL)
def test_k13_an_unknown_member(release):
    client = stable(release)
    beat(client, Error.UNKNOWN_MEMBER_ID)
    (join,) = client.poll(1_000)
    assert join.member_id == ""


@pytest.mark.claims("K12", "K13", "A45")
@pytest.mark.parametrize(("release", "ignored"), [("2.5.1", False), (OVERLAP, True), (NEW, True)])
def test_k12_k13_an_answer_to_a_heartbeat_of_an_older_generation(release, ignored):
    client = stable(release)
    client.tick(300)
    client.rejoin_needed = True
    client.poll(310)
    client.answered(JoinAnswer(Error.NONE, "c-1", 2, "other", None, "range"), 320)
    client.answered(HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), 330)
    assert (client.member_id == "c-1") is ignored


@pytest.mark.claims("K14", "A44", "A06")
def test_k14_a_fenced_instance_is_fatal():
    client = stable(NEW, group_instance_id="i")
    beat(client, Error.FENCED_INSTANCE_ID)
    assert client.failed is Error.FENCED_INSTANCE_ID
    assert client.poll(1_000) == client.tick(1_000) == client.close() == []


@pytest.mark.claims("K15", "B12", "B13")
@pytest.mark.parametrize("release", ALL)
def test_k15_the_leader_assigns(release):
    client = new_client(release)
    client.poll(0)
    members = (JoinedMember("c-1", None, b""), JoinedMember("d-1", None, b""))
    protocol_type = "consumer" if release == NEW else None
    (sync,) = client.answered(JoinAnswer(Error.NONE, "c-1", 1, "c-1", protocol_type, "range", members=members), 5)
    assert sync.assignments == (("c-1", b"P"), ("d-1", b"P"))
    assert sync.protocol == ("range" if release == NEW else None)
    assert (joined(release).state, joined(release).assignment) == (MemberState.COMPLETING_REBALANCE, None)


@pytest.mark.claims("K15")
def test_k15_a_leader_that_shall_skip_the_assignment_sends_none():
    client = new_client(NEW, group_instance_id="i")
    client.poll(0)
    members = (JoinedMember("i-1", "i", b""),)
    answer = JoinAnswer(Error.NONE, "i-1", 1, "i-1", "consumer", "range", skip_assignment=True, members=members)
    assert client.answered(answer, 5)[0].assignments == ()


@pytest.mark.claims("K16", "D05")
def test_k16_an_unknown_member_joins_again_at_once_without_its_id():
    client = stable(NEW)
    beat(client, Error.REBALANCE_IN_PROGRESS)
    client.poll(400)
    (join,) = client.answered(JoinAnswer(Error.UNKNOWN_MEMBER_ID, "c-1"), 410)
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
    assert client.answered(JoinAnswer(error, ""), 10) == []
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
    assert client.answered(JoinAnswer(error, ""), 10) == []
    assert client.failed is error
    assert client.poll(60_000) == []


@pytest.mark.claims("K19", "A38")
def test_k19_the_id_that_is_required():
    client = new_client(NEW)
    (first,) = client.poll(0)
    (second,) = client.answered(JoinAnswer(Error.MEMBER_ID_REQUIRED, "c-7"), 10)
    assert (first.member_id, second.member_id) == ("", "c-7")


@pytest.mark.claims("K20", "C04")
@pytest.mark.parametrize(
    ("release", "error", "member_id"),
    [
        (OLD, Error.REBALANCE_IN_PROGRESS, "c-1"),
        (NEW, Error.REBALANCE_IN_PROGRESS, "c-1"),
        (NEW, Error.ILLEGAL_GENERATION, "c-1"),
        (OVERLAP, Error.ILLEGAL_GENERATION, ""),
        (NEW, Error.UNKNOWN_MEMBER_ID, ""),
        (NEW, Error.NOT_COORDINATOR, "c-1"),
    ],
)
def test_k20_a_refused_sync_means_joining_again(release, error, member_id):
    client = joined(release)
    assert client.answered(SyncAnswer(error), 200) == []
    assert client.state is MemberState.UNJOINED
    (join,) = client.poll(1_000)
    assert join.member_id == member_id


@pytest.mark.claims("K20")
def test_k20_a_fenced_sync_is_fatal():
    client = joined(NEW, group_instance_id="i")
    client.answered(SyncAnswer(Error.FENCED_INSTANCE_ID), 200)
    assert client.failed is Error.FENCED_INSTANCE_ID


@pytest.mark.claims("K21")
def test_k21_an_answer_that_comes_after_the_client_has_left_is_ignored():
    client = stable(NEW)
    client.tick(400_000)
    assert client.state is MemberState.UNJOINED
    assert client.answered(JoinAnswer(Error.NONE, "c-1", 2, "c-1", "consumer", "range"), 400_001) == []
    assert client.answered(SyncAnswer(Error.NONE, assignment=b"Q"), 400_002) == []
    assert client.assignment is None


def test_other_answers_are_none_of_its_business():
    assert stable(NEW).answered(CommitAnswer(Error.NONE), 300) == []


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
