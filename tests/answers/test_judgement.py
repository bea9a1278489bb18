"""What may be said of a group: an all-clear only where its lines cover the time and show health."""

from __future__ import annotations

import json

import pytest

from coordinator_model import events as e
from jobs.answers.report import Scope, read_overview
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout
from schemas.names import INGEST
from tests.lakehouse.rows import DAY, finding, line, rebalance, row, track_is_at, transition, write

pytestmark = pytest.mark.slow

STABLE = transition("Stable", 0, 1)
COORDINATOR = {"source": e.COORDINATOR_SOURCE}


def judged(lakehouse, *rows, **scope):
    write(lakehouse, *rows)
    return read_overview(lakehouse, Scope(**scope)).judgement


def clock(broker, at):
    return line(None, at, broker=broker, source="clock", kind="clock")


def reasons(judgement):
    return [(gap.groups, gap.why) for gap in judgement.gaps]


def test_a_stable_group_is_healthy(lakehouse):
    it = judged(lakehouse, line(**COORDINATOR), STABLE)
    assert it.healthy == [("c", "payments")]
    assert it.all_clear


@pytest.mark.parametrize(
    "shown",
    [{"kind": e.HEARTBEAT, "source": "request", "error_code": 0}, {"kind": e.SIMPLE_GROUP, **COORDINATOR}],
    ids=["heartbeats", "commits without members"],
)
def test_a_group_of_which_no_state_is_known_may_show_health_otherwise(lakehouse, shown):
    assert judged(lakehouse, line(**shown)).all_clear


def test_what_track_has_not_read_is_not_judged(lakehouse):
    """`ingest.py` without `track.py`, or a run that was killed between both; a minute is what a run that goes on may be behind."""
    check_layout(Lakehouse(lakehouse), Settings())
    hour = 3_600_000
    write(lakehouse, line(**COORDINATOR), line("orders", **COORDINATOR), STABLE, transition("Stable", 0, 1, group="orders"), app=INGEST)
    write(lakehouse, line(at=hour, **COORDINATOR), line(at=2 * hour, **COORDINATOR), app=INGEST, batch=1)
    alone = read_overview(lakehouse).judgement
    assert alone.healthy == []
    assert {gap.groups for gap in alone.gaps} == {("orders", "payments")}
    assert "lines since 2026-11-21 00:00:00 UTC were read, and are not tracked yet" in alone.gaps[0].why
    track_is_at(lakehouse, 0)
    behind = read_overview(lakehouse).judgement
    assert (behind.healthy, [gap.groups for gap in behind.gaps]) == ([("c", "orders")], [("payments",)])
    assert read_overview(lakehouse, Scope(until="00:30")).judgement.all_clear, "the time that is asked for was tracked"
    track_is_at(lakehouse, 1)
    assert read_overview(lakehouse).judgement.all_clear


@pytest.mark.parametrize(("error", "judged_groups"), [(0, set()), (30, {"reader"})], ids=["answered", "refused"])
def test_a_group_that_is_only_looked_up_is_none_to_judge(lakehouse, error, judged_groups):
    """As tools do, and consumers with assign(): the pipeline's own are such."""
    asked = {"group": "reader", "source": "request"}
    found = line(**asked, kind=e.FIND_COORDINATOR, error_code=0)
    it = judged(lakehouse, line(**COORDINATOR), STABLE, found, line(**asked, at=10, kind=e.OFFSET_FETCH, error_code=error))
    assert it.healthy == [("c", "payments")]
    assert {group for gap in it.gaps for group in gap.groups} == judged_groups


def test_nothing_is_healthy_by_application_logs_alone(lakehouse):
    it = judged(lakehouse, line(broker="clients", source="client", kind=e.CLIENT_JOINED))
    (gap,) = it.gaps
    assert not it.healthy
    assert gap.groups == ("payments",)
    assert gap.why.startswith("only application logs name it")
    assert "--describe --state --group 'payments'" in gap.next


@pytest.mark.parametrize(
    "reason", ["Fetch position FetchPosition{offset=3} is out of range: error", "Offset commit failed on partition o-1"]
)
def test_a_trouble_of_a_client_alone_is_told_before_what_is_missing(lakehouse, reason):
    it = judged(lakehouse, line(broker="clients", source="client", kind=e.CLIENT_NOTE, reason=reason))
    assert [(gap.groups, gap.why.partition(":")[0]) for gap in it.gaps] == [
        (("payments",), "1 line tells of trouble that no entry explains"),
        (("payments",), "only application logs name it"),
    ]
    assert f"“{reason}”" in it.gaps[0].why


