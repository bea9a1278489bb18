"""Rebalances that have not ended: which these are, since when, who began them, and whom they wait for. Everything else reads these rows.

A group has at most one. Its row, with the outcome OPEN, is told once the rebalance has lasted TOLD_AFTER_MS or the input ends; again when
it says something else, and when it exceeds its limit. Once it is open no more, the same row is told with the outcome ENDED: the row that
stands for it from then on has another end, and may have another start. No line of the group tells how long it has been open when the log
ends: that is a matter of the view `rebalances_open` (sql/views).

Whom a join phase waits for: the members of the generation before that neither departed nor began it. The coordinator logs no member that
rejoins, and a request log has its JoinGroup only once it is answered. A client that sends JoinGroup stops its heartbeats
(AbstractCoordinator.HeartbeatThread of the Java client, rd_kafka_cgrp_join_state_serve of librdkafka), so where heartbeats of members go
on, those are the members that have not rejoined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.diagnosis import cost
from coordinator_model.diagnosis.joiners import SLOW_MS
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.tracker import rebalance_rows
from coordinator_model.tracker.consumer import episode_rows, episodes
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import ConsumerView, Episode
from coordinator_model.view.emit import Emitter
from coordinator_model.view.outcomes import ENDED, OPEN
from coordinator_model.view.rebalance import Aftermath, Rebalance, RebalanceTrigger
from coordinator_model.view.rows import REBALANCES_PROVISIONAL, Row, or_none

TOLD_AFTER_MS: Final = SLOW_MS
"""A rebalance that is shorter than this is not told of while it runs: most are."""
USUAL_LIMIT_MS: Final = 300_000
"""The rebalance timeout where no request shows it: the default of max.poll.interval.ms, which is the rebalance timeout of consumers."""
_HEARD_MS: Final = 10_000
"""A member whose last heartbeat came within this time sends heartbeats: three of their intervals."""

JOIN: Final = "JOIN"
SYNC: Final = "SYNC"
RECONCILE: Final = "RECONCILE"
WAITS: Final = {
    JOIN: "It is OPEN: members have yet to rejoin (PreparingRebalance).",
    SYNC: "It is OPEN: the leader has yet to send the assignment (CompletingRebalance).",
    RECONCILE: "It is OPEN: members have yet to reach the epoch, or to give partitions up (Reconciling).",
}
"""What a rebalance that has not ended waits for."""

RAISED: Final = "RAISED"
CLEARED: Final = "CLEARED"
ONLY_OPEN: Final = dict.fromkeys(("awaited", "awaited_unnamed", "limit_ms", "broker", "alarm"))
_NOT_YET: Final = (
    *("sync_ms", "members_after", "slowest_member_id", "partitions", "partitions_moved", "unavailable_partition_ms"),
    *("assignment_ms", "first_fetch_ms", "first_fetch_member_id", "interval_wait_ms"),
)
"""What is known only of a rebalance that has ended."""


def take_news(g: Emitter, *, input_ended: bool) -> list[Row]:
    """What is to be told since the last call of the rebalance that is open. Notes in the view that it was told."""
    view = g.view
    told, now = view.told_open, _row(g)
    if now is not None and told is None and not input_ended and now["total_ms"] < TOLD_AFTER_MS:
        now = None
    if now is not None and told is not None and _says(now) == _says(told):
        return []
    view.told_open, rows = now, []
    was_overdue = told is not None and is_overdue(told)
    if told is not None and (now is None or now["started_at"] > told["started_at"]):
        rows.append({**told, "outcome": ENDED, "alarm": CLEARED if was_overdue else None})
        was_overdue = False
    if now is not None:
        rows.append({**now, "alarm": RAISED if is_overdue(now) and not was_overdue else None})
    return [Row(REBALANCES_PROVISIONAL, values) for values in rows]


def next_ms(g: Emitter) -> int:
    """When `take_news`, which was called just before, has something next if no event comes; NEVER if only an event can change that."""
    told = g.view.told_open
    if told is not None:
        return NEVER if is_overdue(told) else int(told["started_at"] + limit_ms(told)) + 1
    now = _row(g)
    return NEVER if now is None else int(now["started_at"]) + TOLD_AFTER_MS + 1


def _says(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says, but for the time that goes on."""
    return {**row, "ended_at": None, "total_ms": None, "overdue": is_overdue(row)}


def is_overdue(row: Mapping[str, Any]) -> bool:
    """Whether a rebalance that is open has lasted longer than its limit."""
    return bool(row["total_ms"] >= limit_ms(row))


def limit_ms(row: Mapping[str, Any]) -> int:
    """The rebalance timeout, or the usual one if no request shows it."""
    return int(row["limit_ms"]) if row["limit_ms"] is not None else USUAL_LIMIT_MS


