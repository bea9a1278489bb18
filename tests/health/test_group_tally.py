"""Metrics of groups: what is counted, how groups are, what a limit leaves out, and what increase() sees."""

from types import SimpleNamespace

import pytest
from prometheus_client import generate_latest

from jobs.health.group_tally import GroupTally, label
from tests.health.metrics_text import read_metrics
from tests.lakehouse.rows import DAY, empty_lakehouse, open_rebalance, row, write


@pytest.fixture
def now():
    return SimpleNamespace(seconds=0.0)


@pytest.fixture
def tally(now):
    return GroupTally(3, first_seconds=60, clock=lambda: now.seconds)


def scraped(tally):
    return read_metrics(generate_latest(SimpleNamespace(collect=tally.metrics)))


def metrics(tally, now):
    """The metrics once every series has shown its 0."""
    scraped(tally)
    now.seconds += 60
    return scraped(tally)


def ended(group="g", *, at=1_000, members=2, table="rebalances", **values):
    return row(table, group_id=group, ended_at=DAY + at, members_after=members, cause="MEMBER_LEFT", **values)


def changed(state, group="g", *, at=1_000):
    return row("group_transitions", group_id=group, to_state=state, occurred_at=DAY + at)


def finding(group="g", code="POLL_TIMEOUT"):
    return row("findings", group_id=group, code=code, severity="ERROR")


def test_rebalances_are_counted_by_cause_with_what_they_cost(tally, now):
    tally.tracked({"rebalances": [ended(total_ms=1_500, unavailable_partition_ms=2_500), ended(at=2_000), ended("other")]})
    seen = metrics(tally, now)
    assert seen.value("rebalance_group_rebalances_total", cluster="c", group="g", cause="MEMBER_LEFT") == 2
    assert seen.value("rebalance_rebalances_total", cluster="c", cause="MEMBER_LEFT") == 3
    assert seen.value("rebalance_group_rebalance_seconds_total", cluster="c", group="g") == 1.5
    assert seen.value("rebalance_group_unavailable_partition_seconds_total", cluster="c", group="g") == 2.5
    assert seen.value("rebalance_unavailable_partition_seconds_total", cluster="c") == 2.5
    assert seen.value("rebalance_group_last_rebalance_timestamp_seconds", cluster="c", group="g") == DAY / 1_000 + 2


def test_costs_that_no_line_shows_are_counted_since_the_sums_lack_them(tally, now):
    tally.tracked({"rebalances": [ended(total_ms=None, unavailable_partition_ms=None), ended(total_ms=1_500, unavailable_partition_ms=0)]})
    seen = metrics(tally, now)
    assert seen.value("rebalance_rebalance_seconds_total", cluster="c") == 1.5
    for of in ("rebalance_seconds", "unavailable_partition_seconds"):
        assert seen.value("rebalance_unknown_costs_total", cluster="c", sum=of) == 1


def test_findings_are_counted_by_code(tally, now):
    tally.tracked({"findings": [finding(), finding(), finding(code="X")]})
    tally.tracked({"findings": [finding()]})
    seen = metrics(tally, now)
    assert seen.value("rebalance_group_findings_total", cluster="c", group="g", code="POLL_TIMEOUT", severity="ERROR") == 3
    assert seen.value("rebalance_findings_total", cluster="c", code="X", severity="ERROR") == 1


def test_a_provisional_row_tells_the_members_and_counts_nothing(tally, now):
    tally.tracked({"rebalances_provisional": [ended(table="rebalances_provisional", members=5)]})
    seen = metrics(tally, now)
    assert seen.value("rebalance_group_members", cluster="c", group="g") == 5
    assert not [name for name, _ in seen.samples if name.endswith("_total")]


def test_a_rebalance_that_is_open_has_metrics_until_it_ends(tally):
    since, overdue = "rebalance_group_open_since_timestamp_seconds", "rebalance_group_open_overdue"
    tally.tracked({"rebalances_provisional": [open_rebalance("g", start=4_000, total=6_000, limit_ms=30_000)]})
    seen = scraped(tally)
    assert (seen.value(since, cluster="c", group="g"), seen.value(overdue, cluster="c", group="g")) == (DAY / 1_000 + 4, 0)
    tally.tracked({"rebalances_provisional": [open_rebalance("g", start=4_000, total=30_000, limit_ms=30_000)]})
    assert scraped(tally).value(overdue, cluster="c", group="g") == 1
    tally.tracked({"rebalances_provisional": [open_rebalance("g", start=4_000, total=30_000, limit_ms=30_000, outcome="ENDED")]})
    assert not {since, overdue} & {name for name, _ in scraped(tally).samples}


