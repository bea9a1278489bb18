"""Whose requests were refused: one rule for `zombies` and `failed-commits`, that of the findings."""

from datetime import datetime, timezone

import pytest

from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, MEMBER, line, row, write

pytestmark = pytest.mark.slow

ON_ITS_CONNECTION = {"source": "request", "connection": "c1", "client_id": "app-1", "lines": 1}


def gone(end_kind="SESSION_TIMEOUT", at=20_000, member_id=MEMBER):
    return row("member_sessions", group_id="payments", member_id=member_id, end_kind=end_kind, ended_at=DAY + at)


def beat(at=1_000, error_code=0, **values):
    return line(at=at, **{"kind": "HEARTBEAT", "member_id": MEMBER, "error_code": error_code, "position": at} | ON_ITS_CONNECTION | values)


def leave(at, error_code):
    entry = {"member_id": MEMBER, "instance_id": None, "error_code": error_code, "reason": None, "topics": None}
    return beat(at, kind="LEAVE_GROUP", members=[entry])


def commit(at, **values):
    return beat(at, 25, **{"kind": "OFFSET_COMMIT", "member_id": "", "generation": 1} | values)


@pytest.mark.parametrize("refused", [leave(31_000, 25), beat(31_000, 25, member_id=""), commit(31_000)], ids=["leave", "beat", "commit"])
def test_who_asks_without_an_id_is_the_last_member_of_its_connection_that_had_gone(lakehouse, refused):
    other = f"{MEMBER}-2"
    write(lakehouse, beat(), beat(2_000, member_id=other, connection="c2"), refused, line(at=90_000))
    write(lakehouse, gone(), gone(at=25_000, member_id=other), batch=1)
    (zombie,) = asked(lakehouse, "zombies")
    assert (zombie["member_id"], zombie["removed_by"], zombie["zombie_ms"]) == (MEMBER, "SESSION_TIMEOUT", 11_000)
    for one in asked(lakehouse, "failed-commits"):
        assert (one["member_id"], one["removed_by"], one["removed_at"].second) == ("", "SESSION_TIMEOUT", 20)


def test_the_last_requests_of_who_left_may_cross_its_leave(lakehouse):
    write(lakehouse, beat(), commit(29_000), beat(29_500, 25), line(at=90_000))
    write(lakehouse, gone("LEFT"), batch=1)
    assert asked(lakehouse, "zombies") == []
    assert [one["removed_by"] for one in asked(lakehouse, "failed-commits")] == ["LEFT"]
    write(lakehouse, commit(31_000), batch=2)
    assert [(one["requests"], one["zombie_ms"]) for one in asked(lakehouse, "zombies")] == [(1, 11_000)]


def test_who_never_was_a_member_is_no_zombie(lakehouse):
    write(lakehouse, commit(10_000, generation=-1), leave(20_000, 0), line(at=90_000))
    assert asked(lakehouse, "zombies") == []
    (one,) = asked(lakehouse, "failed-commits")
    assert (one["removed_by"], one["last_at"]) == (None, datetime(2026, 11, 21, 0, 0, 10, tzinfo=timezone.utc))