def _row(g: Emitter) -> dict[str, Any] | None:
    """The row of the rebalance that is open; None if none is."""
    view = g.view
    if view.open is not None:
        return _of_classic(g, view.open)
    if view.consumer is not None and view.consumer.episode is not None and view.consumer_protocol:
        return _of_consumers(g, view.consumer, view.consumer.episode)
    return None


def _of_classic(g: Emitter, rebalance: Rebalance) -> dict[str, Any]:
    view = g.view
    is_joined, is_polled = rebalance.joined_ms >= 0, rebalance.bounded and not rebalance.exact
    started_ms = rebalance_rows.started_ms(rebalance)
    culprit = rebalance.decided or RebalanceTrigger(started_ms, reasons.UNKNOWN, _named(rebalance))
    known = culprit.known_as(*view.identity(culprit.member_id)).changed(sign=None)  # its line stands among those of the rebalance
    account = rebalance_rows.Account(rebalance.changed(started_ms=started_ms), known, None, cost.UNKNOWN, Aftermath())
    if is_joined:
        awaited, unnamed = [rebalance.leader_id] if rebalance.leader_id else [], 0
    else:
        awaited, unnamed = _not_rejoined(g, rebalance, culprit.member_id)
    return _values(
        g,
        rebalance_rows.columns(account),
        waits_for=SYNC if is_joined else JOIN,
        awaited=awaited,
        awaited_unnamed=unnamed,
        limit_ms=or_none(max((member.rebalance_timeout_ms for member in view.members.values()), default=-1)),
        join_ms=rebalance.joined_ms - started_ms if is_joined and rebalance.exact else None,
        start_seen=rebalance.exact or (rebalance.decided is not None and not is_polled),
    )


def _named(rebalance: Rebalance) -> str:
    """The member that the coordinator says began it, where a line may yet show why it did."""
    return rebalance.named if rebalance.exact and rebalance.cause else ""


def _not_rejoined(g: Emitter, rebalance: Rebalance, began: str) -> tuple[list[str], int]:
    """The members that a join phase may wait for, and how many more there are that no line names."""
    view = g.view
    if rebalance.from_state is State.EMPTY:
        return [], 0  # the broker waits for members to come, and for none of them
    former = view.members.keys() - {*rebalance.moves.joined(), began}
    heard_ms = max(rebalance.started_ms, view.horizon_ms - _HEARD_MS)
    if alive := [m for m in former if view.members[m].called_ms >= heard_ms]:
        return sorted(alive), 0
    # Where only the line about its assignment names the leader, it is not among `members`.
    former |= {view.leader_id} - {"", began, *rebalance.moves.joined(), *(old.member_id for old in view.ended)}
    count = (rebalance.count_before if rebalance.count_before >= 0 else view.member_count) - len(rebalance.moves.left())
    rejoined = began != "" and began not in rebalance.moves.by_name
    return sorted(former), max(count - len(former) - rejoined, 0)


def _of_consumers(g: Emitter, view: ConsumerView, episode: Episode) -> dict[str, Any] | None:
    """None: nothing shows what members acknowledge, so nothing shows that it still runs (episodes.py)."""
    if not (episode.polled or episodes.is_shown(view)):
        return None
    unknown = {"cause": reasons.UNKNOWN, **dict.fromkeys(("member_id", "instance_id", "client_id", "client_host"))}
    awaited = [member for member in view.members.values() if not episodes.is_reconciled(member, view.epoch)]
    timeouts = (member.rebalance_timeout_ms for member in awaited or view.members.values())
    return _values(
        g,
        episode_rows.columns(g, view, episode) | ({} if episode.start_written else unknown),
        waits_for=RECONCILE,
        awaited=sorted(member.member_id for member in awaited),
        awaited_unnamed=0,
        limit_ms=or_none(max(timeouts, default=-1)),
        start_seen=not episode.polled,
    )


def _values(g: Emitter, columns: dict[str, Any], **others: Any) -> dict[str, Any]:
    """All columns of the row of a rebalance that is open at the time up to which the group's events were handled.

    `columns`: as if it had ended.
    """
    view, started_ms = g.view, columns["started_at"]
    until_ms = max(view.horizon_ms - 1, started_ms)  # events before the horizon were handled
    return {
        "group_id": view.group_id,
        **columns,
        **dict.fromkeys(_NOT_YET),
        "broker": view.broker or next(iter(view.brokers), None),
        "ended_at": until_ms,
        "total_ms": until_ms - started_ms,
        "outcome": OPEN,
        "joined_unnamed": 0,
        "left_unnamed": 0,
        "end_seen": False,
        **others,
    }
