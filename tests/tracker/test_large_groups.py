"""Hundreds of members that come and go at once: nothing is told twice, and what was first is not forgotten."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import MemberEntry
from coordinator_model.tracker import prediction
from tests.tracker.story import JOINED, Story, table


def members(count: int) -> list[str]:
    return [f"m{number:03}-1" for number in range(count)]


def logged(count: int) -> Story:
    """A stable group, as the coordinator's log tells it."""
    story = Story()
    first, *others = members(count)
    story.at(0).log_preparing(0, JOINED.format(first), first).log(kinds.MEMBER_ADDED, member_id=first, state="Empty")
    for member in others:
        story.at(100).log(kinds.MEMBER_ADDED, member_id=member, state="PreparingRebalance")
    return story.at(3_000).log_stabilized(1, count).at(3_010).log_assignment(1, first, count)


def requested(count: int) -> Story:
    """The same as its requests tell it, with heartbeats until 20 s."""
    story, everybody = Story(), members(count)
    for number, member in enumerate(everybody):
        story.at(50 + number).id_issued(member)
    for number, member in enumerate(everybody):
        story.at(3_200).join(member, 1, everybody[0], () if number else everybody, waited=3_000 - number)
    for number, member in enumerate(everybody):
        given = {m: (f"t-{place}",) for place, m in enumerate(everybody)}
        story.at(3_210).sync(member, 1, {member: given[member]} if number else given)
    return story.beats(everybody, 1, 4_000, 20_000)


def test_all_members_that_an_administrator_removes_at_once_are_told_once() -> None:
    """kafka-consumer-groups --remove-members --all-members: a line for each member, and one request that names them all."""
    story, everybody = logged(70), members(70)
    story.at(60_000)
    for member in everybody:
        story.log(kinds.MEMBER_LEFT, member_id=member, reason="member was removed by an admin")
    story.log_preparing(1, f"explicit `LeaveGroup` request for ({', '.join(everybody)}) members.", everybody[-1])
    story.log(kinds.GROUP_EMPTY, generation=2)
    story.at(60_001).request(kinds.LEAVE_GROUP, "", members=tuple(MemberEntry(member, "", 0, "", None) for member in everybody))
    rows = story.rows()
    assert [row["member_id"] for row in table(rows, "member_sessions")] == everybody
    assert [(row["cause"], row["outcome"], len(row["left"])) for row in table(rows, "rebalances")][1:] == [("ADMIN_REMOVED", "EMPTIED", 70)]


def test_the_word_of_the_coordinator_counts_whoever_fails_meanwhile() -> None:
    story, everybody = logged(50), members(50)
    story.at(60_000).log_preparing(1, JOINED.format("x-1"), "x-1")
    for number, member in enumerate(everybody[1:41]):
        story.at(61_000 + number).log(kinds.MEMBER_FAILED, member_id=member)
    story.at(62_000).log_stabilized(2, 11).at(62_010).log_assignment(2, everybody[0], 11)
    row = table(story.rows(), "rebalances")[1]
    assert (row["cause"], row["member_id"], row["started_at"], len(row["left"])) == ("MEMBER_JOINED", "x-1", 60_000, 40)


def test_the_names_of_more_than_thirty_that_left_before_the_rebalance_are_all_told() -> None:
    """Forty close at once: their lines come before the one that says what the coordinator does about it."""
    story, everybody = logged(50), members(50)
    for member in everybody[10:]:
        story.at(60_000).log(kinds.MEMBER_LEFT, member_id=member, reason="the consumer is being closed")
    story.at(60_001).log_preparing(1, f"explicit `LeaveGroup` request for ({everybody[49]}) members.", everybody[49])
    story.at(61_000).log_stabilized(2, 10).at(61_010).log_assignment(2, everybody[0], 10)
    rows = story.rows()
    row = table(rows, "rebalances")[1]
    assert (row["cause"], row["member_id"], row["members_after"]) == ("MEMBER_LEFT", everybody[49], 10)
    assert len(table(rows, "member_sessions")) == 40


def test_who_went_long_ago_is_forgotten_and_who_went_lately_is_not() -> None:
    """Memory of ended memberships is bounded: the last 64, and all of the last minute."""
    story, everybody = logged(70), members(70)
    story.at(60_000).log_preparing(1, "removing member m001-1 on heartbeat expiration", "m001-1")
    for number, member in enumerate(everybody[1:]):
        story.at(60_000 + 2_000 * number).log(kinds.MEMBER_FAILED, member_id=member)
    for member in ("m001-1", "m069-1"):
        story.at(200_000).heartbeat(member, 1, Error.UNKNOWN_MEMBER_ID)
    told = [row for row in table(story.rows(), "findings") if row["code"] == "UNKNOWN_MEMBER"]
    assert [(row["member_id"], json.loads(row["details"])["removed"]) for row in told] == [("m001-1", None), ("m069-1", "SESSION_TIMEOUT")]


def test_refused_heartbeats_of_one_moment_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """They arrive with the JoinGroup that explains them, in an order that no line shows."""
    count, story = 60, requested(60)
    everybody = members(count)
    story.beats(everybody, 1, 23_000, 29_500)
    story.at(29_900).id_issued("x-1").at(30_000)
    for member in everybody:
        story.heartbeat(member, 1, error=Error.REBALANCE_IN_PROGRESS)
    story.at(31_000).join(everybody[0], 2, everybody[0], (*everybody, "x-1"), waited=500)
    for member in everybody[1:]:
        story.join(member, 2, everybody[0], waited=400)
    story.join("x-1", 2, everybody[0], waited=1_000)
    compared = []
    agrees = prediction._answers_so
    monkeypatch.setattr(prediction, "_answers_so", lambda *given: compared.append(given) or agrees(*given))
    assert not table(story.rows(), "findings")
    assert len(compared) == 2 * count  # as it comes, and once the group has moved
