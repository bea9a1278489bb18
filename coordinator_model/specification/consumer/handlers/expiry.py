"""The timers of members. Each that ends removes its member, if there still is one. Kafka: `consumerGroupFenceMemberOperation`."""

from __future__ import annotations

from typing import Final

from coordinator_model.specification.consumer.core import REBALANCE, ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.handlers.removal import fence_members
from coordinator_model.specification.timers import SESSION

RETRY_MS: Final = 500
"""A removal that could not be written is tried again after this time (`EventBasedCoordinatorTimer`)."""


def end_of_timer(group: ConsumerGroupCore, kind: str, member_id: str) -> Operation:
    """Remove the member. The rebalance timer spares one that has left the epoch in which it was set."""
    operation = Operation()
    state = group.state
    member = None if state is None else state.members.get(member_id)
    if state is None or member is None:
        return operation
    if kind == REBALANCE and member.epoch != group.revoking_epochs.get(member_id):
        return operation
    cause = BumpCause.SESSION_EXPIRED if kind == SESSION else BumpCause.REBALANCE_TIMEOUT
    fence_members(group, state, [member], cause, operation)
    return operation
