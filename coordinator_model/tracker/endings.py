"""How memberships and groups end, as a request or a coordinator's line shows it."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import departures, refusals
from coordinator_model.errors import Error
from coordinator_model.events import REQUEST_SOURCE, Event, MemberEntry
from coordinator_model.states import State
from coordinator_model.tracker import expiry, membership, phases
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

_LOGGED_WITHIN_MS: Final = 1_000  # from a LeaveGroup to the coordinator's line, which may be read first


def leave(g: Emitter, event: Event, member_id: str, reason: str, *, by_admin: bool) -> None:
    """A member left, by its request or the coordinator's line; whichever comes second adds nothing."""
    view = g.view
    member = view.present_or_lost(member_id)
    if reason in reasons.NO_REASON:
        reason = member.leaves_because if member is not None else ""
    cause = reasons.of_leave(reason, by_admin=by_admin)
    if member is not None and member.stalled_ms >= 0 and not reason and not by_admin:
        cause = reasons.POLL_TIMEOUT
    instance_id = member.instance_id if member is not None else event.instance_id
    if instance_id and reason not in reasons.CLIENT_LIBRARY_REASONS and cause == reasons.MEMBER_LEFT:
        cause = reasons.ADMIN_REMOVED  # a static member does not leave by itself (KIP-345)
    sender = event if event.member_id == member_id else None
    ended = membership.remove(g, member_id, event.received_ms, reasons.end_of(cause), [ref(event)], sender, reason=reason)
    if ended is None:
        if event.source == REQUEST_SOURCE:
            departures.on_leave_request(g, member_id, by_admin=cause == reasons.ADMIN_REMOVED)
        return
    trigger = membership.trigger_of(ended, cause, reason, ended.at_ms)
    phases.add_trigger(g, trigger)
    if event.source != REQUEST_SOURCE:
        return
    if trigger in view.unclaimed and view.state in (State.STABLE, State.COMPLETING_REBALANCE):
        phases.open_rebalance(g, event.received_ms, exact=False, trigger=trigger, signs=[ref(event)])
    if not view.logged:
        expiry.note_vacant(g, event.received_ms)


def group_removed(g: Emitter, event: Event, trigger: str = phases.GROUP_REMOVED) -> None:
    """The group was deleted; a new one of the same name starts at generation 1."""
    view = g.view
    if view.open is not None and view.open.vacant_ms >= 0:  # only an empty group can be removed
        phases.emptied(g, view.open.vacant_ms, max(view.generation, 0) + 1, signs=[])
    phases.abandon(g, event.at_ms, [ref(event)])
    phases.change_state(g, event.at_ms, State.DEAD, trigger, [ref(event)])
    for member_id in list(view.members):
        membership.remove(g, member_id, event.at_ms, reasons.GROUP_GONE, [ref(event)])
    view.generation = 0
    view.store_empty(0)
    view.nobody_is_there()


def leave_group(g: Emitter, event: Event) -> None:
    """LEAVE_GROUP: each accepted entry ends a membership (v3+ has several entries, by instance id too: KIP-345)."""
    entries = event.members or (MemberEntry(event.member_id, event.instance_id, event.error_code, event.reason, None),)
    for entry in entries:
        if event.error_code or entry.error_code:
            if entry.error_code == Error.UNKNOWN_MEMBER_ID and entry.member_id:
                refusals.judge(g, event._replace(member_id=entry.member_id, error_code=entry.error_code))
            continue
        member_id = entry.member_id or g.view.member_of_instance(entry.instance_id)
        by_admin = not entry.member_id or _is_another_client(g, event, member_id)
        if by_admin and g.view.open is not None and event.received_ms - g.view.open.started_ms <= _LOGGED_WITHIN_MS:
            g.view.open.note(ref(event))  # only the request says who asked
        if not member_id:
            continue
        if g.view.drop_id(member_id):
            continue
        leave(g, event, member_id, entry.reason or event.reason, by_admin=by_admin)


def _is_another_client(g: Emitter, event: Event, member_id: str) -> bool:
    """Whether a LeaveGroup was sent by another client than that of the member, as Admin.removeMembersFromConsumerGroup does.

    A consumer has one client.id, with which it sends all its requests.
    """
    member = g.view.members.get(member_id)
    ended = g.view.ended_membership(member_id)
    client_id = member.client_id if member is not None and member.sessions_seen else ended.client_id if ended is not None else ""
    return "" != client_id != event.client_id != ""
