"""Rebalances that follow one another closely: a rolling restart, a storm, or neither."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.diagnosis.findings import seconds
from coordinator_model.tracker.shard import Shard
from tests.diagnosis.narrated import Group, causes, finding, findings, in_any_evidence, where_requests_are_seen
from tests.tracker.story import JOINED, Story, table

BURSTS = ("REBALANCE_STORM", "ROLLING_RESTART")


def bursts(rows):
    """Findings about several rebalances, and whom they name."""
    return [(code, client) for code, client in findings(rows) if code in BURSTS]


def restarted(group: Group, *clients: str, every: int = 10_000, leaves: bool = True) -> Group:
    """One after the other is stopped and started again, as another process."""
    for client in clients:
        if leaves:
            group.leaves(client)
        else:
            group.session_ends(client)
        group.live(group.now + every // 2).comes(client).live(group.now + every // 2)
    return group


def crash_loop(group: Group, client: str, times: int, every: int = 10_000) -> Group:
    """A consumer comes, and ends a moment later: each time two rebalances."""
    for _ in range(times):
        group.comes(client).live(group.now + every // 2).leaves(client).live(group.now + every // 2)
    return group


def stable(*clients: str) -> Group:
    """A group that has been quiet for two minutes."""
    return Group(*(clients or ("a", "b", "c", "d"))).live(120_000)


# rolling restarts


@in_any_evidence
def test_a_rolling_restart_is_one_act(evidence):
    rows = restarted(stable(), "a", "b", "c", "d").live(300_000).seen(evidence)
    assert bursts(rows) == [("ROLLING_RESTART", "")]
    told = finding(rows, "ROLLING_RESTART")
    details = json.loads(told["details"])
    assert (len(details["restarted"]), details["rebalances"]) == (4, 8)
    assert (told["occurred_at"], details["span_ms"] > 35_000) == (120_000, True)
    assert told["message"].startswith("4 members restarted one after another: 8 rebalances")


@in_any_evidence
def test_three_are_a_rolling_restart_and_two_are_not(evidence):
    assert bursts(restarted(stable(), "a", "b", "c").live(300_000).seen(evidence)) == [("ROLLING_RESTART", "")]
    assert bursts(restarted(stable(), "a", "b").live(300_000).seen(evidence)) == []


@in_any_evidence
def test_consumers_that_are_killed_and_started_again_are_a_rolling_restart_too(evidence):
    rows = restarted(stable(), "a", "b", "c", every=4_000, leaves=False).live(300_000).seen(evidence)
    assert bursts(rows) == [("ROLLING_RESTART", "")]
    assert [code for code, _ in findings(rows)].count("SESSION_TIMEOUT") == 3


@in_any_evidence
def test_restarts_a_quarter_of_an_hour_apart_are_not_one_act(evidence):
    rows = restarted(stable(), "a", "b", "c", "d", every=150_000).live(900_000).seen(evidence)
    assert bursts(rows) == []


@in_any_evidence
def test_what_joined_before_the_first_restart_is_no_part_of_it(evidence):
    """A scale-out right before: the restart begins with the first that leaves."""
    group = stable().comes("e").live(130_000)
    rows = restarted(group, "a", "b", "c").live(300_000).seen(evidence)
    assert bursts(rows) == [("ROLLING_RESTART", "")]
    assert finding(rows, "ROLLING_RESTART")["occurred_at"] == 130_000


@in_any_evidence
def test_what_joins_after_the_last_restart_is_no_part_of_it(evidence):
    group = restarted(stable(), "a", "b", "c").comes("e")
    assert json.loads(finding(group.live(300_000).seen(evidence), "ROLLING_RESTART")["details"])["rebalances"] == 6


@in_any_evidence
def test_the_first_rebalance_of_the_group_is_no_part_of_it(evidence):
    rows = restarted(Group("a", "b", "c").live(20_000), "a", "b", "c").live(300_000).seen(evidence)
    assert bursts(rows) == [("ROLLING_RESTART", "")] or not bursts(rows)


# neither


@in_any_evidence
def test_a_scale_out_of_five_is_no_storm(evidence):
    group = stable()
    for client in ("e", "f", "g", "h", "i"):
        group.comes(client).live(group.now + 10_000)
    assert bursts(group.live(300_000).seen(evidence)) == []


@in_any_evidence
def test_a_scale_in_of_four_is_no_storm(evidence):
    group = Group("a", "b", "c", "d", "e").live(120_000)
    for client in ("b", "c", "d", "e"):
        group.leaves(client).live(group.now + 10_000)
    assert bursts(group.live(300_000).seen(evidence)) == []


@where_requests_are_seen
def test_the_second_rounds_of_a_cooperative_scale_out_are_no_storm(evidence):
    """Each newcomer costs two rebalances, the second one by the leader: partitions are given up first, then given away."""
    group = stable("a", "b")
    group["a"].owned, group["b"].owned = ("orders-0", "orders-2", "orders-4"), ("orders-1", "orders-3", "orders-5")
    for number, client in enumerate(("c", "d", "e", "f", "g", "h")):
        kept = tuple(group["a"].owned[: 2 if number % 2 else 3])
        group.comes(client, gives={"a": kept[:-1], "b": group["b"].owned, client: ()})
        group["a"].owned = kept[:-1]
        group.live(group.now + 300).rejoins("a", gives={"a": kept[:-1], "b": group["b"].owned, client: kept[-1:]})
        group["a"].owned = ("orders-0", "orders-2", "orders-4")
        group.live(group.now + 9_000)
    rows = group.live(300_000).seen(evidence)
    assert causes(rows) == ["MEMBER_JOINED", "REVOCATION_FOLLOW_UP"] * 6
    assert bursts(rows) == []


# storms


@in_any_evidence
def test_a_client_that_comes_and_goes_is_a_storm(evidence):
    rows = crash_loop(stable(), "x", 4).live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "x")]
    told = finding(rows, "REBALANCE_STORM")
    details = json.loads(told["details"])
    # That it came is not yet a storm: it begins with the first time that it goes.
    assert (told["occurred_at"], details["rebalances"], details["by_culprit"]) == (125_151, 7, 7)
    assert details["causes"] == {"MEMBER_JOINED": 3, "MEMBER_LEFT": 4}
    assert "mostly MEMBER_LEFT (4)" in told["message"]
    assert "The group rebalanced 7 times in 30.9 s; x began all of them: " in told["message"]


@in_any_evidence
def test_four_rebalances_of_one_client_are_not_yet_a_storm(evidence):
    assert bursts(crash_loop(stable(), "x", 2).live(300_000).seen(evidence)) == []


@in_any_evidence
def test_the_first_join_does_not_count_towards_a_storm(evidence):
    """Joined, left, joined, left, joined: the four after the first are no storm, with the fifth they are."""
    group = crash_loop(stable(), "x", 2).comes("x")
    assert bursts(group.live(300_000).seen(evidence)) == []
    assert bursts(crash_loop(stable(), "x", 3).live(300_000).seen(evidence)) == [("REBALANCE_STORM", "x")]


@in_any_evidence
def test_causes_that_are_equally_common_are_both_named(evidence):
    group = stable().leaves("d").live(125_000)
    for _ in range(3):
        group.comes("d").live(group.now + 5_000).leaves("d").live(group.now + 5_000)
    group.comes("d")
    told = finding(group.live(300_000).seen(evidence), "REBALANCE_STORM")
    assert ": MEMBER_JOINED (4) and MEMBER_LEFT (4)" in told["message"]
    assert json.loads(told["details"])["common_causes"] == ["MEMBER_JOINED", "MEMBER_LEFT"]


@in_any_evidence
def test_a_client_whose_poll_loop_stalls_again_and_again_is_a_storm_from_its_first_departure(evidence):
    group = stable()
    for _ in range(3):
        group.leaves("d", "consumer poll timeout has expired.").live(group.now + 5_000)
        group.comes("d").live(group.now + 5_000)
    rows = group.live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "d")]
    assert finding(rows, "REBALANCE_STORM")["occurred_at"] == 120_000


@in_any_evidence
def test_others_that_come_meanwhile_do_not_hide_the_storm(evidence):
    group = crash_loop(stable(), "x", 2)
    group.comes("e").live(group.now + 5_000)
    rows = crash_loop(group, "x", 2).live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "x")]


@in_any_evidence
@pytest.mark.parametrize(("times", "told"), [(2, []), (3, [("REBALANCE_STORM", "x")])])
def test_a_restart_minutes_before_is_no_part_of_a_storm(evidence, times, told):
    """Others are restarted in between, so that the group is never quiet for a minute."""
    group = crash_loop(stable(), "x", 1).live(170_000)
    for client in ("a", "b"):
        group = restarted(group, client).live(group.now + 40_000)
    rows = crash_loop(group, "x", times).live(600_000).seen(evidence)
    assert bursts(rows) == told
    assert not told or json.loads(finding(rows, "REBALANCE_STORM")["details"])["clients"] == ["x"]


@in_any_evidence
def test_a_storm_that_does_not_end_is_told_after_ten_minutes_and_again(evidence):
    rows = crash_loop(stable(), "x", 50, every=16_000).live(1_200_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "x")] * 2
    first, second = sorted(table(rows, "findings"), key=lambda row: row["occurred_at"])
    assert json.loads(first["details"])["span_ms"] <= 600_000
    assert second["occurred_at"] >= first["occurred_at"] + json.loads(first["details"])["span_ms"]


@in_any_evidence
@pytest.mark.parametrize(("pause_ms", "storms"), [(50_000, 1), (62_000, 0)])
def test_a_minute_without_a_rebalance_ends_a_burst(evidence, pause_ms, storms):
    group = crash_loop(stable(), "x", 2)
    group.live(group.now - 5_000 + pause_ms)
    rows = crash_loop(group, "x", 2).live(500_000).seen(evidence)
    assert len(bursts(rows)) == storms


@in_any_evidence
def test_a_storm_is_told_a_minute_after_it_ended_when_the_broker_is_heard_again(evidence):
    """Not when the group happens to rebalance next: that may be in a month."""
    group = crash_loop(stable(), "x", 4)
    shard = Shard()
    rows = shard.observe(group.evidence(evidence))
    for later in (20, 40, 60, 75):
        rows += shard.observe(group.heard(group.now + 1_000 * later))
    assert bursts(rows) == [("REBALANCE_STORM", "x")]


@in_any_evidence
def test_a_rebalance_that_runs_when_a_quiet_minute_would_end_belongs_to_the_storm(evidence):
    """It began 50 s after the one before, and a keeps it waiting for 20 s."""
    group = crash_loop(stable(), "x", 2)
    group.live(group.now + 45_000).comes("x", asks={"a": 20_000}).live(group.now + 5_000).leaves("x").live(group.now + 5_000)
    rows = crash_loop(group, "x", 1).live(400_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "x")]
    assert json.loads(finding(rows, "REBALANCE_STORM")["details"])["rebalances"] == 7


def test_durations_are_those_of_people():
    shown = {15: "15 ms", 8_000: "8 s", 38_363: "38.4 s", 59_999: "1 min", 60_000: "1 min", 75_548: "1 min 16 s"}
    assert {ms: seconds(ms) for ms in shown} == shown


# whose doing a rebalance is


def of_another_kind(group: Group, **fields: str) -> Group:
    """The JoinGroups of another kind of client: workers of Connect, threads of Streams."""
    group.events = [event._replace(**fields) if event.kind == kinds.JOIN_GROUP else event for event in group.events]
    return group


@where_requests_are_seen
@pytest.mark.parametrize("fields", [{"protocol_type": "connect", "protocol": "sessioned"}, {"protocol": "stream"}, {}])
def test_who_asks_again_because_the_assignor_told_it_to_makes_no_storm(evidence, fields):
    """A connector changes, a scheduled delay is over, tasks move: workers and threads ask again without a reason. Consumers do not."""
    group = stable()
    for _ in range(6):
        group.rejoins("b").live(group.now + 10_000)
    rows = of_another_kind(group.live(300_000), **fields).seen(evidence)
    assert causes(rows) == ["MEMBER_REJOINED"] * 6
    assert bursts(rows) == ([] if fields else [("REBALANCE_STORM", "b")])


@in_any_evidence
@pytest.mark.parametrize(
    ("words", "told"), [("triggered followup rebalance scheduled for 1795682338361", []), ("my reason", [("REBALANCE_STORM", "b")])]
)
def test_what_a_client_says_tells_whether_it_was_told_to_ask_again(evidence, words, told):
    group = stable()
    for _ in range(6):
        group.rejoins("b", words).live(group.now + 10_000)
    rows = of_another_kind(group.live(300_000), protocol="stream").seen(evidence)
    assert bursts(rows) == told


@in_any_evidence
def test_consumers_of_sink_tasks_come_and_go_as_their_workers_rebalance(evidence):
    rows = crash_loop(stable(), "connector-consumer-warehouse-3", 4).live(300_000).seen(evidence)
    assert bursts(rows) == []


@in_any_evidence
def test_a_poll_loop_that_stalls_is_no_restart(evidence):
    group = stable()
    for client in ("a", "b", "c"):
        group.leaves(client, "consumer poll timeout has expired.").live(group.now + 5_000).comes(client).live(group.now + 5_000)
    assert bursts(group.live(300_000).seen(evidence)) == []


@where_requests_are_seen
def test_a_storm_costs_what_its_rebalances_cost_and_tells_the_silence_before_apart(evidence):
    """x is killed four times, each time with two of six partitions, and heard last 10 s before its rebalance, which is over at once."""
    group = stable("a", "b").comes("x").live(125_000)
    for _ in range(4):
        group.session_ends("x").live(group.now + 2_000).comes("x").live(group.now + 3_000)
    rows = group.live(300_000).seen(evidence)
    assert bursts(rows) == [("REBALANCE_STORM", "x")]
    told = json.loads(finding(rows, "REBALANCE_STORM")["details"])
    costs = [row["unavailable_partition_ms"] for row in table(rows, "rebalances") if row["started_at"] >= 125_000]
    assert (told["unavailable_partition_ms"], told["silent_partition_ms"]) == (sum(costs), 4 * 2 * 10_000)


def test_a_storm_tells_for_whom_its_rebalances_waited():
    """x is killed and started again before its session is over: the new member begins the rebalance, the dead one holds it up."""
    story, members = Story(), [f"x-{number:08}-1111-2222-3333-444444444444" for number in range(8)]
    for generation in range(1, 8):
        story.at(7_000 * generation).log_preparing(generation, JOINED.format(members[generation]), members[generation])
        if generation > 1:
            story.at(7_000 * generation + 3_000).log(kinds.MEMBER_FAILED, member_id=members[generation - 1])
        story.log_stabilized(generation + 1, members=2).log_assignment(generation + 1, leader="a-1", members=2)
    told = finding(story.at(300_000).rows(), "REBALANCE_STORM")
    assert " caused all of them: SESSION_TIMEOUT (6)" in told["message"], "they began with a join"
