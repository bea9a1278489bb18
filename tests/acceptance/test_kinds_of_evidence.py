"""Both recordings with each kind of evidence: the tables break no law, and more evidence never tells less."""

from __future__ import annotations

import json
from functools import cache

import pytest

from jobs.answers.check import check
from jobs.answers.report import Scope, read_report
from jobs.common.settings import Settings
from jobs.laws.laws import breaches
from jobs.pipeline import at_once
from scripts.truth import recordings, second_opinion, truth
from scripts.truth.recordings import ALL, BOTH, COORDINATOR_LOG, EVIDENCE, LOG_AND_CLIENTS, REQUEST_LOG
from tests.acceptance.sharper import as_sharp
from tests.dashboard.saved_page import page_of, told

pytestmark = pytest.mark.slow

RECORDINGS = {recording.name: recording for recording in recordings.read_all([])}
MORE = [
    (COORDINATOR_LOG, BOTH),
    (REQUEST_LOG, BOTH),
    (BOTH, ALL),
    (COORDINATOR_LOG, LOG_AND_CLIENTS),
    (LOG_AND_CLIENTS, ALL),
]

SAME_MS = 60_000


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    zones = recordings.stage(list(RECORDINGS.values()), folder / "input")
    settings = Settings(timezones=tuple(sorted(zones.items())), shards=8)
    assert at_once.process(folder / "input", folder / "lake", settings=settings, most_lines=1 << 30)
    return folder


@pytest.fixture(scope="module")
def tables(tracked):
    clusters = [recordings.cluster(recording, evidence) for recording in RECORDINGS.values() for evidence in EVIDENCE]
    return {cluster: recordings.tables(tracked / "lake", cluster) for cluster in clusters}


def test_no_law_is_broken_and_every_line_of_evidence_is_there(tracked):
    found = check(tracked / "lake", [tracked / "input"])
    assert found.breaches == []
    assert found.lines > 5_000
    assert found.lines_gone == 0


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_page_names_cause_and_culprit_of_all_that_was_done_and_that_the_tables_show(tracked, name):
    recording = RECORDINGS[name]
    report = read_report(tracked / "lake", Scope(cluster=recordings.cluster(recording, ALL)), limit=200)
    page = page_of(tracked / "lake", report, [tracked / "input"])
    assert len(page.source.encode()) < 3_000_000
    lines = [line for answer in page.at("evidence/") for line in answer["lines"]]
    assert lines
    assert all(line["text"] for line in lines)
    texts = told(page)
    shown = [(row["code"], row["group_id"], row["client_id"]) for row in report.findings]
    shown += [(row["blamed"], row["group_id"], row["culprit_client_id"]) for row in report.rebalances]
    checked = set()
    for row in recording.truth:
        labels = truth.labels(row)
        codes = {code for label in labels for code in (*truth.FINDING_CODES.get(label, ()), truth.REBALANCE_CAUSES.get(label))}
        client = "" if truth.OF_GROUPS & set(labels) else row["client_id"] or ""
        for code, group, culprit in shown:
            if code in codes and group == row["group"] and client in ("", culprit):
                assert any(code in text and group in text and client in text for text in texts), (code, group, client)
                checked.add((code, group, client))
    assert len(checked) >= 12


def test_the_laws_can_be_broken_by_these_rows(tables):
    """Or the test above would show little: a departure that is left out breaks one."""
    rows = tables[recordings.cluster(RECORDINGS["kafka-3.9.1"], BOTH)]
    departure = next(row for row in rows["rebalances"] if row["left"])
    changed = [row | {"left": []} if row is departure else row for row in rows["rebalances"]]
    assert {breach.law for breach in breaches(rows | {"rebalances": changed})} >= {"COUNTS_ADD_UP"}


@cache
def generations(name):
    return second_opinion.generations(RECORDINGS[name].folder, RECORDINGS[name].zone)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_second_reading_of_the_lines_says_the_same(tables, name, evidence):
    rows = tables[recordings.cluster(RECORDINGS[name], evidence)]["rebalances"]
    opinion = second_opinion.compare(generations(name), rows, exact=evidence != REQUEST_LOG)
    assert opinion.differences == []
    assert opinion.checked.total() > 600


def pairs(tables, name, less, more):
    """The tables with less evidence and those with more."""
    return (tables[recordings.cluster(RECORDINGS[name], evidence)] for evidence in (less, more))


@pytest.mark.parametrize("name", sorted(RECORDINGS))
@pytest.mark.parametrize(("less", "more"), MORE)
def test_more_evidence_tells_the_same_rebalances(tables, name, less, more):
    one, other = pairs(tables, name, less, more)

    def told(rows):
        return {(row["group_id"], row["generation"], row["outcome"]): row for row in rows["rebalances"] if row["outcome"] != "ABANDONED"}

    before, after = told(one), told(other)
    assert before.keys() == after.keys()
    for key, row in before.items():
        assert as_sharp(row["cause"], after[key]["cause"]), key
        for column in ("members_before", "members_after"):
            assert row[column] in (None, after[key][column]), (key, column)
        assert len(row["left"]) + row["left_unnamed"] == len(after[key]["left"]) + after[key]["left_unnamed"], key


@pytest.mark.parametrize("name", sorted(RECORDINGS))
@pytest.mark.parametrize(("less", "more"), MORE)
def test_more_evidence_loses_no_finding(tables, name, less, more):
    one, other = pairs(tables, name, less, more)
    lost = [row for row in one["findings"] if not any(same(row, found) for found in other["findings"])]
    assert [(row["group_id"], row["code"], row["member_id"], row["client_id"]) for row in lost] == []


def same(row, found):
    """Whether a finding tells of the same fact."""
    if (
        row["group_id"] != found["group_id"]
        or abs(row["occurred_at"] - found["occurred_at"]) > SAME_MS
        or not as_sharp(row["code"], found["code"])
    ):
        return False
    lost = json.loads(found["details"]).get("members_lost", [])
    ids = {found["member_id"], found["client_id"]} - {None}
    own = {row["member_id"], row["client_id"]} - {None}
    # A coordinator's log has a static member's group.instance.id, which here is its client.id too, in front of the member id.
    return not own or bool(own & {*ids, *lost}) or any(str(member).startswith(f"{client}-") for member in own for client in ids)


@pytest.mark.parametrize("name", sorted(RECORDINGS))
@pytest.mark.parametrize(("less", "more"), MORE)
def test_more_evidence_loses_no_membership(tables, name, less, more):
    one, other = pairs(tables, name, less, more)
    after = {row["member_id"]: row for row in other["member_sessions"]}
    for row in one["member_sessions"]:
        assert as_sharp(row["end_kind"], after[row["member_id"]]["end_kind"]), row["member_id"]
