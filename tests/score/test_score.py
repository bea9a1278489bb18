"""What the score counts, and when it fails."""

import pytest

from scripts.truth.recordings import BOTH, COORDINATOR_LOG, REQUEST_LOG, read_all
from scripts.truth.score import compare, print_scorecards
from scripts.truth.truth import Fact, causes, facts
from tests.score.story import T0, UUID, done, finding, member, reasons, rebalance, recording, row, tables

A, B, A2 = member("a"), member("b"), member("a", 2)
SAYS = reasons()
JOINED = rebalance(0, SAYS["joined"].format(A))


def kinds(report):
    return [(issue.kind, issue.actual) for issue in report.issues]


def perfect(story):
    """Tables that tell all that is asked for, and nothing else: what no pipeline knows better."""
    ours = tables()
    for cause in causes(story):
        theirs = cause.rebalance
        ours["rebalances"].append(
            {
                "group_id": theirs["group"],
                "generation": theirs["generation"],
                "started_at": theirs["preparing_at"],
                "joined_at": theirs["stabilized_at"],
                "ended_at": theirs["assignment_at"] or theirs["became_empty_at"] or theirs["preparing_at"],
                "outcome": "EMPTIED" if theirs["became_empty_at"] else "COMPLETED",
                "cause": cause.accepted[0],
                "member_id": min(cause.culprits, default=None),
                "client_id": None,
                "joined": [],
                "left": [],
                "members_after": theirs["members"],
                "partitions": None,
            }
        )
    for fact in facts(story)[0]:
        mine = [r for r in ours["rebalances"] if r["group_id"] == fact.group]
        if fact.label == "JOIN":
            nearest = min((r for r in mine if r["ended_at"] >= fact.start_ms), key=lambda r: r["ended_at"])
            nearest["joined"].append(f"{fact.instance_id or fact.client_id}-{UUID.format(1)}")
        elif fact.label == "STATIC_REJOIN_NO_REBALANCE" and fact.action == "start":
            ours["member_sessions"].append(session(fact, "REPLACED"))
        elif fact.label == "LEAVE":
            ours["member_sessions"].append(session(fact, "LEFT"))
        elif fact.label in {"GROUP_DELETED", "OFFSETS_EXPIRED"}:
            ours["group_transitions"].append({"group_id": fact.group, "occurred_at": fact.at_ms, "to_state": "Dead"})
        elif fact.required and fact.codes():
            ours["findings"].append(
                {
                    "group_id": fact.group,
                    "occurred_at": fact.at_ms,
                    "code": fact.codes()[0],
                    "member_id": fact.member_id or None,
                    "client_id": fact.client_id or None,
                    "generation": 1,
                }
            )
    return ours


def session(fact: Fact, end_kind):
    return {
        "group_id": fact.group,
        "member_id": fact.member_id,
        "instance_id": fact.instance_id,
        "end_kind": end_kind,
        "ended_at": fact.at_ms,
    }


@pytest.mark.parametrize("story", read_all([]), ids=lambda story: story.name)
class TestBundledRecordings:
    def test_what_is_asked_for_can_be_told(self, story):
        report = compare(story, BOTH, perfect(story))
        assert [str(issue) for issue in report.issues] == []
        assert report.faults(BOTH) == report.faults(REQUEST_LOG) == report.faults(COORDINATOR_LOG) == []
        assert report.culprits == report.rebalances == len(story.classic)

    def test_nothing_told_is_nothing_found(self, story):
        report = compare(story, BOTH, tables())
        assert (report.culprits, report.causes["wrong"]) == (0, len(story.classic))
        quiet = {"NONE"} | {label for label in report.expected if label.startswith("STATIC_REJOIN")}
        assert {label for label, count in report.found.items() if count} <= quiet
        assert report.faults(BOTH)

    def test_every_finding_twice_is_one_too_many(self, story):
        ours = perfect(story)
        asked = len(ours["findings"])
        report = compare(story, BOTH, ours | {"findings": [f for f in ours["findings"] for _ in range(2)]})
        told_otherwise = sum(report.false.values())
        assert report.missed() == 0
        assert told_otherwise == asked

    def test_no_finding_suits_every_group(self, story):
        ours = perfect(story)
        at_ms = story.truth[0]["ts_ms"] - 60_000  # before anything was done
        invented = [finding(at_ms - T0, "SESSION_TIMEOUT", A, group=group) for group in sorted({r["group"] for r in story.classic})]
        report = compare(story, BOTH, ours | {"findings": ours["findings"] + invented})
        assert report.false["SESSION_TIMEOUT"] == len(invented)
        assert report.on_healthy


