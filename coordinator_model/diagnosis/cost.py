"""What a rebalance cost: the partitions that changed owner, and the time in which partitions were not processed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator_model.view import reasons
from coordinator_model.view.outcomes import EMPTIED, SUPERSEDED
from coordinator_model.view.rebalance import Aftermath, Rebalance

_ON_PURPOSE: Final = frozenset({reasons.MEMBER_LEFT, reasons.ADMIN_REMOVED, reasons.UNKNOWN})
"""How a group empties that is shut down: who comes into it starts up, and takes no partition from anybody."""


class Cost(NamedTuple):
    """The cost of one rebalance. None where the logs do not show it."""

    partitions: int | None
    moved: int | None
    unavailable_ms: int | None


UNKNOWN: Final = Cost(None, None, None)


def is_counted(partition: str) -> bool:
    """Whether it is a partition or a task, and no connector (events.CONNECTOR): their names end in a number."""
    return not partition.endswith(")")


def with_unowned(rebalance: Rebalance, before: Aftermath) -> Rebalance:
    """A rebalance with the partitions that the round before left without an owner.

    A cooperative rebalance moves a partition in two rounds: the first takes it from its owner, the second assigns it. No member
    processes it in between, and that time counts for the second round. A rebalance that is superseded leaves all partitions that
    their owners gave up to rejoin: each rebalance pays for its own time. So does that of who comes into a group which lost its members.
    Workers of Connect leave tasks alone for long, until a scheduled delay is over: the rebalance that gives them to others counts all of
    that time, from the one on that lost them, whoever came or went in between.
    """
    unowned = before.unowned
    if rebalance.assigned is None and rebalance.outcome != SUPERSEDED:
        return rebalance
    kept_by = {p: member_id for member_id, partitions in rebalance.kept.items() for p in partitions}
    vacant = dict.fromkeys(
        (p for p in unowned if rebalance.owned_before.get(p, unowned[p]) == unowned[p]),
        before.ended_ms if rebalance.of_connect else rebalance.started_ms,
    )
    if rebalance.of_connect and before.wait is not None:
        vacant |= {p: lost_ms for p, (_, lost_ms) in before.wait.since.items() if p in vacant}
    return rebalance.changed(vacant=vacant, owned_before=unowned | kept_by | rebalance.owned_before)


def leaves_unowned(rebalance: Rebalance) -> dict[str, str]:
    """The partitions that a rebalance leaves without an owner, and who had them."""
    if rebalance.assigned is None:
        failed = rebalance.outcome == EMPTIED and rebalance.decided is not None and rebalance.decided.cause not in _ON_PURPOSE
        owners = sorted(rebalance.owned_before.items()) if failed or rebalance.outcome == SUPERSEDED else ()
        return {p: owner for p, owner in owners if _given_up(rebalance, p, owner)}
    taken = _taken(rebalance, rebalance.assigned)
    if rebalance.delay_ms:
        taken |= rebalance.owned_before.keys() - set().union(*rebalance.assigned.values())
    return {p: owner for p, owner in sorted(rebalance.owned_before.items()) if p in taken}


def leaves_unknown(rebalance: Rebalance) -> bool:
    """Whether partitions may be without an owner after it that no line shows: those that a cooperative round took from unknown owners."""
    if not rebalance.owners_unknown or rebalance.assigned is None:
        return rebalance.owners_unknown
    return bool(rebalance.assigned.keys() - rebalance.joins.keys() or _taken(rebalance, rebalance.assigned))


def _taken(rebalance: Rebalance, assigned: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The partitions that members kept while they rejoined, and that nobody is assigned."""
    return set().union(*rebalance.kept.values()).difference(*assigned.values())


def of(rebalance: Rebalance) -> Cost:
    """The cost of one rebalance, from the decoded assignments before and after it.

    A partition is not processed from the time when its owner stopped (gave it up to rejoin, left, or was last heard) until its new owner
    got the assignment. A partition that its owner kept while rejoining (cooperative protocol) costs nothing. Neither does one that had
    no owner before: this rebalance did not take it away. No partition counts for longer than the rebalance lasted.
    """
    if rebalance.assigned is None:
        return Cost(None, None, _until_superseded(rebalance))
    owner_after = {p: member for member, partitions in rebalance.assigned.items() for p in partitions if is_counted(p)}
    if rebalance.owners_unknown:
        return Cost(len(owner_after), None, None)
    owned = rebalance.owned_before if rebalance.count_before else {}  # whoever comes into an empty group takes none from anybody
    moved = sum(1 for p, member in owner_after.items() if p in owned and owned[p] != member)
    unavailable = 0
    for partition, owner in sorted((p, owner) for p, owner in rebalance.owned_before.items() if is_counted(p)):
        heir = owner_after.get(partition)
        if heir is None and rebalance.of_connect:
            continue  # a task that waits, or was deleted
        if heir == owner and partition in rebalance.kept.get(owner, ()):
            continue
        to_ms = rebalance.synced.get(heir, rebalance.ended_ms) if heir is not None else rebalance.ended_ms
        # What its owner kept was worked on until the new assignment took it away: the time counts for the follow-up round.
        from_ms = to_ms if partition in rebalance.kept.get(owner, ()) else _stopped_ms(rebalance, partition, owner)
        unavailable += max(min(to_ms, rebalance.ended_ms) - from_ms, 0)
    return Cost(len(owner_after), moved, unavailable)


def _until_superseded(rebalance: Rebalance) -> int | None:
    """The time in which partitions had no active owner until the next rebalance began; None where that is unknown."""
    if rebalance.outcome != SUPERSEDED or not rebalance.owned_before or rebalance.owners_unknown:
        return None
    return sum(
        max(rebalance.ended_ms - _stopped_ms(rebalance, p, owner), 0)
        for p, owner in rebalance.owned_before.items()
        if is_counted(p) and _given_up(rebalance, p, owner)
    )


def _given_up(rebalance: Rebalance, partition: str, owner: str) -> bool:
    """Whether the owner of a partition no longer works on it when a rebalance without an assignment ends."""
    if partition in rebalance.kept.get(owner, ()):
        return False
    return partition in rebalance.vacant or owner in rebalance.joins or owner in rebalance.stopped


def _stopped_ms(rebalance: Rebalance, partition: str, owner: str) -> int:
    """When work on a partition stopped, but no earlier than this rebalance pays for it."""
    if partition in rebalance.vacant:
        return rebalance.vacant[partition]
    begin_ms = rebalance.joins.get(owner, rebalance.started_ms)
    if rebalance.of_connect:  # a worker stops its tasks before it joins (DistributedHerder.RebalanceListener.onRevoked)
        begin_ms = min(begin_ms, rebalance.called.get(owner, begin_ms))
    return max(rebalance.stopped.get(owner, begin_ms), rebalance.started_ms)
