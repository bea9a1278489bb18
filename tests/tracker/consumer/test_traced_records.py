"""What the records of the 231 traces tell, alone and beside logs: nothing wrong, all rounds and ends, and nothing less than logs alone."""

from collections import Counter

import pytest

from tests.effort import every, long
from tests.tracker.consumer.traced import CAUSES, LIES, LOG, RECORDS_TOPIC, REQUESTS, START_MS, rounds_of, rows_of, told, trace, traces

pytestmark = pytest.mark.slow

RECORDS = frozenset({RECORDS_TOPIC})


def with_truth(one_in: int) -> dict[str, list[dict]]:
    """The episodes of each trace, but of cases whose group was a classic one, too: those have none in the truth."""
    return {
        name: episodes
        for name, (case, episodes) in traces(one_in).items()
        if name not in LIES and not any(one.get("expect", {}).get("group_after", {}).get("type") == "classic" for one in case["steps"])
    }


def compared(one_in: int, evidence: frozenset[str]) -> tuple[Counter[str], list[str]]:
    """How many rounds have their cause and member, by cause; what is missing; and what is wrong."""
    counts, wrong = Counter(), []
    for name, episodes in with_truth(one_in).items():
        truth = rounds_of(episodes)
        still_open = rounds_of([episode for episode in episodes if episode["end_ms"] is None])  # they are told when they end
        for row in told(name, evidence)[1]:
            what, found = truth.pop((row["epoch"], row["started_at"] - START_MS), None), (row["cause"], row["member_id"])
            counts[f"{what[0]} {'told' if found == what else 'unknown'}" if what else "not true"] += 1
            if what is None or found not in (what, ("UNKNOWN", None)):
                wrong.append(f"{name} {row['epoch']}: {what} told as {found}")
        counts["missing"] += len(truth.keys() - still_open.keys())
    return counts, wrong


def test_records_alone_show_every_round_and_all_causes_but_departures(one_in):
    """Why a member is gone is the one thing that they do not show, except for the end of its rebalance timeout."""
    counts, wrong = compared(one_in, RECORDS)
    assert wrong == []
    assert counts["missing"] == 0
    assert {cause for cause in CAUSES.values() if counts[f"{cause} unknown"] > 2} == {"MEMBER_LEFT", "SESSION_TIMEOUT"}
    assert {cause for cause in CAUSES.values() if counts[f"{cause} told"]} == {*CAUSES.values()} - {"MEMBER_LEFT", "SESSION_TIMEOUT"}
    # Two at most, of which a new coordinator began the time anew.
    assert {cause for cause in CAUSES.values() if 0 < counts[f"{cause} unknown"] <= 2} <= {"REBALANCE_TIMEOUT"}


@pytest.mark.parametrize("log", [{LOG}, long({LOG, REQUESTS})], ids=["coordinator log", "both logs"])
def test_beside_the_coordinators_log_every_cause_is_known(one_in, log):
    counts, wrong = compared(one_in, RECORDS | log)
    assert wrong == []
    assert counts["missing"] <= 1
    assert sum(counts[f"{cause} unknown"] for cause in CAUSES.values()) == 0


def test_beside_the_request_log_departures_are_known_and_most_silences(one_in):
    counts, wrong = compared(one_in, RECORDS | {REQUESTS})
    assert wrong == []
    assert counts["missing"] == 0
    assert counts["MEMBER_LEFT unknown"] == 0
    assert counts["SESSION_TIMEOUT told"] >= 60 // one_in  # in most traces nobody else sends a heartbeat soon, as all would in a real group


@pytest.mark.parametrize("log", [set(), {REQUESTS}], ids=["alone", "beside the request log"])
def test_records_show_where_rebalances_begin_and_end(one_in, log):
    for name, episodes in with_truth(one_in).items():
        rows = told(name, RECORDS | log)[0]
        found = {(r["first_epoch"], r["generation"], r["started_at"] - START_MS, r["ended_at"] - START_MS) for r in rows}
        assert found == {(e["first_epoch"], e["last_epoch"], e["start_ms"], e["end_ms"]) for e in episodes if e["end_ms"] is not None}, name
        assert all(row["end_seen"] and row["start_seen"] for row in rows)