def test_a_group_is_in_one_state_the_newest(tally):
    tally.tracked({"group_transitions": [changed("Stable", at=5), changed("PreparingRebalance", at=6), changed("Empty", at=4)]})
    assert scraped(tally).labelled("rebalance_group_state", "state") == {"PreparingRebalance": 1}
    tally.tracked({"group_transitions": [changed("Stable", at=6)]})
    assert scraped(tally).labelled("rebalance_group_state", "state") == {"Stable": 1}


def test_an_empty_group_has_no_members_and_a_deleted_one_no_state(tally):
    tally.tracked({"rebalances": [ended(at=1, members=3)], "group_transitions": [changed("Empty", at=2)]})
    assert scraped(tally).value("rebalance_group_members", cluster="c", group="g") == 0
    tally.tracked({"rebalances": [ended(at=3, members=4)]})
    assert scraped(tally).value("rebalance_group_members", cluster="c", group="g") == 4
    tally.tracked({"group_transitions": [changed("Dead", at=4)]})
    assert not {"rebalance_group_members", "rebalance_group_state"} & {name for name, _ in scraped(tally).samples}


def test_a_new_series_stands_at_0_until_every_scraper_has_seen_that(tally, now):
    labels = {"cluster": "c", "group": "g", "code": "POLL_TIMEOUT", "severity": "ERROR"}
    tally.tracked({"findings": [finding()]})
    now.seconds = 100  # nobody has scraped yet
    for second, value in ((100, 0), (115, 0), (159, 0), (160, 1)):
        now.seconds = second
        assert scraped(tally).value("rebalance_group_findings_total", **labels) == value
    tally.tracked({"findings": [finding()]})
    assert scraped(tally).value("rebalance_group_findings_total", **labels) == 2


def test_groups_beyond_the_limit_count_for_their_cluster_alone(tally, now):
    tally.tracked({"findings": [finding(f"g{number}") for number in range(5)]})
    seen = metrics(tally, now)
    assert set(seen.labelled("rebalance_group_findings_total", "group")) == {"g0", "g1", "g2"}
    assert seen.value("rebalance_findings_total", cluster="c", code="POLL_TIMEOUT", severity="ERROR") == 5
    assert seen.value("rebalance_group_rows_left_out_total", cluster="c") == 2


def test_a_deleted_group_makes_room_for_another(tally, now):
    tally.tracked({"findings": [finding(f"g{number}") for number in range(3)]})
    metrics(tally, now)
    tally.tracked({"group_transitions": [changed("Dead", "g1")]})
    tally.tracked({"findings": [finding("g3")]})
    assert set(metrics(tally, now).labelled("rebalance_group_findings_total", "group")) == {"g0", "g2", "g3"}


def test_long_names_are_cut_and_stay_apart():
    names = {label("x" * 32_767), label("x" * 32_766), label("x" * 199)}
    assert len(names) == 3
    assert max(map(len, names)) == 200


def test_how_groups_were_is_read_from_the_tables(tmp_path, tally):
    lake = empty_lakehouse(tmp_path / "lake")
    write(lake, ended(members=1, at=1), ended(members=3, at=2), changed("PreparingRebalance", at=1), changed("Stable", at=2))
    write(lake, ended("gone", at=3), changed("Dead", "gone", at=4), batch=1)
    tally.tracked({"rebalances": [ended("new", members=7)]})
    tally.seed(lake)
    seen = scraped(tally)
    assert seen.labelled("rebalance_group_members", "group") == {"g": 3, "new": 7}
    assert seen.labelled("rebalance_group_state", "group") == {"g": 1}
    tally.seed(tmp_path / "none")


def test_what_is_seen_live_is_newer_than_what_the_tables_say(tmp_path, tally):
    lake = empty_lakehouse(tmp_path / "lake")
    write(lake, ended(members=1, at=1), changed("Empty", at=1))
    tally.tracked({"rebalances": [ended(members=2, at=2)], "group_transitions": [changed("Stable", at=2)]})
    tally.seed(lake)
    assert scraped(tally).value("rebalance_group_members", cluster="c", group="g") == 2
    assert scraped(tally).labelled("rebalance_group_state", "state") == {"Stable": 1}


def test_what_is_open_is_read_from_the_tables_unless_it_was_seen_to_end(tmp_path, tally):
    lake = empty_lakehouse(tmp_path / "lake")
    write(lake, open_rebalance("g", total=30_000, limit_ms=30_000), open_rebalance("done"), open_rebalance("seen"))
    write(lake, open_rebalance("done", outcome="ENDED"), batch=1)
    tally.tracked({"rebalances_provisional": [open_rebalance("seen", outcome="ENDED")]})
    tally.seed(lake)
    assert scraped(tally).labelled("rebalance_group_open_overdue", "group") == {"g": 1}
