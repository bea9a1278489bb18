"""What findings advise: the setting by its name, and the value that the evidence supports."""

import json
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import MemberEntry, Protocol
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from tests.diagnosis.narrated import (
    BOTH,
    CLOSED,
    LOG,
    REQUESTS,
    STALLED,
    Group,
    finding,
    findings,
    in_any_evidence,
    where_requests_are_seen,
    where_the_log_is_seen,
)
from tests.diagnosis.test_bursts import crash_loop, restarted, stable
from tests.diagnosis.test_refusals import asks, refused
from tests.tracker.story import table


def told(rows: list[Row], code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The one finding with this code, and its details."""
    row = finding(rows, code)
    return row, json.loads(row["details"])


# members that were lost


@where_requests_are_seen
def test_a_session_timeout_names_the_setting_and_what_was_usual(evidence: str) -> None:
    row, details = told(Group("a", "b").live(60_000).session_ends("b").live(120_000).seen(evidence), "SESSION_TIMEOUT")
    assert "Raise session.timeout.ms (now 10 s) above the longest pause to tolerate." in row["advice"]
    assert (details["session_timeout_ms"], details["longest_gap_before_ms"]) == (10_000, 3_000)


def test_what_the_coordinator_log_does_not_tell_is_not_said() -> None:
    row, details = told(Group("a", "b").live(60_000).session_ends("b").live(120_000).seen(LOG), "SESSION_TIMEOUT")
    assert "Raise session.timeout.ms above the longest pause to tolerate." in row["advice"]
    assert details == {"longest_gap_before_ms": None, "session_timeout_ms": None, "silent_ms": None}


@where_requests_are_seen
@pytest.mark.parametrize("words", ["", STALLED])
def test_the_longest_gap_between_polls_stands_beside_the_limit(evidence: str, words: str) -> None:
    """c stalls for its 30 s, leaves at 60 s, and polls again 12 s later: librdkafka, which gives no reason, and Java, which does."""
    group = Group("a", "b", "c").live(60_000).leaves("c", words).live(72_002)
    row, details = told(group.comes_back("c").live(120_000).seen(evidence), "POLL_TIMEOUT")
    assert row["message"].endswith("did not call poll() for about 42 s (max.poll.interval.ms is 30 s).")
    assert "Raise max.poll.interval.ms (now 30 s) above 42 s" in row["advice"]
    assert "max.poll.records below 71 %" in row["advice"]
    assert (details["max_poll_interval_ms"], details["poll_gap_ms"], row["occurred_at"]) == (30_000, 42_000, 60_000)
    assert len(json.loads(row["evidence"])) >= 2


@where_requests_are_seen
def test_a_stall_whose_end_is_not_seen_is_told_with_its_limit(evidence: str) -> None:
    group = Group("a", "b", "c").live(60_000).leaves("c", STALLED).live(88_000)
    told_by_then = table(Shard().observe(group.evidence(evidence)), "findings")
    assert told_by_then == []  # it may still come back
    rows = group.live(120_000).seen(evidence)
    row, details = told(rows, "POLL_TIMEOUT")
    assert "max.poll.interval.ms (now 30 s) above the longest processing time" in row["advice"]
    assert (row["occurred_at"], details) == (60_000, {"max_poll_interval_ms": 30_000})
    assert [code for code, _ in findings(Shard().observe(group.evidence(evidence)))] == ["POLL_TIMEOUT"]


def test_a_stall_that_only_the_coordinator_log_shows_is_told_at_once() -> None:
    group = Group("a", "b", "c").live(60_000).leaves("c", STALLED).live(68_000)
    row = finding(Shard().observe(group.evidence(LOG)), "POLL_TIMEOUT")
    assert "raise max.poll.interval.ms above the longest processing time" in row["advice"]


def test_a_state_that_holds_a_stall_is_kept() -> None:
    group = Group("a", "b", "c").live(60_000).leaves("c", STALLED).live(72_002).comes_back("c").live(120_000)
    whole = group.seen()
    shard = Shard()
    rows = []
    for event in sorted(group.evidence(), key=lambda event: event.at_ms):
        rows += shard.observe([event])
        shard = Shard.decode(shard.encode())
    assert [row for row in rows if row.values.get("code") == "POLL_TIMEOUT"] == [
        row for row in whole if row.values.get("code") == "POLL_TIMEOUT"
    ]


@where_requests_are_seen
def test_a_zombie_that_was_paused_is_told_for_how_long(evidence: str) -> None:
    """b freezes at 60 s, loses its session at 70 s, and thaws at 85 s."""
    group = Group("a", "b").live(60_000)
    old = group["b"]
    group.session_ends("b").live(85_000)
    group.at(85_001).heartbeat(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    group.at(85_003).commit(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    rows = group.live(120_000).seen(evidence)
    row, details = told(rows, "UNKNOWN_MEMBER")
    assert "The coordinator refused HEARTBEAT: the group had removed the member 15 s before (SESSION_TIMEOUT)." in row["message"]
    assert "The process was silent for 25 s" in row["advice"]
    assert "session.timeout.ms (now 10 s) above 25 s" in row["advice"]
    assert (details["removed"], details["removed_ms_ago"]) == ("SESSION_TIMEOUT", 15_000)
    assert "session.timeout.ms (now 10 s) above 25 s" in told(rows, "ZOMBIE_COMMIT")[0]["advice"]
    assert all(len(json.loads(found["evidence"])) == 2 for found in table(rows, "findings") if found["code"] != "SESSION_TIMEOUT")


@where_requests_are_seen
def test_a_zombie_that_did_not_rejoin_in_time_is_told_how_late_it_was(evidence: str) -> None:
    group = Group("a", "b", session_ms=45_000).live(60_000)
    late = group["b"]
    for ms in range(63_000, 90_000, 3_000):
        group.at(ms).heartbeat(late.member, 1, Error.REBALANCE_IN_PROGRESS, **late.who())
    group.is_at(60_000).comes("c", absent=["b"]).live(90_011)
    group.at(90_100).heartbeat(late.member, 1, Error.UNKNOWN_MEMBER_ID, **late.who())
    row, _ = told(group.live(150_000).seen(evidence), "UNKNOWN_MEMBER")
    assert (
        "continued, but it did not rejoin within max.poll.interval.ms (now 30 s) after the rebalance began: shorten its work"
        in row["advice"]
    )


@where_requests_are_seen
def test_a_zombie_that_froze_in_a_join_phase_is_told_that_it_paused(evidence: str) -> None:
    group = Group("a", "b", session_ms=45_000).live(60_000)
    late = group["b"]
    group.comes("c", absent=["b"]).live(99_999)
    group.at(100_000).heartbeat(late.member, 1, Error.UNKNOWN_MEMBER_ID, **late.who())
    row, _ = told(group.live(150_000).seen(evidence), "UNKNOWN_MEMBER")
    looks = "Check its log and its host (SIGKILL, out of memory, long JVM or container pause, CPU limit, network) from 08:"
    assert looks in row["advice"]
    assert not {"session.timeout.ms", "max.poll"} & set(row["advice"].replace(",", " ").split())


@where_requests_are_seen
def test_a_zombie_that_had_left_stalled_or_runs_on(evidence: str) -> None:
    group = Group("a", "b").live(60_000)
    old = group["b"]
    group.leaves("b", CLOSED).live(80_000)
    group.at(80_001).commit(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    assert "max.poll.interval.ms (now 30 s)" in told(group.live(120_000).seen(evidence), "ZOMBIE_COMMIT")[0]["advice"]


def test_a_zombie_of_which_nothing_is_known() -> None:
    group = Group("a").live(60_000)
    group.at(60_001).heartbeat("b-00000009-0000-4000-8000-000000000009", 1, Error.UNKNOWN_MEMBER_ID)
    assert "The log does not show when and why" in told(group.live(90_000).seen(), "UNKNOWN_MEMBER")[0]["advice"]


@where_requests_are_seen
def test_an_old_generation_names_the_time_that_a_member_has_to_rejoin(evidence: str) -> None:
    group = Group("a", "b").live(60_000).comes("c")
    group.at(61_000).heartbeat(group["a"].member, 1, Error.ILLEGAL_GENERATION, **group["a"].who())
    row, _ = told(group.live(90_000).seen(evidence), "ILLEGAL_GENERATION")
    assert "within max.poll.interval.ms (now 30 s) after the rebalance begins" in row["advice"]


@where_the_log_is_seen
@pytest.mark.parametrize(("leads", "says"), [(True, "Its assignor took too long"), (False, "Its process stopped")])
def test_a_sync_timeout_tells_leaders_from_others(evidence: str, leads: bool, says: str) -> None:  # noqa: FBT001 - a parameter
    group = Group("a", "b", session_ms=45_000).live(60_000).comes("c", syncs=False)
    late = next(c for c in group.running() if (c.member == group.leader) is leads)
    group.at(group.now + 30_000).log(
        kinds.MEMBERS_NOT_SYNCED, members=(MemberEntry(late.member, "", 0, "", None),), generation=group.generation
    )
    row, details = told(group.is_at(group.now + 30_000).live(group.now + 40_000).seen(evidence), "SYNC_TIMEOUT")
    known = evidence == BOTH  # the coordinator log alone names no leader before its assignment came
    assert says in row["advice"] or not known
    assert "max.poll.interval.ms (now 30 s)" in row["advice"] or not known
    assert details["leader"] is leads or not known


@where_requests_are_seen
@pytest.mark.parametrize(("host", "owner"), [("10.0.0.9", "a at 10.0.0.7"), ("10.0.0.7", "a")])
def test_who_holds_a_static_name_is_told(evidence: str, host: str, owner: str) -> None:
    group = Group("a", "b", static=True).live(60_000)
    group.at(60_001).heartbeat("i-a-old", 1, Error.FENCED_INSTANCE_ID, **{**group["a"].who(), "client_id": "other", "client_host": host})
    row, details = told(group.live(90_000).seen(evidence), "FENCED_INSTANCE")
    assert f"Another member ({owner}) joined with group.instance.id i-a and" in row["message"]
    assert details == {"holder": group["a"].member, "instance_id": "i-a"}


@where_requests_are_seen
def test_a_slow_joiner_is_told_its_limit(evidence: str) -> None:
    rows = Group("a", "b", "c", session_ms=45_000).live(60_000).comes("d", asks={"b": 8_000}).live(120_000).seen(evidence)
    assert "the group waits for it, up to max.poll.interval.ms (now 30 s)." in told(rows, "SLOW_JOINER")[0]["advice"]


# clients that may not join


@where_requests_are_seen
def test_what_a_client_offers_and_what_the_group_uses(evidence: str) -> None:
    row, _ = told(refused(Error.INCONSISTENT_GROUP_PROTOCOL, "x").seen(evidence), "INCONSISTENT_PROTOCOL")
    assert "It offers sticky; the group uses range." in row["message"]
    assert "the group's partition.assignment.strategy, range." in row["advice"]


def test_a_group_whose_assignor_is_not_known() -> None:
    group = Group()
    asks(group, 31_000, "x", Error.INCONSISTENT_GROUP_PROTOCOL, protocols=(Protocol("sticky", ("orders",), (), "d"),))
    row, _ = told(group.is_at(60_000).seen(REQUESTS), "INCONSISTENT_PROTOCOL")
    assert row["message"].endswith("It offers sticky.")
    assert "one partition.assignment.strategy with the group" in row["advice"]


@pytest.mark.parametrize(
    ("session_ms", "says"),
    [
        (3_000, "to at least the broker's group.min.session.timeout.ms (6 s unless changed)."),
        (7_200_000, "to at most the broker's group.max.session.timeout.ms (30 min unless changed)."),
        (10_000, "(6 s unless changed) and at most its group.max.session.timeout.ms (30 min unless changed)."),
        (-1, "(6 s unless changed) and at most its group.max.session.timeout.ms (30 min unless changed)."),
    ],
)
def test_the_bound_that_a_session_timeout_breaks(session_ms: int, says: str) -> None:
    row, _ = told(refused(Error.INVALID_SESSION_TIMEOUT, "x", session_timeout_ms=session_ms).seen(), "INVALID_SESSION_TIMEOUT")
    assert row["advice"].endswith(says)


@where_requests_are_seen
@pytest.mark.parametrize(("asking", "wanted"), [(("x", "y"), 4), (("x", "a"), 3), (("a", "b"), 3)])
def test_how_large_a_group_is_that_is_too_large(evidence: str, asking: tuple[str, str], wanted: int) -> None:
    """A client that asks under a new id, while its old one has a place still, wants no second place."""
    rows = refused(Error.GROUP_MAX_SIZE_REACHED, *asking).seen(evidence)
    first, second = (row for row in table(rows, "findings") if row["code"] == "GROUP_TOO_LARGE")
    assert first["message"].endswith("the group is full, at group.max.size 2 (GROUP_MAX_SIZE_REACHED).")
    assert second["message"].endswith("2 clients have been refused.")
    assert second["advice"] == f"Run no more consumers than group.max.size allows, or raise it on the brokers to {wanted} or more."
    details = json.loads(second["details"])
    assert (details["group_max_size"], details["refused_clients"], details["wanted"]) == (2, 2, wanted)


# many rebalances, one fact


@where_requests_are_seen
def test_a_rolling_restart_has_its_bill_and_how_long_a_restart_took(evidence: str) -> None:
    rows = restarted(stable(), "a", "b", "c", "d").live(300_000).seen(evidence)
    row, details = told(rows, "ROLLING_RESTART")
    own = [r for r in table(rows, "rebalances") if r["started_at"] >= 120_000]
    assert details["total_ms"] == sum(r["total_ms"] for r in own)
    assert details["unavailable_partition_ms"] == sum(r["unavailable_partition_ms"] for r in own) > 0
    assert details["partitions_moved"] == sum(r["partitions_moved"] for r in own) > 0
    assert 5_000 <= details["longest_restart_ms"] <= 5_500
    assert f"A restart took up to {details['longest_restart_ms'] / 1_000:.1f} s." in row["advice"]
    assert "group.instance.id" in row["advice"]
    assert "of rebalancing" not in row["message"]  # the report has the bill beside it


def test_a_bill_without_assignments_has_no_partitions() -> None:
    row, details = told(restarted(stable(), "a", "b", "c").live(300_000).seen(LOG), "ROLLING_RESTART")
    assert (details["unavailable_partition_ms"], details["partitions_moved"]) == (None, None)
    assert details["total_ms"] > 0
    assert "without an owner" not in row["message"]


def test_a_rolling_restart_right_after_the_group_began_counts_whoever_came_first() -> None:
    rows = restarted(Group("a", "b", "c", "d").live(20_000), "a", "b", "c", "d").live(300_000).seen()
    assert len(told(rows, "ROLLING_RESTART")[1]["restarted"]) == 4


@where_requests_are_seen
def test_a_storm_has_count_span_common_cause_and_bill(evidence: str) -> None:
    rows = crash_loop(stable(), "x", 5).live(400_000).seen(evidence)
    row, details = told(rows, "REBALANCE_STORM")
    assert details["rebalances"] == sum(r["started_at"] > 120_000 + 1_000 for r in table(rows, "rebalances"))
    assert details["common_causes"] == ["MEMBER_LEFT"]
    assert f"mostly MEMBER_LEFT ({details['causes']['MEMBER_LEFT']})" in row["message"]
    assert details["span_ms"] > 0 < details["total_ms"]
    assert "crash loop" in row["advice"]


@where_requests_are_seen
def test_a_storm_of_a_client_that_will_not_stay_asked_is_another_matter(evidence: str) -> None:
    group = stable()
    for _ in range(6):
        group.rejoins("b", "rebalance enforced by user").live(group.now + 10_000)
    row, details = told(group.live(400_000).seen(evidence), "REBALANCE_STORM")
    assert details["common_causes"] == ["MEMBER_REJOINED"]
    assert "enforceRebalance()" in row["advice"]


@in_any_evidence
def test_nobody_is_to_blame_for_topics_that_change(evidence: str) -> None:
    """The leader tells the coordinator of it: it has not created the partitions."""
    group = stable()
    for _ in range(6):
        group.rejoins(group.leader.split("-")[0], "cached metadata has changed").live(group.now + 10_000)
    row, details = told(group.live(400_000).seen(evidence), "REBALANCE_STORM")
    assert (row["client_id"], details["clients"], details["common_causes"]) == (None, [], ["METADATA_CHANGED"])
    assert row["message"].startswith("The group rebalanced 6 times in 50.8 s: METADATA_CHANGED (6).")
    assert row["advice"].startswith("Topics or partitions that the group reads come and go")


@where_requests_are_seen
def test_idle_members_are_told_how_many_there_is_work_for(evidence: str) -> None:
    row, _ = told(Group("a", "b", "c", partitions=2).live(60_000).seen(evidence), "IDLE_MEMBERS")
    assert "Run 2 members, or have at least 3 partitions" in row["advice"]


@where_requests_are_seen
def test_members_that_a_move_cost_their_place_are_told_with_their_timeouts(evidence: str) -> None:
    group = Group("a", "b").live(60_000).moves("broker-2").live(70_000).session_ends("b")
    rows = group.live(200_000).seen(evidence)
    (row,) = [row for row in table(rows, "findings") if row["code"] == "COORDINATOR_MOVED"]
    details = json.loads(row["details"])
    short = "Raise session.timeout.ms (now 10 s): it was too short to survive this."
    assert row["advice"].endswith(short if details["members_lost"] else "up its partitions.")
    assert details["session_timeouts_ms"] == ([10_000] if details["members_lost"] else [])


@where_requests_are_seen
def test_a_late_commit_of_a_member_is_not_called_a_removal(evidence: str) -> None:
    group = Group("a", "b").live(60_000).comes("c").live(61_000)
    group.at(61_001).commit(group["a"].member, 1, Error.ILLEGAL_GENERATION, **group["a"].who())
    row, details = told(group.live(90_000).seen(evidence), "ZOMBIE_COMMIT")
    assert "with generation 1: a rebalance had begun generation 2." in row["message"]
    assert "its commit raced a rebalance" in row["advice"]
    assert (details["removed"], details["sent_generation"], details["group_generation"]) == (None, 1, 2)


@where_requests_are_seen
def test_a_zombie_after_a_move_is_not_told_that_it_paused(evidence: str) -> None:
    group = Group("a", "b").live(60_000)
    old = group["b"]
    group.moves("broker-2", 2_000).dies("b").live(72_600).expires("b").live(90_000)
    group.at(90_001).commit(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    row, _ = told(group.live(200_000).seen(evidence), "ZOMBIE_COMMIT")
    assert "The group had moved to another broker" in row["advice"]
    assert "pause" not in row["advice"]


# the generation in which it happened


@in_any_evidence
def test_a_finding_that_waited_has_the_generation_in_which_it_happened(evidence: str) -> None:
    """The storm is told a minute after its last rebalance, the move a minute after its last sign."""
    group = crash_loop(stable(), "x", 5)
    rows = group.live(400_000).seen(evidence)
    row, _ = told(rows, "REBALANCE_STORM")
    first = next(r for r in table(rows, "rebalances") if r["started_at"] == row["occurred_at"])
    assert row["generation"] == first["generation"] - 1

    group = Group("a", "b").live(60_000).moves("broker-2").comes("c").live(70_000).comes("d").live(200_000)
    assert told(group.seen(evidence), "COORDINATOR_MOVED")[0]["generation"] == 1


def test_a_session_that_only_the_end_of_the_join_phase_shows_ended_in_the_generation_before() -> None:
    group = Group("a", "b").live(60_000).session_ends("b").live(100_000)
    row, _ = told(group.seen("request log"), "SESSION_TIMEOUT")
    assert (row["occurred_at"] < 75_000, row["generation"]) == (True, 1)


@where_requests_are_seen
def test_a_static_member_is_not_advised_to_call_close(evidence: str) -> None:
    """It does not leave when it is closed (KIP-345)."""
    static, dynamic = (
        told(Group("a", "b", static=it).live(60_000).session_ends("b").live(120_000).seen(evidence), "SESSION_TIMEOUT")[0]
        for it in (True, False)
    )
    assert "all close()" not in static["advice"]
    assert "CloseOptions.groupMembershipOperation(LEAVE_GROUP)" in static["advice"]
    assert "Call close() on planned stops" in dynamic["advice"]


@where_requests_are_seen
@pytest.mark.parametrize(
    ("present", "until", "how"), [(True, 60_100, "raced"), (True, 75_000, "old generation"), (False, 75_000, "removal")]
)
def test_a_transactional_producer_is_advised_for_its_transactions(evidence: str, *, present: bool, until: int, how: str) -> None:
    """It commits an old generation for a member that has joined again since, and knows the new one or not, or that was removed."""
    group = Group("a", "b").live(60_000)
    old = group["b"]
    if present:
        group.comes("c").live(until)
        error, generation = Error.ILLEGAL_GENERATION, 1
    else:
        group.session_ends("b").live(until)
        error, generation = Error.UNKNOWN_MEMBER_ID, 1
    who = {**old.who(), "client_id": "b-txn", "connection": "10.0.0.1:9092-10.0.0.7:60000"}
    group.at(group.now).request(kinds.TXN_OFFSET_COMMIT, old.member, generation=generation, error_code=error, **who)
    row, details = told(group.live(150_000).seen(evidence), "ZOMBIE_COMMIT")
    assert details["api"] == "TXN_OFFSET_COMMIT"
    assert how in row["message"] + row["advice"]
    assert "Call consumer.groupMetadata() again in each transaction" in row["advice"]
    assert "onPartitionsRevoked" not in row["advice"]
    assert "idempotent" not in row["advice"]
