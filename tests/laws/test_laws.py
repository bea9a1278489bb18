"""Each law, by rows that keep it and by the same rows with one thing wrong."""

import json
from typing import Any

import pytest

from jobs.laws import offset_laws
from jobs.laws.laws import LAWS, breaches

START_MS = 1_800_000_000_000


def rebalance(generation: int, started: int, joined: int | None, ended: int, /, **values: Any) -> dict[str, Any]:
    row = {
        "group_id": "orders", "group_protocol": "classic", "generation": generation, "outcome": "COMPLETED",
        "started_at": START_MS + started, "ended_at": START_MS + ended, "total_ms": ended - started,
        "joined_at": None if joined is None else START_MS + joined,
        "join_ms": None if joined is None else joined - started, "sync_ms": None if joined is None else ended - joined,
        "cause": "MEMBER_JOINED", "member_id": None,
        "members_before": 0, "members_after": 0, "joined": [], "left": [], "left_unnamed": 0,
        "partitions": 6, "partitions_moved": 0, "unavailable_partition_ms": 0, "assignment_ms": 1, "first_fetch_ms": None,
        "protocol": "range",
    }  # fmt: skip
    return row | values


def transition(at: int, from_state: str, to_state: str, generation: int, **values: Any) -> dict[str, Any]:
    row = {"group_id": "orders", "occurred_at": START_MS + at, "from_state": from_state, "to_state": to_state, "generation": generation}
    return row | {"trigger": "JOIN_PHASE_ENDED", "member_id": None} | values


def line(position: int, at: int, **values: Any) -> dict[str, Any]:
    """A line that evidence names; its request came 5 ms before."""
    times = {"received_at": START_MS + at - 5, "occurred_at": START_MS + at}
    return {"group_id": "orders", "origin": "server.log", "position": position, "broker": "broker-1", **times} | values


def evidence(*positions: int) -> str:
    return json.dumps([{"origin": "server.log", "position": position} for position in positions])


def session(member_id: str, joined: int, ended: int, end_kind: str) -> dict[str, Any]:
    return {
        "group_id": "orders", "member_id": member_id, "joined_at": START_MS + joined, "ended_at": START_MS + ended,
        "end_kind": end_kind,
    }  # fmt: skip


def finding(at: int, message: str, details: dict[str, Any], **values: Any) -> dict[str, Any]:
    row = {
        "group_id": "orders", "occurred_at": START_MS + at, "code": "SESSION_TIMEOUT", "severity": "ERROR",
        "member_id": "b-1", "client_id": "b", "client_host": "10.0.0.7", "generation": 2, "message": message,
        "advice": "Raise session.timeout.ms (KIP-735).", "details": json.dumps(details),
    }  # fmt: skip
    return row | values


def story() -> dict[str, list[dict[str, Any]]]:
    """Two members join; the second one falls silent."""
    departure = {"members_before": 2, "members_after": 1, "left": ["b-1"], "cause": "SESSION_TIMEOUT", "member_id": "b-1"}
    cost = {"partitions_moved": 3, "unavailable_partition_ms": 660}
    return {
        "rebalances": [
            rebalance(1, 0, 3_000, 3_010, members_after=1, joined=["a-1"]),
            rebalance(2, 10_000, 10_200, 10_210, members_before=1, members_after=2, joined=["b-1"], unavailable_partition_ms=1_260),
            rebalance(3, 60_000, 60_100, 60_110, **departure, **cost, evidence=evidence(7, 8)),
        ],
        "group_transitions": [
            transition(0, "Empty", "PreparingRebalance", 0, trigger="MEMBER_JOINED"),
            transition(3_000, "PreparingRebalance", "CompletingRebalance", 1),
            transition(3_010, "CompletingRebalance", "Stable", 1),
            transition(10_000, "Stable", "PreparingRebalance", 1, trigger="MEMBER_JOINED"),
            transition(10_200, "PreparingRebalance", "CompletingRebalance", 2),
            transition(10_210, "CompletingRebalance", "Stable", 2),
            transition(60_000, "Stable", "PreparingRebalance", 2, trigger="SESSION_TIMEOUT", member_id="b-1"),
            transition(60_100, "PreparingRebalance", "CompletingRebalance", 3),
            transition(60_110, "CompletingRebalance", "Stable", 3),
        ],
        "member_sessions": [session("b-1", 10_000, 60_000, "SESSION_TIMEOUT") | {"evidence": evidence(7, 8)}],
        "lines": [line(7, 15_000), line(8, 60_000)],
        "signs": [{"group_id": "orders", "id": None, "member_id": "b-1", "received_at": START_MS + 12_000, "last_at": START_MS + 15_000}],
        "reported": [{"group_id": "orders", "state": "Stable", "members": 1}],
        "rebalances_provisional": [
            rebalance(2, 9_000, 10_200, 10_210, waits_for="REQUESTS"),
            rebalance(4, 70_000, None, 70_100, waits_for="ANSWERS"),
        ],
        "findings": [finding(60_000, "b at 10.0.0.7 was silent for 45 s (session.timeout.ms 45000).", {"session_timeout_ms": 45_000})],
    }


