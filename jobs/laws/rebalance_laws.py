"""Laws of the rows of `rebalances`, their `rebalance_rounds` and `group_transitions`: counts, times and states follow from each other."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_model.view.outcomes import ENDED, OPEN
from jobs.common.text import some
from jobs.laws.group_rows import Breaches, GroupRows, Row

_ENDS: Final = {
    "SESSION_TIMEOUT": {"SESSION_TIMEOUT"},
    "POLL_TIMEOUT": {"POLL_TIMEOUT"},
    "SYNC_TIMEOUT": {"SYNC_TIMEOUT"},
    "MEMBER_LEFT": {"LEFT"},
    "ADMIN_REMOVED": {"ADMIN_REMOVED"},
}
"""How the membership of a culprit ends that departed, by the cause."""
_BEGUN: Final = frozenset({"PreparingRebalance", "Reconciling"})
_SECOND_MS: Final = 1_000
_NAMED: Final = 3  # members in a sentence
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


def counts_add_up(group: GroupRows) -> Breaches:
    """members_before + joined - left = members_after, with those whom no line names."""
    for row in group.rebalances:
        before, after = row["members_before"], row["members_after"]
        if before is None or after is None:
            continue
        joined, left = len(row["joined"]) + (row.get("joined_unnamed") or 0), len(row["left"]) + (row.get("left_unnamed") or 0)
        if before + joined - left != after:
            yield row, f"{before} members before, {joined} joined, {left} left, but {after} after"


def counts_carry_over(group: GroupRows) -> Breaches:
    """The members after a rebalance are those before the next one, unless another broker took the group over or it was removed.

    In the consumer protocol a member that subscribes to nothing yet, or to a new regular expression, joins without a rebalance.
    """
    ends = [row["occurred_at"] for row in group.transitions if row["to_state"] == "Dead"]
    for one, other in itertools.pairwise(group.rebalances):
        after, before = one["members_after"], other["members_before"]
        if after is None or before is None or after == before:
            continue
        if before > after and other["group_protocol"] == "consumer":
            continue
        if not any(one["started_at"] <= end <= other["started_at"] for end in ends):
            yield other, f"{before} members before, but {after} after the last one"


def durations(group: GroupRows) -> Breaches:
    """Phases follow each other, none is negative, and they sum to the total."""
    for row in group.rebalances:
        started, joined, ended = row["started_at"], row["joined_at"], row["ended_at"]
        wrong = []
        if not started <= (started if joined is None else joined) <= ended:
            wrong.append("its times are out of order")
        expected = {
            "join_ms": None if joined is None else joined - started,
            "sync_ms": None if joined is None else ended - joined,
            "total_ms": ended - started,
        }
        wrong += [
            f"{name} is {row[name]}, its times say {value}"
            for name, value in expected.items()
            if row[name] is not None and row[name] != value
        ]
        wrong += [
            f"{name} is negative ({row[name]})"
            for name in ("join_ms", "sync_ms", "total_ms", "assignment_ms", "first_fetch_ms", "unavailable_partition_ms")
            if (row[name] or 0) < 0
        ]
        for text in wrong:
            yield row, text


_WITH_DELAYS: Final = frozenset({"compatible", "sessioned"})
"""Protocols of Connect in which tasks of lost workers wait (KIP-415)."""


def no_overlap(group: GroupRows) -> Breaches:
    """A group is in one rebalance at a time."""
    for one, other in itertools.pairwise(group.rebalances):
        if other["started_at"] < one["ended_at"]:
            yield other, f"it began {one['ended_at'] - other['started_at']} ms before the one before ended"


def cost_in_bounds(group: GroupRows) -> Breaches:
    """No partition is without an owner for longer than the rebalance lasts, and no more partitions move than there are.

    Tasks of Connect may wait for it since an earlier one ended (docs/cost.md).
    """
    most = 0
    for row in group.rebalances:
        most = max(most, row["partitions"] or 0)
        cost, moved = row["unavailable_partition_ms"], row["partitions_moved"]
        lasted = row["ended_at"] - (group.rebalances[0] if row["protocol"] in _WITH_DELAYS else row)["started_at"]
        is_known = most > 0 or row["group_protocol"] != "consumer"  # there, partitions may come and go within one rebalance
        if cost is not None and is_known and cost > most * lasted:
            yield row, f"{cost} partition-ms, but {most} partitions in {lasted} ms are at most {most * lasted}"
        if moved is not None and moved > (row["partitions"] or 0):
            yield row, f"{moved} partitions moved, of {row['partitions']}"


def cost_has_owners(group: GroupRows) -> Breaches:
    """What a rebalance cost, and what it moved, is told only where it is known who was there before."""
    for row in group.rebalances:
        told = [name for name in ("unavailable_partition_ms", "partitions_moved") if row[name] is not None]
        if row["members_before"] is None and told:
            yield row, f"{' and '.join(told)} of a group of which nobody knows who had the partitions before"


def trigger_is_cause(group: GroupRows) -> Breaches:
    """The change that begins a rebalance says its cause and its culprit, or UNKNOWN; the culprit's membership ended so."""
    begun: defaultdict[int, list[tuple[str, str | None]]] = defaultdict(list)
    for row in group.transitions:
        if row["to_state"] in _BEGUN:
            begun[row["occurred_at"]].append((row["trigger"], row["member_id"]))
    sessions: defaultdict[str, list[Row]] = defaultdict(list)
    for row in group.sessions:
        sessions[row["member_id"]].append(row)
    for row in group.rebalances:
        said = begun[row["started_at"]]
        own = (row["cause"], row["member_id"])
        if said and own not in said and not any(trigger == "UNKNOWN" for trigger, _ in said):
            yield row, f"it began with {own[0]} of {own[1]}, the change says {said[0][0]} of {said[0][1]}"
        kinds = _ENDS.get(row["cause"])
        own_ends = sessions[row["member_id"]] if row["member_id"] in row["left"] else []
        ends = [one["end_kind"] for one in own_ends if row["started_at"] - _SECOND_MS <= one["ended_at"] <= row["ended_at"]]
        if kinds and ends and kinds.isdisjoint(ends):
            yield row, f"its cause is {row['cause']}, but the membership of {row['member_id']} ended with {ends[0]}"