@pytest.mark.parametrize(
    "reason",
    [
        "(Re-)joining group",
        "JoinGroup failed due to non-fatal error: MEMBER_ID_REQUIRED. Will set the member id as x and then rejoin.",
        "rebalance failed due to 'The group member needs to have a valid member id before actually entering a consumer group.'",
    ],
)
def test_the_first_join_of_a_member_is_no_trouble(lakehouse, reason):
    it = judged(lakehouse, line(**COORDINATOR), line(at=1, broker="clients", source="client", kind=e.CLIENT_NOTE, reason=reason), STABLE)
    assert it.all_clear


def test_a_trouble_of_a_client_is_no_health_where_a_broker_speaks(lakehouse):
    note = line(broker="clients", source="client", kind=e.CLIENT_NOTE, reason="Offset commit failed on partition orders-1 at offset 3")
    it = judged(lakehouse, line(**COORDINATOR), note, STABLE)
    assert [gap.why.partition(":")[0] for gap in it.gaps] == ["1 line tells of trouble that no entry explains"]


def test_an_entry_by_application_logs_leaves_open_what_only_a_broker_knows(lakehouse):
    it = judged(lakehouse, line(broker="clients", source="client", kind=e.CLIENT_JOINED), finding())
    assert [gap.groups for gap in it.gaps] == [("payments",)]


def test_a_rebalance_that_is_going_on_is_not_health(lakehouse):
    it = judged(lakehouse, line(**COORDINATOR), STABLE, transition("PreparingRebalance", 10, 1))
    assert reasons(it) == [(("payments",), "its state is PreparingRebalance when the lines end")]


def test_groups_of_which_the_same_is_missing_share_a_gap(lakehouse):
    it = judged(lakehouse, line("a"), line("b"), line("c"))
    assert reasons(it) == [(("a", "b", "c"), "no line shows its state")]


TROUBLES = {
    "of its kind": {"kind": e.MEMBER_FAILED, **COORDINATOR},
    "a note": {"kind": e.COORDINATOR_NOTE, "reason": "Failed to write empty metadata for group payments: x", **COORDINATOR},
    "a step of a consumer group": {"kind": e.CONSUMER_GROUP_LOG, "state": e.EXPIRED, **COORDINATOR},
    "a reason": {"kind": e.PREPARING_REBALANCE, "reason": "removing member m on heartbeat expiration", **COORDINATOR},
    "a client's": {"kind": e.CLIENT_POLL_TIMEOUT, "broker": "clients", "source": "client"},
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_a_line_that_tells_of_trouble_forbids_the_all_clear(lakehouse, trouble):
    told = {"origin": "f", "position": 7, "member_id": "m", **trouble}
    it = judged(lakehouse, line(**COORDINATOR), STABLE, line(at=5_000, **told))
    assert not it.healthy
    ((groups, why),) = reasons(it)
    assert groups == ("payments",)
    assert why.startswith("1 line tells of trouble that no entry explains")
    assert "f:7" in why


@pytest.mark.parametrize(
    "explained",
    [
        {"evidence": '[{"source": "coordinator", "origin": "f", "position": 7}]'},
        {"member_id": "m", "occurred_at": DAY + 4_000},
    ],
    ids=["the line proves it", "it is about the member, at that time"],
)
def test_an_entry_explains_a_line_that_names_no_group(lakehouse, explained):
    fenced = line("", 5_000, kind=e.INSTANCE_FENCED, origin="f", position=7, member_id="m", **COORDINATOR)
    it = judged(lakehouse, line("b", **COORDINATOR), transition("Stable", 0, 1) | {"group_id": "b"}, fenced)
    assert [gap.groups for gap in it.gaps] == [()]
    assert judged(lakehouse, finding(code="FENCED_INSTANCE", **explained)).gaps == []


@pytest.mark.parametrize(("instance_id", "explained"), [("i", True), ("j", False)])
def test_an_entry_explains_a_line_about_the_instance_id_that_it_names(lakehouse, instance_id, explained):
    fenced = line("", 5_000, kind=e.INSTANCE_FENCED, origin="f", position=7, instance_id="i", **COORDINATOR)
    told = finding(code="FENCED_INSTANCE", occurred_at=DAY + 6_000, details=json.dumps({"instance_id": instance_id}))
    assert (judged(lakehouse, line(**COORDINATOR), STABLE, fenced, told).gaps == []) is explained


FETCH = "Error sending fetch request (sessionId=1, epoch=46) to node {}:"


@pytest.mark.parametrize(
    ("reason", "at", "explained"),
    [
        (FETCH.format(1), 5_000, True),
        (FETCH.format(1), 5_000 - 10_001, False),
        (FETCH.format(1), 15_001, False),
        (FETCH.format(2), 5_000, False),  # the entry tells of node 1
        ("Offset commit failed on partition o-1 at offset 3: The request timed out.", 5_000, True),
        ("Offset commit failed on partition o-1 at offset 3", 5_000, False),
    ],
)
def test_that_a_client_cannot_reach_a_broker_is_explained_by_what_happened_to_it(lakehouse, reason, at, explained):
    details = json.dumps({"from_broker": "b1", "to_broker": "b2", "members_lost": []})
    moved = finding(group_id="moved", code="COORDINATOR_MOVED", occurred_at=DAY + 5_000, details=details)
    note = line(at=at, broker="clients", source="client", kind=e.CLIENT_NOTE, reason=reason)
    own = [line(broker="b1", coordinator_id=1, **COORDINATOR), STABLE, note]
    assert judged(lakehouse, *own).gaps
    assert (judged(lakehouse, moved).gaps == []) is explained


OVERTAKEN = "rebalance failed due to 'The group is rebalancing, so a rejoin is needed.' (RebalanceInProgressException)"


def test_that_a_group_rebalances_is_no_trouble_of_a_client_alone(lakehouse):
    it = judged(lakehouse, line(kind=e.CLIENT_REJOINS, broker="clients", source="client", reason=OVERTAKEN))
    assert [gap.why.partition(":")[0] for gap in it.gaps] == ["only application logs name it"]


def test_a_failed_join_of_a_rebalance_that_is_told_is_no_trouble(lakehouse):
    failed = line(at=5_000, kind=e.CLIENT_REJOINS, broker="clients", source="client", reason=OVERTAKEN)
    assert judged(lakehouse, line(**COORDINATOR), STABLE, failed).gaps
    assert judged(lakehouse, rebalance(start=4_000, members_before=1)).all_clear


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"cause": "UNKNOWN"}, "the cause of 1 of its 1 rebalance is not known"),
        ({"outcome": "ABANDONED"}, "the end of 1 of its 1 rebalance is not known"),
        ({"cause": "SESSION_TIMEOUT"}, "1 rebalance of it began with a trouble that no entry explains"),
    ],
)
def test_its_rebalances_are_part_of_its_health(lakehouse, told, why):
    it = judged(lakehouse, line(**COORDINATOR), STABLE, rebalance(members_before=2, **told))
    assert reasons(it) == [(("payments",), why)]


