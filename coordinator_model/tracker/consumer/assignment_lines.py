"""Lines of the coordinator about what it stored for a member: its epoch, its partitions, and those that it has to give up.

Consumer groups have them at INFO up to Kafka 3.9, at DEBUG since 4.0; share and streams groups at INFO. A streams group has tasks in the
place of partitions. Members of a share group give nothing up.
Source: org.apache.kafka.coordinator.group.GroupMetadataManager.maybeReconcile (3.7 to 4.2).
"""

from __future__ import annotations

import re
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import episodes, heartbeats, ownership
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import ConsumerView
from coordinator_model.view.emit import Emitter

_PARTITIONS: Final = re.compile(r"state=(\w+), assignedPartitions=\[([^\]]*)\](?: and revokedPartitions=\[([^\]]*)\])?\.")
_TASKS: Final = re.compile(r"state=(\w+), assignedTasks=\(active=\[([^\]]*)\].* and tasksPendingRevocation=\(active=\[([^\]]*)\]")
_EPOCH_OF_TASK: Final = re.compile(r"@\d+$")
_UNREVOKED: Final = ("UNREVOKED_PARTITIONS", "UNREVOKED_TASKS")
_UNRELEASED: Final = ("UNRELEASED_PARTITIONS", "UNRELEASED_TASKS")
"""A member that is to have what others have not given up yet, standby tasks included: the group is not Stable before it is."""


def assignment_stored(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes what a member has from now on. The answer to its heartbeat follows, and says the same."""
    found = _PARTITIONS.search(event.reason) or _TASKS.search(event.reason)
    if found is None or event.generation < 0:
        return
    episodes.forget_logged(g, view)
    view.heard, at_ms, epoch = True, event.at_ms, event.generation
    member = view.find(event.member_id)
    partitions, revoked = (_listed(found[2]), _listed(found[3])) if view.group_type != kinds.SHARE else (None, ())
    must_give_up = found[1] in _UNREVOKED
    is_told = must_give_up and bool(set(revoked) - set(member.giving))
    gave_up = not must_give_up or not set(member.giving) <= set(revoked)  # it may be told of others at once
    answer = event._replace(answer_generation=epoch)
    if epoch > view.epoch:
        episodes.seen(g, view, answer._replace(generation=epoch), epoch)
    heartbeats.note_progress(view, member, answer, partitions, is_told=is_told, gave_up=gave_up)
    if epoch > member.epoch:
        member.epoch, member.epoch_ms = epoch, at_ms
    if is_told:
        ownership.told_to_revoke(view, member, revoked, at_ms)
    if partitions is not None:
        member.partitions = partitions
        ownership.note_partitions(view, epoch, len(partitions))
    member.caught_up, member.waits = view.frees, int(found[1] in _UNRELEASED)
    episodes.end_if_reconciled(g, view, at_ms)


def topics_updated(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A member subscribes to other topics than before, which raises the epoch. The first ones of a member come with its join."""
    joins = any(change.logged and change.member_id == event.member_id and change.comer is not None for change in view.changes)
    if not joins and event.member_id in view.members:
        episodes.note(g, view, event, reasons.SUBSCRIPTION_CHANGED, event.member_id)


def _listed(text: str | None) -> tuple[str, ...]:
    """Partitions or active tasks of a printed list. A task is printed with the epoch in which it was assigned."""
    return tuple(_EPOCH_OF_TASK.sub("", one) for one in (text or "").split(", ") if one)
