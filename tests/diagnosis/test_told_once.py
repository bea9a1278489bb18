"""A client that is refused repeats itself. The fact does not: it is told once for each member, or for each of its generations."""

import json

import pytest
from msgspec import msgpack

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from tests.diagnosis.narrated import CLOSED, REQUESTS, Group, causes, finding, findings, in_any_evidence, where_requests_are_seen
from tests.diagnosis.test_incidents import healthy
from tests.tracker.batching import clocks
from tests.tracker.story import START_MS, Story, play, table


def facts(rows) -> list[str]:
    return [code for code, _ in findings(rows) if code != "MODEL_DIVERGENCE"]


@where_requests_are_seen
def test_a_generation_that_is_over_is_told_once_for_each_that_a_member_sent(evidence):
    group = healthy().rejoins("a").live(90_000)
    late = group["c"]
    for ms in (90_100, 90_200):
        group.at(ms).heartbeat(late.member, 1, Error.ILLEGAL_GENERATION, **late.who())
    group.at(90_300).heartbeat(late.member, 0, Error.ILLEGAL_GENERATION, **late.who())
    rows = group.live(120_000).seen(evidence)
    assert facts(rows) == ["ILLEGAL_GENERATION"] * 2
    told = [row["message"] for row in table(rows, "findings") if row["code"] == "ILLEGAL_GENERATION"]
    assert told[0] == "The coordinator refused HEARTBEAT with generation 1: the group had moved on to generation 2."


@where_requests_are_seen
@pytest.mark.parametrize("kind", [kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT])
def test_what_a_zombie_commits_again_and_again_is_told_once(evidence, kind):
    group = healthy().session_ends("c").live(90_000)
    gone = next(event for event in group.events if event.client_id == "c" and event.kind == kinds.HEARTBEAT)
    for ms in (90_100, 90_200):
        group.at(ms).request(
            kind, gone.member_id, generation=1, error_code=Error.UNKNOWN_MEMBER_ID, client_id="c", connection=gone.connection
        )
    rows = group.live(120_000).seen(evidence)
    assert facts(rows) == ["SESSION_TIMEOUT", "ZOMBIE_COMMIT"]
    assert json.loads(finding(rows, "ZOMBIE_COMMIT")["details"])["removed"] == "SESSION_TIMEOUT"


@where_requests_are_seen
def test_a_heartbeat_without_an_id_is_that_of_the_member_which_its_connection_had(evidence):
    """librdkafka has given its id up, and heartbeats once more: the connection tells who it is."""
    group = healthy()
    gone = group["c"]
    group.session_ends("c").live(80_000)
    group.at(80_100).request(kinds.HEARTBEAT, "", generation=1, beats=(0,), error_code=Error.UNKNOWN_MEMBER_ID, **gone.who())
    rows = group.live(120_000).seen(evidence)
    assert facts(rows) == ["SESSION_TIMEOUT", "UNKNOWN_MEMBER"]
    told = finding(rows, "UNKNOWN_MEMBER")
    assert (told["member_id"], json.loads(told["details"])["removed"]) == (gone.member, "SESSION_TIMEOUT")


@where_requests_are_seen
def test_one_without_an_id_on_a_connection_that_nobody_had_is_nobodys(evidence):
    group = healthy()
    group.at(60_100).request(kinds.HEARTBEAT, "", generation=1, beats=(0,), error_code=Error.UNKNOWN_MEMBER_ID, connection="x")
    assert facts(group.live(90_000).seen(evidence)) == []


def test_a_broker_that_answers_for_the_group_of_another_is_told_once():
    """node 1 is named again and again, and node 2 goes on answering."""
    named = [
        Event(
            "broker-2", "request", "broker-2/request.log", 1_000 + number, START_MS + ms, START_MS + ms - 1,
            kinds.FIND_COORDINATOR, "orders", coordinator_id=1, coordinator_address="10.0.0.1:9092",
        )
        for number, ms in enumerate((0, 30_000, 60_000, 90_000))
    ]  # fmt: skip
    story = Story(broker="broker-2").at(5_000).log(kinds.MEMBER_ADDED, member_id="a-1", coordinator_id=2)
    told = [*named, *story.beats(["a-1"], 1, 10_000, 100_000).events]
    assert [row["code"] for row in table(play([[*told, *clocks(told)]]), "findings")] == ["MODEL_DIVERGENCE"]


