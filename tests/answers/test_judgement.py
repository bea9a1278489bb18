"""What may be said of a group: an all-clear only where its lines cover the time and show health."""

import json

import pytest

from coordinator_model import events as e
from jobs.answers.report import Scope, read_overview
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout
from schemas.names import INGEST
from tests.lakehouse.rows import DAY, finding, line, provisional, rebalance, row, track_is_at, transition, write

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


COMMIT = "Offset commit failed on partition o-1 at offset 3"
OVERTAKEN = "rebalance failed due to 'The group is rebalancing, so a rejoin is needed.' (RebalanceInProgressException)"
FIRST_JOINS = (
    "(Re-)joining group",
    "JoinGroup failed due to non-fatal error: MEMBER_ID_REQUIRED. Will set the member id as x and then rejoin.",
    "rebalance failed due to 'The group member needs to have a valid member id before actually entering a consumer group.'",
)
SPOKEN = [line(**COORDINATOR), STABLE]
UNEXPLAINED = "1 line looks like an error, and nothing above explains it"
BY_CLIENTS = "only application logs mention it"


def client(kind=e.CLIENT_NOTE, at=0, **values):
    return line(at=at, broker="clients", source="client", kind=kind, **values)


def trouble(**values):
    return line(at=5_000, origin="f", position=7, member_id="m", **values)


BEAT = line(kind=e.HEARTBEAT, source="request", error_code=0)
CASES = {
    # No state is known of these.
    "heartbeats": ([BEAT], []),
    "given up": ([BEAT, line(at=1, kind=e.CONSUMER_GROUP_LOG, state=e.GIVEN_UP, **COORDINATOR)], ["no line shows its state"]),
    "taken up": ([{**BEAT, "last_at": DAY + 2}, line(at=1, kind=e.CONSUMER_GROUP_LOG, state=e.GIVEN_UP, **COORDINATOR)], []),
    "commits without members": ([line(kind=e.SIMPLE_GROUP, **COORDINATOR)], []),
    **{reason: ([*SPOKEN, client(at=1, reason=reason)], []) for reason in FIRST_JOINS},
    "a commit that failed, beside a broker": ([*SPOKEN, client(reason=COMMIT)], [UNEXPLAINED]),
    "an entry by application logs": ([client(e.CLIENT_JOINED), finding()], [BY_CLIENTS]),
    "a group that rebalances": ([client(e.CLIENT_REJOINS, reason=OVERTAKEN)], [BY_CLIENTS]),
    "a rebalance that goes on": ([*SPOKEN, transition("PreparingRebalance", 10, 1)], ["it is PreparingRebalance when the lines end"]),
    "a line of trouble": ([*SPOKEN, trouble(kind=e.MEMBER_FAILED, **COORDINATOR)], [UNEXPLAINED]),
    "a note of trouble": (
        [*SPOKEN, trouble(kind=e.COORDINATOR_NOTE, reason="Failed to write empty metadata for group payments: x", **COORDINATOR)],
        [UNEXPLAINED],
    ),
    "a step of a consumer group": ([*SPOKEN, trouble(kind=e.CONSUMER_GROUP_LOG, state=e.EXPIRED, **COORDINATOR)], [UNEXPLAINED]),
    "a reason": (
        [*SPOKEN, trouble(kind=e.PREPARING_REBALANCE, reason="removing member m on heartbeat expiration", **COORDINATOR)],
        [UNEXPLAINED],
    ),
    "a client's": ([*SPOKEN, trouble(kind=e.CLIENT_POLL_TIMEOUT, broker="clients", source="client")], [UNEXPLAINED]),
    "no cause": ([*SPOKEN, rebalance(members_before=2, cause="UNKNOWN")], ["the cause of 1 of its 1 rebalance is not known"]),
    "no end": ([*SPOKEN, rebalance(members_before=2, outcome="ABANDONED")], ["the end of 1 of its 1 rebalance is not known"]),
    "began with a trouble": (
        [*SPOKEN, rebalance(members_before=2, cause="SESSION_TIMEOUT")],
        ["1 rebalance began with an error that nothing above explains"],
    ),
}


def test_a_group_is_healthy_if_its_lines_show_that_and_else_it_is_said_why_not(lakehouse):
    it = judged(lakehouse, *({**own, "group_id": group} for group, (rows, _) in CASES.items() for own in rows))
    assert sorted(group for _, group in it.healthy) == sorted(group for group, (_, whys) in CASES.items() if not whys)
    told = {group: [gap.why for gap in it.gaps if group in gap.groups] for group in CASES}
    assert {group: [why.partition(":")[0] for why in whys] for group, whys in told.items()} == {
        group: whys for group, (_, whys) in CASES.items()
    }
    for group, (rows, whys) in CASES.items():
        if UNEXPLAINED in whys:
            shown = "f:7" if rows[-1]["position"] else f"“{rows[-1]['reason']}”"
            assert shown in told[group][0]


