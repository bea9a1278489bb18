"""What a move of a group costs its members: for how long they had no coordinator, and what session timeout that needed."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.diagnosis.findings import above
from coordinator_model.errors import Error
from tests.diagnosis.narrated import BOTH, EVERY, Group, finding, where_requests_are_seen


def lost_in_a_move(*clients, away_ms=0):
    """No broker has the group for a while, and they find the new one later than others do; their sessions are 10 s."""
    group = Group("a", "b", *clients).live(60_000)
    group.is_at(60_000 + away_ms).moves("broker-2", 2_000)
    for client in clients:
        group.dies(client)
    group.live(72_100 + away_ms)
    for client in clients:
        group.expires(client)
    return group


def test_the_session_timeout_that_a_move_would_have_taken_is_told():
    """It is that of one client, and the wait is over when the new coordinator serves the group, not when the client asks long after."""
    rows = lost_in_a_move("c", away_ms=11_000).comes("c").live(150_000).seen(BOTH)
    told = finding(rows, "COORDINATOR_MOVED")
    unheard_ms = json.loads(told["details"])["unheard_ms"]
    assert 11_000 < unheard_ms < 14_000
    assert f" raise session.timeout.ms (now 10 s) above {above(unheard_ms)}: the last heartbeat of c that was accepted " in told["advice"]
    assert told["advice"].endswith(" before its coordinator heard it again, or could have.")


def test_a_client_that_asks_soon_after_the_coordinator_is_there_had_needed_the_time_until_then():
    """librdkafka gives its id up by its own timer: with a session up to the coordinator's return it would have come under a new one."""
    group = Group("a", "b", "c").live(60_000)
    group.is_at(71_000).moves("broker-2").dies("c").live(76_000).expires("c").comes("c")
    details = json.loads(finding(group.live(150_000).seen(BOTH), "COORDINATOR_MOVED")["details"])
    assert details["unheard_client"] == "c"
    assert 76_000 - 60_000 < details["unheard_ms"] < 76_000 - 57_000  # 4 s less until the coordinator was there


def test_a_commit_does_not_count_as_the_last_sign_of_a_client():
    """librdkafka's own session timer begins with the last heartbeat, whatever the coordinator takes as a sign of life."""

    def unheard_ms(*, commits):
        group = Group("a", "b", "c").live(60_000).is_at(60_400)
        group = (group.commits("c") if commits else group).is_at(71_000).moves("broker-2", 2_000).dies("c").live(83_100).expires("c")
        return json.loads(finding(group.comes("c").live(150_000).seen(BOTH), "COORDINATOR_MOVED")["details"])["unheard_ms"]

    assert unheard_ms(commits=True) == unheard_ms(commits=False)


def test_a_member_whose_poll_timeout_expired_meanwhile_did_not_miss_its_session_timeout():
    """It gave its id up by itself, as its log says, and could not tell any coordinator: no session timeout would have kept it."""
    group = Group("a", "b", "c").live(60_000).writes("c", kinds.CLIENT_POLL_TIMEOUT, 65_000)
    group.is_at(71_000).moves("broker-2", 2_000).dies("c").live(83_100).expires("c")
    told = finding(group.comes("c").live(150_000).seen(EVERY), "COORDINATOR_MOVED")
    details = json.loads(told["details"])
    assert details["gave_up"] == details["members_lost"]
    assert (details["session_timeouts_ms"], details["unheard_ms"]) == ([], None)
    assert told["message"].endswith(". 1 of its members gave up its id: its poll timeout had expired.")
    assert "session" not in told["advice"]


@where_requests_are_seen
def test_where_the_coordinator_was_there_in_time_its_absence_needed_no_longer_session(evidence):
    rows = lost_in_a_move("c").comes("c").live(150_000).seen(evidence)
    assert json.loads(finding(rows, "COORDINATOR_MOVED")["details"])["unheard_ms"] is None


@where_requests_are_seen
@pytest.mark.parametrize("returns", [False, True])
def test_where_no_client_is_heard_again_alone_under_its_name_that_is_not_known(evidence, returns):
    group = lost_in_a_move("c")
    if returns:  # but is refused at first: the group is full, and so were 300 others
        for name in ("c", *(f"other {number}" for number in range(300))):
            full = int(Error.GROUP_MAX_SIZE_REACHED)
            group.at(group.now).request(kinds.JOIN_GROUP, "", took=0, client_id=name, error_code=full, connection="x")
        group.live(90_000).comes("c").live(150_000)
    told = finding(group.live(78_000).seen(evidence), "COORDINATOR_MOVED")
    assert told["advice"].endswith(" Raise session.timeout.ms (now 10 s): it was too short to survive this.")
    assert json.loads(told["details"])["unheard_ms"] is None
