"""Troubles that the coordinator's lines say outright, also where another line that says the same is missing."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import MemberEntry
from coordinator_model.view.reasons import EXPIRY_THREAD
from jobs.laws.laws import breaches
from tests.tracker.consumer.consumer_story import ConsumerStory
from tests.tracker.story import EXPIRED, JOINED, Story, table
from tests.tracker.test_lost_lines import logged

UUID = "-00000001-0000-4000-8000-000000000000"
GONE = "web" + UUID
STALLED = f"Removing member {GONE} on LeaveGroup; client reason: consumer poll timeout has expired."
NOT_SYNCED = f"Removing Set({GONE}) on pending sync request expiration"


def told(story: Story) -> list[tuple[str, str | None]]:
    """Code and member of all findings. The rows break no law."""
    rows = story.rows(until=300_000)
    assert breaches({name: [row.values for row in rows if row.table == name] for name in {row.table for row in rows}}) == []
    return [(row["code"], row["member_id"]) for row in table(rows, "findings")]


def done(story: Story, at: int, generation: int, members: int = 2) -> Story:
    """The rebalance ends."""
    return story.at(at).log_stabilized(generation, members).at(at + 10).log_assignment(generation, "a-1", members)


# the reason of a rebalance


@pytest.mark.parametrize(
    ("reason", "code"), [(EXPIRED.format(GONE), "SESSION_TIMEOUT"), (STALLED, "POLL_TIMEOUT"), (NOT_SYNCED, "SYNC_TIMEOUT")]
)
@pytest.mark.parametrize("ended", [True, False])
def test_the_reason_of_a_rebalance_is_enough(reason: str, code: str, *, ended: bool) -> None:
    story = Story().at(0).log_preparing(3, reason, GONE)
    story = done(story, 3_000, 4) if ended else story
    assert told(story) == [(code, GONE)]
    (row,) = table(story.rows(until=300_000), "findings")
    assert (row["client_id"], row["generation"]) == ("web", 3)
    ends = [(one["member_id"], one["end_kind"], one["joined_at"]) for one in table(story.rows(until=300_000), "member_sessions")]
    assert ends == [(GONE, code, None)]


@pytest.mark.parametrize("first", [kinds.MEMBER_FAILED, ""])
def test_where_a_line_says_the_same_it_is_told_once(first: str) -> None:
    story = Story().at(0)
    if first:
        story.log(first, member_id=GONE).log_preparing(3, EXPIRED.format(GONE), GONE)
    else:
        story.log_preparing(3, EXPIRED.format(GONE), GONE).at(2).log(kinds.MEMBER_FAILED, member_id=GONE)
    assert told(done(story, 3_000, 4)) == [("SESSION_TIMEOUT", GONE)]


def test_a_static_member_whose_new_id_no_line_named_is_known_by_its_name() -> None:
    old, new = (f"i-{number:08x}-0000-4000-8000-000000000000" for number in (1, 2))
    story = Story().at(0).log_preparing(0, JOINED.format(old), old).log(kinds.MEMBER_ADDED, member_id=old, instance_id="i", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="a-1", state="PreparingRebalance")
    done(story, 3_000, 1).at(20_000).log(kinds.STATIC_MEMBER_REPLACED, member_id=old, instance_id="i")
    done(story.at(80_000).log_preparing(1, EXPIRED.format(new), new), 80_100, 2, members=1)
    assert told(story) == [("SESSION_TIMEOUT", new)]
    row = table(story.rows(until=300_000), "rebalances")[-1]
    assert (row["members_before"], row["left"], row["left_unnamed"], row["members_after"]) == (2, [new], 0, 1)


def test_a_member_that_nobody_knew_was_one_of_those_that_the_coordinator_counted() -> None:
    story = done(logged(3).at(20_000).log_preparing(1, EXPIRED.format(GONE), GONE), 20_100, 2)
    assert told(story) == [("SESSION_TIMEOUT", GONE)]
    row = table(story.rows(until=300_000), "rebalances")[1]
    assert (row["members_before"], row["left"], row["left_unnamed"], row["members_after"]) == (3, [GONE], 0, 2)


def test_a_member_that_leaves_or_joins_is_no_trouble() -> None:
    story = Story().at(0).log_preparing(3, f"Removing member {GONE} on LeaveGroup; client reason: the consumer is being closed", GONE)
    done(story, 3_000, 4).at(20_000).log_preparing(4, JOINED.format(GONE), GONE)
    assert told(done(story, 23_000, 5, members=3)) == []


def test_a_group_with_more_members_than_it_may_have() -> None:
    words = "Freshly-loaded group g (size 3) is over capacity 2. Rebalancing in order to give a chance for consumers to commit offsets"
    assert told(done(Story().at(0).log_preparing(3, words), 3_000, 4)) == [("GROUP_TOO_LARGE", None)]


def test_an_assignment_that_was_not_stored_is_told_before_the_rebalance_ends() -> None:
    reason = f"Error NOT_COORDINATOR when storing group assignmentduring SyncGroup (member: {GONE})."
    story = Story().at(0).log_preparing(3, reason, GONE)
    assert told(story) == [("ASSIGNMENT_NOT_STORED", None)]
    done(story, 3_000, 4)
    assert told(story) == [("ASSIGNMENT_NOT_STORED", None)]
    (row,) = table(story.rows(until=300_000), "findings")
    assert (json.loads(row["details"])["rebalances"], json.loads(row["details"])["total_ms"]) == (1, 3_010)


# the thread that wrote the line, where coordinators before 2.1 write no reason


def test_the_thread_shows_that_a_session_expired_of_somebody() -> None:
    story = Story().at(0).log_preparing(3, EXPIRY_THREAD)
    assert told(done(story, 3_000, 4)) == [("SESSION_TIMEOUT", None)]
    rows = story.rows(until=300_000)
    assert [(row["cause"], row["member_id"]) for row in table(rows, "rebalances")] == [("SESSION_TIMEOUT", None)]
    assert table(rows, "findings")[0]["generation"] == 3


@pytest.mark.parametrize(("before", "named"), [(1, GONE), (5_000, None)])
def test_the_line_just_before_it_names_the_member(before: int, named: str | None) -> None:
    """It does so since 0.11. A member that failed long before began another rebalance, of which lines are missing."""
    story = Story().at(0).log(kinds.MEMBER_FAILED, member_id=GONE).at(before).log_preparing(3, EXPIRY_THREAD)
    done(story, before + 3_000, 4)
    rows = story.rows(until=300_000)
    assert [(row["cause"], row["member_id"]) for row in table(rows, "rebalances")] == [("SESSION_TIMEOUT", named)]
    assert sorted(row["member_id"] or "" for row in table(rows, "findings")) == ([GONE] if named else ["", GONE])


# who did not join again


def left_out() -> Story:
    """The first line is that GONE was removed at the rebalance timeout."""
    return Story().at(0).log(kinds.MEMBERS_NOT_REJOINED, members=(MemberEntry(GONE, "", 0, "", None),))


def test_a_member_that_was_removed_was_waited_for_though_nothing_shows_how_long() -> None:
    story = done(left_out(), 0, 4)
    assert told(story) == [("SLOW_JOINER", GONE)]
    (row,) = table(story.rows(until=300_000), "findings")
    assert (
        row["message"]
        == "The group waited for this member: it did not rejoin before the rebalance timeout, and the coordinator removed it."
    )
    assert json.loads(row["details"])["join_ms"] is None


def test_a_static_leader_that_stayed_away() -> None:
    gone = {"member_id": GONE, "instance_id": "web", "leader_id": "a-1"}
    story = done(Story().at(0).log_preparing(3, JOINED.format("b-1"), "b-1").at(60_000).log(kinds.LEADER_NOT_REJOINED, **gone), 60_001, 4)
    assert told(story) == [("SLOW_JOINER", GONE)]
    (row,) = table(story.rows(until=300_000), "findings")
    assert (
        row["message"]
        == "The group waited 1 min for this member: it did not rejoin before the rebalance timeout; it is static, and stays a member."
    )
    assert told(done(Story().at(0).log(kinds.LEADER_NOT_REJOINED, **gone), 1, 4)) == [("SLOW_JOINER", GONE)]


def test_nobody_joined_again() -> None:
    story = Story().at(0).log_preparing(3, JOINED.format("b-1"), "b-1")
    for ms in (60_000, 120_000):
        story.at(ms).log(kinds.NO_MEMBER_REJOINED)
    assert told(story) == [("COORDINATOR_ERROR", None)]


# errors and warnings


def test_an_error_of_the_coordinator_is_told_once() -> None:
    story = done(Story().at(0).log_preparing(3, JOINED.format("b-1"), "b-1"), 3_000, 4)
    for ms, member in ((4_000, GONE), (5_000, "other" + UUID)):
        words = f"Failed to persist metadata for group orders static member {member} with group instance id i due to x{ms}."
        story.at(ms).log(kinds.COORDINATOR_NOTE, reason=words, state=kinds.TROUBLE, member_id=member)
    story.at(6_000).log(kinds.COORDINATOR_NOTE, reason="Loaded member 1 in group orders.")
    assert told(story) == [("COORDINATOR_ERROR", GONE)]
    (row,) = table(story.rows(until=300_000), "findings")
    words = f"Failed to persist metadata for group orders static member {GONE} with group instance id i due to x4000"
    assert row["message"] == f"The coordinator reports: {words}."


def test_an_error_of_another_broker_does_not_move_the_group() -> None:
    story = done(Story().at(0).log_preparing(3, JOINED.format("b-1"), "b-1"), 3_000, 4)
    story.on("broker-2").at(90_000).log(kinds.COORDINATOR_NOTE, reason="Failed to do something", state=kinds.TROUBLE)
    assert told(story) == [("COORDINATOR_ERROR", None)]


@pytest.mark.parametrize(("tells", "code"), [(kinds.OWNED, "UNRELEASED_INSTANCE_ID"), (kinds.FENCED, "FENCED_INSTANCE")])
def test_an_instance_id_that_another_member_has(tells: str, code: str) -> None:
    story = ConsumerStory().at(0).joins("a", 1, instance_id="i")
    for ms in (20_000, 21_000):
        story.at(ms).line(tells, "b", instance_id="i", answer_member_id="a")
    assert told(story) == [(code, "b")]
    assert "group.instance.id i" in table(story.rows(), "findings")[0]["message"]
    requests = story.at(22_000).beat("a", 1, 1)
    requests.at(30_000).line(tells, "c", instance_id="i", answer_member_id="a")
    assert told(requests) == [(code, "b")]  # the answer to its request says so, and names its client


def test_a_member_that_is_fenced_for_a_reason_that_no_template_has() -> None:
    story = ConsumerStory().at(0).joins("a", 1)
    story.at(20_000).line(kinds.TROUBLE, "a", reason="[GroupId orders] Member a fenced from the group because it does something new.")
    assert told(story) == [("COORDINATOR_ERROR", "a")]
