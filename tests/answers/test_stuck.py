"""What `stuck` and `cooperative` answer: for whom a rebalance waited, and how many rounds it took."""

import pytest

from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, MEMBER, line, open_rebalance, rebalance, row, write

pytestmark = pytest.mark.slow


def test_a_group_that_is_still_in_a_rebalance_is_stuck(lakehouse):
    write(lakehouse, line(at=90_000), open_rebalance(start=60_000))
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"], found["waited_for"]) == ("OPEN", "JOIN", 30_000, MEMBER)
    (found,) = asked(lakehouse, "stuck", until="2026-11-21T00:01:10")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("OPEN", "JOIN", 10_000)
    ended = rebalance(start=60_000, total=7_000, join_ms=6_900, sync_ms=100, members_before=2)
    write(lakehouse, open_rebalance(start=60_000, outcome="ENDED"), ended, batch=1)
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("COMPLETED", "JOIN", 7_000)
    (found,) = asked(lakehouse, "stuck", until="2026-11-21T00:01:06")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("OPEN", "JOIN", 6_000), "so it was at that time"


def test_a_consumer_group_that_is_still_in_a_rebalance_is_stuck(lakehouse):
    write(lakehouse, line(at=90_000), open_rebalance(start=60_000, waits_for="RECONCILE", group_protocol="consumer"))
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("OPEN", "RECONCILE", 30_000)
    ended = rebalance(start=60_000, total=7_000, group_protocol="consumer", slowest_member_id=MEMBER)
    write(lakehouse, open_rebalance(start=60_000, outcome="ENDED"), ended, batch=1)
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["waited_for"]) == ("COMPLETED", "RECONCILE", MEMBER)


def test_a_group_whose_leader_owes_the_assignment_is_stuck(lakehouse):
    owed = open_rebalance(start=60_000, waits_for="SYNC", joined_at=DAY + 63_000, leader_id=MEMBER, awaited=[MEMBER], generation=4)
    write(lakehouse, line(at=90_000), owed)
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"], found["waited_for"]) == ("OPEN", "SYNC", 30_000, MEMBER)


def test_a_group_that_was_empty_and_then_waited_longer_for_its_leader_is_stuck_on_that(lakehouse):
    waited = rebalance(start=0, total=15_000, join_ms=6_000, sync_ms=9_000, joined_at=DAY + 6_000, members_before=0, leader_id=MEMBER)
    write(lakehouse, line(at=90_000), waited)
    assert [(one["phase"], one["waited_for"]) for one in asked(lakehouse, "stuck")] == [("SYNC", MEMBER)]
    assert [one["longest"] for one in asked(lakehouse, "phases")] == ["ASSIGN"]


def test_whoever_the_coordinator_removed_meanwhile_was_put_out(lakehouse):
    removed = ("JOIN_TIMEOUT", "SYNC_TIMEOUT", "SESSION_TIMEOUT", "REBALANCE_TIMEOUT", "GROUP_OVER_CAPACITY")
    kinds = (*removed, "LEFT")
    sessions = (row("member_sessions", group_id=kind, member_id=MEMBER, ended_at=DAY + 8_000, end_kind=kind) for kind in kinds)
    write(lakehouse, line(at=90_000), *(rebalance(kind, total=9_000, members_before=2) for kind in kinds), *sessions)
    assert {one["group_id"]: one["put_out"] for one in asked(lakehouse, "stuck")} == {**dict.fromkeys(removed, 1), "LEFT": 0}


def test_a_join_phase_waited_for_who_was_put_out_before_who_came_last(lakehouse):
    """Two questions, one answer. Who timed out once all had joined is not whom they waited for."""
    old, later = MEMBER.replace("app-1", "app-2"), MEMBER.replace("app-1", "app-3")
    waited = rebalance(total=9_000, join_ms=8_000, joined_at=DAY + 8_000, sync_ms=1_000, members_before=3, slowest_member_id=MEMBER)
    ends = [
        row("member_sessions", group_id="payments", member_id=one, ended_at=DAY + at, end_kind="SESSION_TIMEOUT")
        for one, at in ((old, 8_000), (later, 8_500))
    ]
    joins = [line(kind="JOIN_GROUP", member_id=one, error_code=0, client_id=one[:5]) for one in (MEMBER, old, later)]
    write(lakehouse, line(at=90_000), waited, *joins)
    assert [one["slowest_client_id"] for one in asked(lakehouse, "phases")] == ["app-1"]
    write(lakehouse, *ends, batch=1)
    assert [(one["waited_for"], one["put_out"]) for one in asked(lakehouse, "stuck")] == [(old, 2)]
    assert [one["slowest_client_id"] for one in asked(lakehouse, "phases")] == ["app-2"]


def test_a_group_with_a_second_round_is_cooperative_whatever_its_protocol_is_called(lakehouse):
    """Connect's is "sessioned", that of Streams "stream"."""
    first = rebalance(start=0, members_before=2, protocol="sessioned", joined=[MEMBER])
    write(lakehouse, line(at=90_000), first, rebalance(start=4_000, members_before=3, protocol="sessioned", cause="REVOCATION_FOLLOW_UP"))
    (found,) = asked(lakehouse, "cooperative")
    assert (found["cause"], found["rounds"], found["verdict"]) == ("MEMBER_JOINED", 2, "NORMAL")


@pytest.mark.parametrize(
    ("last_ms", "another", "verdict"),
    [(30_000, False, "ENDLESS"), (90_000, False, "ENDED"), (30_000, True, "ENDED")],
    ids=["the logs end soon", "the group rested", "another change came"],
)
def test_a_chain_of_rounds_that_ended_is_not_endless(lakehouse, last_ms, another, verdict):
    rounds = [rebalance(start=n * 3_000, generation=n, cause="REVOCATION_FOLLOW_UP", members_before=2) for n in range(4)]
    other = [rebalance(start=20_000, generation=5, cause="MEMBER_JOINED", members_before=2, joined=[MEMBER])] if another else []
    write(lakehouse, line(at=last_ms), *rounds, *other)
    chain, *_ = asked(lakehouse, "cooperative")
    assert (chain["rounds"], chain["verdict"]) == (4, verdict)
