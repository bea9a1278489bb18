"""The laws of `rebalance_offsets`, by rows that keep them and by the same rows with one thing wrong."""

from typing import Any

import pytest

from jobs.laws.laws import breaches
from jobs.laws.offset_laws import LAWS
from tests.laws.test_laws import START_MS, finding, rebalance


def offsets(started: int, ended: int, committed: int, /, **values: Any) -> dict[str, Any]:
    row = {
        "group_id": "orders", "partition": "orders-0", "started_at": START_MS + started, "ended_at": START_MS + ended,
        "committed_at": START_MS + started - 1_000, "committed_offset": committed, "resumed_at": START_MS + ended + 10,
        "caught_up_at": START_MS + ended + 5_000, "unread_ms": ended - started, "lag_before": 3, "lag_added": 40,
        "reread_min": 0, "reread_max": 20,
    }  # fmt: skip
    return row | values


def told() -> dict[str, list[dict[str, Any]]]:
    return {
        "rebalances": [rebalance(2, 10_000, 12_000, 13_000), rebalance(3, 60_000, 62_000, 63_000)],
        "rebalance_offsets": [offsets(10_000, 13_000, 100), offsets(60_000, 63_000, 500)],
        "findings": [],
    }


def broken(tables: dict[str, list[dict[str, Any]]]) -> set[str]:
    return {breach.law for breach in breaches(tables, LAWS)}


def test_rows_that_keep_the_laws():
    assert broken(told()) == set()


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        ({"ended_at": START_MS + 63_001}, "OFFSETS_HAVE_REBALANCE"),
        ({"resumed_at": START_MS + 59_000}, "OFFSETS_HAVE_REBALANCE"),
        ({"caught_up_at": START_MS + 63_001}, "OFFSETS_HAVE_REBALANCE"),
        ({"lag_added": -1}, "LAG_NOT_NEGATIVE"),
        ({"unread_ms": -1}, "LAG_NOT_NEGATIVE"),
        ({"reread_min": 21}, "REREAD_WAS_READ"),
        ({"reread_min": None}, "REREAD_WAS_READ"),
        ({"committed_offset": 99}, "OFFSETS_IN_ORDER"),
    ],
)
def test_one_wrong_value_breaks_its_law(wrong, law):
    tables = told()
    tables["rebalance_offsets"][1] |= wrong
    assert broken(tables) == {law}


def test_a_finding_explains_offsets_that_went_back():
    tables = told()
    tables["rebalance_offsets"][1]["committed_offset"] = 99
    tables["findings"] = [finding(30_000, "", {}, code="OFFSET_REWOUND")]
    assert broken(tables) == set()


def test_the_rebalances_of_old_rows_may_be_removed():
    tables = told()
    del tables["rebalances"][0]
    assert broken(tables) == set()