def test_a_trouble_of_a_client_alone_is_told_before_what_is_missing(lakehouse):
    it = judged(lakehouse, client(reason="Fetch position FetchPosition{offset=3} is out of range: error"))
    assert [(gap.groups, gap.why.partition(":")[0]) for gap in it.gaps] == [(("payments",), why) for why in (UNEXPLAINED, BY_CLIENTS)]
    assert "“Fetch position FetchPosition{offset=3} is out of range: error”" in it.gaps[0].why


def test_an_entry_explains_a_line_about_the_instance_id_that_it_names(lakehouse):
    fenced = [
        line("", 5_000, kind=e.INSTANCE_FENCED, origin="f", position=at, instance_id=i, **COORDINATOR) for at, i in ((7, "i"), (8, "j"))
    ]
    told = finding(code="FENCED_INSTANCE", occurred_at=DAY + 6_000, details=json.dumps({"instance_id": "i"}))
    (gap,) = judged(lakehouse, *SPOKEN, *fenced, told).gaps
    assert (gap.why.partition(":")[0], "f:8" in gap.why) == (UNEXPLAINED, True)


FETCH = "Error sending fetch request (sessionId=1, epoch=46) to node {}:"
UNREACHED = {
    "fetch": (FETCH.format(1), 5_000, True),
    "long before": (FETCH.format(1), 5_000 - 10_001, False),
    "long afterwards": (FETCH.format(1), 15_001, False),
    "another node": (FETCH.format(2), 5_000, False),  # the entry tells of node 1
    "commit": (f"{COMMIT}: The request timed out.", 5_000, True),
    "another error": (COMMIT, 5_000, False),
}


def test_that_a_client_cannot_reach_a_broker_is_explained_by_what_happened_to_it(lakehouse):
    details = json.dumps({"from_broker": "b1", "to_broker": "b2", "members_lost": []})
    moved = finding(group_id="moved", code="COORDINATOR_MOVED", occurred_at=DAY + 5_000, details=details)
    for group, (reason, at, _) in UNREACHED.items():
        spoken = [line(group, broker="b1", coordinator_id=1, **COORDINATOR), transition("Stable", 0, 1, group=group)]
        write(lakehouse, *spoken, {**client(at=at, reason=reason), "group_id": group}, app=group)
    assert {group for gap in judged(lakehouse).gaps for group in gap.groups} == set(UNREACHED)
    unexplained = {group for gap in judged(lakehouse, moved).gaps for group in gap.groups}
    assert unexplained == {group for group, (_, _, explained) in UNREACHED.items() if not explained}
    assert {group for group in UNREACHED if judged(lakehouse, group=group).gaps} == unexplained, "also in a report of the group alone"


def test_what_track_has_not_read_is_not_judged(lakehouse):
    """`ingest.py` without `track.py`, or a run that was killed between both; a minute is what a run that goes on may be behind."""
    check_layout(Lakehouse(lakehouse), Settings())
    hour = 3_600_000
    write(lakehouse, line(**COORDINATOR), line("orders", **COORDINATOR), STABLE, transition("Stable", 0, 1, group="orders"), app=INGEST)
    write(lakehouse, line(at=hour, **COORDINATOR), line(at=2 * hour, **COORDINATOR), app=INGEST, batch=1)
    alone = read_overview(lakehouse).judgement
    assert alone.healthy == []
    assert {gap.groups for gap in alone.gaps} == {("orders", "payments")}
    assert "lines since 2026-11-21 00:00:00 UTC were read but not evaluated yet" in alone.gaps[0].why
    track_is_at(lakehouse, 0)
    behind = read_overview(lakehouse).judgement
    assert (behind.healthy, [gap.groups for gap in behind.gaps]) == ([("c", "orders")], [("payments",)])
    assert read_overview(lakehouse, Scope(until="00:30")).judgement.all_clear, "the time that is asked for was tracked"
    track_is_at(lakehouse, 1)
    assert read_overview(lakehouse).judgement.all_clear


def test_nobody_is_sent_for_lines_that_are_on_the_way(lakehouse):
    """A row that waits for lines which may show its cause, and a group that rebalances where a pipeline goes on reading."""
    check_layout(Lakehouse(lakehouse), Settings())
    waiting = provisional(group="payments", cause="UNKNOWN", members_before=2)
    rows = [line(**COORDINATOR), STABLE, waiting, line("orders", **COORDINATOR), transition("PreparingRebalance", 0, 1, group="orders")]
    write(lakehouse, *rows, app=INGEST)
    track_is_at(lakehouse, 0)
    told = {gap.groups[0]: gap for gap in read_overview(lakehouse).judgement.gaps}
    assert told["payments"].why == "the cause of 1 of its 1 rebalance is not known yet"
    assert {gap.next for gap in told.values()} == {"Wait for the lines that come next: `rebalance run` reads them."}
    assert set(told) == {"payments", "orders"}


