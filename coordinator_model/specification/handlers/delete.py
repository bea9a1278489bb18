"""DeleteGroups.

Kafka: `ClassicGroup.validateDeleteGroup` (4.x), `GroupCoordinator.handleDeleteGroups` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.requests import DeleteAnswer, DeleteGroup, Ticket
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def delete_group(group: GroupState, _: DeleteGroup, ticket: Ticket) -> None:
    """Only a group without members can be deleted (KIP-229)."""
    if not group.version.delete_groups:
        group.reply(ticket, DeleteAnswer(Error.UNSUPPORTED_VERSION))
    elif group.state is State.DEAD:
        group.reply(ticket, DeleteAnswer(Error.GROUP_ID_NOT_FOUND))
    elif group.state is not State.EMPTY:
        group.reply(ticket, DeleteAnswer(Error.NON_EMPTY_GROUP))
    else:
        error = group.append(None)
        if error is Error.NONE:
            group.transition_to(Trigger.DELETED)
        group.reply(ticket, DeleteAnswer(error))
