"""Who is a member, and who had only paused: a member of a share or Streams group comes, and comes back, by the coordinator's line alone."""

import pytest

from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, line, row, write

pytestmark = pytest.mark.slow


def told(state, at, member="m", **values):
    return line(at=at, kind="CONSUMER_GROUP_LOG", source="coordinator", state=state, member_id=member, **values)


def refused(error_code):
    return line(at=1_002, kind="CONSUMER_GROUP_HEARTBEAT", source="request", member_id="m", generation=0, error_code=error_code)


SHARE, STREAMS = {"protocol_type": "share"}, {"protocol_type": "streams"}


@pytest.mark.parametrize(
    ("rows", "members"),
    [
        ([told("JOINED", 1_000)], ["m"]),
        ([told("JOINED", 1_000), refused(128)], []),  # INVALID_REGEX
        ([told("JOINED", 1_000), refused(15)], ["m"]),  # a write timed out
        ([told("JOINED", 1_000, **SHARE), told("ASSIGNMENT_STORED", 1_000)], ["m"]),
        ([told("JOINED", 1_000, **STREAMS), told("ASSIGNMENT_STORED", 1_100)], ["m"]),
        ([told("JOINED", 1_000, **STREAMS)], []),  # refused for its topology, as its client alone says
        ([told("ASSIGNMENT_STORED", 900), told("JOINED", 1_000, **STREAMS)], []),
        ([told("RETURNED", 1_000, "old", answer_member_id="m", **STREAMS)], ["m"]),
    ],
)
def test_who_was_taken_is_a_member_whose_coordinator_logs_its_joins(lakehouse, rows, members):
    write(lakehouse, *rows, line(at=90_000))
    assert [one["member_id"] for one in asked(lakehouse, "members")] == members
    assert all(one["joined_at"].second == 1 for one in asked(lakehouse, "members"))


def test_a_member_that_joins_again_under_its_id_had_paused(lakehouse):
    gone = [row("member_sessions", group_id="payments", member_id=one, end_kind="SESSION_TIMEOUT", ended_at=DAY + 50_000) for one in "mn"]
    write(lakehouse, *gone, told("JOINED", 60_000, **SHARE), told("JOINED", 40_000, "n", **SHARE), line(at=90_000))
    found = {one["member_id"]: (one["fate"], one["back_at"] and one["back_at"].minute) for one in asked(lakehouse, "session-timeouts")}
    assert found == {"m": ("PAUSED", 1), "n": ("GONE", None)}
