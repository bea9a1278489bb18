"""The longest gap of a membership: what its session lived through, from where it was renewed to the next accepted request."""

import pytest

from coordinator_model.errors import Error
from tests.tracker.story import Story, table


def joined() -> Story:
    """One member with a session of 10 s, whose JoinGroup waits until 3 s."""
    story = Story().at(50).id_issued("a-1").at(3_000).join("a-1", 1, "a-1", ["a-1"], waited=2_900)
    return story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",)})


def again(story: Story, at_ms: int, generation: int, waited: int) -> Story:
    """It rejoins; the phase restarts its session."""
    story.at(at_ms).join("a-1", generation, "a-1", ["a-1"], waited=waited)
    return story.at(at_ms + 10).sync("a-1", generation, {"a-1": ("t-0",)})


GAPS = {
    "from the first join phase": (joined().at(6_500).heartbeat("a-1", 1), 3_489),
    "a JoinGroup ends it, and its answer begins the next": (
        again(joined().at(4_500).heartbeat("a-1", 1), 12_000, 2, 5_000).at(13_000).heartbeat("a-1", 2),
        2_501,
    ),
    "a commit that was accepted and could not be written": (
        joined().at(9_000).add("request", "OFFSET_COMMIT", 5_000, member_id="a-1", generation=1, error_code=int(Error.REQUEST_TIMED_OUT))
        .at(9_100).heartbeat("a-1", 1),
        5_099,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("story", "gap_ms"), GAPS.values(), ids=GAPS)
def test_a_session_is_renewed_by_what_renews_it_in_kafka(story: Story, gap_ms: int) -> None:
    (ended,) = table(story.at(20_000).leave("a-1").rows(), "member_sessions")
    assert ended["longest_gap_ms"] == gap_ms
