"""What is told of the 525 traces of Kafka's own coordinator, and the episodes that follow from its state at every step.

Evidence is what brokers would have logged: the coordinator's lines, the answers to heartbeats, or both. Each shows less than the state.
"""

from collections import Counter
from itertools import combinations

import pytest

from jobs.laws.laws import breaches
from tests.effort import long
from tests.tracker.batching import batches
from tests.tracker.consumer.traced import (
    CAUSES,
    LIES,
    LOG,
    RECORDS_TOPIC,
    REQUESTS,
    START_MS,
    all_traces,
    answered,
    events_of,
    rounds_of,
    rows_of,
    told,
    trace,
)
from tests.tracker.story import play

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("evidence", "least_right", "most_wrong"), [({LOG, REQUESTS}, 0.97, 5), long({LOG}, 0.89, 5), long({REQUESTS}, 0.39, 3)]
)
def test_rounds_have_their_causes_or_none(one_in, evidence, least_right, most_wrong):
    """A round that is told has its cause and its member, or less: the coordinator's log does not say who changed its subscription.
    Since 4.3 it does not even say that somebody did, where the target came later: a line about a departure may be missing.

    Wrong are, of 4,628: members that join without a new epoch while something else raises it at the same moment; a vote for another
    assignor while a topic changes; several joins in one millisecond.
    """
    right, wrong, known = 0, Counter(), 0
    for name, (_, episodes) in all_traces(one_in).items():
        truth = rounds_of(episodes)
        known += len(truth)
        for row in told(name, frozenset(evidence))[1]:
            cause, member = truth.get((row["epoch"], row["started_at"] - START_MS), (None, None))
            if cause is not None and row["cause"] not in (cause, "UNKNOWN"):
                wrong[f"{name} {row['epoch']}: {cause} told as {row['cause']}"] += 1
            elif row["cause"] == cause and row["member_id"] not in (member, None):
                wrong[f"{name} {row['epoch']}: {cause} of {member} told of {row['member_id']}"] += 1
            right += cause is not None and row["cause"] == cause
    assert right >= (least_right if one_in == 1 else least_right - 0.03) * known  # among few random ones, cases weigh more
    assert wrong.total() <= most_wrong, wrong


AT_ONCE = {"random/31", "random/75", "random/95", "random/109"} | {
    *(f"{release}/lab43/{case}" for release in ("4.3.1", "4.4.0") for case in ("commit_classic", "classic_upgrade")),
    *(f"4.4.0/random/4.4.0/{seed}" for seed in (440014, 440041, 440055)),
}
"""Traces in which a rebalance ends in the millisecond in which another operation begins the next one, or in which one member gives a
partition up and its next owner asks for it. Two logs do not show the order of two operations in one millisecond."""


ENDED = {1: 1_923, 4: 773}
"""Rebalances that end, by how many of the traces are looked at: one in so many."""


def test_both_logs_show_where_rebalances_begin_and_end(one_in):
    """Episodes that are still open at the end of a trace are not told."""
    differs, ended = set(), 0
    for name, (case, episodes) in all_traces(one_in).items():
        if name in LIES or any(step.get("append_error") for step in case["steps"]):
            continue
        rows = told(name, frozenset({LOG, REQUESTS}))[0]
        found = {(r["first_epoch"], r["generation"], r["started_at"] - START_MS, r["ended_at"] - START_MS) for r in rows if r["end_seen"]}
        truth = {(e["first_epoch"], e["last_epoch"], e["start_ms"], e["end_ms"]) for e in episodes if e["end_ms"] is not None}
        differs |= {name} if truth - found else set()
        ended += len(truth)
    assert ended == ENDED[one_in]
    assert differs == AT_ONCE & all_traces(one_in).keys()


@pytest.mark.parametrize("evidence", [{LOG, REQUESTS}, long({LOG}), long({REQUESTS})])
def test_no_round_is_told_twice(one_in, evidence):
    for name in all_traces(one_in):
        rounds = told(name, frozenset(evidence))[1]
        assert len({(row["epoch"], row["started_at"]) for row in rounds}) == len(rounds)


WITHOUT_TRUTH = ("classic", "commit_classic", "downgrade", "offset_commit_absent_group", "simple_group")
"""Beginnings of the names of cases with groups that were classic or simple before: their episodes are not in the truth."""