def test_a_cause_is_right_as_logged_unknown_or_wrong():
    story = recording([rebalance(9_000, SAYS["left"].format(A))], [done(0, "stall", "POLL_TIMEOUT", "a", member_id=A)])

    def graded(cause, evidence):
        (counted,) = compare(story, evidence, tables([row(9_000, cause, A)])).causes
        return counted

    assert [graded(cause, COORDINATOR_LOG) for cause in ("POLL_TIMEOUT", "MEMBER_LEFT", "UNKNOWN", "MEMBER_JOINED")] == [
        "right",
        "as logged",
        "unknown",
        "wrong",
    ]
    assert [graded("MEMBER_LEFT", evidence) for evidence in (REQUEST_LOG, BOTH)] == ["wrong", "wrong"]


def test_a_missing_and_an_invented_rebalance_are_wrong():
    report = compare(recording([JOINED]), BOTH, tables([row(0, "MEMBER_JOINED", A, generation=7)]))
    assert kinds(report) == [("wrong", "no such rebalance"), ("wrong", "MEMBER_JOINED, invented")]
    assert report.faults(BOTH)[0] == "causes: 2 of 2 not right"


def test_culprits_count_apart_from_causes():
    report = compare(recording([JOINED]), BOTH, tables([row(0, "MEMBER_JOINED", B)]))
    assert (report.causes["right"], report.culprits) == (1, 0)
    assert report.faults(BOTH) == ["culprits: 1 of 1 not right"]
    assert report.faults(REQUEST_LOG) == []


@pytest.mark.parametrize(("unknown", "faults"), [(5, []), (6, ["causes: only 94 of 100 right"])])
def test_the_request_log_may_leave_one_in_twenty_open(unknown, faults):
    story = recording([rebalance(at, SAYS["joined"].format(A), generation=at) for at in range(100)])
    rows = [row(at, "UNKNOWN" if at < unknown else "MEMBER_JOINED", A, generation=at) for at in range(100)]
    report = compare(story, REQUEST_LOG, tables(rows))
    assert report.faults(REQUEST_LOG) == faults
    assert report.faults(COORDINATOR_LOG) == [f"causes: 0 wrong, {unknown} unknown"]


KILLED = done(1_000, "kill9", "SESSION_TIMEOUT", "a", member_id=A)


@pytest.mark.parametrize(
    ("told", "found", "false"),
    [
        ([finding(9_000, "SESSION_TIMEOUT", A)], 1, 0),
        ([finding(9_000, "SESSION_TIMEOUT", B)], 0, 1),
        ([finding(9_000, "SESSION_TIMEOUT", A, group="other")], 0, 1),
        ([finding(90_000, "SESSION_TIMEOUT", A)], 0, 1),
        ([finding(9_000, "POLL_TIMEOUT", A)], 0, 1),
        ([finding(9_000, "SESSION_TIMEOUT", A), finding(9_500, "SESSION_TIMEOUT", A)], 1, 1),
        ([finding(9_000, "SESSION_TIMEOUT", A), finding(30_000, "UNKNOWN_MEMBER", A)], 1, 0),  # it was not dead after all
        ([finding(9_000, "MODEL_DIVERGENCE", A)], 0, 1),
        ([], 0, 0),
    ],
)
def test_a_finding_answers_one_fact(told, found, false):
    report = compare(recording(truth=[KILLED]), BOTH, tables(findings=told))
    assert (report.expected["SESSION_TIMEOUT"], report.found["SESSION_TIMEOUT"], sum(report.false.values())) == (1, found, false)


def test_a_long_session_takes_longer_to_run_out():
    story = recording(truth=[KILLED | {"session_timeout_ms": 45_000}])
    assert compare(story, BOTH, tables(findings=[finding(90_000, "SESSION_TIMEOUT", A)])).found["SESSION_TIMEOUT"] == 1


def test_the_brokers_own_word_is_true_though_nobody_asked():
    story = recording([rebalance(500, SAYS["sync"].format(A))])
    report = compare(story, BOTH, tables([row(500, "SYNC_TIMEOUT", A)], [finding(500, "SYNC_TIMEOUT", A)]))
    assert report.faults(BOTH) == []


def test_a_zombie_is_told_by_its_client_where_it_forgot_its_id():
    story = recording(truth=[done(0, "sigcont", "ZOMBIE_COMMIT", "a", member_id=A)])
    report = compare(story, BOTH, tables(findings=[finding(5, "UNKNOWN_MEMBER", client_id="a")]))
    assert report.found["ZOMBIE_COMMIT"] == 1


