"""Rebalances that follow one another closely: a rolling restart, a storm, or neither."""

from __future__ import annotations

from collections import Counter
from typing import Final

from coordinator_model.diagnosis import findings
from coordinator_model.diagnosis.cost import Cost
from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref
from coordinator_model.view.view import PastRebalance, Rebalance, RebalanceTrigger

QUIET_MS: Final = 60_000
"""A burst is over when no rebalance has started for so long."""

LONGEST_MS: Final = 600_000
"""A storm that does not end is told after so long, and again."""

RESTARTED_AT_LEAST: Final = 3
STORM_AT_LEAST: Final = 5
"""Rebalances of one client in one burst: restarts, rounds of a cooperative protocol and scale-outs have fewer."""

_DEPARTURES: Final = frozenset({reasons.MEMBER_LEFT, reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT})
_NOBODYS_FAULT: Final = frozenset({reasons.COORDINATOR_MOVED, reasons.REVOCATION_FOLLOW_UP, reasons.UNKNOWN})


def add(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger, sign: Ref | None, price: Cost) -> None:
    """A rebalance was written."""
    burst = g.view.burst
    if burst and (rebalance.started_ms > burst[-1].started_ms + QUIET_MS or rebalance.started_ms > burst[0].started_ms + LONGEST_MS):
        _judge(g)
    if culprit.cause not in _NOBODYS_FAULT:
        g.view.burst.append(
            PastRebalance(
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
            )
        )


def next_ms(g: Emitter) -> int | None:
    """When `close_due` has work next."""
    return g.view.burst[-1].started_ms + QUIET_MS + 1 if g.view.burst else None


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Judges a burst that is over. `flush`: nothing more will come."""
    if g.view.burst and not g.view.closing and g.view.open is None and (flush or g.view.burst[-1].started_ms + QUIET_MS < now_ms):
        _judge(g)


def _judge(g: Emitter) -> None:
    burst, g.view.burst = g.view.burst, []
    joined = {past.member_id for past in burst if past.cause == reasons.MEMBER_JOINED and not past.first}
    left = [past for past in burst if past.cause in _DEPARTURES]
    # Whoever is restarted was there before; in a crash loop the one that goes has only just come.
    restarted = sorted({past.member_id for past in left if past.member_id not in joined})
    again = [past for past in left if past.member_id in joined]
    if len(restarted) >= RESTARTED_AT_LEAST and len(joined) >= RESTARTED_AT_LEAST and len(again) <= len(restarted) // 2:
        first = next(number for number, past in enumerate(burst) if past.cause in _DEPARTURES)
        findings.rolling_restart(g, burst[first:], restarted)
        return
    who = Counter((past.client_id, past.client_host if not past.client_id else "") for past in burst)
    client, count = max(who.items(), key=lambda item: (item[1], item[0]))
    if count >= STORM_AT_LEAST:
        own = [number for number, past in enumerate(burst) if (past.client_id, past.client_host if not past.client_id else "") == client]
        first = own[1] if burst[own[0]].cause == reasons.MEMBER_JOINED else own[0]  # that it came is not yet a storm
        findings.rebalance_storm(g, burst[first:], burst[own[0]], sum(number >= first for number in own))
