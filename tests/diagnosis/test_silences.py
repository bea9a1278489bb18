"""What kept a client from polling: a process that stood still, or only its poll loop. Heartbeats before and in the gap tell."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.view.rows import Row
from tests.diagnosis.narrated import LOG, STALLED, Group, finding, findings, where_requests_are_seen
from tests.diagnosis.test_joiners import healthy
from tests.tracker.story import EXPIRED, JOINED, START_MS, Story

PAUSE = "Its heartbeats stopped too"
STALL = "Its heartbeats continued: only its poll loop stalled"
EITHER = "Its process, or only its poll loop, stopped."


def without_heartbeats(group: Group, client: str, from_ms: int, to_ms: int) -> Group:
    """The process stood still in that time."""
    silent = range(START_MS + from_ms, START_MS + to_ms)
    member = group[client].member
    group.events = [e for e in group.events if (e.kind, e.member_id) != (kinds.HEARTBEAT, member) or e.received_ms not in silent]
    return group


def advice(rows: list[Row], code: str) -> str:
    return str(finding(rows, code)["advice"])


# a group that waits


@where_requests_are_seen
@pytest.mark.parametrize("heartbeat_first", [False, True])
def test_who_stood_still_and_rejoins_last_is_not_told_to_poll_faster(evidence: str, *, heartbeat_first: bool) -> None:
    """It is silent from 57.5 s. At 70 s everything comes at once."""
    group = healthy().comes("d", asks={"b": 10_000})
    rows = without_heartbeats(group, "b", 60_000, 69_950 if heartbeat_first else 70_000)
    if heartbeat_first:
        group.at(69_990).heartbeat(group["b"].member, 1, Error.REBALANCE_IN_PROGRESS, **group["b"].who())
    rows = group.live(120_000).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "b")]
    assert (PAUSE in advice(rows, "SLOW_JOINER"), "max.poll" in advice(rows, "SLOW_JOINER")) == (True, False)
    assert "its whole process or its network stopped" in advice(rows, "SLOW_JOINER")


@where_requests_are_seen
def test_who_sent_heartbeats_and_rejoins_last_stalled(evidence: str) -> None:
    rows = healthy().comes("d", asks={"b": 10_000}).live(120_000).seen(evidence)
    assert STALL in advice(rows, "SLOW_JOINER")


@where_requests_are_seen
def test_who_falls_silent_once_it_is_called_may_have_stalled(evidence: str) -> None:
    """Some clients send no heartbeat while they wait for their application to finish: nothing shows that the process stood still."""
    group = healthy().comes("d", asks={"b": 10_000})
    rows = without_heartbeats(group, "b", 60_200, 70_000).live(120_000).seen(evidence)
    assert EITHER in advice(rows, "SLOW_JOINER")


@where_requests_are_seen
def test_who_went_on_long_before_it_rejoined_stalled_then(evidence: str) -> None:
    """It is silent until 66 s, and then sends heartbeats for 14 s before it rejoins."""
    group = healthy().comes("d", asks={"b": 20_000})
    rows = without_heartbeats(group, "b", 60_000, 66_000).live(120_000).seen(evidence)
    assert STALL in advice(rows, "SLOW_JOINER")


@where_requests_are_seen
def test_two_that_are_removed_for_different_reasons_are_not_told_either(evidence: str) -> None:
    group = healthy()
    slow = group["c"]
    for ms in range(63_000, 90_000, 3_000):
        group.at(ms).heartbeat(slow.member, 1, Error.REBALANCE_IN_PROGRESS, **slow.who())
    rows = group.is_at(60_000).comes("d", absent=["b", "c"]).live(120_000).seen(evidence)
    assert EITHER in advice(rows, "SLOW_JOINER")


def test_the_coordinator_log_does_not_tell_a_pause_from_a_stall() -> None:
    rows = healthy().comes("d", absent=["c"]).live(120_000).seen(LOG)
    assert EITHER in advice(rows, "SLOW_JOINER")


@where_requests_are_seen
@pytest.mark.parametrize(("committed_ms", "told"), [(59_000, PAUSE), (30_500, EITHER), (None, EITHER)])
def test_a_static_member_falls_silent_by_itself_once_its_limit_has_passed(evidence: str, committed_ms: int | None, told: str) -> None:
    """A client commits while it polls: with 30 s to poll, the heartbeats of one that committed at 59 s would go on until 89 s."""
    group = Group("a", "b", "c", static=True, session_ms=45_000)
    if committed_ms is not None:
        group.live(committed_ms).commits("c")
    rows = group.live(60_000).comes("d", instance="i-d", absent=["c"]).seen(evidence)
    assert told in advice(rows, "SLOW_JOINER")


# a client that says that it was not polled


@where_requests_are_seen
@pytest.mark.parametrize("words", ["", STALLED])
def test_a_process_that_stood_still_says_the_same_as_one_that_was_not_polled(evidence: str, words: str) -> None:
    """c is silent for 20 s, within its session, and leaves as it goes on: its poll timeout has passed. It joins again at once."""
    group = healthy(patience_ms=12_000)
    without_heartbeats(group.live(78_000), "c", 58_000, 78_000)
    group.leaves("c", words).comes_back("c")
    rows = group.live(150_000).seen(evidence)
    told = finding(rows, "POLL_TIMEOUT")
    silent_ms = json.loads(told["details"])["silent_ms"]
    assert "did not call poll() within max.poll.interval.ms (12 s). Its process, or its network, had stopped" in told["message"]
    assert (20_000 < silent_ms < 21_000, PAUSE in told["advice"], "max.poll" in told["advice"]) == (True, True, False)


@where_requests_are_seen
def test_a_process_that_goes_on_may_send_a_heartbeat_before_it_leaves(evidence: str) -> None:
    """librdkafka does. c committed just before it stood still for 20 s."""
    group = healthy(patience_ms=12_000).commits("c")
    frozen = group["c"]
    without_heartbeats(group.live(80_000), "c", 60_001, 79_900)
    group.at(79_950).heartbeat(frozen.member, 1, **frozen.who())
    rows = group.leaves("c").comes("c", connection=frozen.connection).live(150_000).seen(evidence)
    told = finding(rows, "POLL_TIMEOUT")
    assert json.loads(told["details"]) == {"max_poll_interval_ms": 12_000, "silent_ms": 19_950}
    assert (PAUSE in told["advice"], "max.poll" in told["advice"]) == (True, False)


@where_requests_are_seen
def test_one_that_was_silent_long_ago_and_committed_since_stalled(evidence: str) -> None:
    group = healthy(patience_ms=12_000)
    without_heartbeats(group.live(80_000), "c", 60_000, 78_000)
    group.live(90_000).commits("c").live(102_000).leaves("c", STALLED)
    assert "max.poll.records" in advice(group.live(150_000).seen(evidence), "POLL_TIMEOUT")


@where_requests_are_seen
def test_one_that_sends_heartbeats_until_it_leaves_was_not_polled(evidence: str) -> None:
    rows = healthy().leaves("c", STALLED).live(120_000).seen(evidence)
    assert advice(rows, "POLL_TIMEOUT").endswith("above the longest processing time.")


def test_the_coordinator_log_says_what_would_tell() -> None:
    rows = healthy().leaves("c", STALLED).live(120_000).seen(LOG)
    assert advice(rows, "POLL_TIMEOUT").endswith("paused for that long (JVM or container), fix that instead.")


# a static member's poll loop


@where_requests_are_seen
def test_a_static_stall_lasts_from_the_limit_before_the_heartbeats_stopped(evidence: str) -> None:
    """c has 12 s to poll and polls last at 50 s, as it commits. Its heartbeats stop after 61.014 s, its session of 10 s ends, and it polls
    again at 80 s: it had not polled for 30 s, give or take half of a heartbeat interval."""
    group = Group("a", "b", "c", static=True, patience_ms=12_000).live(50_000).commits("c").live(61_000)
    rows = group.session_ends("c").live(80_000).comes_back("c").live(150_000).seen(evidence)
    details = json.loads(finding(rows, "POLL_TIMEOUT")["details"])
    assert (details["max_poll_interval_ms"], 29_500 <= details["poll_gap_ms"] < 29_600) == (12_000, True)


@where_requests_are_seen
def test_a_static_member_whose_heartbeats_stop_too_early_did_not_stall(evidence: str) -> None:
    """It comes back on its connection, as a stalled one does. But it committed at 60 s, and would have sent heartbeats for 12 s more."""
    group = Group("a", "b", "c", static=True, patience_ms=12_000).live(60_000).commits("c").live(61_000)
    rows = group.session_ends("c").live(80_000).comes_back("c").live(150_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


# requests that are refused


@where_requests_are_seen
@pytest.mark.parametrize(("silent", "told"), [(True, PAUSE), (False, "a stalled poll loop or a paused process")])
def test_a_static_member_that_missed_a_rebalance_is_told_whether_it_stood_still(evidence: str, *, silent: bool, told: str) -> None:
    group = Group("a", "b", "c", static=True, session_ms=45_000, patience_ms=20_000).live(59_000).commits("c").live(60_000)
    late = group["c"]
    group.comes("d", instance="i-d", absent=["c"])
    for ms in range(60_500, 80_000, 3_000) if not silent else ():
        group.at(ms).heartbeat(late.member, 1, Error.REBALANCE_IN_PROGRESS, **late.who())
    group.at(80_010).heartbeat(late.member, 1, Error.ILLEGAL_GENERATION, **late.who())
    assert told in advice(group.is_at(120_000).seen(evidence), "ILLEGAL_GENERATION")


# a leader that has the assignment to make


@pytest.mark.parametrize("loses_a_broker", [False, True])
def test_a_leader_that_is_removed_before_it_assigned_is_silent_since_its_answer_and_need_not_have_paused(*, loses_a_broker: bool) -> None:
    """Its JoinGroup waits from 20 s to 28 s. No session runs meanwhile: it ends at 38 s, and the client is refused at 45 s.

    Where its coordinator took partitions of another broker over at 15 s, the leader may have waited for that broker, and stopped nowhere.
    """
    story = Story()
    if loses_a_broker:
        story.at(15_000).add("coordinator", kinds.COORDINATOR_ELECTED, group_id="", generation=2, coordinator_partition=7)
    story.at(0).join("a-1", 1, "a-1", ("a-1",), waited=3_000)
    story.at(5).sync("a-1", 1, {"a-1": ("orders-0",)}).beats(["a-1"], 1, 3_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("b-1"), "b-1")
    story.at(28_000).log_stabilized(2, members=2)
    story.at(28_000).join("a-1", 2, "a-1", ("a-1", "b-1"), waited=8_000).join("b-1", 2, "a-1", waited=8_000)
    story.at(38_000).log(kinds.MEMBER_FAILED, member_id="a-1").log_preparing(2, EXPIRED.format("a-1"), "a-1")
    story.at(45_000).sync("a-1", 2, {"a-1": ("orders-0",)}, error_code=Error.UNKNOWN_MEMBER_ID)
    rows = story.rows()
    told, refused = finding(rows, "SESSION_TIMEOUT"), finding(rows, "UNKNOWN_MEMBER")
    assert [json.loads(row["details"])["silent_ms"] for row in (told, refused)] == [10_000, 16_999]
    assert "no heartbeat for 10 s (session.timeout.ms is 10 s). The group waited for the assignment" in told["message"]
    why = (
        "its assignor may have waited for that broker (the Kafka Streams"
        if loses_a_broker
        else "its assignor took too long (the Kafka Streams"
    )
    assert all(why in row["advice"] and ("SIGKILL" in row["advice"]) is not loses_a_broker for row in (told, refused))
    assert "and it sent nothing for 17 s" in refused["advice"]
