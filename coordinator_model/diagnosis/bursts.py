"""Rebalances that follow each other closely: a rolling restart, a storm, or neither."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue
from coordinator_model.diagnosis.cost import Cost
from coordinator_model.diagnosis.findings import NOBODY, emit, seconds
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref, or_none
from coordinator_model.view.view import PastRebalance, Rebalance, RebalanceTrigger

QUIET_MS: Final = 60_000
"""A burst is over when no rebalance has started for so long."""

LONGEST_MS: Final = 600_000
"""A storm that does not end is reported after so long, and again."""

RESTARTED_AT_LEAST: Final = 3
STORM_AT_LEAST: Final = 5
"""Rebalances of one client in one burst: restarts, rounds of a cooperative protocol and scale-outs have fewer."""

_DEPARTURES: Final = frozenset({reasons.MEMBER_LEFT, reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT, reasons.REBALANCE_TIMEOUT})
_NO_CLIENTS_DOING: Final = frozenset({reasons.COORDINATOR_MOVED, reasons.REVOCATION_FOLLOW_UP, reasons.UNKNOWN})


def add(g: Emitter, past: PastRebalance) -> None:
    """Adds a rebalance that was written, or a round of one."""
    burst = g.view.burst
    if burst and (past.started_ms > burst[-1].started_ms + QUIET_MS or past.started_ms > burst[0].started_ms + LONGEST_MS):
        _judge(g)
    if past.cause not in _NO_CLIENTS_DOING:
        g.view.burst.append(past)


def past_of(rebalance: Rebalance, culprit: RebalanceTrigger, sign: Ref | None, price: Cost) -> PastRebalance:
    """What is kept of a classic rebalance."""
    return PastRebalance(
        rebalance.started_ms,
        culprit.cause,
        culprit.member_id,
        culprit.client_id,
        culprit.client_host,
        sign,
        rebalance.ended_ms - rebalance.started_ms,
        -1 if price.unavailable_ms is None else price.unavailable_ms,
        -1 if price.moved is None else price.moved,
        rebalance.from_state is State.EMPTY,
        rebalance.old_generation,
    )


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    return g.view.burst[-1].started_ms + QUIET_MS + 1 if g.view.burst else NEVER


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Judges a burst that is over. `flush`: nothing more will come."""
    view = g.view
    written = not view.closing and view.open is None and (view.consumer is None or view.consumer.is_written())
    if view.burst and written and (flush or view.burst[-1].started_ms + QUIET_MS < now_ms):
        _judge(g)


def _judge(g: Emitter) -> None:
    burst = sorted(g.view.burst, key=lambda past: past.started_ms)  # rows of two protocols may be written in another order
    g.view.burst = []
    told = _restarts(burst) if g.view.consumer_protocol else burst
    left = [past for past in told if past.cause in _DEPARTURES]
    joined = {past.member_id for past in told if past.cause == reasons.MEMBER_JOINED and not past.first}
    # A restarted member was there before the burst; in a crash loop the member that departs has only just joined.
    restarted = {past.member_id: past.client_id for past in left if past.member_id not in joined}
    again = [past for past in left if past.member_id in joined]
    if len(restarted) >= RESTARTED_AT_LEAST and len(joined) >= RESTARTED_AT_LEAST and len(again) <= len(restarted) // 2:
        first = next(number for number, past in enumerate(told) if past.cause in _DEPARTURES)
        _report_rolling_restart(g, told[first:], restarted)
        return
    clients = Counter(map(_client, burst))
    client, count = max(clients.items(), key=lambda item: (item[1], item[0]))
    if count < STORM_AT_LEAST:
        return
    own = [number for number, past in enumerate(burst) if _client(past) == client]
    if burst[own[0]].cause == reasons.MEMBER_JOINED:
        own = own[1:]  # its first join is not yet a storm
    if len(own) >= STORM_AT_LEAST:
        _report_storm(g, burst[own[0] :], burst[own[0]], len(own))


