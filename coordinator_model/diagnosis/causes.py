"""Why a rebalance began: the trigger that the tracker noted, corrected by everything that was read since."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import departures, incidents
from coordinator_model.diagnosis.incidents import SPAN_MS, was_heard_since
from coordinator_model.diagnosis.kinds import workers
from coordinator_model.specification.transitions import Trigger
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, ObservedMember
from coordinator_model.view.rebalance import Aftermath, Rebalance, RebalanceTrigger

FOLLOW_UP_MS: Final = 10_000
"""From the end of one round of a cooperative rebalance to the start of the next, where a member that gave nothing up begins it."""

LOGGED_WITHIN_MS: Final = 5_000
"""Between a client's log line that it rejoins and the start of the rebalance by the coordinator's clock: their clocks differ."""

PATIENCE_MS: Final = 15_000
"""How long a rebalance waits for the specification, which handles requests in hindsight, to show what it started with."""

_CAUSES: Final = {
    Trigger.NEW_MEMBER.name: reasons.MEMBER_JOINED,
    Trigger.SESSION_EXPIRED.name: reasons.SESSION_TIMEOUT,
    Trigger.SYNC_EXPIRED.name: reasons.SYNC_TIMEOUT,
    Trigger.STATIC_PROTOCOL_CHANGE.name: reasons.STATIC_MEMBER_REPLACED,
    Trigger.STATIC_REPLACED_DURING_COMPLETING.name: reasons.STATIC_MEMBER_REPLACED,
}
"""Triggers of the specification that are a cause. Where a member left or rejoined, its own request gives the cause."""

_WITHOUT_REQUEST: Final = {
    Trigger.LEAVE.name: reasons.MEMBER_LEFT,
    Trigger.LEADER_REJOIN.name: reasons.LEADER_REJOINED,
    Trigger.MEMBER_METADATA_CHANGED.name: reasons.MEMBER_REJOINED,
}
"""The cause where that request is no trigger: the member that left only had an id, or the one that rejoined was refused in the end."""

_DEPARTURES: Final = frozenset({reasons.MEMBER_LEFT, reasons.SESSION_TIMEOUT})
_BY_ITSELF: Final = frozenset({reasons.LEFT, reasons.POLL_TIMEOUT, reasons.ADMIN_REMOVED})


def specification_is_behind(g: Emitter, ended_ms: int) -> bool:
    """Whether the specification has yet to handle the requests of a rebalance that ended then."""
    p = g.view.prediction
    return p.group is not None and bool(p.queue) and p.handled_ms < ended_ms


def with_start(g: Emitter, rebalance: Rebalance) -> Rebalance:
    """A rebalance with start, cause and culprit by the specification, if only requests show it and the specification followed them."""
    start = g.view.prediction.starts.get(rebalance.old_generation)
    if rebalance.exact or start is None:
        return rebalance
    at_ms, name, member_id = start
    if any(at_ms < made_ms for made_ms, number in g.view.made if number == rebalance.old_generation):
        return rebalance  # the broker handled requests that arrived together in another order than the specification
    known = next((t for t in rebalance.triggers if t.member_id == member_id), None)
    cause = _CAUSES.get(name) or (known.cause if known is not None else _WITHOUT_REQUEST[name])
    is_known = known is not None and known.cause == cause
    trigger = known.changed(at_ms=at_ms) if known is not None and is_known else _trigger(g, at_ms, cause, member_id)
    triggers = [*(t for t in rebalance.triggers if not (is_known and t is known)), trigger]
    return rebalance.changed(triggers=triggers, started_ms=at_ms, settled=True, cause=cause, named=member_id)


def _trigger(g: Emitter, at_ms: int, cause: str, member_id: str) -> RebalanceTrigger:
    ended = g.view.ended_membership(member_id) if member_id not in g.view.members else None
    return RebalanceTrigger(at_ms, cause, member_id, *g.view.identity(member_id), "", ended.sign if ended is not None else None)


def corrected(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger, before: Aftermath) -> RebalanceTrigger:
    """The trigger with the cause that everything read so far shows.

    A departure has the cause that the end of the membership has: a static member whose poll loop stalled does not leave, its session ends,
    and the coordinator does not say that it was an administrator who removed a member by its instance id.
    """
    ended = g.view.ended_membership(culprit.member_id)
    cause = culprit.cause
    if _follows_a_move(g, rebalance, culprit, ended):
        cause = reasons.COORDINATOR_MOVED
    elif _says_not_why(culprit):
        cause = _of_rejoin(g, rebalance, culprit, before)
    elif cause in _DEPARTURES and ended is not None and ended.kind in (reasons.POLL_TIMEOUT, reasons.ADMIN_REMOVED):
        cause = ended.kind
    return workers.named(rebalance, culprit.changed(cause=cause), before)


def may_change(g: Emitter, culprit: RebalanceTrigger) -> bool:
    """Whether a line may yet show another cause: it is not known how the membership of the culprit ended, or why it joined again."""
    if culprit.cause in _DEPARTURES and culprit.member_id:
        returns = _is_amid_move(g, culprit.at_ms) and incidents.undecided(g, culprit.member_id)
        return returns or departures.blocks(g, {culprit.member_id}) or g.view.ended_membership(culprit.member_id) is None
    return _says_not_why(culprit)


def _says_not_why(culprit: RebalanceTrigger) -> bool:
    """Whether the culprit was a member that joined again and gave no reason."""
    return culprit.cause in (reasons.LEADER_REJOINED, reasons.MEMBER_REJOINED) and not reasons.says_why(reasons.own_words(culprit.reason))


def _of_rejoin(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger, before: Aftermath) -> str:
    """Why a member without a stated reason rejoined: from its own log, its requests or its assignment."""
    member = g.view.members.get(culprit.member_id)
    if member is not None and _has_said_why(member, rebalance, before):
        return member.rejoins_because
    if culprit.member_id in rebalance.resubscribed:
        return reasons.SUBSCRIPTION_CHANGED
    if before.revoked:
        soon = 0 <= rebalance.started_ms - before.ended_ms <= FOLLOW_UP_MS
        return reasons.REVOCATION_FOLLOW_UP if soon or culprit.member_id in before.revoked else culprit.cause
    if rebalance.of_connect:
        return workers.why_again(rebalance, culprit, before)
    known = not (rebalance.stored or rebalance.owners_unknown or before.owners_lost)
    if rebalance.assigned is not None and rebalance.owned_before and known:
        topics = {partition.rpartition("-")[0] for partition in rebalance.owned_before}
        assigned = {partition for partitions in rebalance.assigned.values() for partition in partitions}
        if any(p not in rebalance.owned_before and p.rpartition("-")[0] in topics for p in assigned):
            return reasons.METADATA_CHANGED
    return culprit.cause


def _has_said_why(member: ObservedMember, rebalance: Rebalance, before: Aftermath) -> bool:
    """Whether the client's log says why it asked for this rebalance.

    Each worker of Connect reads the same news. One that asks once more after it had a rebalance, or after another had one for such news,
    may be told to by the assignment.
    """
    is_near = bool(member.rejoins_because) and abs(rebalance.started_ms - member.rejoins_ms) <= LOGGED_WITHIN_MS
    is_late = rebalance.started_ms - before.ended_ms > FOLLOW_UP_MS
    is_own = before.ended_ms <= member.rejoins_ms and (is_late or before.changed_by in ("", member.member_id))
    return is_near and (member.rejoins_because != reasons.CONNECTOR_CHANGED or is_own)


def revoked(rebalance: Rebalance) -> list[str]:
    """Members that a cooperative round took partitions from: they give them up and rejoin, so that others can get them."""
    if rebalance.assigned is None:
        return []
    return sorted(m for m, kept in rebalance.kept.items() if not set(kept) <= set(rebalance.assigned.get(m, ())))


def _follows_a_move(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger, ended: EndedMembership | None) -> bool:
    """Whether the member only rejoined, or was not heard in time, because another broker had taken the group over."""
    view = g.view
    if not _is_amid_move(g, rebalance.started_ms):
        return False
    if culprit.cause == reasons.MEMBER_JOINED:
        return culprit.client_id in view.moved_clients and not _came_back_by_itself(g, culprit)
    if culprit.cause != reasons.SESSION_TIMEOUT or ended is None or was_heard_since(ended.seen_ms, ended.at_ms, view.moved_ms):
        return False
    # One that never comes back may have died, or have been closed while it had no coordinator.
    return ended.client_id in view.moved_clients and (incidents.undecided(g, ended.member_id) or incidents.is_lost(g, ended.member_id))


def waits_for_return(g: Emitter, rebalance: Rebalance) -> bool:
    """Whether a member that began a rebalance after a move by its session timeout may yet come back, which shows that the move did it."""
    expired = [trigger.member_id for trigger in rebalance.triggers if trigger.cause == reasons.SESSION_TIMEOUT]
    return _is_amid_move(g, rebalance.started_ms) and any(incidents.undecided(g, member_id) for member_id in expired)


def _is_amid_move(g: Emitter, at_ms: int) -> bool:
    return g.view.moved_ms >= 0 and 0 <= at_ms - g.view.moved_ms <= SPAN_MS


def _came_back_by_itself(g: Emitter, culprit: RebalanceTrigger) -> bool:
    """Whether the client had left by itself before it joined: its process was restarted, or subscribed anew."""
    recent = [old.kind for old in g.view.ended if old.client_id == culprit.client_id and old.at_ms >= g.view.moved_ms - SPAN_MS]
    others = any(one.client_name() == culprit.client_id and one.member_id != culprit.member_id for one in g.view.members.values())
    return bool(recent) and _BY_ITSELF.issuperset(recent) and not others
