"""Findings that are no fault yet: members that nearly ran out of time, that have no partitions, or that have many more than others."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue
from coordinator_model.diagnosis.findings import NOBODY, emit, first_time, row, seconds
from coordinator_model.diagnosis.incidents import hold_back
from coordinator_model.events import Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember
from coordinator_model.view.rows import ref
from coordinator_model.view.view import Rebalance

NEAR_MISS: Final = 0.8
"""Share of its session timeout that a member was silent for. Healthy clients use a third of it."""

SKEW_FACTOR: Final = 3
SKEW_AT_LEAST: Final = 6
"""A member has many more partitions than another if it has three times as many, and at least six more."""


def check_heartbeat(g: Emitter, member: ObservedMember, event: Event) -> None:
    """Reports an accepted heartbeat that came just before the session would have ended, once for each generation of a member."""
    limit_ms, silent_ms = member.session_timeout_ms, event.received_ms - max(member.renewed_ms, member.busy_ms)
    if member.renewed_ms < 0 or limit_ms <= 0 or not member.sessions_seen or g.view.open is not None:
        return
    if not NEAR_MISS * limit_ms <= silent_ms < limit_ms:
        return
    words = {"silence": seconds(silent_ms), "limit": seconds(limit_ms)}
    details = {"silent_ms": silent_ms, "session_timeout_ms": limit_ms}
    signs = [ref(event), *([member.last_sign] if member.last_sign else [])]
    told = row(g, catalogue.HEARTBEAT_NEAR_MISS, event.received_ms, member.client(), signs, words, generation=g.view.generation, **details)
    hold_back(g, member.seen_ms, told)


def check_assignment(g: Emitter, rebalance: Rebalance) -> None:
    """Reports how a rebalance divided the partitions: members without any, or one with many more than another."""
    if not rebalance.assigned or not any(rebalance.assigned.values()) or g.view.revoked:
        return  # unknown, nothing to share, or a cooperative round that another one follows
    shares = {member_id: len(partitions) for member_id, partitions in rebalance.assigned.items()}
    idle = sorted(member_id for member_id, count in shares.items() if count == 0)
    least, most = min(shares.values()), max(shares.values())
    if idle and len(shares) > sum(shares.values()):
        _idle_members(g, rebalance, idle, sum(shares.values()))
    elif most >= SKEW_FACTOR * least and most - least >= SKEW_AT_LEAST:
        _skew(g, rebalance, shares, least, most)


def _idle_members(g: Emitter, rebalance: Rebalance, idle: list[str], partitions: int) -> None:
    """Once for each number of them."""
    members = len(rebalance.assigned or {})
    if first_time(g, catalogue.IDLE_MEMBERS, f"{len(idle)} of {members}", partitions):
        details = {"idle": idle, "members": members, "partitions": partitions}
        words = {"count": len(idle), "have": "has" if len(idle) == 1 else "have"}
        emit(g, catalogue.IDLE_MEMBERS, rebalance.ended_ms, NOBODY, rebalance.evidence, words, generation=rebalance.generation, **details)


def _skew(g: Emitter, rebalance: Rebalance, shares: dict[str, int], least: int, most: int) -> None:
    """Once for each such division."""
    if first_time(g, catalogue.ASSIGNMENT_SKEW, f"{least} to {most}", len(shares)):
        busiest = min(member_id for member_id, count in shares.items() if count == most)
        member = g.view.members.get(busiest)
        client = member.client() if member is not None else (busiest, "", "")
        remedy = catalogue.SKEW_OF_RANGE if rebalance.protocol == "range" else catalogue.SKEW_OF_OTHERS
        words = {"least": least, "most": most, "remedy": remedy.format(assignor=rebalance.protocol or "not known")}
        details = {"partitions": dict(sorted(shares.items())), "assignor": rebalance.protocol}
        generation = rebalance.generation
        emit(g, catalogue.ASSIGNMENT_SKEW, rebalance.ended_ms, client, rebalance.evidence, words, generation=generation, **details)
