"""How the client joins, polls and leaves: the claims K06 to K08 and K15 to K21, which tests hold."""

from copy import copy

import pytest

from coordinator_model.clients.client import MemberState
from coordinator_model.clients.client_version import ClientVersion
from coordinator_model.errors import Error
from coordinator_model.specification import requests
from tests.clients.client_steps import ALL, NEW, OLD, OVERLAP, SINCE_THREAD, THREAD, beat, beats_until, joined, new_client, stable


@pytest.mark.claims("K06")
@pytest.mark.parametrize(
    ("release", "session_ms"), [("0.9.0.1", 30_000), (OLD, 30_000), (THREAD, 10_000), ("2.8.2", 10_000), ("3.0.0", 45_000), (NEW, 45_000)]
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
    assert client.tick(over_ms) == [requests.LeaveGroup((requests.LeavingMember("c-1"),))]
    assert (client.state, client.member_id, client.generation) == (MemberState.UNJOINED, "", -1)
    assert isinstance(client.poll(400_000)[0], requests.JoinGroup)


@pytest.mark.claims("K07")
@pytest.mark.parametrize(("release", "after_ms"), [(THREAD, 200), ("2.6.0", 200), (OVERLAP, 100), (NEW, 100)])
def test_k07_the_limit_begins_with_the_heartbeats(release, after_ms):
    client = stable(release, max_poll_interval_ms=2_000)
    assert client.next_tick_ms() == after_ms + 2_000 + (release == THREAD)


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
        assert later.close(found_ms) == [requests.LeaveGroup((requests.LeavingMember("c-1"),))]


@pytest.mark.claims("K15", "B12", "B13")
@pytest.mark.parametrize("release", ALL)
def test_k15_the_leader_assigns(release):
    client = new_client(release)
    client.poll(0)
    members = (requests.JoinedMember("c-1", None, b""), requests.JoinedMember("d-1", None, b""))
    protocol_type = "consumer" if release == NEW else None
    (sync,) = client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 1, "c-1", protocol_type, "range", members=members), 5)
    assert sync.assignments == (("c-1", b"P"), ("d-1", b"P"))
    assert sync.protocol == ("range" if release == NEW else None)
    assert (joined(release).state, joined(release).assignment) == (MemberState.COMPLETING_REBALANCE, None)


@pytest.mark.claims("K15")
def test_k15_a_leader_that_shall_skip_the_assignment_sends_none():
    client = new_client(NEW, group_instance_id="i")
    client.poll(0)
    members = (requests.JoinedMember("i-1", "i", b""),)
    answer = requests.JoinAnswer(Error.NONE, "i-1", 1, "i-1", "consumer", "range", skip_assignment=True, members=members)
    assert client.take_answer(answer, 5)[0].assignments == ()


@pytest.mark.claims("K17")
@pytest.mark.parametrize(
    "error", [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS, Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE]
)
def test_k17_a_coordinator_that_is_loading_is_asked_again_later(error):
    client = new_client(NEW)
    client.poll(0)
    assert client.take_answer(requests.JoinAnswer(error, ""), 10) == []
    assert client.poll(109) == []
    assert isinstance(client.poll(110)[0], requests.JoinGroup)


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
    assert client.take_answer(requests.JoinAnswer(error, ""), 10) == []
    assert client.failed is error
    assert client.poll(60_000) == []


@pytest.mark.claims("K19", "A38")
def test_k19_the_id_that_is_required():
    client = new_client(NEW)
    (first,) = client.poll(0)
    (second,) = client.take_answer(requests.JoinAnswer(Error.MEMBER_ID_REQUIRED, "c-7"), 10)
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
    assert client.take_answer(requests.SyncAnswer(error), 200) == []
    assert client.state is MemberState.UNJOINED
    (join,) = client.poll(1_000)
    assert join.member_id == member_id


@pytest.mark.claims("K20")
def test_k20_a_fenced_sync_is_fatal():
    client = joined(NEW, group_instance_id="i")
    client.take_answer(requests.SyncAnswer(Error.FENCED_INSTANCE_ID), 200)
    assert client.failed is Error.FENCED_INSTANCE_ID


@pytest.mark.claims("K21")
def test_k21_an_answer_that_comes_after_the_client_has_left_is_ignored():
    client = stable(NEW)
    beats_until(client, 300_100)
    client.tick(300_100)
    assert client.state is MemberState.UNJOINED
    assert client.take_answer(requests.JoinAnswer(Error.NONE, "c-1", 2, "c-1", "consumer", "range"), 300_101) == []
    assert client.take_answer(requests.SyncAnswer(Error.NONE, assignment=b"Q"), 300_102) == []
    assert client.assignment is None


def test_other_answers_are_none_of_its_business():
    assert stable(NEW).take_answer(requests.CommitAnswer(Error.NONE), 300) == []


@pytest.mark.parametrize(
    ("release", "version"), [(OLD, 0), (THREAD, 1), ("0.11.0.3", 2), ("2.0.1", 3), ("2.2.2", 4), ("2.3.1", 5), (NEW, 9)]
)
def test_join_versions(release, version):
    (join,) = new_client(release).poll(0)
    assert join.api_version == version
