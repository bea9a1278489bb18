"""Both recordings with each kind of evidence: the tables break no law, and more evidence never tells less."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import pytest

from jobs.answers.check import check
from jobs.answers.report import Scope, read_report
from jobs.laws.laws import breaches
from scripts.truth import recordings, score, second_opinion, truth
from scripts.truth.recordings import ALL, BOTH, COORDINATOR_LOG, EVIDENCE, LOG_AND_CLIENTS, REQUEST_LOG
from tests.acceptance.sharper import as_sharp
from tests.dashboard.saved_page import page_of, told
from tests.effort import long

pytestmark = pytest.mark.slow

RECORDINGS = {recording.name: recording for recording in recordings.read_all([])}
MORE = [(COORDINATOR_LOG, BOTH), (REQUEST_LOG, BOTH), (BOTH, ALL), (COORDINATOR_LOG, LOG_AND_CLIENTS), (LOG_AND_CLIENTS, ALL)]

SAME_MS = 60_000


SMALL, OF_BOTH_PROTOCOLS = "kafka-3.9.1", "kafka-4.2.0"
NAMES = [SMALL, long(OF_BOTH_PROTOCOLS)]
CASES = [
    *((SMALL, evidence) for evidence in EVIDENCE),
    *((OF_BOTH_PROTOCOLS, ALL) if evidence == ALL else long(OF_BOTH_PROTOCOLS, evidence) for evidence in EVIDENCE),
]
"""Recordings, each with some evidence."""


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    """Gives the folder of a recording's tables with each kind of evidence."""
    return cache(lambda name: recordings.track([RECORDINGS[name]], tmp_path_factory.mktemp("kinds")).parent)


@pytest.fixture(scope="module")
def tables(tracked, recorded_lakehouse):
    """Gives those of a recording with some evidence."""

    @cache
    def read(name, evidence):
        if (name, evidence) == (OF_BOTH_PROTOCOLS, ALL):  # other tests have them
            return recordings.tables(recorded_lakehouse(f"recordings/{name}"), name)
        return recordings.tables(tracked(name) / "lake", recordings.cluster(RECORDINGS[name], evidence))

    return read


@pytest.mark.parametrize("name", NAMES)
def test_no_law_is_broken_and_every_line_of_evidence_is_there(tracked, name):
    found = check(tracked(name) / "lake", [tracked(name) / "input"])
    assert found.breaches == []
    assert found.lines > 1_000
    assert found.lines_gone == 0


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_cause_and_culprit_of_all_that_was_done_and_that_the_tables_show(tracked, name):
    recording = RECORDINGS[name]
    report = read_report(tracked(name) / "lake", Scope(cluster=recordings.cluster(recording, ALL)), limit=150)
    page = page_of(tracked(name) / "lake", report, [tracked(name) / "input"])
    assert len(page.source.encode()) < 3_100_000
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
    rows = tables(SMALL, BOTH)
    departure = next(row for row in rows["rebalances"] if row["left"])
    changed = [row | {"left": []} if row is departure else row for row in rows["rebalances"]]
    assert {breach.law for breach in breaches(rows | {"rebalances": changed})} >= {"COUNTS_ADD_UP"}


@cache
def generations(name):
    return second_opinion.generations(RECORDINGS[name].folder, RECORDINGS[name].zone)


@pytest.mark.parametrize(("name", "evidence"), CASES)
def test_a_second_reading_of_the_lines_says_the_same(tables, name, evidence):
    rows = tables(name, evidence)["rebalances"]
    opinion = second_opinion.compare(generations(name), rows, exact=evidence != REQUEST_LOG)
    assert opinion.differences == []
    assert opinion.checked.total() > 600


@pytest.mark.parametrize(
    ("column", "value"),
    [("left", []), ("members_before", 9), ("partitions_moved", 99), ("join_ms", 1), ("outcome", "SUPERSEDED"), ("left_unnamed", 1)],
)
def test_a_second_reading_names_a_wrong_column(tables, column, value):
    rows = tables(SMALL, BOTH)["rebalances"]
    departure = next(row for row in rows if row["left"] and row["partitions_moved"])
    damaged = [{**row, column: value} if row is departure else row for row in rows]
    opinion = second_opinion.compare(generations(SMALL), damaged, exact=True)
    (difference,) = opinion.differences
    assert f"{departure['group_id']} generation {departure['generation']}: {column.removesuffix('_unnamed')} is" in difference


def test_a_second_reading_misses_a_row(tables):
    rows = tables(SMALL, BOTH)["rebalances"]
    stable = next(row for row in rows if row["joined_at"])
    opinion = second_opinion.compare(generations(SMALL), [row for row in rows if row is not stable], exact=True)
    assert opinion.differences == [f"{stable['group_id']} generation {stable['generation']}: no row"]


@pytest.mark.parametrize(("name", "evidence"), CASES)
def test_causes_culprits_findings_and_rounds_are_what_was_done(tables, name, evidence):
    recording, rows = RECORDINGS[name], tables(name, evidence)
    card = score.compare(recording, evidence, rows)
    assert card.faults(evidence) == []
    assert card.rebalances == len(recording.classic) > 40
    assert name == SMALL or card.rounds["epochs"] == card.rounds["rounds"] == 15


class Damage(NamedTuple):
    """Something wrong in the tables, and what the score says of it."""

    table: str
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
    fault: str
    evidence: str = BOTH
    recording: str = SMALL


def without(column, value):
    """Leaves the first row with it out."""
    return lambda rows: [row for row in rows if row is not first(rows, column, value)]


def instead(column, value, **other):
    """Has other values in the first row with it."""
    return lambda rows: [{**row, **other} if row is first(rows, column, value) else row for row in rows]


