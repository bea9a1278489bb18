"""Answers 7, 14, 15 and 16 of the broker that coordinates a group: which of them took effect.

| API | error | Scala coordinator | Java coordinator |
|---|---|---|---|
| any | 14 COORDINATOR_LOAD_IN_PROGRESS | not handled | not handled |
| any | 15 COORDINATOR_NOT_AVAILABLE, at once | not handled: the coordinator starts or stops | the same |
| any | 16 NOT_COORDINATOR | not handled, or the group was unloaded meanwhile: its new coordinator knows what was stored | the same |
| JoinGroup | 16, parked until the group was unloaded | it names the member, which was one until then | the same |
| SyncGroup of the leader | 15, -1 | the assignment was not stored; the next rebalance begins | the same |
| SyncGroup of the leader | 27, after 5 s | the same: the write timed out | another rebalance came first |
| LeaveGroup | 15, after 5 s | does not wait | the member left; an earlier write of the partition timed out |
| Heartbeat, OffsetCommit | 15, after 5 s | the commit was not stored; the session was renewed | the same |
| OffsetCommit | 7, after 5 s | the same | does not answer so |
| JoinGroup | 15, -1 | a static member is not replaced | a new group is not made; a static member is not replaced |

Sources: GroupCoordinator.doSyncGroup, GroupMetadataManager.storeGroup and commitOffsets (Scala);
GroupCoordinatorService.handleOperationException and CoordinatorRuntime.CoordinatorWriteEvent, whose answer waits for earlier writes of
its partition (Java). A write times out after offsets.commit.timeout.ms, 5 s by default.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker import endings, membership
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import client_in

APPEND_TIMEOUT_MS: Final = 4_500
"""A write that takes longer has timed out (offsets.commit.timeout.ms, 5 s by default)."""

NOT_IN_CHARGE: Final = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.GROUP_AUTHORIZATION_FAILED}
)
"""Answers that say nothing about the group: the broker is not, or not yet, its coordinator, or the client is not authorised."""


def not_stored(g: Emitter, event: Event) -> bool:
    """Whether an answer to the leader's SyncGroup says that the assignment could not be written to __consumer_offsets.

    Scala answers REBALANCE_IN_PROGRESS where the write timed out, as it does where another rebalance came first: only the time shows.
    """
    if event.kind != kinds.SYNC_GROUP or event.generation != g.view.generation or event.broker != g.view.broker:
        return False
    if not event.assignments and event.member_id != g.view.leader_id:
        return False
    late = event.error_code == Error.REBALANCE_IN_PROGRESS and _timed_out(event)
    return late or event.error_code in (Error.UNKNOWN_SERVER_ERROR, Error.COORDINATOR_NOT_AVAILABLE)


def take(g: Emitter, event: Event) -> None:
    """Takes a request that its coordinator handled, and answered with an error: a write timed out, or the group was unloaded meanwhile."""
    if event.kind == kinds.JOIN_GROUP and event.error_code == Error.NOT_COORDINATOR:
        if client_in(event.answer_member_id, "") in g.view.unnamed:
            membership.learn(g.view.add(event.answer_member_id, event.received_ms), event)
        return
    if event.error_code not in (Error.COORDINATOR_NOT_AVAILABLE, Error.REQUEST_TIMED_OUT) or not _timed_out(event):
        return
    if event.kind == kinds.LEAVE_GROUP:
        endings.leave_group(g, event._replace(error_code=0, members=tuple(entry._replace(error_code=0) for entry in event.members)))
    elif event.kind in (kinds.HEARTBEAT, kinds.OFFSET_COMMIT) and event.generation == g.view.generation:
        member = g.view.members.get(event.member_id)
        if member is not None:
            membership.note_answer(member, event)
            membership.renew(member, event)


def _timed_out(event: Event) -> bool:
    return event.at_ms - event.received_ms >= APPEND_TIMEOUT_MS
