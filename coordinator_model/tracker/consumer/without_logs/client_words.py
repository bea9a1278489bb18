"""What a client's own log says of a member of the consumer protocol, or of a Streams group: that it was not polled in time.

A client whose application does not call poll() within max.poll.interval.ms leaves the group, a static one for a while, and joins again when
it polls (AbstractHeartbeatRequestManager.poll). The coordinator only logs that it left. The client's clock is another one: what it says
explains a departure only if that follows soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import departures
from coordinator_model.events import Event
from coordinator_model.tracker.lines import client_lines
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership
from coordinator_model.view.rows import ref

FOLLOWS_MS: Final = 10_000
TOLD_MS: Final = 60_000
"""A client writes one line when the time is over, and another one when it polls again: both are about one stall."""
AGAIN_MS: Final = 1_000
"""Two lines that come sooner after each other are about the same moment."""
NAMES_KEPT: Final = 64


def take(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes a line of a client. Those that name neither a member nor a client alone are about nobody in particular.

    An application logs the error of its client without a name: it is that of the client which named itself in the same log before. The
    coordinator of a Streams group logs no client's name: lines about its state show which member the client is.
    """
    if event.kind == kinds.CLIENT_STATE and event.member_id:
        client_lines.note_name(g, event)
    if event.kind != kinds.CLIENT_POLL_TIMEOUT:
        return
    name = event.client_id or event.member_id or event.instance_id
    event = event._replace(member_id=client_lines.member_of(g, event))
    member = _member(view, event)
    log = f"{event.origin}\n"
    is_told = event.at_ms - view.stalls.get(name or log, -TOLD_MS) < TOLD_MS
    view.stalls = {**dict(list(view.stalls.items())[-NAMES_KEPT:]), name or log: event.at_ms, log: event.at_ms}
    said: dict[str, Any] = {"connection": log + name, "at_ms": event.at_ms, "generation": view.epoch, "signs": [ref(event)]}
    if event.rebalance_timeout_ms >= 0:
        said["rebalance_timeout_ms"] = event.rebalance_timeout_ms
    if member is None:
        told = EndedMembership(event.member_id, client_id=event.client_id, **said)
    else:
        member.stalled_ms = event.at_ms
        interval_ms = member.longest_gap_ms + FOLLOWS_MS if member.longest_gap_ms >= 0 else 0
        told = member.as_observed(interval_ms, client_id=member.client_id or event.client_id, **said)
    told.says_it_stalled(event)
    if not is_told and not _was_removed(view, event):
        stalled = departures.stall_of(told)
        if member is not None and stalled.passed_ms >= 0:
            stalled.instance_id = member.instance_id  # a static one keeps its place
        departures.hold_back_stall(g, stalled)
    if not is_told:
        return
    held = [one.connection for one in g.view.poll_stalls if _is_about(event, one)]
    own = [one for one in held if one == told.connection or (not name and one.startswith(log))]
    if len(own) == 1:
        departures.polls_again(g, own[0], event)


def _is_about(event: Event, stall: EndedMembership) -> bool:
    """Whether a line is about a stall that was told before: its limit had passed by then, it names the same excess, or none can be new."""
    since_ms, over_ms = event.at_ms - stall.at_ms, event.at_ms - event.received_ms
    is_same = over_ms > since_ms or over_ms == stall.over_ms > 0
    return since_ms >= AGAIN_MS and (is_same or since_ms < stall.rebalance_timeout_ms)


def cause_of_leave(member: ConsumerMember | None, at_ms: int) -> str:
    """Why a member left: its client may have said just before that it was not polled in time."""
    is_stalled = member is not None and 0 <= member.stalled_ms <= at_ms <= member.stalled_ms + FOLLOWS_MS
    return reasons.POLL_TIMEOUT if is_stalled else reasons.MEMBER_LEFT


def _was_removed(view: ConsumerView, event: Event) -> bool:
    """Whether the coordinator had removed the member already: a client says after any long pause that it was not polled in time."""
    if _of_client(view.members.values(), event):
        return False
    gone = _of_client(reversed(view.gone), event)
    return bool(gone) and gone[0].end_kind in (reasons.SESSION_TIMEOUT, reasons.REBALANCE_TIMEOUT)


def _member(view: ConsumerView, event: Event) -> ConsumerMember | None:
    """The member that a line names, or the only one of its client, of those that are in the group or departed lately."""
    near = [*view.members.values(), *(one for one in view.gone if one.gone_ms >= event.at_ms - FOLLOWS_MS)]
    own = {one.member_id: one for one in _of_client(reversed(near), event)}
    return next(iter(own.values())) if len(own) == 1 else None


def _of_client(members: Iterable[ConsumerMember], event: Event) -> list[ConsumerMember]:
    """The members that a line of a client may be about: that with its id, else those with its instance id or its name."""
    if event.member_id:
        return [one for one in members if one.member_id == event.member_id]
    name = event.instance_id or event.client_id
    return [one for one in members if name and (one.instance_id if event.instance_id else one.client_id) == name]
