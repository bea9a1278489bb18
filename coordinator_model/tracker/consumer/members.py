"""Members of groups of the consumer protocol as they come and go."""

from __future__ import annotations

from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import consumer_findings, margins
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import MEMBER_SESSIONS, Ref, ref

DEPARTURES: Final = frozenset(
    {reasons.MEMBER_LEFT, reasons.POLL_TIMEOUT, reasons.SESSION_TIMEOUT, reasons.REBALANCE_TIMEOUT, reasons.UNKNOWN}
)
"""What raises the epoch as a membership ends."""
HEARTBEAT_INTERVAL_MS: Final = 5_000
"""group.consumer.heartbeat.interval.ms, unless the broker or the group has another one."""


def learn(member: ConsumerMember, event: Event) -> None:
    """Takes a member's identity and settings from an event. A member that joins says all of its subscription."""
    member.learn(event)
    member.assignor = event.protocol or member.assignor
    joins = event.kind == kinds.CONSUMER_GROUP_HEARTBEAT and event.generation == 0
    topics = next((protocol.topics for protocol in event.protocols), () if joins else None)
    member.topics = tuple(sorted(topics)) if topics is not None else member.topics
    regex = event.subscribed_regex if event.subscribed_regex is not None else "" if joins else None
    if regex is not None and regex != member.regex:
        member.regex, member.regex_ms = regex, event.received_ms


def note_alive(member: ConsumerMember, event: Event) -> None:
    """Takes an accepted request that starts the session anew: it does when it arrives, not when it is answered."""
    if member.heard_ms >= 0:
        member.longest_gap_ms = max(member.longest_gap_ms, event.received_ms - member.heard_ms)
    member.heard_ms, member.last_sign = max(member.heard_ms, event.received_ms), ref(event)


def note_heartbeat(member: ConsumerMember, event: Event) -> None:
    """Takes an accepted heartbeat."""
    note_alive(member, event)
    member.heartbeats += 1


def known(view: ConsumerView, member_id: str) -> ConsumerMember | None:
    """A member of the group, also one whose departure raised no epoch yet; else one of the latest that departed."""
    present = view.members.get(member_id)
    return present or next((member for member in reversed(view.gone) if member.member_id == member_id), None)


def take_effect(g: Emitter, view: ConsumerView, change: Change) -> None:
    """A member comes, or goes."""
    if change.comer is not None:
        view.admit(change.comer, joins=bool(change.cause))
    member = view.take_out(change.member_id, change.at_ms, reasons.end_of(change.cause)) if change.cause in DEPARTURES else None
    if member is None:
        return
    if change.cause == reasons.UNKNOWN and change.sign.source == kinds.OFFSETS_SOURCE:
        member.gone_signs = [change.sign]
        return
    session(g, member, change.at_ms, member.end_kind, [change.sign])
    consumer_findings.removed(g, view, member, change)


def rename(g: Emitter, view: ConsumerView, member: ConsumerMember, new_id: str, at_ms: int, sign: Ref) -> None:
    """A static member is back, mostly under a new id; it keeps its partitions and its epoch (KIP-848, replaceMember)."""
    old_id, away_ms = member.member_id, member.away_ms
    if away_ms >= 0:
        margins.long_away(g, view, member, at_ms, [sign], came_back=True)
    if new_id != old_id:
        member.away_ms = -1
        session(g, member, at_ms, reasons.REPLACED, [sign])
        view.rename(member, new_id, at_ms)
    member.away_ms = -1


def session(g: Emitter, member: ConsumerMember, at_ms: int, kind: str, signs: list[Ref]) -> None:
    """Writes the row of a membership."""
    signs = [*signs, *([member.last_sign] if member.last_sign is not None else [])]
    ended_ms, is_heard = max(at_ms, member.joined_ms), member.heard_ms >= 0
    g.emit(MEMBER_SESSIONS, **member.session(ended_ms, kind, signs, is_heard=is_heard, joined_ms=member.joined_ms))
