"""What Kafka 0.9 to 2.7 leaves unsaid: why a rebalance began (until 2.0), how many members a group has, and what they subscribed to."""

from __future__ import annotations

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, MemberEntry, Protocol
from tests.tracker.story import Story, table

UNCOUNTED = -1


class OldStory(Story):
    """Verbs of Kafka 0.9 to 2.0."""

    def prepares(self, old_generation: int) -> OldStory:
        self.log_preparing(old_generation, "")
        return self

    def completes(self, generation: int, joined: int = 50) -> OldStory:
        began = self._now
        self.log_stabilized(generation, UNCOUNTED)
        self._now = began + joined
        self.log_assignment(generation, "", UNCOUNTED)
        return self

    def joins(self, member: str, generation: int, members: tuple[str, ...] = (), *, waited: int = 1, asked_as: str = "") -> OldStory:
        """JOIN_GROUP as text: its bytes are not in the line."""
        self.request(
            kinds.JOIN_GROUP, asked_as, took=waited, api_version=2, session_timeout_ms=10_000, rebalance_timeout_ms=30_000,
            answer_member_id=member, answer_generation=generation, leader_id="a-1", protocol_type="consumer", protocol="range",
            protocols=(Protocol("range", None, (), ""),), members=tuple(MemberEntry(m, "", 0, "", None) for m in members),
        )  # fmt: skip
        return self


def stable() -> OldStory:
    """a-1 alone, generation 1, since 1 s; no log shows who it is."""
    return OldStory().at(0).prepares(0).at(950).completes(1)


def told(story: Story) -> list[tuple[str, str | None, int | None]]:
    return [(row["cause"], row["member_id"], row["join_ms"]) for row in table(story.rows(until=60_000), "rebalances")]


FIRST = ("MEMBER_JOINED", None, 950)
"""Nobody but a new member can have begun the first rebalance."""


def test_a_rebalance_without_a_reason_has_exact_times_and_no_culprit() -> None:
    story = stable().at(10_000).prepares(1).at(10_800).completes(2)
    assert told(story) == [FIRST, ("UNKNOWN", None, 800)]


def test_the_line_before_it_tells_whose_session_ended() -> None:
    story = stable().at(10_000)
    story.log(kinds.MEMBER_FAILED, member_id="b-1")
    story.prepares(1).at(10_040).completes(2)
    assert told(story) == [FIRST, ("SESSION_TIMEOUT", "b-1", 40)]


def test_a_member_that_failed_long_before_did_not_begin_it() -> None:
    story = stable().at(10_000)
    story.log(kinds.MEMBER_FAILED, member_id="b-1")
    story.at(15_000).prepares(1).at(15_040).completes(2)
    assert told(story) == [FIRST, ("UNKNOWN", None, 40)]


@pytest.mark.parametrize(("arrived", "culprit"), [(10_000, "b-1"), (9_400, "b-1"), (8_900, None), (10_001, None)])
def test_the_request_that_arrived_just_before_began_it(arrived: int, culprit: str | None) -> None:
    story = stable().at(10_000).prepares(1).at(10_800).completes(2, 2)
    story.at(10_801).joins("b-1", 2, waited=10_801 - arrived)
    cause = "UNKNOWN" if culprit is None else "MEMBER_JOINED"
    assert told(story) == [FIRST, (cause, culprit, 800)]


def test_two_requests_that_arrived_just_before_agree_on_the_cause_alone() -> None:
    story = stable().at(10_000).prepares(1).at(10_800).completes(2, 3)
    story.at(10_801).joins("b-1", 2, waited=801).joins("c-1", 2, waited=802)
    assert told(story) == [FIRST, ("MEMBER_JOINED", None, 800)]
    story = stable().at(9_999).leave("d-1").at(10_000).prepares(1).at(10_800).completes(2, 3)
    story.at(10_801).joins("b-1", 2, waited=801)
    assert told(story) == [FIRST, ("UNKNOWN", None, 800)]


def test_a_leave_that_was_logged_before_the_line_began_it() -> None:
    """The line then gives the exact time of a rebalance that the request had shown."""
    story = stable().at(9_998).leave("b-1").at(10_000).prepares(1).at(10_700).completes(2)
    assert told(story) == [FIRST, ("MEMBER_LEFT", "b-1", 700)]


def test_a_group_that_emptied_is_begun_again_by_a_new_member() -> None:
    story = stable().at(10_000).prepares(1)
    story.log(kinds.GROUP_EMPTY, generation=2)
    story.at(20_000).prepares(2).at(20_500).completes(3)
    assert told(story) == [FIRST, ("UNKNOWN", None, None), ("MEMBER_JOINED", None, 500)]


def test_a_group_is_as_populated_after_a_restart_as_it_was_before() -> None:
    """These releases do not log how many members they load."""
    story = stable().at(20_000)
    story.log(kinds.GROUP_LOADED, generation=1)
    story.at(30_000).prepares(1).at(30_500).completes(2)
    rows = story.rows(until=60_000)
    assert told(story) == [FIRST, ("UNKNOWN", None, 500)]
    assert {row["from_state"] for row in table(rows, "group_transitions") if row["occurred_at"] == 30_000} == {"Stable"}


def test_a_log_that_begins_with_a_loading_does_not_say_whether_the_group_has_members() -> None:
    story = OldStory().at(0)
    story.log(kinds.GROUP_LOADED, generation=7)
    story.at(10_000).prepares(7).at(10_500).completes(8)
    assert told(story) == [("UNKNOWN", None, 500)]
    assert table(story.rows(), "rebalances")[0]["members_before"] is None


def test_a_member_that_only_an_answer_after_the_assignment_shows_has_joined() -> None:
    story = OldStory().at(0).prepares(0).at(500).joins("a-1", 1, ("a-1",), waited=500).completes(1)
    story.at(10_000).prepares(1).at(10_800).completes(2, 1)
    story.at(10_802).joins("a-1", 2, ("a-1", "b-1"), waited=10, asked_as="a-1").joins("b-1", 2, waited=803)
    row = table(story.rows(until=60_000), "rebalances")[1]
    assert (row["joined"], row["members_before"], row["members_after"], row["member_id"]) == (["b-1"], 1, 2, "b-1")


def test_what_is_not_logged_is_not_taken_for_a_change() -> None:
    """A member whose subscription another source told joins again in text: it did not change its subscription."""
    story = Story().at(500).join("a-1", 1, "a-1", ["a-1"], waited=500, asked_as="").sync("a-1", 1, {"a-1": ("orders-0",)})
    old = OldStory()
    old.events, old._line = story.events, story._line
    old.at(5_000).joins("a-1", 2, ("a-1",), waited=2, asked_as="a-1")
    old.at(5_010).request(kinds.SYNC_GROUP, "a-1", generation=2, assignments=(Assignment("a-1", None, ""),))
    rows = old.rows()
    assert [row["cause"] for row in table(rows, "rebalances")] == ["MEMBER_JOINED", "LEADER_REJOINED"]
    assert [row["code"] for row in table(rows, "findings") if row["code"] == "MODEL_DIVERGENCE"] == []