def besides(column, value, **other):
    """Has the first row with it twice, the second time with other values."""
    return lambda rows: [*rows, {**first(rows, column, value), **other}]


def first(rows, column, value):
    return next(row for row in rows if row[column] == value)


OF_THE_OTHER = (ALL, OF_BOTH_PROTOCOLS)
CONTROL = "hotel-index"  # the healthy group
DAMAGES = {
    "a rebalance is left out": Damage("rebalances", without("cause", "MEMBER_LEFT"), "causes: 1 of"),
    "a rebalance is invented": Damage("rebalances", besides("cause", "MEMBER_LEFT", generation=99), "causes: 1 of"),
    "a cause is wrong": Damage("rebalances", instead("cause", "POLL_TIMEOUT", cause="MEMBER_JOINED"), "causes: 1 of"),
    "a cause is what the log alone says": Damage("rebalances", instead("cause", "POLL_TIMEOUT", cause="MEMBER_LEFT"), "causes: 1 of"),
    "a culprit is wrong": Damage("rebalances", instead("cause", "SESSION_TIMEOUT", member_id="x"), "culprits: 1 of"),
    "a cause is unknown": Damage(
        "rebalances", instead("cause", "SESSION_TIMEOUT", cause="UNKNOWN"), "causes: 0 wrong, 1 unknown", COORDINATOR_LOG
    ),
    "many causes are unknown": Damage(
        "rebalances", lambda rows: [{**row, "cause": "UNKNOWN"} for row in rows], "causes: only 0 of", REQUEST_LOG
    ),
    "a finding is left out": Damage("findings", without("code", "POLL_TIMEOUT"), "labels: 1 of"),
    "a finding is there twice": Damage("findings", besides("code", "POLL_TIMEOUT"), "findings: 1 false"),
    "a finding comes before it was done": Damage("findings", besides("code", "POLL_TIMEOUT", occurred_at=0), "findings: 1 false"),
    "a finding is about another client": Damage(
        "findings", besides("code", "SESSION_TIMEOUT", member_id=None, client_id="x"), "findings: 1 false"
    ),
    "a finding is about a healthy group": Damage("findings", besides("code", "SESSION_TIMEOUT", group_id=CONTROL), "healthy groups: 1"),
    "a restart is told twice": Damage("findings", besides("code", "ROLLING_RESTART"), "rolling restarts", COORDINATOR_LOG),
    "a restart is a storm": Damage("findings", besides("code", "ROLLING_RESTART", code="REBALANCE_STORM"), "storms", COORDINATOR_LOG),
    "the specification answers otherwise": Damage(
        "findings", besides("code", "ROLLING_RESTART", code="MODEL_DIVERGENCE"), "the specification", REQUEST_LOG
    ),
    "nobody joins": Damage("rebalances", lambda rows: [{**row, "joined": [], "member_id": None} for row in rows], "labels: "),
    "a round is left out": Damage("rebalance_rounds", without("cause", "MEMBER_LEFT"), "telemetry", *OF_THE_OTHER),
    "a round has another cause": Damage(
        "rebalance_rounds", instead("cause", "SESSION_TIMEOUT", cause="MEMBER_LEFT"), "telemetry", *OF_THE_OTHER
    ),
    "the cause of a round is unknown": Damage(
        "rebalance_rounds", instead("cause", "SESSION_TIMEOUT", cause="UNKNOWN"), "rounds: 1 of", *OF_THE_OTHER
    ),
    "no group dies": Damage("group_transitions", lambda _: [], "labels: ", *OF_THE_OTHER),
    "no static member comes back": Damage("member_sessions", lambda _: [], "labels: "),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_score_names_what_is_wrong(tables, damage, capsys):
    recording = RECORDINGS[damage.recording]
    rows = tables(damage.recording, damage.evidence)
    card = score.compare(recording, damage.evidence, rows | {damage.table: damage.change(rows[damage.table])})
    assert damage.fault in "\n".join(card.faults(damage.evidence))
    assert not score.print_scorecards(recording.name, {damage.evidence: card})
    assert f"FAULT {damage.fault}" in capsys.readouterr().out


def test_a_label_without_a_meaning_is_named(tables):
    recording = RECORDINGS[SMALL]
    new = replace(recording, truth=(*recording.truth, {**recording.truth[-1], "expect": "SOMETHING_NEW"}))
    card = score.compare(new, BOTH, tables(SMALL, BOTH))
    assert "label SOMETHING_NEW has no meaning here" in "\n".join(map(str, card.issues))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("less", "more"), MORE)
def test_more_evidence_tells_the_same_and_loses_nothing(tables, name, less, more):
    """The same rebalances, each finding, and how each membership ended."""
    one, other = (tables(name, evidence) for evidence in (less, more))
    before, after = rebalances(one), rebalances(other)
    assert before.keys() == after.keys()
    for key, row in before.items():
        assert as_sharp(row["cause"], after[key]["cause"]), key
        for column in ("members_before", "members_after"):
            assert row[column] in (None, after[key][column]), (key, column)
        assert len(row["left"]) + row["left_unnamed"] == len(after[key]["left"]) + after[key]["left_unnamed"], key
    lost = [row for row in one["findings"] if not any(same(row, found) for found in other["findings"])]
    assert [(row["group_id"], row["code"], row["member_id"], row["client_id"]) for row in lost] == []
    ends = {row["member_id"]: row["end_kind"] for row in other["member_sessions"]}
    for row in one["member_sessions"]:
        assert as_sharp(row["end_kind"], ends[row["member_id"]]), row["member_id"]


def rebalances(rows):
    """Those that had a result."""
    return {(row["group_id"], row["generation"], row["outcome"]): row for row in rows["rebalances"] if row["outcome"] != "ABANDONED"}


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