def state_is_reported(group: GroupRows) -> Breaches:
    """The report shows the state that the last change left the group in, and members where there can be some.

    Of a group whose coordinator crashed it may say that the state is not known: no change shows that.
    """
    for row in group.reported if group.transitions else ():
        last = group.transitions[-1]
        given_up = last["to_state"] == "Dead" and last["trigger"] == "COORDINATOR_MOVED"  # it lives on at another broker
        if row["state"] not in ("UNKNOWN", "UNKNOWN" if given_up else last["to_state"]):
            yield last, f"the report says {row['state']}, the last change {last['to_state']}"
        elif row["members"] is not None and (row["members"] == 0) != (row["state"] in _WITHOUT_MEMBERS):
            yield last, f"the report says {row['state']}, with {row['members']} members"


def transitions_chain(group: GroupRows) -> Breaches:
    """Each change of state begins in the state in which the one before ended. A Dead group starts again as an Empty one."""
    for one, other in itertools.pairwise(group.transitions):
        if other["from_state"] not in (one["to_state"], "Empty" if one["to_state"] == "Dead" else ""):
            yield other, f"{other['from_state']} > {other['to_state']}, but the state was {one['to_state']}"


def one_departure(group: GroupRows) -> Breaches:
    """A member comes in one rebalance at most and goes in one at most, and it does not go before it came.

    A coordinator that takes the group over has forgotten what was not written since: who left may be back, and leave again. In the consumer
    protocol a client makes its member id itself, and comes back with it.
    """
    came: set[str] = set()
    gone: set[str] = set()
    ends = [row["occurred_at"] for row in group.transitions if row["to_state"] == "Dead"]
    for row in (row for row in group.rebalances if row["group_protocol"] == "classic"):
        if any(end <= row["started_at"] for end in ends):
            ends = [end for end in ends if end > row["started_at"]]
            came, gone = set(), set()
        again = [m for m in row["joined"] if m in came]
        twice = [m for m in row["left"] if m in gone]
        both = [m for m in row["joined"] if m in row["left"]]
        late = [m for m in row["joined"] if m in gone]
        for wrong, text in (
            (again, "joined before, and now again"),
            (twice, "left before, and now again"),
            (both, "joined and left in one rebalance"),
            (late, "left before it joined"),
        ):
            if wrong:
                yield row, f"{some(wrong, _NAMED)}: {text}"
        came.update(row["joined"])
        gone.update(row["left"])


