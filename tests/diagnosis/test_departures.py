"""A member leaves without a word: was it closed, or did its poll loop stall? And static members, which do not leave."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.tracker.shard import Shard
from tests.diagnosis.narrated import (
    BOTH,
    CLOSED,
    LOG,
    STALLED,
    Group,
    causes,
    ends,
    finding,
    findings,
    in_any_evidence,
    where_requests_are_seen,
)
from tests.tracker.batching import batches
from tests.tracker.story import Story, play, table


def one_of_three_leaves(words: str = "", *, commits: bool = False) -> Group:
    """c leaves at 30 s; a and b rebalance and live on to 40 s."""
    group = Group("a", "b", "c").live(29_900)
    if commits:
        group.commits("c")
    return group.is_at(30_000).leaves("c", words).live(40_000)


@where_requests_are_seen
def test_librdkafka_comes_back_on_the_same_connection_its_poll_loop_had_stalled(evidence):
    rows = one_of_three_leaves().comes_back("c").live(90_000).seen(evidence)
    assert findings(rows) == [("POLL_TIMEOUT", "c")]
    assert causes(rows) == ["POLL_TIMEOUT", "MEMBER_JOINED"]
    assert ends(rows) == [("c", "POLL_TIMEOUT")]
    assert finding(rows, "POLL_TIMEOUT")["occurred_at"] == 30_000


@where_requests_are_seen
@pytest.mark.parametrize(("after_ms", "kind"), [(10_000, "POLL_TIMEOUT"), (500, "LEFT")])
def test_a_commit_long_after_it_left_shows_that_it_had_not_closed(evidence, after_ms, kind):
    """It is refused, and tells of the same end as the membership."""
    group = Group("a", "b", "c").live(29_900)
    old = group["c"]
    group.is_at(30_000).leaves("c").live(30_000 + after_ms)
    refused = {"generation": 1, "error_code": Error.UNKNOWN_MEMBER_ID, **old.who()}
    group.at(group.now).request(kinds.OFFSET_COMMIT, old.member, **refused)
    rows = group.comes("c", connection=old.connection if after_ms > 1_000 else "another").live(90_000).seen(evidence)
    assert ends(rows)[0] == ("c", kind)
    assert [code for code, _ in findings(rows)] == (["POLL_TIMEOUT", "ZOMBIE_COMMIT"] if kind == "POLL_TIMEOUT" else [])
    if kind == "POLL_TIMEOUT":
        assert "(POLL_TIMEOUT)" in finding(rows, "ZOMBIE_COMMIT")["message"]


@where_requests_are_seen
def test_librdkafka_that_is_closed_comes_back_as_another_process_on_another_connection(evidence):
    rows = one_of_three_leaves().comes("c").live(90_000).seen(evidence)
    assert findings(rows) == []
    assert causes(rows) == ["MEMBER_LEFT", "MEMBER_JOINED"]
    assert ends(rows) == [("c", "LEFT")]


def test_the_coordinator_log_alone_knows_no_connections():
    rows = one_of_three_leaves().comes_back("c").live(90_000).seen(LOG)
    assert (findings(rows), causes(rows), ends(rows)) == ([], ["MEMBER_LEFT", "MEMBER_JOINED"], [("c", "LEFT")])


@where_requests_are_seen
def test_one_that_commits_just_before_it_leaves_has_closed_although_its_connection_is_used_again(evidence):
    """A stalled poll loop cannot commit. A process may close one consumer, and open another on the same connection."""
    rows = one_of_three_leaves(commits=True).comes_back("c").live(90_000).seen(evidence)
    assert (findings(rows), causes(rows), ends(rows)) == ([], ["MEMBER_LEFT", "MEMBER_JOINED"], [("c", "LEFT")])


@where_requests_are_seen
@pytest.mark.parametrize(("after_ms", "cause"), [(29_000, "POLL_TIMEOUT"), (31_000, "MEMBER_LEFT")])
def test_who_has_not_come_back_within_30_s_has_closed(evidence, after_ms, cause):
    rows = one_of_three_leaves().live(30_000 + after_ms).comes_back("c").live(110_000).seen(evidence)
    assert causes(rows) == [cause, "MEMBER_JOINED"]
    assert ends(rows) == [("c", "POLL_TIMEOUT" if cause == "POLL_TIMEOUT" else "LEFT")]


@in_any_evidence
def test_the_input_ends_before_it_is_decided_then_it_has_closed(evidence):
    rows = one_of_three_leaves().seen(evidence)
    assert (findings(rows), causes(rows), ends(rows)) == ([], ["MEMBER_LEFT"], [("c", "LEFT")])


@where_requests_are_seen
def test_nothing_is_told_of_it_before_it_is_decided(evidence):
    """The rebalance waits too: its cause is not known yet. Lines are held for 5 s."""
    group = one_of_three_leaves().live(64_000)
    rows = Shard().observe(group.evidence(evidence))
    assert (len(table(rows, "rebalances")), ends(rows)) == (1, [])
    rows = Shard().observe(group.live(66_000).evidence(evidence))
    assert (causes(rows), ends(rows)) == (["MEMBER_LEFT"], [("c", "LEFT")])


@in_any_evidence
@pytest.mark.parametrize(("words", "cause"), [(CLOSED, "MEMBER_LEFT"), (STALLED, "POLL_TIMEOUT")])
def test_a_java_client_says_why_it_leaves(evidence, words, cause):
    rows = one_of_three_leaves(words).seen(evidence)
    assert causes(rows) == [cause]
    assert findings(rows) == ([("POLL_TIMEOUT", "c")] if cause == "POLL_TIMEOUT" else [])


@where_requests_are_seen
def test_a_client_that_said_that_it_closes_is_believed_although_its_connection_is_used_again(evidence):
    """A Java consumer that unsubscribes leaves, and comes back on its connection when it subscribes again."""
    group = Group("a", "b", "c").live(30_000).leaves("c", "the consumer unsubscribed from all topics").live(40_000)
    rows = group.comes_back("c").live(90_000).seen(evidence)
    assert (findings(rows), causes(rows), ends(rows)) == ([], ["MEMBER_LEFT", "MEMBER_JOINED"], [("c", "LEFT")])


@where_requests_are_seen
def test_a_static_member_that_an_administrator_removed_may_come_back_on_its_connection(evidence):
    group = Group("a", "b", "c", static=True).live(30_000).removed_by_admin("c").live(40_000)
    rows = group.comes_back("c").live(90_000).seen(evidence)
    assert (findings(rows), causes(rows), ends(rows)) == ([], ["ADMIN_REMOVED", "MEMBER_JOINED"], [("c", "ADMIN_REMOVED")])


def test_who_comes_back_decides_for_its_own_connection_only():
    group = Group("a", "b", "c", "d").live(30_000)
    assert group["c"].connection != group["d"].connection
    group.leaves("c").live(31_000).leaves("d").live(40_000)
    rows = group.comes_back("c").live(90_000).seen()
    assert findings(rows) == [("POLL_TIMEOUT", "c")]
    assert causes(rows) == ["POLL_TIMEOUT", "MEMBER_LEFT", "MEMBER_JOINED"]


@where_requests_are_seen
def test_a_static_member_does_not_leave_when_it_is_not_polled_but_comes_back_on_its_connection(evidence):
    group = Group("a", "b", "c", static=True).live(30_000).session_ends("c").live(44_000)
    rows = group.comes_back("c").live(90_000).seen(evidence)
    assert findings(rows) == [("POLL_TIMEOUT", "c")]
    assert finding(rows, "POLL_TIMEOUT")["occurred_at"] == 40_000


@where_requests_are_seen
def test_a_static_member_that_is_restarted_has_another_connection(evidence):
    group = Group("a", "b", "c", static=True).live(30_000).session_ends("c").live(50_000)
    rows = group.comes("c", instance="i-c").live(90_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@where_requests_are_seen
def test_a_static_member_that_was_frozen_is_refused_under_its_old_id_first(evidence):
    group = Group("a", "b", "c", static=True).live(30_000)
    old = group["c"]
    group.session_ends("c").live(44_000)
    group.at(44_000).heartbeat(old.member, 1, Error.UNKNOWN_MEMBER_ID, **old.who())
    rows = group.comes_back("c").live(90_000).seen(evidence)
    assert [code for code, _ in findings(rows)] == ["SESSION_TIMEOUT", "UNKNOWN_MEMBER"]


@where_requests_are_seen
def test_another_instance_on_that_connection_is_not_it(evidence):
    group = Group("a", "b", "c", static=True).live(30_000)
    connection = group["c"].connection
    group.session_ends("c").live(44_000)
    rows = group.comes("d", instance="i-d", connection=connection).live(90_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@pytest.mark.parametrize("count", [1, 3, 20, 100])
def test_what_is_decided_later_does_not_depend_on_batches(count):
    group = one_of_three_leaves().comes_back("c").live(90_000)
    rows = play(batches(group.events, count), snapshot=True)
    assert table(rows, "findings") == table(group.seen(BOTH), "findings")
    assert sorted(causes(rows)) == sorted(causes(group.seen(BOTH)))


# removals, and rebalances that go on


def ends_with_kind(story, member="b-1"):
    """How the membership of a member ended, and the cause and trigger of the rebalance that this began."""
    rows = story.rows(until=120_000)
    (kind,) = [row["end_kind"] for row in table(rows, "member_sessions") if row["member_id"] == member]
    began = next(row for row in table(rows, "rebalances") if row["generation"] == 2)
    changed = next(row for row in table(rows, "group_transitions") if row["occurred_at"] == began["started_at"])
    return kind, began["cause"], changed["trigger"]


@pytest.mark.parametrize(("sender", "kind", "cause"), [("b", "LEFT", "MEMBER_LEFT"), ("ops", "ADMIN_REMOVED", "ADMIN_REMOVED")])
@pytest.mark.parametrize("words", ["", "moved to another site"])
def test_who_sent_the_request_tells_who_removed_the_member(sender, kind, cause, words):
    """The coordinator's line comes first, and does not say who. The member had committed a moment before."""
    story = Story().at(0)
    story.at(50).id_issued("a-1").id_issued("b-1")
    story.at(3_000).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=2_900).join("b-1", 1, "a-1", waited=2_800)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 1, {"b-1": ("t-1",)})
    story.beats(["a-1", "b-1"], 1, 4_000, 15_000).at(14_900).commit("b-1", 1)
    story.at(15_000).log(kinds.MEMBER_LEFT, member_id="b-1", reason=words)
    story.log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(15_001).leave("b-1", words, client_id=sender)
    story.at(16_000).log_stabilized(2, 1).at(16_001).join("a-1", 2, "a-1", ["a-1"], waited=500)
    story.at(16_010).log_assignment(2, "a-1", 1).at(16_011).sync("a-1", 2, {"a-1": ("t-0", "t-1")})
    assert ends_with_kind(story.beats(["a-1"], 2, 17_000, 90_000)) == (kind, cause, cause)


def test_what_began_a_rebalance_that_goes_on_is_told_after_a_while():
    """The leader rejoined and gave no reason. Its request, which may show one, is answered when the phase ends."""
    group = Group("a", "b").live(60_000)
    group.at(60_000).log_preparing(
        1, f"Leader {group['a'].member} re-joining group during Stable; client reason: not provided", group["a"].member
    )
    shard = Shard()
    rows = shard.observe([*group.events, *group.heard(80_000)])
    assert [row["trigger"] for row in table(rows, "group_transitions")][3:] == []
    group.at(70_000)
    rows += shard.observe(group.heard(150_000))
    assert [row["trigger"] for row in table(rows, "group_transitions")][3:] == ["LEADER_REJOINED"]
