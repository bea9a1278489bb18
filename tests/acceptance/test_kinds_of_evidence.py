"""Both recordings with each kind of evidence: the tables break no law, and more evidence never tells less."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest

from jobs.answers.check import check
from jobs.answers.report import Scope, read_report
from jobs.laws.laws import breaches
from scripts.truth import recordings, second_opinion
from scripts.truth.recordings import ALL, BOTH, COORDINATOR_LOG, EVIDENCE, LOG_AND_CLIENTS, REQUEST_LOG
from tests.acceptance.sharper import SHARPER, as_sharp
from tests.dashboard.saved_page import page_of, told
from tests.effort import long
from tests.made_once import DATA

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

COMES_BACK = {"UNKNOWN_MEMBER", "ILLEGAL_GENERATION", "FENCED_INSTANCE", "ZOMBIE_COMMIT"}
LABELS = {
    "LEADER_DIED_IN_SYNC": {"SESSION_TIMEOUT"},
    "FENCED": {"FENCED_INSTANCE"},
    "ZOMBIE": COMES_BACK,
    "ZOMBIE_COMMIT": COMES_BACK,
    "STORM": {"REBALANCE_STORM"},
    "GROUP_MAX_SIZE": {"GROUP_TOO_LARGE"},
    "COORDINATOR_FAILOVER": {"COORDINATOR_MOVED"},
    "PARTITIONS_ADDED": {"METADATA_CHANGED"},
    "SUBSCRIPTION_CHANGE": {"SUBSCRIPTION_CHANGED"},
    "ENFORCED": {"MEMBER_REJOINED"},
    **{code: {code} for code in ("SESSION_TIMEOUT", "POLL_TIMEOUT", "SLOW_JOINER", "SYNC_TIMEOUT", "ROLLING_RESTART")},
    **{code: {code} for code in ("INCONSISTENT_PROTOCOL", "INVALID_SESSION_TIMEOUT")},
}
"""Codes of findings and causes, one of which each label of truth.jsonl asks for."""
OF_GROUPS = {"STORM", "ROLLING_RESTART", "FENCED", "COORDINATOR_FAILOVER"}
"""Labels of a group: what is told may name any member."""
BY_CLIENTS_ALONE = ("telemetry-static", "findings", ("POLL_TIMEOUT", "oyKFMC/EQtW5cjwO2dIp0g"))


def actions(name):
    """What was done to the consumers of a recording, in truth.jsonl."""
    return [json.loads(line) for line in (DATA / "recordings" / name / "truth.jsonl").read_text(encoding="utf-8").splitlines()]


def truth(name):
    """What the tables have to tell of a recording (docs/truth.md): group, table, row."""
    lines = map(json.loads, (DATA / "told" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [(told["group"], table, tuple(row)) for told in lines for table in COLUMNS for row in told.get(table, ())]


COLUMNS = {
    "rebalances": ("generation", "cause", "member_id"),
    "rebalance_rounds": ("epoch", "cause", "client_id"),
    "findings": ("code", "member_id", "client_id"),
}


def told_by(rows):
    """The same of these rows of the tables. Of findings: the member, else the client."""
    told = [(row["group_id"], table, [row[name] for name in columns]) for table, columns in COLUMNS.items() for row in rows[table]]
    return [(group, table, (*row[:-2], row[-2] or row[-1]) if table == "findings" else tuple(row)) for group, table, row in told]


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
    for row in actions(name):
        labels = row["expect"].split("|")
        codes = {code for label in labels for code in LABELS.get(label, ())}
        client = "" if OF_GROUPS & set(labels) else row["client_id"] or ""
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
    """What less evidence says is compared with what more evidence says below; here, that it says enough, and blames nobody else."""
    rows = tables(name, evidence)
    true, found = (
        {(group, row[0]): row[1:] for group, table, row in told if table == "rebalances"} for told in (truth(name), told_by(rows))
    )
    assert len(true) == len(found) > 40
    # Many are without a coordinator at once: requests alone may show another of them first.
    assert all(who in (None, true[key][1]) or cause == "COORDINATOR_MOVED" for key, (cause, who) in found.items())
    right = sum(found[key][0] == true[key][0] for key in found)
    findings = [Counter((group, row[0]) for group, table, row in told if table == "findings") for told in (truth(name), told_by(rows))]
    assert {key for key, count in findings[1].items() if count > findings[0][key] and key[1] not in SHARPER} == set()
    if evidence in (BOTH, ALL):
        lacking, false = Counter(truth(name)), Counter(told_by(rows))
        assert false <= lacking
        assert lacking - false <= Counter({BY_CLIENTS_ALONE: evidence == BOTH})
    elif evidence == REQUEST_LOG:
        assert right >= 0.95 * len(true)
    else:
        assert "UNKNOWN" not in {cause for cause, _ in found.values()}


@pytest.mark.parametrize(
    ("table", "column"), [("rebalances", "cause"), ("rebalances", "member_id"), ("findings", "code"), ("findings", None)]
)
def test_a_row_that_is_wrong_or_there_twice_is_not_what_was_done(tables, table, column):
    rows = tables(SMALL, BOTH)
    own = rows[table] if column else [*rows[table], rows[table][0]]
    damaged = [{**row, column: "x"} if column and row is own[-1] else row for row in own]
    assert Counter(told_by(rows)) == Counter(truth(SMALL)) != Counter(told_by(rows | {table: damaged}))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_done_and_asks_for_a_finding_or_a_cause_has_it(name):
    """Of groups of the classic protocol, where the label leaves no choice. A static member may be replaced before a request is refused."""
    told = {(group, row[-2], row[-1]) for group, table, row in truth(name) if table != "rebalance_rounds"}
    asked = [row for row in actions(name) if row["group"] and row.get("protocol") != "consumer" and LABELS.get(row["expect"])]
    assert len(asked) > 10
    for row in asked:
        names = {row["client_id"], row["instance_id"], row["member_id"]} - {None}
        if row["expect"] == "ZOMBIE" and row["instance_id"]:
            continue
        rows = [who for group, code, who in told if group == row["group"] and code in LABELS[row["expect"]]]
        assert any(row["expect"] in OF_GROUPS or not names or (who or "").startswith(tuple(names)) for who in rows), row


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
