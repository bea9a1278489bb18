"""Rebalances that have ended and are still open to correction, as the tracker would write them if no further line came.

A rebalance is told so when it has ended, and again when what it waits for changes. Its row names a cause and a culprit only if no line
that is waited for can change them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from coordinator_model.diagnosis import departures
from coordinator_model.tracker import closing, rebalance_rows, unended
from coordinator_model.tracker.consumer import episode_rows
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Episode
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rebalance import Rebalance
from coordinator_model.view.rows import REBALANCES_PROVISIONAL, Row

_WHO: Final = ("member_id", "instance_id", "client_id", "client_host", "reason")
_SHOWN_BY_ASSIGNMENTS: Final = frozenset(
    {
        *(reasons.LEADER_REJOINED, reasons.MEMBER_REJOINED, reasons.METADATA_CHANGED, reasons.REVOCATION_FOLLOW_UP),
        *(reasons.SUBSCRIPTION_CHANGED, reasons.CONNECTOR_CHANGED, reasons.DELAY_ENDED),
    }
)
"""Causes that the new assignment tells apart."""

Waiting = list[tuple[Rebalance | Episode, tuple[str, ...]]]
"""The rebalances of a group that have ended, of the classic protocol before those of the other, and what each waits for."""


def waiting(g: Emitter) -> Waiting:
    """What waits in a group at the time up to which its events were handled."""
    waits: Waiting = [(one, tuple(closing.waits(g, one, g.view.horizon_ms)) or (closing.EARLIER_REBALANCE,)) for one in g.view.closing]
    ended = g.view.consumer.ended if g.view.consumer is not None else []
    return [*waits, *((episode, (closing.ANSWERS,)) for episode in ended)]


def first_changed(before: Waiting, now: Waiting) -> int:
    """The number in `now` of the first rebalance that is new or waits for something else than before; how many there are if none does."""
    known = {id(rebalance): waits for rebalance, waits in before}
    return next((number for number, (rebalance, waits) in enumerate(now) if known.get(id(rebalance)) != waits), len(now))


def told_so_far(g: Emitter) -> list[Row]:
    """The rows of all rebalances of a group that wait, oldest first."""
    view, before = g.view, g.view.aftermath
    undecided = departures.undecided(g)
    rows: list[Row] = []
    all_waits: set[str] = set()
    for number, (one, waits) in enumerate(waiting(g)):
        if isinstance(one, Episode):  # its cause is settled when it ends; lines that follow may name the client of a member
            assert view.consumer is not None
            values = episode_rows.columns(g, view.consumer, one)
        else:
            following = view.unfinished()[number + 1 : number + 2]
            if one.ended_ms < 0 and not following:
                break  # what seemed to supersede it was a damaged line
            ended_ms = one.ended_ms if one.ended_ms >= 0 else closing.end_with(g, one, following[0])
            account = rebalance_rows.account_of(g, one.changed(ended_ms=ended_ms), before)
            before, values = account.aftermath, rebalance_rows.columns(account)
            all_waits.update(waits)
            if _is_whose_open(one, all_waits):
                values |= {**dict.fromkeys(_WHO), "cause": reasons.UNKNOWN}
            elif _is_why_open(values, all_waits, undecided):
                values["cause"] = reasons.UNKNOWN
        told_of = {"group_id": view.group_id, "waits_for": ", ".join(waits), **unended.ONLY_OPEN}
        rows.append(Row(REBALANCES_PROVISIONAL, {**told_of, **values}))
    return rows


def _is_whose_open(rebalance: Rebalance, waits: Collection[str]) -> bool:
    """Whether a line may yet show that another member began it."""
    if rebalance.exact and rebalance.cause and rebalance.named:
        return False  # the coordinator says so
    return not {closing.ANSWERS, closing.REQUESTS, closing.NEXT_REBALANCE}.isdisjoint(waits)


def _is_why_open(values: dict[str, Any], waits: Collection[str], undecided: Collection[str]) -> bool:
    """Whether a line may yet show another cause. `undecided`: members that left for a reason which is not known yet."""
    if values["cause"] == reasons.SESSION_TIMEOUT and values["instance_id"]:
        return True  # a static member whose poll loop stalled does not leave: it may be back
    if values["cause"] == reasons.MEMBER_LEFT:
        return values["member_id"] in undecided
    return closing.ANSWERS in waits and values["cause"] in _SHOWN_BY_ASSIGNMENTS
