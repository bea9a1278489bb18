"""Whom the questions blame for a rebalance: whom the findings blame, not the member that happened to join first."""

import json

import pytest

from jobs.answers.report import Scope, read_report
from tests.answers.asking import asked, reader_of
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, rebalance, row, write

pytestmark = pytest.mark.slow

OLD = [f"app-{n}-00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)]
JOINED = {"client_id": "app-3", "client_host": "h", "members_before": 2}
OWN = {"client_id": "app-1", "client_host": "h", "member_id": OLD[0], "members_before": 2}
LOST = ("MEMBER_JOINED", "SESSION_TIMEOUT", "COORDINATOR_MOVED")
FAILURES = ("SESSION_TIMEOUT", "POLL_TIMEOUT", "SYNC_TIMEOUT", "REBALANCE_TIMEOUT", "SLOW_JOINER", "STUCK_RECONCILING")
OF_OTHERS = (
    "ADMIN_REMOVED", "METADATA_CHANGED", "REVOCATION_FOLLOW_UP", "ASSIGNMENT_NOT_STORED", "GROUP_OVER_CAPACITY", "REGEX_RESOLVED",
    "CONNECTOR_CHANGED", "PROBING_REBALANCE",
)  # fmt: skip


def moved(at, lost, broker="b3"):
    details = json.dumps({"from_broker": broker, "members_lost": lost, "to_broker": "b1"}, separators=(",", ":"))
    return finding(occurred_at=DAY + at, code="COORDINATOR_MOVED", details=details)


def failed(at, code="SESSION_TIMEOUT", **values):
    return finding(**{"occurred_at": DAY + at, "code": code, "client_id": "app-1", "client_host": "h"} | values)


def joined(**values):
    return rebalance(**{"start": 10_000, "total": 9_000} | JOINED | values)


def returned(member_id, start):
    return rebalance(start=start, client_id="app-1", client_host="h", member_id=member_id, members_before=1)


NOBODY_ELSE = ("MEMBER_JOINED", None, "app-3", 1)
CASES = {
    # Clients that had given up their ids join first; their sessions end only while the leader makes the assignment.
    "another rebalance removes the members": (
        [
            moved(8_000, OLD),
            rebalance(start=10_000, outcome="SUPERSEDED", client_id="app-1", members_before=2),
            rebalance(start=12_000, generation=2, left=OLD, cause="SESSION_TIMEOUT"),
        ],
        ("COORDINATOR_MOVED", "b3", None, 2),
    ),
    "a member that was not lost joins by itself": ([moved(8_000, OLD), rebalance(start=10_000, **JOINED)], NOBODY_ELSE),
    "members are lost, and no finding tells how": ([rebalance(start=10_000, left=OLD, **JOINED)], NOBODY_ELSE),
    "before it began": ([failed(9_000), joined()], NOBODY_ELSE),
    "after it ended": ([failed(19_001), joined()], NOBODY_ELSE),
    "in another group": ([failed(15_000, group_id="other"), joined()], NOBODY_ELSE),
    "a crashed member comes back before its session ends": ([failed(15_000, client_id="app-3"), joined()], NOBODY_ELSE),
    "no failure that all waited for": ([failed(15_000, "UNKNOWN_MEMBER"), joined()], NOBODY_ELSE),
    # By the request log alone a leader without SyncGroup is known to be gone when the others join again.
    "what shows once the next one has begun": (
        [failed(19_002, "SYNC_TIMEOUT", member_id=OLD[0]), joined(outcome="SUPERSEDED")],
        ("SYNC_TIMEOUT", None, "app-1", 1),
    ),
    "a cause that is a failure stays": (
        [failed(15_000, "SLOW_JOINER"), joined(cause="SESSION_TIMEOUT", client_id="app-2")],
        ("SESSION_TIMEOUT", None, "app-2", 1),
    ),
    # In the consumer protocol a member that a broker lost keeps its id.
    "lost, and back": ([moved(5_000, ["m-1"]), returned("m-1", 30_000)], ("COORDINATOR_MOVED", "b3", None, 1)),
    "lost, and another one joins": ([moved(5_000, ["m-1"]), returned("m-2", 30_000)], ("MEMBER_JOINED", None, "app-1", 1)),
    "lost, and back long afterwards": ([moved(5_000, ["m-1"]), returned("m-1", 70_000)], ("MEMBER_JOINED", None, "app-1", 1)),
    # Who held partitions of topics that changed may have been unable to give them up.
    **{
        cause: ([failed(15_000, "REBALANCE_TIMEOUT"), joined(cause=cause, client_id=None)], (cause, None, None, 1))
        for cause in ("METADATA_CHANGED", "REGEX_RESOLVED")
    },
    **{f"all waited: {code}": ([failed(18_990, code, member_id=OLD[0]), joined()], (code, None, "app-1", 1)) for code in FAILURES},
    **{
        f"lost with a broker: {cause}": (
            [
                moved(8_000, OLD),
                rebalance(start=10_000, left=OLD[::-1], joined=["app-1-new"], cause=cause, **OWN | {"member_id": "app-1-new"}),
            ],
            ("COORDINATOR_MOVED", "b3", None, 1),
        )
        for cause in LOST
    },
    **{f"told by others: {cause}": ([rebalance(start=10_000, cause=cause, **OWN)], (cause, None, None, 1)) for cause in OF_OTHERS},
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A lakehouse with a group for each case."""
    lakehouse = empty_lakehouse(tmp_path_factory.mktemp("cases"))
    rows = [{**each, "group_id": name} for name, (own, _) in CASES.items() for each in own if each["group_id"] == "payments"]
    write(lakehouse, line(at=90_000), *rows, *(each for own, _ in CASES.values() for each in own if each["group_id"] != "payments"))
    return lakehouse


def test_whom_a_rebalance_is_blamed_on(cases):
    """Cause, broker and client, and how many rebalances."""
    found = {
        row["group_id"]: (row["cause"], row["broker"], row["client_id"], row["rebalances"]) for row in asked(cases, "why", limit="100")
    }
    assert found == {name: said for name, (_, said) in CASES.items()}
    began = {row["group_id"]: row["began_with"] for row in asked(cases, "rebalances", limit="100")}
    assert all(began[name] is None for name, (_, said) in CASES.items() if said == NOBODY_ELSE)


def test_a_rebalance_is_billed_with_the_failure_that_its_client_told_of_long_before(tmp_path):
    """librdkafka says that its poll timeout has expired, and in the consumer protocol leaves when its application polls again."""
    lakehouse = empty_lakehouse(tmp_path / "lake")
    stalls = [failed(at, "POLL_TIMEOUT", member_id=OLD[0]) for at in (2_000, 50_000)]
    write(lakehouse, line(at=90_000), *stalls, *(rebalance(start=start, cause="POLL_TIMEOUT", **OWN) for start in (11_000, 59_000)))
    (entry,) = read_report(reader_of(lakehouse)).attention
    assert entry.bill.rebalances == 2


@pytest.mark.parametrize("cause", LOST)
def test_the_broker_is_blamed_for_members_that_were_lost_with_it(cases, cause):
    group = f"lost with a broker: {cause}"
    assert asked(cases, "culprits", group=group) == []
    (row,) = asked(cases, "rebalances", group=group)
    began_with = "MEMBER_JOINED" if cause == "COORDINATOR_MOVED" else cause  # no rebalance begins with a move
    assert (row["began_with"], row["client_id"], row["cause"], row["culprit"]) == (began_with, "app-1", "COORDINATOR_MOVED", "b3")
    assert asked(cases, "rebalances", group=group, cause="COORDINATOR_MOVED") == [row]
    assert [bill["payer"] for bill in asked(cases, "bill", group=group)] == ["b3"]
    assert [one["cause"] for one in asked(cases, "worst", limit="100") if one["group_id"] == group] == ["COORDINATOR_MOVED"]
    report = read_report(reader_of(cases), Scope(group=group))
    assert report.groups[0]["worst_cause"] == "COORDINATOR_MOVED"
    assert [(row["blamed"], row["culprit_broker"], row["culprit_client_id"]) for row in report.rebalances] == [
        ("COORDINATOR_MOVED", "b3", None)
    ]


@pytest.mark.parametrize("code", FAILURES)
def test_the_client_that_all_waited_for_is_blamed(cases, code):
    group = f"all waited: {code}"
    (row,) = asked(cases, "culprits", group=group)
    assert (row["client_id"], row["cause"], row["failures"]) == ("app-1", code, 1)
    (row,) = asked(cases, "rebalances", group=group)
    assert (row["began_with"], row["client_id"], row["cause"], row["culprit"]) == ("MEMBER_JOINED", "app-3", code, "app-1")
    assert asked(cases, "why", group=group, client="app-3") == []


@pytest.mark.parametrize("cause", OF_OTHERS)
def test_a_member_that_was_told_or_removed_by_somebody_else_is_not_to_blame(cases, cause):
    group = f"told by others: {cause}"
    assert asked(cases, "culprits", group=group) == []
    (row,) = asked(cases, "rebalances", group=group)
    assert (row["client_id"], row["cause"], row["culprit"]) == ("app-1", cause, None)
    assert [bill["payer"] for bill in asked(cases, "bill", group=group)] == ["(no culprit)"]


def test_a_storm_is_what_the_tracker_found(lakehouse):
    """Neither fewer rebalances nor more: the report, the dashboard and `watch` tell of the same one."""
    figures = {"rebalances": 5, "span_ms": 20_000, "total_ms": 9_000, "unavailable_partition_ms": 7_000, "common_causes": ["MEMBER_LEFT"]}
    storm = finding(occurred_at=DAY + 10_000, code="REBALANCE_STORM", client_id="app-2", details=json.dumps(figures))
    rounds = [rebalance(start=5_000 * n, generation=n, client_id="app-2", cause="MEMBER_LEFT") for n in range(1, 9)]
    write(lakehouse, line(at=90_000), *rounds)
    assert asked(lakehouse, "storms") == []
    write(lakehouse, storm, batch=1)
    (found,) = asked(lakehouse, "storms")
    assert {name: found[name] for name in ("rebalances", "total_ms", "unavailable_partition_ms", "cause", "client_id")} == {
        "rebalances": 5, "total_ms": 9_000, "unavailable_partition_ms": 7_000, "cause": "MEMBER_LEFT", "client_id": "app-2"
    }  # fmt: skip
    assert asked(lakehouse, "storms", group="other") == []


def test_the_cause_of_a_storm_is_what_its_rebalances_are_blamed_on(lakehouse):
    """A client that dies again and again joins first each time. Of two causes that are equally frequent the first by name counts."""
    storm = {"rebalances": 2, "span_ms": 50_000, "common_causes": ["MEMBER_JOINED"]}
    told = [failed(start + 4_000, member_id=OLD[1]) for start in (10_000, 30_000)]
    told += [rebalance(start=start, total=5_000, generation=start, **OWN) for start in (10_000, 30_000)]
    write(lakehouse, finding(occurred_at=DAY + 10_000, code="REBALANCE_STORM", details=json.dumps(storm)), line(at=90_000), *told)
    assert [one["cause"] for one in asked(lakehouse, "storms")] == ["SESSION_TIMEOUT"]
    write(lakehouse, *(rebalance(start=start, generation=start, cause="MEMBER_LEFT", **OWN) for start in (40_000, 50_000)), batch=1)
    assert [one["cause"] for one in asked(lakehouse, "storms")] == ["MEMBER_LEFT"]


def test_culprits_by_what_they_are(lakehouse):
    """Two clients of one application on one host, and one of another version. Who joined at a start-up is nobody's culprit."""
    members = [("app-1", "h", "java 4.0"), ("app-2", "h", "java 4.0"), ("other-7d9f8b6c5d-x2x4z", "i", "java 3.9")]
    joined = [line(kind="JOIN_GROUP", error_code=0, member_id=client, client_id=client, software=name) for client, _, name in members]
    causes = ("MEMBER_LEFT", "SESSION_TIMEOUT", "MEMBER_LEFT")
    caused = [
        rebalance(start=1_000 * n, total=100 * n, members_before=2, client_id=client, client_host=host, member_id=client, cause=cause)
        for n, ((client, host, _), cause) in enumerate(zip(members, causes, strict=True), 1)
    ]
    write(lakehouse, *joined, line(at=90_000), *caused, rebalance(start=50_000, members_before=0, startup=True, client_id="app-1"))

    def led(by):
        rows = asked(lakehouse, "culprits-by", **({"by": by} if by else {}))
        return [(row["culprit"], row["clients"], row["rebalances"], row["failures"], row["total_ms"], row["cause"]) for row in rows]

    assert led("") == [("app", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("other", 1, 1, 0, 300, "MEMBER_LEFT")]
    assert led("host") == [("h", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("i", 1, 1, 0, 300, "MEMBER_LEFT")]
    assert led("software") == [("java 4.0", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("java 3.9", 1, 1, 0, 300, "MEMBER_LEFT")]


def test_a_stall_costs_the_rebalance_that_waited_for_its_member(lakehouse):
    stalled = finding(code="POLL_TIMEOUT", member_id=MEMBER, client_id="app-1", occurred_at=DAY + 2_500)
    write(lakehouse, stalled, rebalance(start=1_000, total=2_000, member_id="app-2-m", client_id="app-2"), line(at=90_000))
    assert [row["rebalance_total_ms"] for row in asked(lakehouse, "poll-timeouts")] == [2_000]


def test_static_members_that_were_away_at_once_were_restarted_together_whenever_each_was_back(lakehouse):
    """Their memberships end only when they are back under new ids (KIP-848)."""
    for number in (1, 2):
        client, back = f"app-{number}", 60_000 + 5_000 * number
        write(
            lakehouse,
            line(at=50_000, kind="CONSUMER_GROUP_LOG", state="AWAY", member_id=f"{client}-1"),
            row(
                "member_sessions", group_id="payments", member_id=f"{client}-1", end_kind="REPLACED", ended_at=DAY + back, client_id=client
            ),
            line(at=back, kind="JOIN_GROUP", error_code=0, source="request", client_id=client, answer_member_id=f"{client}-2"),
            app=client,
        )
    (found,) = asked(lakehouse, "deploys")
    assert (found["verdict"], found["started_at"].second, found["ended_at"].second) == ("TOGETHER", 50, 10)
