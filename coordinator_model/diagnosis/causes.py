"""Why a rebalance began, once all is seen that bears on it: the trigger that the tracker noted, put into its context."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis.incidents import SPAN_MS
from coordinator_model.specification.transitions import Trigger
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import Rebalance, RebalanceTrigger

FOLLOW_UP_MS: Final = 10_000
"""From the end of one round of a cooperative rebalance to the start of the next, where another than who gave something up begins it."""


SAID_WITHIN_MS: Final = 5_000
"""Between a client's log saying that it joins again and the coordinator's beginning of the rebalance: their clocks differ."""

PATIENCE_MS: Final = 15_000
"""How long a rebalance waits for the specification, which is told in hindsight, to say what it started with."""

_CAUSES: Final = {
    Trigger.NEW_MEMBER.name: reasons.MEMBER_JOINED,
    Trigger.SESSION_EXPIRED.name: reasons.SESSION_TIMEOUT,
    Trigger.SYNC_EXPIRED.name: reasons.SYNC_TIMEOUT,
    Trigger.STATIC_PROTOCOL_CHANGE.name: reasons.STATIC_MEMBER_REPLACED,
    Trigger.STATIC_REPLACED_DURING_COMPLETING.name: reasons.STATIC_MEMBER_REPLACED,
}
"""What the specification says outright; why a member left or came back, its own request says."""

_UNSAID: Final = {
    Trigger.LEAVE.name: reasons.MEMBER_LEFT,
    Trigger.LEADER_REJOIN.name: reasons.LEADER_REJOINED,
    Trigger.MEMBER_METADATA_CHANGED.name: reasons.MEMBER_REJOINED,
}
"""Where that request is no trigger: who left had only been handed an id, who came back was refused in the end."""


def may_still_be_told(g: Emitter, ended_ms: int, now_ms: int) -> bool:
    """Whether the specification has yet to be told of a rebalance that ended then."""
    p = g.view.prediction
    return p.group is not None and bool(p.queue) and p.handled_ms < ended_ms and now_ms <= ended_ms + PATIENCE_MS


def settle_start(g: Emitter, rebalance: Rebalance) -> None:
    """Takes start, cause and culprit of a rebalance that only requests show from the specification, where that followed it."""
    start = g.view.prediction.starts.get(rebalance.old_generation)
    if rebalance.exact or start is None:
        return
    at_ms, name, member_id = start
    known = next((t for t in rebalance.triggers if t.member_id == member_id), None)
    cause = _CAUSES.get(name) or (known.cause if known is not None else _UNSAID[name])
    if known is None or known.cause != cause:
        known = _trigger(g, at_ms, cause, member_id)
        rebalance.triggers.append(known)
    known.at_ms = at_ms
    rebalance.started_ms, rebalance.settled = at_ms, True
    rebalance.cause, rebalance.named = cause, member_id


def _trigger(g: Emitter, at_ms: int, cause: str, member_id: str) -> RebalanceTrigger:
    who = g.view.members.get(member_id)
    if who is not None:
        return RebalanceTrigger(at_ms, cause, member_id, who.instance_id, who.client(), who.client_host)
    gone = next((old for old in reversed(g.view.ended) if old.member_id == member_id), None)
    if gone is not None:
        return RebalanceTrigger(at_ms, cause, member_id, gone.instance_id, gone.client_id, gone.client_host, "", gone.sign)
    return RebalanceTrigger(at_ms, cause, member_id)


def sharpen(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger) -> None:
    """Corrects the cause of a rebalance that is about to be written, and notes what the next one may follow from."""
    if _follows_a_move(g, rebalance, culprit):
        culprit.cause = reasons.COORDINATOR_MOVED
    elif culprit.cause in (reasons.LEADER_REJOINED, reasons.MEMBER_REJOINED) and not reasons.says_why(_words(culprit)):
        culprit.cause = _of_rejoin(g, rebalance, culprit)
    elif culprit.cause == reasons.SESSION_TIMEOUT and _had_stalled(g, culprit.member_id):
        culprit.cause = reasons.POLL_TIMEOUT
    g.view.revoked_ms, g.view.revoked = rebalance.ended_ms, _revoked(rebalance)


def _words(culprit: RebalanceTrigger) -> str:
    """The client's own words, whether they came inside the coordinator's text or in the request itself."""
    if reasons.of_coordinator(culprit.reason) == reasons.UNKNOWN:
        return culprit.reason
    return reasons.client_reason(culprit.reason)


def _of_rejoin(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger) -> str:
    """A member that came back and gave no reason: its own log, what it asked for, and what it was given, tell it."""
    member = g.view.members.get(culprit.member_id)
    if member is not None and member.rejoins_because and abs(rebalance.started_ms - member.rejoins_ms) <= SAID_WITHIN_MS:
        return member.rejoins_because
    if culprit.member_id in rebalance.resubscribed:
        return reasons.SUBSCRIPTION_CHANGED
    if g.view.revoked:
        soon = 0 <= rebalance.started_ms - g.view.revoked_ms <= FOLLOW_UP_MS
        return reasons.REVOCATION_FOLLOW_UP if soon or culprit.member_id in g.view.revoked else culprit.cause
    if rebalance.assigned is not None and rebalance.owned_before and not rebalance.stored:
        known = {partition.rpartition("-")[0] for partition in rebalance.owned_before}
        assigned = {partition for partitions in rebalance.assigned.values() for partition in partitions}
        if any(p not in rebalance.owned_before and p.rpartition("-")[0] in known for p in assigned):
            return reasons.METADATA_CHANGED
    return culprit.cause


def _had_stalled(g: Emitter, member_id: str) -> bool:
    """A static member whose poll loop stalled does not leave: its session ends."""
    gone = next((old for old in reversed(g.view.ended) if old.member_id == member_id), None)
    return gone is not None and gone.kind == reasons.POLL_TIMEOUT


def _revoked(rebalance: Rebalance) -> list[str]:
    """Members that a cooperative round took partitions from: they give them up and join again, so that others can have them."""
    if rebalance.assigned is None:
        return []
    return sorted(m for m, kept in rebalance.kept.items() if not set(kept) <= set(rebalance.assigned.get(m, ())))


def _follows_a_move(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger) -> bool:
    """Whether the member only came back, or was not heard in time, because another broker had taken the group over."""
    view = g.view
    if view.moved_ms < 0 or not 0 <= rebalance.started_ms - view.moved_ms <= SPAN_MS:
        return False
    if culprit.cause == reasons.MEMBER_JOINED:
        return culprit.client_id in view.moved_clients
    if culprit.cause != reasons.SESSION_TIMEOUT:
        return False
    gone = next((old for old in reversed(view.ended) if old.member_id == culprit.member_id), None)
    return gone is not None and gone.client_id in view.moved_clients
