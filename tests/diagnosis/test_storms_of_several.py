"""Storms that several clients make, in turn or together."""

import json
import re

import pytest

from coordinator_model import events as kinds
from tests.diagnosis.narrated import Group, finding, in_any_evidence, where_the_log_is_seen
from tests.diagnosis.test_bursts import bursts, crash_loop, restarted, stable
from tests.tracker.story import Story, table


@in_any_evidence
def test_clients_that_put_each_other_out_are_one_storm(evidence):
    """Each comes again and again under a new member id, and none leaves."""
    group = stable("a")
    for _ in range(4):
        for client in ("x", "y", "z"):
            group.comes(client).live(group.now + 4_000)
    rows = group.live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "")]
    told = finding(rows, "REBALANCE_STORM")
    details = json.loads(told["details"])
    assert (details["rebalances"], details["by_culprit"], details["clients"]) == (12, 12, ["x", "y", "z"])
    assert "The group rebalanced 12 times in 45." in told["message"]
    assert "; x, y and z began all of them: MEMBER_JOINED (12)" in told["message"]
    assert "a client library that does not keep its member id" in told["advice"]


@in_any_evidence
@pytest.mark.parametrize(("turns", "storms"), [(2, 1), (1, 0)])
def test_that_no_client_comes_often_does_not_make_it_calm(evidence, turns, storms):
    """Five clients come in the place of members that had not left, each once, and once more."""
    clients = ("p", "q", "r", "s", "t")
    group = stable("a")
    for _ in range(turns):
        for client in clients:
            group.comes(client).live(group.now + 4_000)
    rows = group.live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "")] * storms
    if storms:
        told = finding(rows, "REBALANCE_STORM")
        assert told["occurred_at"] == 120_000
        assert json.loads(told["details"])["by_client"] == dict.fromkeys(clients, 2)
        assert "; p, q, r and 2 more began all of them: MEMBER_JOINED (10), each time under a new member id" in told["message"]
        assert told["advice"].startswith("Clients that rejoin under new member ids push each other out.")


@in_any_evidence
def test_two_clients_in_turn_are_one_storm_of_both(evidence):
    group = stable("a")
    for client in ("x", "y") * 4:
        group.comes(client).live(group.now + 4_000)
    rows = group.comes("x").live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "")]
    told = finding(rows, "REBALANCE_STORM")
    assert (told["occurred_at"], json.loads(told["details"])["by_client"]) == (120_000, {"x": 5, "y": 4})


@in_any_evidence
def test_a_client_that_began_half_of_it_is_not_named_alone(evidence):
    """x comes and goes three times; meanwhile others are restarted."""
    group = stable("a", "b", "c", "d", "e")
    for other in ("b", "c", "d"):
        crash_loop(group, "x", 1, every=4_000)
        group.leaves(other).live(group.now + 2_000).comes(other).live(group.now + 2_000)
    rows = group.leaves("e").live(300_000).seen(evidence)
    assert [(code, client) for code, client in bursts(rows) if code == "REBALANCE_STORM"] in ([("REBALANCE_STORM", "")], [])


def alike(group: Group, client: str) -> Group:
    """All members but a have one client.id, as processes have whose client.id is the name of their application."""
    group.events = [
        event._replace(
            client_id=client, **{name: renamed(getattr(event, name), client) for name in ("member_id", "answer_member_id", "reason")}
        )
        if event.client_id != "a"
        else event
        for event in group.events
    ]
    return group


def renamed(text: str, client: str) -> str:
    """The text with this client in front of each uuid."""
    return re.sub(r"\b[b-z](?=-[0-9a-f]{8}-0000)", client, text)


@where_the_log_is_seen
def test_several_processes_with_one_client_id_that_start_or_stop_are_no_storm(evidence):
    """The coordinator's counts show that nobody went when they came."""
    group = stable("a")
    for client in ("b", "c", "d", "e", "f", "g", "h"):
        group.comes(client).live(group.now + 5_000)
    group.live(group.now + 100_000)
    for client in ("b", "c", "d", "e", "f", "g"):
        group.leaves(client).live(group.now + 5_000)
    rows = alike(group.live(600_000), "app").seen(evidence)
    assert [row["client_id"] for row in table(rows, "rebalances")].count("app") >= 13
    assert bursts(rows) == []


def turns(clients: str, count: int, every: int = 9_000) -> Story:
    """A log of Kafka 2.7 and before, which counts no members: one of these clients after the other joins under a new member id."""
    story = Story()
    for number in range(count):
        member = f"{clients[number % len(clients)]}-{number:08x}-0000-4000-8000-000000000000"
        story.at(every * number).log_preparing(100 + number, f"Adding new member {member} with group instanceid None", member)
        story.at(every * number + 20).log(kinds.STABILIZED, generation=101 + number).at(every * number + 25)
        story.log(kinds.ASSIGNMENT_RECEIVED, generation=101 + number)
    return story


@pytest.mark.parametrize(
    ("clients", "count", "told"),
    [
        ("xyz", 12, [("REBALANCE_STORM", "")]),
        ("x", 6, [("REBALANCE_STORM", "x")]),
        ("x", 5, []),
        ("abcdefghijkl", 24, [("REBALANCE_STORM", "")]),
        ("abcdefgh", 16, []),
        ("abcdefghijkl", 12, []),  # all of them start
    ],
)
def test_where_members_are_not_counted_more_of_them_have_to_come_again(clients, count, told):
    assert bursts(turns(clients, count).rows(until=900_000)) == told


def test_a_storm_counts_only_the_time_of_rebalances_that_were_seen_to_end():
    """The lines about the assignments are missing."""
    story = turns("xyz", 12, every=20_000)
    story.events = [event for event in story.events if event.kind != kinds.ASSIGNMENT_RECEIVED]
    (storm,) = [row for row in table(story.rows(until=900_000), "findings") if row["code"] == "REBALANCE_STORM"]
    assert json.loads(storm["details"])["total_ms"] is None


@in_any_evidence
def test_two_rolling_restarts_in_a_row_are_no_storm(evidence):
    group = restarted(stable(), "a", "b", "c", "d", every=6_000)
    rows = restarted(group, "a", "b", "c", "d", every=6_000).live(400_000).seen(evidence)
    assert "REBALANCE_STORM" not in [code for code, _ in bursts(rows)]