def broken(tables: dict[str, list[dict[str, Any]]]) -> set[str]:
    return {breach.law for breach in breaches(tables)}


def test_a_true_story_breaks_no_law():
    assert broken(story()) == set()


def test_no_rows_break_no_law():
    assert breaches({}) == []


@pytest.mark.parametrize(
    ("table", "row", "wrong", "law"),
    [
        ("rebalances", 1, {"joined": []}, "COUNTS_ADD_UP"),
        ("rebalances", 2, {"left_unnamed": 1}, "COUNTS_ADD_UP"),
        ("rebalances", 1, {"members_before": 2, "members_after": 3}, "COUNTS_CARRY_OVER"),
        ("rebalances", 0, {"join_ms": 2_999}, "DURATIONS"),
        ("rebalances", 0, {"total_ms": 3_011}, "DURATIONS"),
        ("rebalances", 0, {"assignment_ms": -1}, "DURATIONS"),
        ("rebalances", 0, {"joined_at": START_MS - 1, "join_ms": None, "sync_ms": 3_011}, "DURATIONS"),
        ("rebalances", 1, {"started_at": START_MS + 3_009, "join_ms": 7_191, "total_ms": 7_201}, "NO_OVERLAP"),
        ("rebalances", 1, {"unavailable_partition_ms": 1_261}, "COST_IN_BOUNDS"),
        ("rebalances", 2, {"partitions_moved": 7}, "COST_IN_BOUNDS"),
        ("group_transitions", 3, {"from_state": "Empty"}, "TRANSITIONS_CHAIN"),
        ("rebalances", 2, {"joined": ["b-1"], "members_after": 2}, "ONE_DEPARTURE"),
        ("member_sessions", 0, {"joined_at": START_MS + 60_001}, "ONE_MEMBERSHIP"),
        ("member_sessions", 0, {"member_id": "c-1"}, "DEPARTURE_HAS_SESSION"),
        ("member_sessions", 0, {"ended_at": START_MS + 60_111}, "DEPARTURE_HAS_SESSION"),
        ("rebalances", 2, {"left": [], "members_after": 2}, "SESSION_HAS_DEPARTURE"),
        ("rebalances_provisional", 0, {"generation": 3}, "PROVISIONAL_HAS_FINAL"),
        ("findings", 0, {"details": "{}"}, "NUMBERS_IN_DETAILS"),
        ("rebalances", 1, {"members_before": None}, "COST_HAS_OWNERS"),
        ("rebalances", 2, {"cause": "MEMBER_LEFT"}, "TRIGGER_IS_CAUSE"),
        ("rebalances", 2, {"member_id": "a-1"}, "TRIGGER_IS_CAUSE"),
        ("group_transitions", 6, {"trigger": "MEMBER_LEFT"}, "TRIGGER_IS_CAUSE"),
        ("group_transitions", 6, {"member_id": "a-1"}, "TRIGGER_IS_CAUSE"),
        ("member_sessions", 0, {"end_kind": "LEFT"}, "TRIGGER_IS_CAUSE"),
        ("reported", 0, {"state": "Empty", "members": 0}, "STATE_IS_REPORTED"),
        ("reported", 0, {"members": 0}, "STATE_IS_REPORTED"),
        ("group_transitions", 8, {"to_state": "Empty"}, "STATE_IS_REPORTED"),
        ("lines", 1, {"received_at": START_MS + 60_111 + 2_500}, "EVIDENCE_IN_TIME"),
        ("lines", 0, {"occurred_at": START_MS + 8_999}, "EVIDENCE_IN_TIME"),
        ("signs", 0, {"last_at": START_MS + 16_001}, "HEARD_IN_TIME"),
        ("signs", 0, {"received_at": START_MS + 59_999, "last_at": None}, "HEARD_IN_TIME"),
        ("findings", 0, {"generation": 3, "occurred_at": START_MS + 60_050}, "GENERATION_OF_ITS_TIME"),
    ],
)
def test_one_wrong_value_breaks_its_law(table, row, wrong, law):
    tables = story()
    tables[table][row] |= wrong
    assert law in broken(tables)


