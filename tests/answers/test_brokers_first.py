"""What brokers did to their groups stands first, and is as grave as what it cost."""

from __future__ import annotations

import pytest

from tests.answers.test_attention import found, moved, rebalanced, told

__all__ = ["told"]


def test_what_a_broker_did_stands_before_what_cost_more(told):
    entries, _ = told(
        *(moved(10, group, members_lost=[f"{group}-m"]) for group in "ab"),
        found("SESSION_TIMEOUT", 30, "c"),
        rebalanced(30, "c", lost=900_000),
    )
    assert [(entry["severity"], entry["groups"]) for entry in entries] == [("ERROR", ["a", "b"]), ("ERROR", ["c"])]


@pytest.mark.parametrize(
    ("rows", "severity"),
    [
        ([moved(10, "a"), moved(10, "b")], "ERROR"),  # nobody shut it down
        ([moved(10, "a")], "WARNING"),
        ([moved(10, "a"), rebalanced(11, "a")], "ERROR"),
        ([moved(10, "a", members_lost=["m"])], "ERROR"),
    ],
)
def test_the_severity_of_what_a_broker_did_follows_from_what_it_cost(told, rows, severity):
    entries, _ = told(*rows)
    assert [entry["severity"] for entry in entries] == [severity]
