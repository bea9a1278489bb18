"""Members that go, by leaving or by a timer. Kafka: `consumerGroupFenceMembers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.epochs import bump, names_without
from coordinator_model.specification.consumer.handlers.records_of import group_tombstones, removal_records, target_record
from coordinator_model.specification.consumer.member import ConsumerGroupMember
from coordinator_model.specification.consumer.migration import can_downgrade, downgraded
from coordinator_model.specification.consumer.records import TIME_UNKNOWN, ClassicGroupWritten, RegularExpressionTombstone
from coordinator_model.specification.consumer.subscriptions import metadata_hash


def fence_members(
    group: ConsumerGroupCore, state: ConsumerGroupState, members: Sequence[ConsumerGroupMember], cause: BumpCause, operation: Operation
) -> None:
    """Remove members. That moves the group epoch once, also with the last one.

    The target is computed by the next heartbeat of anyone; since 4.4, that of a group without members needs no computation. If only
    members of the classic protocol stay, the group becomes a classic group instead.
    """
    if can_downgrade(state, members, group.config):
        successor = downgraded(state, members, (group.group_id, group.config.classic, group.now_ms), group.image)
        operation.records += [*group_tombstones(list(state.members), state), ClassicGroupWritten(successor.stored())]
        operation.when_written.append(lambda: group.give_up_to(successor, rebalances=True))
        return
    for member in members:
        operation.records += removal_records(member.member_id)
    users = Counter(member.regex for member in members if member.regex)
    unused = [regex for regex, count in users.items() if state.regexes.get(regex) == count]
    operation.records += map(RegularExpressionTombstone, unused)
    topics = metadata_hash(names_without(state, members, unused), group.image)
    bump(group, operation, state.group_epoch + 1, topics, cause, members[0].member_id)
    if len(members) == len(state.members) and group.release.last_removal_moves_target:
        operation.records.append(target_record(state.group_epoch + 1, TIME_UNKNOWN, group.release))
    for member in members:
        group.cancel_timers(member.member_id)
