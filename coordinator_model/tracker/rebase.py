"""Builds the specification's group from the broker's answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import SESSION
from coordinator_model.states import State
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import View

RELEASES: Final = ("4.2.0", "3.9.1")
"""The releases to try where none is named: the Java coordinator, then the last Scala coordinator."""


def rules(view: View) -> CoordinatorConfig:
    """The specification's settings: the release of the coordinator, else the one that answers showed, and the size limit they showed."""
    return _rules(view.release or view.prediction.release or RELEASES[0], view.prediction.max_size)


@cache
def _rules(release: str, max_size: int) -> CoordinatorConfig:
    return replace(CoordinatorConfig.of(release), group_max_size=max_size)


def begun(g: Emitter) -> ClassicGroup | None:
    """The group as the last rebalance left it; None if it has changed since, or if not all of it is known."""
    view = g.view
    if view.open is not None or view.state is not State.STABLE or not view.complete or not view.members:
        return None
    if not view.prediction.since_ms <= view.completed_ms:
        return None
    if any(m.session_timeout_ms < 0 or m.rebalance_timeout_ms < 0 or not m.protocols for m in view.members.values()):
        return None
    if not all(digest for m in view.members.values() for _, digest in m.protocols):
        return None
    group = ClassicGroup(view.group_id, rules(view), view.completed_ms)
    group.generation = view.generation
    group.protocol_type = view.protocol_type or None
    for member in view.members.values():
        protocols = tuple((name, digest.encode()) for name, digest in member.protocols)
        group.add(
            Member(
                member.member_id,
                member.instance_id or None,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                protocols,
            ),
            None,
        )
    group.state, group.previous_state = State.STABLE, State.COMPLETING_REBALANCE
    group.protocol = view.protocol or None
    group.leader = view.leader_id or None
    for observed in view.members.values():
        group.timers.set((SESSION, observed.member_id, 0), observed.renewed_ms + observed.session_timeout_ms)
    longest = max(member.session_timeout_ms for member in group.members.values())
    for member_id, issued_ms in view.pending.items():
        group.pending_members[member_id] = None
        group.timers.set((SESSION, member_id, 0), issued_ms + longest)
    return group
