"""What a rebalance costs, whatever it moves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.diagnosis import cost
from coordinator_model.events import GROUP_EMPTY, MEMBER_FAILED, MEMBER_LEFT
from coordinator_model.states import State
from coordinator_model.view.rebalance import Aftermath, Rebalance
from coordinator_model.view.rows import REBALANCES
from tests.specification.choices import chosen
from tests.tracker.story import EXPIRED, JOINED, Story, table

PARTITIONS = [f"t-{number}" for number in range(8)]
MEMBERS = ["a", "b", "c"]
TIMES = range(4_000)
SOMETIMES = ("joins", "synced", "stopped")


def shared() -> st.SearchStrategy[dict[str, str]]:
    """Some partitions, each with an owner."""
    return chosen(lambda **owners: {p: owner for p, owner in owners.items() if owner}, **dict.fromkeys(PARTITIONS, ("", *MEMBERS)))


def rebalances() -> st.SearchStrategy[Rebalance]:
    """Any rebalance of up to three members and eight partitions, with what is known of it."""
    known = {f"{name} {member}": [False, True] for name in SOMETIMES for member in MEMBERS}
    when = {f"{name} {member} at": TIMES for name in SOMETIMES for member in MEMBERS}
    kept = dict.fromkeys(PARTITIONS, (False, True))
    return st.builds(_rebalance, shared(), shared(), chosen(dict, start=TIMES, length=TIMES, **when, **known, **kept))


def _rebalance(before: dict[str, str], after: dict[str, str], more: dict[str, int]) -> Rebalance:
    rebalance = Rebalance(more["start"], exact=True, from_state=State.STABLE, old_generation=1)
    rebalance.ended_ms = more["start"] + more["length"]
    rebalance.owned_before = before
    rebalance.assigned = {m: tuple(sorted(p for p, owner in after.items() if owner == m)) for m in MEMBERS}
    for name in SOMETIMES:
        setattr(rebalance, name, {m: more[f"{name} {m} at"] for m in MEMBERS if more[f"{name} {m}"]})
    rebalance.kept = {m: tuple(sorted(p for p in before if more[p] and before[p] == m)) for m in MEMBERS}
    return rebalance


@given(rebalances(), shared())
def test_it_never_costs_more_than_all_partitions_for_its_whole_length(rebalance: Rebalance, unowned: dict[str, str]) -> None:
    rebalance = cost.with_unowned(rebalance, Aftermath(unowned))
    left = cost.leaves_unowned(rebalance)
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
    assert cost.leaves_unowned(cost.with_unowned(rebalance, Aftermath({"t-0": "a"}))) == {}


def test_a_cooperative_move_is_paid_by_its_second_round() -> None:
    first = Rebalance(0, exact=True, from_state=State.STABLE, old_generation=1, ended_ms=100, owned_before={"t-0": "a", "t-1": "a"})
    first.kept, first.assigned = {"a": ("t-0", "t-1")}, {"a": ("t-0",), "b": ()}
    unowned = cost.leaves_unowned(first)
    assert (cost.of(first).unavailable_ms, unowned) == (0, {"t-1": "a"})
    second = Rebalance(110, exact=True, from_state=State.STABLE, old_generation=2, ended_ms=2_110, owned_before={"t-0": "a"})
    second.joins, second.kept = {"a": 110, "b": 2_100}, {"a": ("t-0",)}
    second.assigned, second.synced = {"a": ("t-0",), "b": ("t-1",)}, {"a": 2_110, "b": 2_110}
    second = cost.with_unowned(second, Aftermath(unowned))
    assert cost.leaves_unowned(second) == {}
    assert cost.of(second) == (2, 1, 2_000)


# Through whole stories, as logs tell them.

WHO = ["a-1", "b-1", "c-1"]
ALL = tuple(f"orders-{number}" for number in range(6))


@dataclass(frozen=True)
class Round:
    """One rebalance as it truly was: when who stopped, when who was told what. Times are ms from its start."""

    joins: dict[str, int]
    sync_ms: int  # from the end of the join phase to the leader's assignment
    told: dict[str, int]  # from there to each member's answer
    wish: dict[str, str]  # partition: member that shall have it
    leaver: str = ""  # who leaves, and so begins it


@st.composite
def histories(draw: st.DrawFn) -> list[Round]:
    """Some rebalances of one group, its first included: members rejoin, and now and then the last of them leaves."""
    members, rounds = list(WHO), []
    for number in range(draw(st.integers(2, 5))):
        leaver = members.pop() if number and len(members) > 1 and draw(st.booleans()) else ""
        delays = st.integers(0, 4_000)
        joins = {m: draw(delays) for m in members}
        if not leaver:
            joins[members[0]] = 0
        wish = {p: draw(st.sampled_from(members)) for p in ALL}
        rounds.append(Round(joins, draw(st.integers(1, 2_000)), {m: draw(st.integers(0, 900)) for m in members}, wish, leaver))
    return rounds


def instantly(history: list[Round]) -> list[Round]:
    """The same, with everybody stopped and told within one millisecond."""
    return [Round(dict.fromkeys(r.joins, 0), 0, dict.fromkeys(r.told, 0), r.wish, r.leaver) for r in history]


def told(history: list[Round], *, cooperative: bool) -> tuple[list[dict[str, Any]], list[int]]:
    """The rebalances that the tracker sees in both logs of a history, the first left out; and what each truly cost."""
    story, owners, unowned, costs, now = Story(), dict[str, str](), dict[str, str](), list[int](), 1_000
    for generation, r in enumerate(history, 1):
        joined = now + max(r.joins.values())
        ended = joined + r.sync_ms
        leader = min(r.joins)
        if r.leaver:
            story.at(now).leave(r.leaver, "the consumer is being closed", took=0)
        reason = f"Leader {leader} re-joining group during Stable; client reason: rebalance enforced by user"
        story.log_preparing(generation - 1, reason, leader) if not r.leaver else story.at(now).log_preparing(generation - 1, "LeaveGroup")
        owned = {m: tuple(p for p in ALL if owners.get(p) == m) if cooperative else () for m in r.joins}
        given = {p: m for p, m in r.wish.items() if not cooperative or owners.get(p) in {None, m, r.leaver}}
        story.at(joined).log_stabilized(generation, len(r.joins))
        for m in r.joins:
            story.at(joined).join(
                m, generation, leader, sorted(r.joins) if m == leader else (), waited=joined - now - r.joins[m], owned=owned[m],
                session_timeout_ms=45_000,
            )  # fmt: skip
        story.at(ended).log_assignment(generation, leader, len(r.joins))
        shares = {m: tuple(p for p in ALL if given.get(p) == m) for m in r.joins}
        for m in r.joins:
            took = r.told[m]
            story.at(ended + took).sync(m, generation, shares if m == leader else {m: shares[m]}, took=took)
        spent = 0
        for p, owner in {**unowned, **owners}.items():
            heir = given.get(p)
            if p in owned.get(owner, ()) and heir in {owner, None}:
                continue  # worked on all the time; if taken away, the next round pays
            stopped = now if p in unowned or owner == r.leaver else now + r.joins[owner]  # nobody works on what has no owner
            begun = min(ended + r.told[heir], ended) if heir is not None else ended
            spent += max(begun - stopped, 0)
        costs.append(spent)
        unowned = {p: owner for p, owner in owners.items() if p not in given and p in owned.get(owner, ())}
        owners, now = given, ended + 10_000
        story.at(now - 5_000)
        for m in r.joins:
            story.heartbeat(m, generation)
        story.at(now)
    rows = sorted(table(story.rows(until=now + 60_000), "rebalances"), key=lambda row: row["started_at"])
    assert [row["generation"] for row in rows] == list(range(1, len(history) + 1))
    return rows[1:], costs[1:]


@given(histories(), st.booleans())
def test_the_tables_have_what_it_truly_cost(history: list[Round], cooperative: bool) -> None:  # noqa: FBT001 - drawn
    rows, costs = told(history, cooperative=cooperative)
    assert [row["unavailable_partition_ms"] for row in rows] == costs
    for row in rows:
        assert 0 <= row["unavailable_partition_ms"] <= len(ALL) * row["total_ms"]
        assert 0 <= row["partitions_moved"] <= row["partitions"] <= len(ALL)


@given(histories(), st.booleans())
def test_whatever_moves_without_a_pause_is_free(history: list[Round], cooperative: bool) -> None:  # noqa: FBT001 - drawn
    rows, _ = told(instantly(history), cooperative=cooperative)
    assert [row["unavailable_partition_ms"] for row in rows] == [0] * len(rows)
    if not cooperative:
        owners = [r.wish for r in history]
        assert [row["partitions_moved"] for row in rows] == [sum(a[p] != b[p] for p in ALL) for a, b in pairwise(owners)]


@given(histories())
def test_a_cooperative_group_never_pays_more_than_an_eager_one_for_a_round_that_takes_partitions_away(history: list[Round]) -> None:
    """Its first round after everybody had a share: who stays works on."""
    (eager, *_), _ = told(history[:2], cooperative=False)
    (cooperative, *_), _ = told(history[:2], cooperative=True)
    assert cooperative["unavailable_partition_ms"] <= eager["unavailable_partition_ms"]
    if not history[1].leaver:
        assert cooperative["unavailable_partition_ms"] == 0


@pytest.mark.parametrize(
    ("kind", "reason", "price"),
    [
        (MEMBER_FAILED, EXPIRED.format("a-1"), 2 * 3_010),
        (MEMBER_LEFT, "Removing member a-1 on LeaveGroup; client reason: the consumer is being closed", 0),
    ],
)
def test_partitions_of_a_group_that_lost_its_members_have_no_owner_until_somebody_comes(kind: str, reason: str, price: int) -> None:
    story = Story().at(0).log_preparing(0, JOINED.format("a-1"), "a-1").at(3_000).log_stabilized(1, members=1)
    story.join("a-1", 1, "a-1", ["a-1"], waited=3_000).at(3_010).log_assignment(1, leader="a-1", members=1)
    story.sync("a-1", 1, {"a-1": ("t-0", "t-1")}).beats(["a-1"], 1, 6_000, 13_000)
    story.at(22_000).log(kind, member_id="a-1").log_preparing(1, reason, "a-1").log(GROUP_EMPTY, generation=2)
    story.at(30_000).log_preparing(2, JOINED.format("b-1"), "b-1").at(33_000).log_stabilized(3, members=1)
    story.join("b-1", 3, "b-1", ["b-1"], waited=3_000).at(33_010).log_assignment(3, leader="b-1", members=1)
    story.sync("b-1", 3, {"b-1": ("t-0", "t-1")})
    found = {row["generation"]: row["unavailable_partition_ms"] for row in table(story.rows(), REBALANCES)}
    assert (found[1], found[3]) == (0, price)
