"""What a rebalance costs, whatever it moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.states import State
from coordinator_model.tracker import cost
from coordinator_model.tracker.view import Rebalance

PARTITIONS = [f"t-{number}" for number in range(8)]
MEMBERS = ["a", "b", "c"]
times = st.integers(0, 20_000)


@st.composite
def shared(draw: st.DrawFn) -> dict[str, str]:
    """Some partitions, each with an owner."""
    return {p: draw(st.sampled_from(MEMBERS)) for p in draw(st.sets(st.sampled_from(PARTITIONS)))}


@st.composite
def rebalances(draw: st.DrawFn) -> Rebalance:
    """Any rebalance of up to three members and eight partitions, with what is known of it."""
    start = draw(times)
    before, after = draw(shared()), draw(shared())
    rebalance = Rebalance(start, exact=True, from_state=State.STABLE, old_generation=1)
    rebalance.ended_ms = start + draw(times)
    rebalance.owned_before = before
    rebalance.assigned = {m: tuple(sorted(p for p, owner in after.items() if owner == m)) for m in MEMBERS}
    for name in ("joins", "synced", "stopped"):
        setattr(rebalance, name, {m: draw(times) for m in draw(st.sets(st.sampled_from(MEMBERS)))})
    kept = draw(st.sets(st.sampled_from(PARTITIONS)))
    rebalance.kept = {m: tuple(sorted(p for p in kept if before.get(p) == m)) for m in MEMBERS}
    return rebalance


@given(rebalances(), shared())
def test_it_never_costs_more_than_all_partitions_for_its_whole_length(rebalance: Rebalance, unowned: dict[str, str]) -> None:
    left = cost.carry(unowned, rebalance)
    it = cost.of(rebalance)
    assert it.unavailable_ms is not None
    assert 0 <= it.unavailable_ms <= len(rebalance.owned_before) * (rebalance.ended_ms - rebalance.started_ms)
    assert set(left).isdisjoint(p for partitions in (rebalance.assigned or {}).values() for p in partitions)


@given(rebalances(), st.permutations(MEMBERS))
def test_to_move_partitions_without_a_pause_costs_nothing(rebalance: Rebalance, heirs: list[str]) -> None:
    """Every owner works on until the very moment at which the heir is told."""
    rebalance.stopped = dict.fromkeys(MEMBERS, rebalance.ended_ms)
    rebalance.synced = dict.fromkeys(MEMBERS, rebalance.ended_ms)
    heir_of = dict(zip(MEMBERS, heirs, strict=True))
    rebalance.assigned = {heir: tuple(p for p, o in rebalance.owned_before.items() if heir_of[o] == heir) for heir in MEMBERS}
    it = cost.of(rebalance)
    assert it.unavailable_ms == 0
    assert it.moved == sum(1 for owner in rebalance.owned_before.values() if heir_of[owner] != owner)


@given(rebalances())
def test_what_an_owner_keeps_while_it_rejoins_costs_nothing(rebalance: Rebalance) -> None:
    rebalance.kept = {m: tuple(p for p, o in rebalance.owned_before.items() if o == m) for m in MEMBERS}
    rebalance.assigned = dict(rebalance.kept)
    assert cost.of(rebalance) == (len(rebalance.owned_before), 0, 0)


def test_an_unknown_assignment_has_no_cost() -> None:
    rebalance = Rebalance(0, exact=True, from_state=State.STABLE, old_generation=1)
    assert cost.of(rebalance) == (None, None, None)
    assert cost.carry({"t-0": "a"}, rebalance) == {}


def test_a_cooperative_move_is_paid_by_its_second_round() -> None:
    first = Rebalance(0, exact=True, from_state=State.STABLE, old_generation=1, ended_ms=100, owned_before={"t-0": "a", "t-1": "a"})
    first.kept, first.assigned = {"a": ("t-0", "t-1")}, {"a": ("t-0",), "b": ()}
    unowned = cost.carry({}, first)
    assert (cost.of(first).unavailable_ms, unowned) == (0, {"t-1": "a"})
    second = Rebalance(110, exact=True, from_state=State.STABLE, old_generation=2, ended_ms=2_110, owned_before={"t-0": "a"})
    second.joins, second.kept = {"a": 110, "b": 2_100}, {"a": ("t-0",)}
    second.assigned, second.synced = {"a": ("t-0",), "b": ("t-1",)}, {"a": 2_110, "b": 2_110}
    assert cost.carry(unowned, second) == {}
    assert cost.of(second) == (2, 1, 2_000)
