"""Coordinators that hang, die and move, and clocks that are wrong: nobody is blamed for what a broker did."""

from collections import Counter

import pytest

from jobs.answers.check import check
from jobs.answers.report import read_report
from tests.answers.asking import asked

pytestmark = pytest.mark.slow


def findings(told, cluster):
    return [(row["code"], row["member_id"]) for row in told.rows("findings", cluster)]


@pytest.mark.parametrize("cluster", ["queued-heartbeats-both", "queued-heartbeats-request"])
def test_heartbeats_that_waited_behind_a_slow_commit_are_no_silence(told, cluster):
    """The commits of both members arrived in time. They were answered 3.97 s later, and four heartbeats of each were read then."""
    assert findings(told, cluster) == []


def test_no_broker_is_accused_by_the_clock_of_another(told):
    """Node 1 answered for the group while it coordinated it; the clock of node 2, which names itself before and after, is 5 s behind."""
    codes = [code for code, _ in findings(told, "clock-five-seconds-behind-both")]
    assert codes == ["COORDINATOR_MOVED"] * 2


def test_a_group_that_moves_is_dead_once(told):
    """It was unloaded at 05:59:23.200 and loaded at 24.191. A heartbeat that had arrived before is answered at 23.236."""
    changes = [(row["occurred_at"], row["to_state"]) for row in told.rows("group_transitions", "dead-twice-both")]
    assert changes[-2:] == [(1795240763200, "Dead"), (1795240764191, "Stable")]


def test_report_and_questions_agree_on_state_and_members_of_every_group(told):
    """The dashboard asks the same questions."""
    reported = {(row["cluster"], row["group_id"]): (row["state"], row["members"]) for row in read_report(told.lakehouse).groups}
    rows = asked(told.lakehouse, "groups")
    assert {(row["cluster"], row["group_id"]): (row["state"].replace("UNKNOWN", ""), row["members"]) for row in rows} == {
        key: ((state or "").replace("UNKNOWN", ""), members) for key, (state, members) in reported.items()
    }
    assert reported["dead-twice-both", "app-16"] == ("Stable", 2)
    counted = Counter((row["state"], row["group_protocol"]) for row in rows)
    assert {(row["state"], row["group_protocol"]): row["groups"] for row in asked(told.lakehouse, "states")} == counted


def test_the_laws_hold(told):
    broken = [(one.law, one.cluster.rpartition("-")[0], one.text) for one in check(told.lakehouse, ()).breaches]
    assert broken == []