class TestALostBroker:
    MAYBE = done(0, "kill9_other_broker", "COORDINATOR_FAILOVER|NONE")
    BACK = rebalance(9_000, SAYS["joined"].format(A2))
    STARTED = done(-60_000, "start", "JOIN", "a")

    @pytest.mark.parametrize(("rebalances", "false"), [([BACK], 0), ([], 1)])
    def test_what_it_may_cause_is_true_where_it_did(self, rebalances, false):
        report = compare(recording(rebalances, [self.MAYBE]), BOTH, tables(findings=[finding(9_000, "COORDINATOR_MOVED")]))
        assert (report.false["COORDINATOR_FAILOVER"], report.expected["COORDINATOR_FAILOVER|NONE"]) == (false, 0)

    def test_who_comes_back_did_not_die(self):
        story = recording([self.BACK], [self.STARTED, done(0, "kill9_coordinator", "COORDINATOR_FAILOVER")])
        told = [finding(9_000, "COORDINATOR_MOVED"), finding(17_000, "SESSION_TIMEOUT", A)]
        report = compare(story, BOTH, tables([row(9_000, "COORDINATOR_MOVED", A2, joined=[A2])], told))
        assert (report.found["COORDINATOR_FAILOVER"], report.false["SESSION_TIMEOUT"]) == (1, 1)

    def test_moved_there_and_back_is_two_facts(self):
        story = recording(
            truth=[
                done(0, "kill9_coordinator", "COORDINATOR_FAILOVER"),
                done(30_000, "preferred_leader_election", "COORDINATOR_FAILOVER"),
            ]
        )
        report = compare(story, BOTH, tables(findings=[finding(at, "COORDINATOR_MOVED") for at in (9_000, 31_000)]))
        assert report.found["COORDINATOR_FAILOVER"] == 2
        report = compare(story, BOTH, tables(findings=[finding(at, "COORDINATOR_MOVED") for at in (9_000, 20_000)]))
        assert (report.found["COORDINATOR_FAILOVER"], report.false["COORDINATOR_FAILOVER"]) == (1, 1)


class TestHealthyGroups:
    TRUTH = (done(0, "start", "JOIN", "a"), done(10_000, "sigstop", "NONE", "a", member_id=A))

    @pytest.mark.parametrize(
        ("code", "false"), [("HEARTBEAT_NEAR_MISS", 0), ("SESSION_TIMEOUT", 1), ("ASSIGNMENT_SKEW", 1), ("COORDINATOR_MOVED", 1)]
    )
    def test_only_a_true_near_miss(self, code, false):
        report = compare(recording([], self.TRUTH), BOTH, tables(findings=[finding(13_000, code, A)]))
        assert len(report.on_healthy) == false
        for evidence in (BOTH, REQUEST_LOG, COORDINATOR_LOG):
            assert (f"healthy groups: {false} findings" in report.faults(evidence)) is bool(false)

    @pytest.mark.parametrize(("members", "false"), [(4, 0), (3, 1)])
    def test_idle_members_are_counted(self, members, false):
        ours = tables([row(0, "MEMBER_JOINED", A) | {"members_after": members, "partitions": 3}], [finding(30, "IDLE_MEMBERS")])
        assert compare(recording([JOINED], self.TRUTH), BOTH, ours).false["IDLE_MEMBERS"] == false


@pytest.mark.parametrize(
    ("codes", "holds"),
    [
        (["ROLLING_RESTART"], True),
        ([], False),
        (["ROLLING_RESTART", "ROLLING_RESTART"], False),
        (["REBALANCE_STORM"], False),
        (["ROLLING_RESTART", "REBALANCE_STORM"], False),
    ],
)
def test_a_rolling_restart_is_one_and_no_storm(codes, holds):
    story = recording(truth=[done(0, "rolling_restart_begin", "ROLLING_RESTART"), done(40_000, "rolling_restart_end", "ROLLING_RESTART")])
    report = compare(story, COORDINATOR_LOG, tables(findings=[finding(30_000, code) for code in codes]))
    assert (report.faults(COORDINATOR_LOG) == []) is holds


def test_the_report_names_what_is_wrong(capsys):
    story = recording([JOINED], [done(-100, "start", "JOIN", "a"), KILLED, done(2_000, "x", "NEW_LABEL")])
    report = compare(story, BOTH, tables([row(0, "MEMBER_LEFT", B)]))
    assert not print_scorecards("some-recording", {BOTH: report})
    text = capsys.readouterr().out
    for line in (
        f"culprit   22:13:20.000 g generation 1: {B}; true: {A}",
        f"wrong     22:13:20.000 g generation 1: MEMBER_LEFT by {B}; true: MEMBER_JOINED (the broker's reason)",
        f"missed    22:13:21.000 g: nothing; true: SESSION_TIMEOUT (kill9 {A})",
        "label NEW_LABEL has no meaning here",
        "FAULT causes: 1 of 1 not right",
    ):
        assert line in text
