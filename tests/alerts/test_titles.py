"""The words by which a finding is called: who did what, and how often."""

import pytest

from coordinator_model.diagnosis.findings import above
from coordinator_model.diagnosis.titles import TITLES, rebalance_title, title
from coordinator_model.view import reasons
from jobs.laws import finding_laws


def test_every_kind_of_finding_has_a_title_in_words():
    codes = {text.code for text in finding_laws._TEXTS}
    assert codes <= TITLES.keys()
    assert all(code not in title(code, ["g"], ["c"], [{}]) for code in codes)


@pytest.mark.parametrize(
    ("code", "clients", "details", "told"),
    [
        ("POLL_TIMEOUT", ["a"], [{}], "a did not poll in time"),
        ("POLL_TIMEOUT", ["sr-1"], [{"program": "Schema registry"}], "sr-1 was stuck and left the group"),
        ("POLL_TIMEOUT", ["a", "b"], [{}, {}], "a and b did not poll in time"),
        ("POLL_TIMEOUT", ["a", "b", "c"], [{}] * 7, "3 clients did not poll in time 7 times"),
        ("SESSION_TIMEOUT", [], [{}], "A client missed the session timeout"),
        ("REBALANCE_STORM", ["a"], [{"by_culprit": 8, "rebalances": 9}], "a made g rebalance 8 times"),
        ("REBALANCE_STORM", [], [{"rebalances": 9}], "g rebalanced 9 times"),
        ("PARTITION_NOT_READ", ["a"], [{"partition": "t-0"}, {"partition": "t-1"}], "Nobody reads t-0 and t-1"),
        ("COORDINATOR_MOVED", [], [{"from_broker": "b1", "to_broker": "b2"}], "g moved to another broker"),
        ("COORDINATOR_MOVED", [], [{"from_broker": "b1", "to_broker": "b1"}], "The coordinator did not answer g in time"),
        ("SOME_{NEW}_CODE", ["a"], [{}], "SOME_{NEW}_CODE"),
    ],
)
def test_a_title_says_who_did_what_and_how_often(code, clients, details, told):
    assert title(code, ["g"], clients, details) == told


def test_a_group_named_like_the_article_keeps_its_name():
    assert title("IDLE_MEMBERS", ["a"], [], [{}]) == "a has more members than partitions"


def test_every_cause_of_a_rebalance_has_a_title_in_words():
    causes = {value for name, value in vars(reasons).items() if name.isupper() and value == name} - {"LEFT", "REPLACED", "GROUP_GONE"}
    assert len(causes) > 15
    assert not {cause for cause in (*causes, "STARTUP", *TITLES) if cause in rebalance_title(cause, "g", "c")}
    assert rebalance_title("SLOW_JOINER", "g", "c-1") == "c-1 kept the group waiting"
    assert rebalance_title("MEMBER_LEFT", "g", None) == "A client left"
    assert rebalance_title("COORDINATOR_MOVED", "g", "broker-2") == "g rebalanced because of broker-2"


@pytest.mark.parametrize(("ms", "told"), [(9_334, "9.4 s"), (25_000, "25 s"), (59_960, "1 min"), (61_001, "1 min 2 s"), (850, "900 ms")])
def test_a_value_to_exceed_is_never_shown_too_low(ms, told):
    assert above(ms) == told