@pytest.mark.parametrize(
    ("table", "row", "other"),
    [
        ("lines", 1, {"received_at": START_MS + 90_000, "broker": "broker-2"}),  # by the clock of another broker
        ("lines", 1, {"received_at": START_MS + 60_110 + 2_500}),
        ("lines", 0, {"occurred_at": START_MS + 9_000}),
        ("signs", 0, {"last_at": START_MS + 16_000}),  # the timer may be late
        ("signs", 0, {"received_at": START_MS + 60_000, "last_at": START_MS + 90_000}),
        ("signs", 0, {"member_id": "a-1", "last_at": START_MS + 50_000}),
        ("reported", 0, {"members": None}),
        ("rebalances", 1, {"members_before": None, "unavailable_partition_ms": None, "partitions_moved": None}),
        ("rebalances", 1, {"unavailable_partition_ms": 1_261, "protocol": "sessioned"}),  # tasks of Connect wait from one to the next
    ],
)
def test_what_may_be_so_breaks_no_law(table, row, other):
    tables = story()
    tables[table][row] |= other
    assert broken(tables) == set()


def test_a_line_that_began_a_rebalance_may_be_seconds_older_unless_its_cause_is_a_silence():
    tables = story()
    tables["rebalances"][1]["evidence"] = evidence(9)
    tables["lines"].append(line(9, 0))
    assert broken(tables) == set()
    tables["lines"][-1]["occurred_at"] -= 1
    assert broken(tables) == {"EVIDENCE_IN_TIME"}
    tables["rebalances"][1]["cause"] = tables["group_transitions"][3]["trigger"] = "SESSION_TIMEOUT"
    assert broken(tables) == set()


def test_a_consumer_group_has_an_epoch_from_the_moment_its_rebalance_begins():
    tables = story()
    tables["rebalances"][2] |= {"group_protocol": "consumer", "joined_at": None}
    tables["findings"][0] |= {"generation": 3, "occurred_at": START_MS + 60_050}
    assert "GENERATION_OF_ITS_TIME" not in broken(tables)
    tables["findings"][0] |= {"occurred_at": START_MS + 59_999}
    assert "GENERATION_OF_ITS_TIME" in broken(tables)


@pytest.mark.parametrize(
    ("table", "law"), [("rebalances", "ONE_DEPARTURE"), ("member_sessions", "ONE_MEMBERSHIP"), ("findings", "TOLD_ONCE")]
)
def test_a_row_that_stands_twice_breaks_a_law(table, law):
    tables = story()
    tables[table].append(tables[table][-1])
    assert law in broken(tables)


def of_consumers() -> dict[str, list[dict[str, Any]]]:
    """A group of the consumer protocol: c-1 joins, and leaves before all members have the assignment. The last round is an old one."""
    whole = {"group_protocol": "consumer", "first_epoch": 5, "rounds": 2, "member_id": "c-1", "members_before": 2, "members_after": 2}
    joins = {"epoch": 5, "cause": "MEMBER_JOINED", "started_at": START_MS + 90_000, "superseded": True, "reconciled_at": None}
    leaves = {"epoch": 6, "cause": "MEMBER_LEFT", "started_at": START_MS + 92_000, "superseded": False, "reconciled_at": START_MS + 95_000}
    old = {"generation": 3, "epoch": 3, "started_at": START_MS - 90_000}
    return {
        "rebalances": [rebalance(6, 90_000, None, 95_000, **whole)],
        "rebalance_rounds": [{"group_id": "orders", "generation": 6, "member_id": "c-1", **one} for one in (joins, leaves, joins | old)],
        "member_sessions": [session("c-1", 90_000, 92_000, "LEFT")],
    }


