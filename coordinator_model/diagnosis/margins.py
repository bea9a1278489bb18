"""What is not yet a fault: members that nearly ran out of time, that have nothing to do, or that have much more than others."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import findings
from coordinator_model.diagnosis.incidents import SPAN_MS
from coordinator_model.events import Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import ObservedMember, Rebalance

NEAR_MISS: Final = 0.8
"""Share of its session timeout that a member was silent for. Healthy clients use a third of it."""

SKEW_FACTOR: Final = 3
SKEW_AT_LEAST: Final = 6
"""A member is loaded much more than another if it has three times as many partitions, and six more at least."""


def heard(g: Emitter, member: ObservedMember, event: Event) -> None:
    """A sign of life that was accepted, and how much of the session was left."""
    silent_ms = event.received_ms - member.renewed_ms
    if member.renewed_ms < 0 or member.session_timeout_ms <= 0 or not member.sessions_seen or g.view.open is not None:
        return
    if not NEAR_MISS * member.session_timeout_ms <= silent_ms < member.session_timeout_ms:
        return
    trouble = g.view.incident
    if trouble is None or event.received_ms > trouble.last_ms + SPAN_MS:
        findings.heartbeat_near_miss(g, member, event, silent_ms)


def judge(g: Emitter, rebalance: Rebalance) -> None:
    """How a rebalance that is being written has shared the partitions out."""
    if not rebalance.assigned or not any(rebalance.assigned.values()) or g.view.revoked:
        return  # not known, nothing to share, or a cooperative round that another one follows
    shares = {member_id: len(partitions) for member_id, partitions in rebalance.assigned.items()}
    idle = sorted(member_id for member_id, count in shares.items() if count == 0)
    least, most = min(shares.values()), max(shares.values())
    if idle and len(shares) > sum(shares.values()):
        findings.idle_members(g, rebalance, idle, sum(shares.values()))
    elif most >= SKEW_FACTOR * least and most - least >= SKEW_AT_LEAST:
        findings.assignment_skew(g, rebalance, shares)
