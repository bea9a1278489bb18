"""A coordinator that cannot write to __consumer_offsets answers 15 to requests, some of which took effect all the same."""

import pytest

from coordinator_model.errors import Error
from tests.tracker.story import Story, table
from tests.tracker.transcripts.test_request_transcripts import stable_group

UNAVAILABLE = Error.COORDINATOR_NOT_AVAILABLE
WAITED_MS = 5_001  # until the write timed out


def told(story: Story) -> list[tuple[object, ...]]:
    return [
        (row["started_at"], row["cause"], row["member_id"], row["left"], row["outcome"]) for row in table(story.rows(), "rebalances")[1:]
    ]


def second_generation(story: Story, at_ms: int) -> Story:
    """a-1 makes it, alone."""
    story.at(at_ms).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(at_ms + 10).join("a-1", 2, "a-1", ["a-1"])
    return story.at(at_ms + 15).sync("a-1", 2, {"a-1": ("t-0", "t-1", "t-2", "t-3", "t-4", "t-5")})


def test_a_member_left_although_its_answer_waited_in_vain_for_an_earlier_write() -> None:
    """4.x: the answer to LeaveGroup waits for earlier writes of the partition (CoordinatorRuntime.CoordinatorWriteEvent)."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(25_001).leave("b-1", "the consumer is being closed", took=WAITED_MS, error_code=UNAVAILABLE)
    second_generation(story, 25_500)
    assert told(story) == [(20_000, "MEMBER_LEFT", "b-1", ["b-1"], "COMPLETED")]
    (session,) = table(story.rows(), "member_sessions")
    assert (session["end_kind"], session["ended_at"]) == ("LEFT", 20_000)


def test_a_leave_that_was_refused_at_once_did_not_reach_the_group() -> None:
    """The member is lost when its session ends, 10 s after its last heartbeat."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).leave("b-1", took=1, error_code=UNAVAILABLE)
    story.beats(["a-1"], 1, 22_000, 29_000)
    second_generation(story, 30_000)
    assert told(story) == [(28_999, "SESSION_TIMEOUT", "b-1", ["b-1"], "COMPLETED")]


@pytest.mark.parametrize("api", ["heartbeat", "commit"])
def test_a_session_is_renewed_by_a_request_whose_write_timed_out(api: str) -> None:
    """Without it b-1 would have been silent for more than its session of 10 s."""
    story = stable_group().beats(["a-1"], 1, 4_000, 40_000)
    story.at(4_000).heartbeat("b-1", 1)
    getattr(story.at(18_001), api)("b-1", 1, UNAVAILABLE, took=WAITED_MS)
    story.at(21_000).heartbeat("b-1", 1).beats(["b-1"], 1, 24_000, 40_000)
    assert told(story) == []
    assert table(story.rows(), "findings") == []


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR])
def test_other_answers_of_a_broker_that_is_not_in_charge_say_nothing(error: Error) -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(25_001).leave("b-1", took=WAITED_MS, error_code=error)
    assert told(story.beats(["a-1", "b-1"], 1, 26_000, 30_000)) == []
