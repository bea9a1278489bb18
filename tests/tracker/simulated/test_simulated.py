"""Random scripts of a group's members, acted out by the specification, told in both logs, and tracked: the tables are what happened.

`SCRIPTS=100000` tries so many (1,000 by default).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.view.members import client_in
from jobs.laws.laws import breaches
from tests.effort import every
from tests.tracker.simulated.acted_out import BROKER, OTHER, Broker
from tests.tracker.simulated.scripts import LENGTH_MS, script
from tests.tracker.story import START_MS, play

END_MS = LENGTH_MS + 100_000  # sessions and poll intervals run out
SCRIPTS = int(os.environ.get("SCRIPTS") or 1_000)
SLICES = 20
COORDINATOR_LOG, REQUEST_LOG, BOTH = ("coordinator",), ("request",), ("coordinator", "request")


def act_out(seed: int) -> Broker:
    """The script of a seed, played to its end."""
    played = script(seed)
    broker = Broker(played.release, played.applications, append_errors=played.append_errors)
    for at_ms, away_ms in played.moves:
        broker.move_coordinator(at_ms, away_ms)
    broker.run_until(END_MS)
    return broker


def tables(broker: Broker, sources: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """What the tracker makes of these logs."""
    seen = [event for event in broker.events if event.source in sources]
    heard = [Event(b, "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000)) for b in (BROKER, OTHER)]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in play([[*seen, *heard]]):
        found.setdefault(row.table, []).append(row.values)
    return found


def clients(member_ids: Iterable[str]) -> list[str]:
    """The clients of members: a coordinator's log does not name the new id of a static member that came back."""
    return sorted(client_in(member_id, "") for member_id in member_ids)


def rebalances(rows: list[dict[str, Any]], ids: Callable[[Iterable[str]], list[str]]) -> list[tuple[Any, ...]]:
    """Rows of `rebalances`, as `truth` has them."""
    ordered = sorted(rows, key=lambda row: (row["started_at"], row["ended_at"]))
    return [
        (
            row["generation"],
            row["started_at"] - START_MS,
            None if row["joined_at"] is None else row["joined_at"] - START_MS,
            row["ended_at"] - START_MS,
            row["outcome"],
            row["members_before"],
            row["members_after"],
            ids(row["joined"]),
            ids(row["left"]),
        )
        for row in ordered
    ]


def truth(broker: Broker, ids: Callable[[Iterable[str]], list[str]]) -> list[tuple[Any, ...]]:
    """What the specification did."""
    return [
        (r.generation, r.started_ms, r.joined_ms, r.ended_ms, r.outcome, r.before, r.after, ids(r.joined), ids(r.left))
        for r in broker.rebalances
        if r.outcome
    ]


def undecided(broker: Broker) -> bool:
    """Whether the coordinator's log does not show who left before a join phase ended, and who after.

    In the millisecond in which the phase ended the next rebalance began, and several members left that its reason does not name.
    """
    logged = [event for event in broker.events if event.source == "coordinator"]
    ends = {(event.at_ms, event.generation) for event in logged if event.kind == kinds.STABILIZED}
    for began in logged:
        if began.kind == kinds.PREPARING_REBALANCE and (began.at_ms, began.generation) in ends:
            left = {event.member_id for event in logged if event.kind == kinds.MEMBER_LEFT and event.at_ms == began.at_ms}
            if len(left - {began.member_id}) > 1:
                return True
    return False


def seeds(number: int) -> range:
    return range(SCRIPTS * number // SLICES, SCRIPTS * (number + 1) // SLICES)


ONCE_WRONG = (
    *(1353, 2004, 2254, 2332, 3478, 3841, 7730, 9286, 9385, 10399),
    *(19015, 30443, 34338, 35441, 52820, 55865, 69983, 76794, 82071, 86800),
)
"""Seeds beyond the first thousand: static members that are replaced within a join phase, moves after failed writes or replacements, and
members that leave in the millisecond in which a join phase ends."""


RARE = (53, 88)
"""Seeds with turns that no story takes: a static member that no line has named is read back, and an assignment is not stored."""


@pytest.mark.slow
@pytest.mark.parametrize("number", every(SLICES, range(SLICES)))
def test_the_tables_are_what_the_specification_did(number: int) -> None:
    for seed in seeds(number):
        check(seed)


@pytest.mark.parametrize("seed", RARE)
def test_scripts_with_rare_turns(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_scripts_that_once_came_out_wrong(seed: int) -> None:
    check(seed)


def check(seed: int) -> None:
    broker = act_out(seed)
    if undecided(broker):
        return
    for sources, ids in ((COORDINATOR_LOG, clients), (BOTH, sorted)):
        found = tables(broker, sources)
        assert breaches(found) == [], f"seed {seed}, {sources}"
        assert rebalances(found.get("rebalances", []), ids) == truth(broker, ids), f"seed {seed}, {sources}"
    if not script(seed).moves:  # what a group went through while it moved is not in its requests
        assert breaches(tables(broker, REQUEST_LOG)) == [], f"seed {seed}, {REQUEST_LOG}"


@pytest.mark.slow
def test_the_scripts_have_what_happens_to_groups() -> None:
    """Or the tests above would show little."""
    outcomes, triggers = Counter[str](), Counter[str]()
    for seed in range(60):
        broker = act_out(seed)
        outcomes.update(r.outcome for r in broker.rebalances)
        triggers.update(r.trigger for r in broker.rebalances)
    assert {"COMPLETED", "SUPERSEDED", "EMPTIED", "ABANDONED"} <= outcomes.keys()
    assert {"new_member", "leave", "session_expired", "assignment_append_failed"} <= triggers.keys()