def test_a_coordinator_whose_log_ends_early_shows_no_health_after_that(lakehouse):
    log = [line(broker="b1", **COORDINATOR), STABLE, clock("b1", 600_000), clock("b2", 4_000_000)]
    assert reasons(judged(lakehouse, *log)) == [(("payments",), "the log of its coordinator, b1, ends at 2026-11-21 00:10:00 UTC")]
    assert judged(lakehouse, until="2026-11-21T00:10:30").all_clear


def test_clients_that_go_on_after_the_brokers_logs_forbid_the_all_clear(lakehouse):
    later = line(at=10_800_000, broker="clients", source="client", kind=e.CLIENT_JOINED)
    it = judged(lakehouse, line(broker="b1", **COORDINATOR), STABLE, clock("b1", 600_000), later, since="1h")
    assert reasons(it) == [(("payments",), "the log of its coordinator, b1, ends at 2026-11-21 00:10:00 UTC")]


def test_lines_that_were_not_understood_forbid_the_all_clear(lakehouse):
    refused = row("quarantine", broker="b1", reason="UNKNOWN_TEMPLATE", source="coordinator", origin="f", position=3, raw="x")
    it = judged(lakehouse, line(**COORDINATOR), STABLE, refused)
    assert it.healthy
    assert not it.all_clear
    assert reasons(it) == [((), "1 line that may be about a group could not be read, such as f:3, UNKNOWN_TEMPLATE")]


def test_a_group_is_judged_in_what_was_asked_for(lakehouse):
    trouble = line("a", 5_000, kind=e.MEMBER_FAILED, origin="f", position=1, **COORDINATOR)
    rows = [line("a", **COORDINATOR), line("b", 90_000, **COORDINATOR), trouble]
    rows += [transition("Stable", 0, 1) | {"group_id": group} for group in "ab"]
    assert [gap.groups for gap in judged(lakehouse, *rows).gaps] == [("a",)]
    assert judged(lakehouse, group="b").all_clear
    assert judged(lakehouse, since="2026-11-21T00:00:10").all_clear