def wrong_of(name: str, evidence: set[str], begins: int) -> list[str]:
    """Rounds whose cause or member is not that of their epoch, whenever an answer showed it. A group may have an epoch twice."""
    truth: dict[int, list[tuple[str, str | None]]] = {}
    for (epoch, _), what in rounds_of(trace(name)[1]).items():
        truth.setdefault(epoch, []).append(what)
    for one in (one for episode in trace(name)[1] for one in episode["rounds"] if "raised_by" in one):
        truth[one["epoch"]].append((CAUSES[one["raised_by"]], None))  # a log that begins late does not show that the group was Empty
    rounds = [row.values for row in rows_of(name, frozenset(evidence), begins) if row.table == "rebalance_rounds"]
    return [
        f"{name} from {begins}, epoch {row['epoch']}: {row['cause']} of {row['member_id']}, not {truth.get(row['epoch'])}"
        for row in rounds
        if row["cause"] != "UNKNOWN"
        and not any(row["cause"] == cause and row["member_id"] in (member, None) for cause, member in truth.get(row["epoch"], []))
    ]


@pytest.mark.parametrize(
    ("evidence", "begins", "most"),
    [
        ({LOG, REQUESTS}, (0,), 5),
        long({LOG}, (0,), 5),
        long({REQUESTS}, (0,), 5),
        ({LOG}, (1, 2, 3), 18),
        long({LOG, REQUESTS}, (1, 2, 3), 13),
        long({REQUESTS}, (1, 2, 3), 25),
    ],
)
def test_no_epoch_is_laid_to_the_account_of_another_cause_or_member(one_in, evidence, begins, most):
    """Whether the log begins with the group, or anywhere in the trace, at one of its quarters.

    Wrong are: in the coordinator's log, members that join without raising the epoch while another one raises it within the same moment,
    and votes for another assignor while a topic changes; in the request log, an epoch that nothing shows before a group's last members
    leave, so that their departures count from one too few, and epochs whose target was computed by a member that had to give up first.
    """
    wrong = []
    for name, (case, _) in all_traces(one_in).items():
        if name in LIES or name.rpartition("/")[2].startswith(WITHOUT_TRUTH) or any(step.get("append_error") for step in case["steps"]):
            continue
        steps = len(answered(name))
        wrong += [one for quarter in begins for one in wrong_of(name, evidence, max(steps * quarter // 4, 1) if quarter else 0)]
    assert len(wrong) <= most, wrong


def broken(name: str, evidence: set[str], begins: int) -> list[str]:
    """What `rebalance check` would say."""
    tables: dict[str, list[dict]] = {}
    for row in rows_of(name, frozenset(evidence), begins):
        tables.setdefault(row.table, []).append(row.values)
    return [f"{name} from {begins}: {breach.law}: {breach.text}" for breach in breaches(tables)]


KINDS = (LOG, REQUESTS, RECORDS_TOPIC)


def by_name(evidence: set[str]) -> str:
    return " and ".join(sorted(evidence))


@pytest.mark.parametrize(
    "evidence",
    [
        (pytest.param if some == (LOG, REQUESTS) else long)(set(some), id=by_name(set(some)))
        for number in (1, 2, 3)
        for some in combinations(KINDS, number)
    ],
)
def test_no_law_is_broken(one_in, evidence):
    assert [text for name in all_traces(one_in) if name not in LIES for text in broken(name, evidence, 0)] == []


@pytest.mark.parametrize("evidence", [{LOG}, long({REQUESTS}), long({LOG, REQUESTS})], ids=by_name)
def test_nor_by_a_log_that_begins_late(one_in, evidence):
    for name in all_traces(one_in).keys() - LIES:
        steps = len(answered(name))
        assert [text for quarter in (1, 2, 3) for text in broken(name, evidence, max(steps * quarter // 4, 1))] == []


def played(name: str, evidence: set[str], cuts: int, shuffle_ms: int) -> list[str]:
    """The rows of a trace in the order of their text, with the state stored after each batch."""
    cut = batches(events_of(name, frozenset(evidence)), cuts, shuffle_ms=shuffle_ms, seed=cuts)
    return sorted(f"{row.table} {row.values}" for row in play(cut, snapshot=True) if row.table != "rebalances_provisional")


@pytest.mark.parametrize("evidence", [long({REQUESTS}), long({LOG, REQUESTS}), long({REQUESTS, RECORDS_TOPIC}), set(KINDS)], ids=by_name)
def test_the_same_is_told_in_any_batching(one_in, evidence):
    for name in sorted(all_traces(one_in))[::20]:
        at_once = played(name, evidence, 1, 0)
        assert all(played(name, evidence, cuts, 3_000) == at_once for cuts in (5, 23)), name
