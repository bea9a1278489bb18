"""Groups that waited for their coordinator, which could not write, and lost nobody by that."""

from __future__ import annotations

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.diagnosis.narrated import Group, finding, findings, where_requests_are_seen


def committed(took: int, error: Error = Error.NONE) -> Group:
    """A commit is answered so late, at 62.6 s, in a group that is well."""
    group = Group("a", "b", "c").live(60_000)
    group.at(62_600).request(kinds.OFFSET_COMMIT, group["b"].member, took=took, generation=1, error_code=error, **group["b"].who())
    return group


@where_requests_are_seen
@pytest.mark.parametrize("error", [Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE])
def test_a_group_whose_commits_could_not_be_written_was_held_up(evidence: str, error: Error) -> None:
    rows = committed(5_000, error).live(170_000).seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", "")]
    told = finding(rows, "COORDINATOR_MOVED")
    assert (told["severity"], json.loads(told["details"])["members_lost"]) == ("WARNING", [])
    assert "was held up" in told["message"]


@pytest.mark.parametrize("elected", [False, True])
def test_one_that_is_answered_late_was_held_up_where_its_broker_took_over_from_another(*, elected: bool) -> None:
    group = committed(4_100)
    rows = (group.elected(4, 66_000) if elected else group).live(170_000).seen()
    assert findings(rows) == ([("COORDINATOR_MOVED", "")] if elected else [])