# after a move


@in_any_evidence
def test_whoever_closes_after_a_move_has_closed(evidence):
    """Not everything that happens within a minute of a move is its doing."""
    rows = healthy().moves("broker-2").live(75_000).leaves("c", CLOSED).live(120_000).seen(evidence)
    assert causes(rows) == ["MEMBER_LEFT"]


# two troubles


def test_trouble_that_was_over_when_the_session_ended_is_not_what_ended_it():
    """A heartbeat waits at 60 s. b, with a session of 70 s, is not heard any more; before that ends, the broker loses another one."""
    group = Group("a", "b", session_ms=70_000).live(60_000)
    group.at(60_100).heartbeat(group["b"].member, 1, took=0, **group["b"].who())
    group.at(60_200).request(kinds.HEARTBEAT, group["a"].member, took=2_500, generation=1, beats=(0,), **group["a"].who())
    election = [group.elected(4, 125_000).events.pop()]
    group.dies("b").live(130_100).expires("b").comes("b").live(200_000)
    rows = play([[*group.evidence(REQUESTS), *election]])
    assert findings(rows) == [("COORDINATOR_MOVED", "")]
    told = finding(rows, "COORDINATOR_MOVED")
    assert (told["occurred_at"] > 120_000, len(json.loads(told["details"])["members_lost"])) == (True, 1)
    proof = [(ref["source"], ref["position"]) for ref in json.loads(told["evidence"])]
    assert proof[0] == ("coordinator", election[0].position)  # the election; then what was heard last of the member
    assert [source for source, _ in proof[1:]] == ["request"]


def test_of_a_long_trouble_the_first_signs_are_proof_enough():
    """Every heartbeat waits, for half a minute."""
    group = healthy()
    for ms in range(60_100, 90_000, 1_000):
        group.at(ms + 2_500).request(kinds.HEARTBEAT, group["b"].member, took=2_500, generation=1, beats=(0,), **group["b"].who())
    rows = group.session_ends("c").comes("c").live(200_000).seen(REQUESTS)
    proof = json.loads(finding(rows, "COORDINATOR_MOVED")["evidence"])
    slow = [event.position for event in group.events if event.at_ms - event.received_ms == 2_500]
    assert [line["position"] for line in proof] == slow[:8]


def test_an_election_that_was_stored_before_its_line_was_kept_still_counts():
    """State of a release whose clocks had four fields."""
    group = Group("a", "b").live(60_000).session_ends("b").elected(4, 65_000).comes("b").live(200_000)
    cut = START_MS + 66_000
    early, late = ([event for event in group.events if (event.at_ms <= cut) == first] for first in (True, False))
    shard = Shard()
    rows = shard.observe([*early, *clocks(early)])
    version, (brokers, *rest) = msgpack.decode(shard.encode())
    old = msgpack.encode((version, [{broker: clock[:4] for broker, clock in brokers.items()}, *rest]))
    rows += play([[*late, *clocks(late)]], shard=Shard.decode(old))
    told = finding(rows, "COORDINATOR_MOVED")
    assert len(json.loads(told["details"])["members_lost"]) == 1
    kept = finding(play([[*group.events, *clocks(group.events)]]), "COORDINATOR_MOVED")
    assert len(json.loads(kept["evidence"])) == len(json.loads(told["evidence"])) + 1


def test_a_member_that_is_lost_before_its_first_heartbeat_was_heard_last_in_its_sync():
    """It joins, gets its assignment, and its broker loses another one."""
    group = Group("a", "b")
    (sync,) = [event.position for event in group.events if event.kind == kinds.SYNC_GROUP and event.member_id == group["b"].member]
    election = [group.elected(4, 5_000).events.pop()]
    group.dies("b").live(13_100).expires("b").comes("b").live(60_000)
    rows = play([[*group.evidence(REQUESTS), *election]])
    assert findings(rows) == [("COORDINATOR_MOVED", "")]
    told = finding(rows, "COORDINATOR_MOVED")
    assert len(json.loads(told["details"])["members_lost"]) == 1
    assert [line["position"] for line in json.loads(told["evidence"]) if line["source"] == "request"] == [sync]