def _restarts(burst: list[PastRebalance]) -> list[PastRebalance]:
    """From the first departure to the last join. A group of the consumer protocol forms member by member: who joined before was there."""
    departures = [number for number, past in enumerate(burst) if past.cause in _DEPARTURES]
    joins = [number for number, past in enumerate(burst) if past.cause == reasons.MEMBER_JOINED]
    return burst[departures[0] : joins[-1] + 1] if departures and joins else []


def _texts(g: Emitter) -> Any:
    return consumer_catalogue if g.view.consumer_protocol else catalogue


def _client(past: PastRebalance) -> tuple[str, str]:
    return past.client_id, past.client_host if not past.client_id else ""


def _report_rolling_restart(g: Emitter, burst: list[PastRebalance], restarted: dict[str, str]) -> None:
    """Members were restarted one after the other: many rebalances with one purpose. `restarted`: their client ids by member id."""
    longest = _longest_restart_ms(burst)
    words = {"count": len(restarted), "longest": f", which took up to {seconds(longest)} here" if longest >= 0 else ""}
    # Member ids of the consumer protocol do not begin with the id of the client.
    clients = {"clients": sorted(client or member for member, client in restarted.items())} if g.view.consumer_protocol else {}
    _report(g, _texts(g).ROLLING_RESTART, burst, NOBODY, words, restarted=sorted(restarted), longest_restart_ms=or_none(longest), **clients)


def _report_storm(g: Emitter, burst: list[PastRebalance], culprit: PastRebalance, count: int) -> None:
    """One client joins and departs again and again: the group does little else than rebalance."""
    counted = Counter(past.cause for past in burst)
    causes = sorted(counted, key=lambda cause: (-counted[cause], cause))
    most = counted[causes[0]]
    common = causes[: 1 if 2 * most > len(burst) else 2]
    words = {
        "culprit": culprit.client_id or culprit.client_host or "one client",
        "common": ("mostly " if len(common) == 1 else "") + " and ".join(f"{cause} ({counted[cause]})" for cause in common),
        "remedy": catalogue.AGAINST_STORMS.get(causes[0], catalogue.AGAINST_CRASH_LOOPS),
    }
    client = ("", culprit.client_id, culprit.client_host)
    _report(g, _texts(g).REBALANCE_STORM, burst, client, words, by_culprit=count, causes=dict(counted), common_causes=common)


def _report(
    g: Emitter, text: catalogue.Text, burst: list[PastRebalance], client: tuple[str, str, str], words: dict[str, Any], /, **details: Any
) -> None:
    span_ms = burst[-1].started_ms - burst[0].started_ms
    total_ms = sum(past.total_ms for past in burst)
    unavailable = [past.unavailable_ms for past in burst if past.unavailable_ms >= 0]
    moved = [past.moved for past in burst if past.moved >= 0]
    without_owner = f", {seconds(sum(unavailable))} without an owner over all partitions" if sum(unavailable) else ""
    emit(
        g,
        text,
        burst[0].started_ms,
        client,
        [past.sign for past in burst if past.sign is not None],
        words | {"span": seconds(span_ms), "bill": f", {seconds(total_ms)} of rebalancing{without_owner}"},
        generation=burst[0].generation,
        rebalances=len(burst),
        span_ms=span_ms,
        total_ms=total_ms,
        unavailable_partition_ms=sum(unavailable) if unavailable else None,
        partitions_moved=sum(moved) if moved else None,
        **details,
    )


def _longest_restart_ms(burst: list[PastRebalance]) -> int:
    """The longest time from a client's departure to its return, where both began a rebalance; -1 if none did."""
    departed: dict[tuple[str, str], int] = {}
    took = [-1]
    for past in burst:
        client = (past.client_id, past.client_host)
        if past.cause == reasons.MEMBER_JOINED and client in departed:
            took.append(past.started_ms - departed.pop(client))
        elif past.cause != reasons.MEMBER_JOINED and past.client_id:
            departed[client] = past.started_ms
    return max(took)
