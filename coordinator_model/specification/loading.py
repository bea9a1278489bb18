"""Loading a group from the log, and unloading it when its partition moves to another coordinator.

Kafka: `GroupMetadataManager.replay(GroupMetadataKey, ...)`, `onLoaded`, `onUnloaded` (4.x);
`GroupMetadataManager.loadGroup`, `GroupCoordinator.onGroupLoaded`, `onGroupUnloaded` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import Effect
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.handlers import rebalance, sessions
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.requests import SyncAnswer
from coordinator_model.specification.timers import JOIN_KEY, SESSION
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def load_group(group_id: str, config: CoordinatorConfig, stored: StoredGroup, now_ms: int) -> ClassicGroup:
    """The group that its new coordinator finds in the log. Every member starts with a full session.

    If the group is larger than the new coordinator allows, it rebalances at once, and its `effects` say so.
    """
    group = ClassicGroup(group_id, config, now_ms)
    group.generation = stored.generation
    group.state_since_ms = stored.state_since_ms
    if stored.members or config.version.stored_empty_group_keeps_protocol_type:
        group.protocol_type = stored.protocol_type
    for member in stored.members:
        own_timeout = config.version.own_rebalance_timeout
        group.add(member if own_timeout else member._replace(rebalance_timeout_ms=member.session_timeout_ms), None)
    if stored.members:
        group.state = State.STABLE
        group.protocol = stored.protocol
        group.leader = stored.leader
    for member in group.members_in_map_order():
        sessions.restart_session(group, member)
    if config.version.size_limit and len(group.members) > config.group_max_size:
        rebalance.prepare_rebalance(group, Trigger.OVER_CAPACITY_AFTER_LOAD)
    return group


def unload_group(group: ClassicGroup, now_ms: int) -> list[Effect]:
    """The group has another coordinator now: all parked requests are answered NOT_COORDINATOR, in `group.replies`."""
    group.replies = []
    group.effects = []
    group.now_ms = max(group.now_ms, now_ms)
    answer_parked(group, Error.NOT_COORDINATOR)
    group.transition_to(Trigger.UNLOADED)
    return group.effects


def answer_parked(group: ClassicGroup, error: Error) -> None:
    """Nobody waits any more (`completeAllJoinFutures`, `completeAllSyncFutures`)."""
    for member in group.members_in_map_order():
        member_id = member.member_id
        parked_join = group.awaiting_join.pop(member_id, None)
        if parked_join is not None:
            group.reply(parked_join, group.join_error(error, member_id))
        parked_sync = group.awaiting_sync.pop(member_id, None)
        if parked_sync is not None:
            group.reply(parked_sync, SyncAnswer(error))


def orphaned_join_phase(group: ClassicGroup) -> tuple[int, int] | None:
    """0.10.0: what is left of the join phase of a group that is about to be unloaded (`rebalance.check_orphans`).

    It is the time when the session of its last member ends, and the time when the phase ends. None if the phase has no
    consequences: a member without a running session timer stays for ever.
    """
    ends_ms = group.timers.deadlines.get(JOIN_KEY)
    sessions_end_ms: dict[str, int] = {}
    for (kind, member_id, _), deadline in group.timers.deadlines.items():
        if kind == SESSION:
            sessions_end_ms[member_id] = min(deadline, sessions_end_ms.get(member_id, deadline))
    if ends_ms is None or not sessions_end_ms.keys() >= group.members.keys():
        return None
    without_members_ms = max(sessions_end_ms[member_id] for member_id in group.members)
    return (without_members_ms, ends_ms) if without_members_ms < ends_ms else None