@pytest.mark.parametrize(("error", "judged_groups"), [(0, set()), (30, {"reader"})], ids=["answered", "refused"])
def test_a_group_that_is_only_looked_up_is_none_to_judge(lakehouse, error, judged_groups):
    """As tools do, and consumers with assign(): the pipeline's own are such."""
    asked = {"group": "reader", "source": "request"}
    found = line(**asked, kind=e.FIND_COORDINATOR, error_code=0)
    it = judged(lakehouse, line(**COORDINATOR), STABLE, found, line(**asked, at=10, kind=e.OFFSET_FETCH, error_code=error))
    assert it.healthy == [("c", "payments")]
    assert {group for gap in it.gaps for group in gap.groups} == judged_groups


def test_a_group_whose_coordinator_alone_was_asked_for_may_have_members_later(lakehouse):
    (gap,) = judged(lakehouse, line(kind=e.FIND_COORDINATOR, source="request", error_code=15)).gaps
    assert gap.why == "it was only looked up (FIND_COORDINATOR), and no line shows a member"
    assert gap.next.endswith(" names it), after 2026-11-21 00:00:00 UTC.")


def test_nothing_is_healthy_by_application_logs_alone(lakehouse):
    it = judged(lakehouse, line(broker="clients", source="client", kind=e.CLIENT_JOINED))
    (gap,) = it.gaps
    assert not it.healthy
    assert gap.groups == ("payments",)
    assert gap.why.startswith("only application logs mention it")
    assert "--describe --state --group 'payments'" in gap.next


def test_groups_of_which_the_same_is_missing_share_a_gap(lakehouse):
    it = judged(lakehouse, line("a"), line("b"), line("c"))
    assert reasons(it) == [(("a", "b", "c"), "no line shows its state")]


@pytest.mark.parametrize(
    "explained",
    [{"evidence": '[{"source": "coordinator", "origin": "f", "position": 7}]'}, {"member_id": "m", "occurred_at": DAY + 4_000}],
    ids=["the line proves it", "it is about the member, at that time"],
)
def test_an_entry_explains_a_line_that_names_no_group(lakehouse, explained):
    fenced = line("", 5_000, kind=e.INSTANCE_FENCED, origin="f", position=7, member_id="m", **COORDINATOR)
    it = judged(lakehouse, line("b", **COORDINATOR), transition("Stable", 0, 1) | {"group_id": "b"}, fenced)
    assert [gap.groups for gap in it.gaps] == [()]
    assert judged(lakehouse, finding(code="FENCED_INSTANCE", **explained)).gaps == []


def test_a_failed_join_of_a_rebalance_that_is_told_is_no_trouble(lakehouse):
    failed = line(at=5_000, kind=e.CLIENT_REJOINS, broker="clients", source="client", reason=OVERTAKEN)
    assert judged(lakehouse, line(**COORDINATOR), STABLE, failed).gaps
    assert judged(lakehouse, rebalance(start=4_000, members_before=1)).all_clear


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


def test_a_group_that_such_a_line_names_is_not_healthy(lakehouse):
    refused = row(
        "quarantine", broker="b1", reason="TIMESTAMP_OUTLIER", origin="f", position=3, raw="[Consumer clientId=c, groupId=payments] x"
    )
    it = judged(lakehouse, line(**COORDINATOR), STABLE, refused)
    assert it.healthy == []
    assert reasons(it) == [(("payments",), "1 line that may be about it could not be read, such as f:3, TIMESTAMP_OUTLIER")]


def test_a_group_is_judged_in_what_was_asked_for(lakehouse):
    trouble = line("a", 5_000, kind=e.MEMBER_FAILED, origin="f", position=1, **COORDINATOR)
    rows = [line("a", **COORDINATOR), line("b", 90_000, **COORDINATOR), trouble]
    rows += [transition("Stable", 0, 1) | {"group_id": group} for group in "ab"]
    assert [gap.groups for gap in judged(lakehouse, *rows).gaps] == [("a",)]
    assert judged(lakehouse, group="b").all_clear
    assert judged(lakehouse, since="2026-11-21T00:00:10").all_clear


def test_a_line_about_the_place_of_other_groups_is_not_about_a_group(lakehouse):
    kept = [line(group, coordinator_partition=at, **COORDINATOR) for group, at in (("a", 1), ("b", 2))]
    failed = line("", 5_000, kind=e.COORDINATOR_NOTE, reason="Writing records failed due to: error", coordinator_partition=1, **COORDINATOR)
    write(lakehouse, *kept, failed, *(transition("Stable", 0, 1, group=group) for group in "ab"))
    assert [[gap.groups for gap in judged(lakehouse, group=group).gaps] for group in ("a", "b", None)] == [[()], [], [()]]