def provisional_has_final(group: GroupRows) -> Breaches:
    """A provisional row has its final one, or waits, or is open: then none that began after all that is known of it has a final row."""
    final = {rebalance_key(row) for row in group.rebalances}
    last = max((row["ended_at"] for row in group.rebalances), default=-1)
    told = [row for row in group.provisional if row["outcome"] in (OPEN, ENDED)]
    for row in group.provisional:
        if row["outcome"] not in (OPEN, ENDED) and rebalance_key(row) not in final and row["ended_at"] < last:
            yield row, f"it has no final row, but a later rebalance has one; it waited for {row['waits_for']}"
    newest = max(told, key=lambda row: (row["batch_id"], row["at_end"], row["started_at"], row["outcome"] == ENDED), default=None)
    if newest is not None and newest["outcome"] == OPEN and any(row["started_at"] > newest["ended_at"] for row in group.rebalances):
        yield newest, "it is open, but a later rebalance has a final row"


def round_has_rebalance(group: GroupRows) -> Breaches:
    """Each round belongs to one rebalance: that with its generation, in whose time it began."""
    since = min((row["started_at"] for row in group.rebalances), default=None)
    for one in group.rounds:
        whose = [row for row in group.rebalances if _belongs(one, row)]
        if len(whose) != 1 and since is not None and one["started_at"] >= since:  # else its rebalance was removed with old rows
            yield one, f"epoch {one['epoch']} is in {len(whose)} rebalances"


def rounds_make_rebalance(group: GroupRows) -> Breaches:
    """They follow each other from its beginning to its end, are as many as it counts, and the first one has its cause."""
    since = min((one["started_at"] for one in group.rounds), default=None)
    for row in group.rebalances:
        if row.get("rounds") is None or since is None or row["started_at"] < since:  # older rounds may be removed already
            continue
        own = sorted((one for one in group.rounds if _belongs(one, row)), key=lambda one: (one["started_at"], one["epoch"]))
        for text in _wrong_rounds(row, own):
            yield row, text


def _wrong_rounds(row: Row, own: Sequence[Row]) -> Iterator[str]:
    if len(own) != row["rounds"]:
        yield f"{row['rounds']} rounds are counted, but {len(own)} are there"
        return
    first, last = own[0], own[-1]
    if (first["epoch"], last["epoch"]) != (row["first_epoch"], row["generation"]):
        yield f"its rounds are the epochs {first['epoch']} to {last['epoch']}, not {row['first_epoch']} to {row['generation']}"
    if any(other["epoch"] <= one["epoch"] for one, other in itertools.pairwise(own)):
        yield "an epoch is not higher than the one before"
    if first["started_at"] != row["started_at"]:
        yield f"its first round began {first['started_at'] - row['started_at']} ms after it"
    if (first["cause"], first["member_id"]) != (row["cause"], row["member_id"]):
        yield f"its cause is {row['cause']} of {row['member_id']}, that of its first round {first['cause']} of {first['member_id']}"
    if [one["superseded"] for one in own] != [True] * (len(own) - 1) + [False]:
        yield "not all rounds but the last one are superseded"
    if any(one["reconciled_at"] is not None for one in own[:-1]):
        yield "a round that was superseded was reached by all members"
    if last["reconciled_at"] not in (None, row["ended_at"]):
        yield f"all members had the last assignment {row['ended_at'] - last['reconciled_at']} ms before the end"


def _belongs(one: Row, row: Row) -> bool:
    return bool(one["generation"] == row["generation"] and row["started_at"] <= one["started_at"] <= row["ended_at"])


def rebalance_key(row: Row) -> tuple[int, int]:
    """What a rebalance is known by in its group, as in sql/views/rebalances_waiting.sql: its start may be corrected, these are not."""
    generation = row["generation"]
    return -1 if generation is None else generation, row["ended_at"] if row["joined_at"] is None else row["joined_at"]


LAWS: Final = (
    *(counts_add_up, counts_carry_over, durations, no_overlap, cost_in_bounds, transitions_chain, one_departure),
    *(provisional_has_final, cost_has_owners, trigger_is_cause, state_is_reported),
    *(round_has_rebalance, rounds_make_rebalance),
)