def test_records_show_how_long_partitions_had_no_owner(one_in):
    """Partitions that had none before, because nobody subscribed to them or the group was Empty, do not count.

    What it costs that a group has become Empty shows when somebody comes.
    """
    for name, episodes in with_truth(one_in).items():
        waits = [
            sum(one["until_ms"] - one["from_ms"] for one in episode["unowned"] if one["from_ms"] >= episode["start_ms"])
            for episode in episodes
            if episode["end_ms"] is not None
        ]
        rows = told(name, RECORDS)[0]
        emptied = [row["outcome"] == "EMPTIED" for row in rows]
        assert [row["unavailable_partition_ms"] for row in rows] == [None if e else w for e, w in zip(emptied, waits, strict=True)], name


LESS = [long(frozenset({LOG})), frozenset({LOG, REQUESTS})]


@pytest.mark.parametrize("log", LESS, ids=["coordinator log", "both logs"])
def test_records_beside_logs_lose_no_membership_and_no_finding(one_in, log):
    for name in traces(one_in).keys() - LIES:
        for table, columns in (("member_sessions", ("member_id", "end_kind")), ("findings", ("code", "member_id"))):
            less, more = (
                Counter(tuple(row.values[c] for c in columns) for row in rows_of(name, evidence, 0) if row.table == table)
                for evidence in (log, log | RECORDS)
            )
            assert less <= more, (name, table)


AT_ONCE = ("random/3", "$m4", "SESSION_TIMEOUT")
"""The only member of a group falls silent. Its next heartbeat shows why it was removed. In the same millisecond the group itself is."""


def test_records_beside_the_request_log_lose_no_departure_but_one_in_the_millisecond_of_its_groups_removal(one_in):
    lost, named = [], 0
    for name in with_truth(one_in):
        less, more = (
            Counter(
                (row.values["member_id"], row.values["end_kind"]) for row in rows_of(name, evidence, 0) if row.table == "member_sessions"
            )
            for evidence in (frozenset({REQUESTS}), RECORDS | {REQUESTS})
        )
        named += sum(number for (_, kind), number in less.items() if kind == "SESSION_TIMEOUT")
        lost += [(name, *one) for one in less - more if one[1] in {"SESSION_TIMEOUT", "LEFT"}]
    assert named >= 60 // one_in
    assert {*lost} <= {AT_ONCE}


@pytest.mark.parametrize("log", LESS, ids=["coordinator log", "both logs"])
def test_records_beside_logs_tell_no_round_twice_and_contradict_only_what_was_wrong(one_in, log):
    for name, episodes in with_truth(one_in).items():
        truth = rounds_of(episodes)
        less, more = (told(name, evidence)[1] for evidence in (log, log | RECORDS))
        after = {(row["epoch"], row["started_at"]): (row["cause"], row["member_id"]) for row in more}
        assert len(after) == len(more)
        for row in less:
            key, before = (row["epoch"], row["started_at"]), (row["cause"], row["member_id"])
            what = truth.get((row["epoch"], row["started_at"] - START_MS))
            if key in after and before == what:
                assert after[key] == before, (name, key)


LOGS = frozenset({LOG, REQUESTS})
MORE = [
    (frozenset({LOG}), LOGS, 0),
    (frozenset({REQUESTS}), LOGS, 0),
    (LOGS, LOGS | RECORDS, 0),
    (RECORDS, RECORDS | {LOG}, 0),
    (RECORDS, RECORDS | {REQUESTS}, 0),
    (RECORDS | {REQUESTS}, LOGS | RECORDS, 0),
    (frozenset({REQUESTS}), RECORDS | {REQUESTS}, 1),  # AT_ONCE, as above
]


def right(name: str, evidence: frozenset[str]) -> set[tuple[int, str, str | None]]:
    """Causes and members that are told of epochs, and are those of the truth."""
    truth: dict[int, set[tuple[str, str | None]]] = {}
    for episode in trace(name)[1]:
        for (epoch, _), what in rounds_of([episode]).items() if episode["end_ms"] is not None else ():
            truth.setdefault(epoch, set()).add(what)
    return {
        (row["epoch"], row["cause"], row["member_id"])
        for row in told(name, evidence)[1]
        if any(row["cause"] == cause and row["member_id"] in (member, None) for cause, member in truth.get(row["epoch"], ()))
    }


@pytest.mark.parametrize(
    ("less", "more", "most"), every(2, MORE), ids=lambda value: " and ".join(sorted(value)) if isinstance(value, frozenset) else ""
)
def test_more_evidence_loses_no_cause_and_no_member_that_was_right(one_in, less, more, most):
    lost = []
    for name in traces(one_in).keys() - LIES:
        after = right(name, more)
        unnamed = {(epoch, cause, None) for epoch, cause, _ in after}
        lost += [(name, *one) for one in right(name, less) - after - unnamed]
    assert len(lost) <= most, lost
