"""Clients that ask to join and may not: told once, however often they ask; and clients that are members no more."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Protocol
from tests.diagnosis.narrated import BOTH, LOG, Group, finding, findings, where_requests_are_seen
from tests.tracker.story import START_MS, play, table

REFUSALS = {
    Error.INCONSISTENT_GROUP_PROTOCOL: "INCONSISTENT_PROTOCOL",
    Error.INVALID_SESSION_TIMEOUT: "INVALID_SESSION_TIMEOUT",
    Error.GROUP_MAX_SIZE_REACHED: "GROUP_TOO_LARGE",
}


def asks(group: Group, ms: int, client: str, error: Error, **fields) -> None:
    """A JoinGroup that is refused."""
    group.at(ms).request(
        kinds.JOIN_GROUP,
        "",
        error_code=error,
        **{
            "session_timeout_ms": 1_000 if error is Error.INVALID_SESSION_TIMEOUT else 10_000,
            "rebalance_timeout_ms": 30_000,
            "api_version": 9,
            "protocol_type": "consumer",
            "protocols": (Protocol("sticky" if error is Error.INCONSISTENT_GROUP_PROTOCOL else "range", ("orders",), (), "digest"),),
            "client_id": client,
            "connection": f"10.0.0.1:9092-10.0.0.8:{ms}",
            **fields,
        },
    )


def refused(error: Error, *clients: str, times: int = 5, **fields) -> Group:
    group = Group("a", "b").live(30_000)
    for number in range(times):
        for place, client in enumerate(clients):
            asks(group, 30_000 + 2_000 * number + 100 * place, client, error, **fields)
    return group.live(60_000)


each_refusal = pytest.mark.parametrize("error", list(REFUSALS))


@where_requests_are_seen
@each_refusal
def test_a_client_that_is_refused_is_told_once_however_often_it_asks(evidence, error):
    rows = refused(error, "x").seen(evidence)
    assert findings(rows) == [(REFUSALS[error], "x")]
    told = finding(rows, REFUSALS[error])
    assert (told["occurred_at"], told["severity"], told["member_id"]) == (30_000, "ERROR", None)
    assert error.name in told["message"]


@where_requests_are_seen
@each_refusal
def test_each_client_is_told(evidence, error):
    assert findings(refused(error, "x", "y").seen(evidence)) == [(REFUSALS[error], "x"), (REFUSALS[error], "y")]


@each_refusal
def test_instances_of_one_client_id_are_told_apart_by_host_and_by_instance(error):
    group = Group("a", "b").live(30_000)
    asks(group, 31_000, "x", error, client_host="10.0.0.8")
    asks(group, 32_000, "x", error, client_host="10.0.0.9")
    asks(group, 33_000, "x", error, client_host="10.0.0.9")
    asks(group, 34_000, "x", error, client_host="10.0.0.9", instance_id="i-x")
    rows = group.live(60_000).seen()
    assert findings(rows) == [(REFUSALS[error], "x")] * 3


@each_refusal
def test_what_a_group_refuses_stands_in_the_request_log_alone(error):
    assert findings(refused(error, "x").seen(LOG)) == []


def test_a_session_timeout_that_is_refused_is_named():
    told = finding(refused(Error.INVALID_SESSION_TIMEOUT, "x").seen(), "INVALID_SESSION_TIMEOUT")
    assert "session.timeout.ms (1 s) is outside" in told["message"]
    limits = {"default_min_ms": 6_000, "default_max_ms": 1_800_000}
    assert json.loads(told["details"]) == {"protocols": ["range"], "session_timeout_ms": 1_000, **limits}


def test_one_that_is_not_known_is_not_named():
    rows = refused(Error.INVALID_SESSION_TIMEOUT, "x", session_timeout_ms=-1).seen()
    told = finding(rows, "INVALID_SESSION_TIMEOUT")
    assert "its session.timeout.ms is outside" in told["message"]
    assert json.loads(told["details"])["session_timeout_ms"] is None


def test_two_different_refusals_of_one_client_are_two_facts():
    group = Group("a", "b").live(30_000)
    asks(group, 31_000, "x", Error.INVALID_SESSION_TIMEOUT)
    asks(group, 32_000, "x", Error.INCONSISTENT_GROUP_PROTOCOL)
    rows = group.live(60_000).seen()
    assert [code for code, _ in findings(rows)] == ["INVALID_SESSION_TIMEOUT", "INCONSISTENT_PROTOCOL"]


def test_being_asked_to_come_again_with_an_id_is_no_refusal():
    """MEMBER_ID_REQUIRED (KIP-394)."""
    group = Group("a", "b").live(30_000)
    group.at(30_500).id_issued("x-1")
    assert findings(group.live(45_000).seen()) == []


def test_a_client_whose_silence_no_line_shows_is_told_to_look_for_it() -> None:
    """The request log begins when its session has ended."""
    group = Group("a", "b").live(60_000)
    old = group["b"]
    group.session_ends("b").live(85_000)
    group.at(85_001).heartbeat(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    since_ms = START_MS + 84_000
    events = [event for event in group.live(120_000).evidence(BOTH) if event.source != "request" or event.received_ms >= since_ms]
    advice = finding(play([events]), "UNKNOWN_MEMBER")["advice"]
    assert advice.endswith(
        "others may have had its partitions by then. Its heartbeats had stopped. Check its log and its host for the time before."
    )


@where_requests_are_seen
def test_a_static_member_may_be_fenced_without_a_second_process(evidence: str) -> None:
    """librdkafka commits while it has no member id: its own name is held by the id that it gave up."""
    group = Group("a", "b", static=True).live(60_000)
    who = group["a"].who()
    group.at(60_001).request(kinds.OFFSET_COMMIT, "", took=1, generation=1, error_code=int(Error.FENCED_INSTANCE_ID), **who)
    row = finding(group.live(90_000).seen(evidence), "FENCED_INSTANCE")
    assert "the client had dropped its id" in row["message"]
    assert "No second process" in row["advice"]


@pytest.mark.parametrize(("generation", "words"), [(1, "the client had dropped its id"), (-1, "Another member joined")])
def test_whoever_names_a_generation_had_been_a_member_though_nothing_shows_who_holds_the_id(generation: int, words: str) -> None:
    """The log of the group's new coordinator alone: no request of the member came before."""
    group = Group("a", "b", static=True).live(60_000)
    who = group["a"].who()
    group.at(60_001).request(kinds.OFFSET_COMMIT, "", generation=generation, error_code=int(Error.FENCED_INSTANCE_ID), **who)
    lines = [event for event in group.live(90_000).evidence(BOTH) if event.received_ms >= START_MS + 60_000]
    assert words in finding(play([lines]), "FENCED_INSTANCE")["message"]


@where_requests_are_seen
def test_three_hundred_refused_clients_are_told_once_each_however_often_they_ask(evidence: str) -> None:
    names = [f"app {number}" for number in range(300)]  # a client id may have a blank
    rows = refused(Error.GROUP_MAX_SIZE_REACHED, *names, times=2).seen(evidence)
    found = [row for row in table(rows, "findings") if row["code"] == "GROUP_TOO_LARGE"]
    assert [row["client_id"] for row in found] == names
    assert found[-1]["message"].endswith("300 clients have been refused.")