def test_a_rebalance_of_rounds_breaks_no_law():
    assert broken(of_consumers()) == set()


@pytest.mark.parametrize(
    ("table", "row", "wrong", "law"),
    [
        ("rebalance_rounds", 1, {"generation": 7}, "ROUND_HAS_REBALANCE"),
        ("rebalance_rounds", 1, {"started_at": START_MS + 95_001}, "ROUND_HAS_REBALANCE"),
        ("rebalances", 0, {"rounds": 3}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalances", 0, {"first_epoch": 4}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 1, {"epoch": 5}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 0, {"started_at": START_MS + 90_001}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 0, {"cause": "UNKNOWN"}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 0, {"superseded": False}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 0, {"reconciled_at": START_MS + 91_000}, "ROUNDS_MAKE_REBALANCE"),
        ("rebalance_rounds", 1, {"reconciled_at": START_MS + 94_000}, "ROUNDS_MAKE_REBALANCE"),
    ],
)
def test_one_wrong_value_of_a_round_breaks_its_law(table, row, wrong, law):
    tables = of_consumers()
    tables[table][row] |= wrong
    assert law in broken(tables)


def test_rounds_or_rebalances_that_were_removed_as_old_break_no_law():
    tables = of_consumers()
    assert broken(tables | {"rebalances": []}) == broken(tables | {"rebalance_rounds": tables["rebalance_rounds"][1:2]}) == set()


def test_members_of_the_consumer_protocol_may_come_without_a_rebalance():
    tables = of_consumers()
    tables["rebalances"].append(rebalance(7, 99_000, None, 99_000, **{**tables["rebalances"][0], "started_at": START_MS + 99_000}))
    tables["rebalances"][1] |= {"generation": 7, "ended_at": START_MS + 99_000, "total_ms": 0, "rounds": None, "members_before": 3}
    tables["rebalances"][1] |= {"members_after": 3}
    assert broken(tables) == set()
    tables["rebalances"][1] |= {"members_before": 1, "members_after": 1}
    assert broken(tables) == {"COUNTS_CARRY_OVER"}


def test_a_member_of_the_consumer_protocol_comes_back_with_its_id():
    tables = story()
    first = tables["member_sessions"][0]
    tables["member_sessions"].append(first | {"evidence": "[]", "joined_at": first["ended_at"] + 5, "ended_at": first["ended_at"] + 50})
    assert broken(tables) == {"ONE_MEMBERSHIP"}
    tables["rebalances"][0]["group_protocol"] = "consumer"
    assert broken(tables) == set()
    tables["member_sessions"][-1]["joined_at"] = first["ended_at"] - 5
    assert broken(tables) == {"ONE_MEMBERSHIP"}


def test_a_group_that_was_removed_starts_anew():
    tables = story()
    tables["group_transitions"].append(transition(70_000, "Stable", "Dead", 3))
    tables["group_transitions"].append(transition(80_000, "Dead", "PreparingRebalance", 0))
    tables["rebalances"].append(rebalance(1, 80_000, 83_000, 83_010, members_after=1, joined=["d-1"]))
    assert "COUNTS_CARRY_OVER" not in broken(tables)
    del tables["group_transitions"][-2:]
    assert "COUNTS_CARRY_OVER" in broken(tables)


def test_what_is_not_known_breaks_no_law():
    tables = story()
    unknown = ("members_before", "joined_at", "join_ms", "sync_ms", "unavailable_partition_ms", "partitions_moved")
    for row in (*tables["rebalances"], *tables["rebalances_provisional"]):
        row.update(dict.fromkeys(unknown))
    assert broken(tables) == set()


def test_a_breach_names_its_row():
    tables = story()
    tables["rebalances"][1] |= {"id": "r0123", "cluster": "prod", "joined": []}
    (breach,) = [one for one in breaches({"rebalances": tables["rebalances"][1:2]}) if one.law == "COUNTS_ADD_UP"]
    assert (breach.row_id, breach.cluster, breach.at_ms) == ("r0123", "prod", START_MS + 10_000)
    assert breach.text == "1 members before, 0 joined, 0 left, but 2 after"


def test_every_law_can_be_broken():
    """The cases above break each of them, test_offset_laws.py the others."""
    assert len(LAWS) - len(offset_laws.LAWS) == 21
