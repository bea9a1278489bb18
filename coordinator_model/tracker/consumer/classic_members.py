"""Members of a consumer group that still speak the classic protocol: their answers have the group's epoch as generation.

Their JoinGroup, SyncGroup and Heartbeat start their session anew, which is as long as they asked for; so does a Heartbeat that is told
to join again. A commit does not.
Source: org.apache.kafka.coordinator.group.GroupMetadataManager.classicGroupJoinToConsumerGroup, classicGroupSyncToConsumerGroup,
classicGroupHeartbeatToConsumerGroup (KIP-848, online migration).
"""

from __future__ import annotations

from coordinator_model import events as kinds
from coordinator_model.diagnosis import consumer_findings
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes, episodes, members, ownership
from coordinator_model.tracker.consumer.without_logs import departed
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref


def take(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes a request of the classic protocol."""
    if event.kind == kinds.JOIN_GROUP and event.error_code == Error.INCONSISTENT_GROUP_PROTOCOL:
        consumer_findings.classic_member_refused(g, view, event)
    member = view.members.get(event.member_id)
    if event.kind == kinds.HEARTBEAT and member is not None and event.error_code in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        members.note_heartbeat(member, event)
    if event.error_code != Error.NONE:
        return
    if event.kind == kinds.JOIN_GROUP:
        _joined(g, view, event)
    elif event.kind == kinds.SYNC_GROUP:
        _synced(g, view, event)
    elif event.kind == kinds.LEAVE_GROUP:
        for member_id in (entry.member_id for entry in event.members if entry.error_code == Error.NONE):
            if episodes.member_of(view, member_id) is not None:
                episodes.note_leave(g, view, event, member_id)
            else:
                departed.explain(g, view, member_id, reasons.MEMBER_LEFT, ref(event))


def _joined(g: Emitter, view: ConsumerView, event: Event) -> None:
    member_id, epoch = event.answer_member_id or event.member_id, event.answer_generation
    returned = next((one for one in view.members.values() if event.instance_id and one.instance_id == event.instance_id), None)
    if returned is not None:
        members.rename(g, view, returned, member_id, event.received_ms, ref(event))
    member = episodes.member_of(view, member_id)
    if member is None:
        member = ConsumerMember(member_id, joined_ms=event.received_ms)
        if (
            not causes.explain_join(g, view, event, member) and view.complete and (epoch > view.epoch or rules.since_4_3(g, view))
        ):  # else it may join again, as in each rebalance
            episodes.note(g, view, event, reasons.MEMBER_JOINED, member_id, member)
    episodes.seen(g, view, event, epoch)
    if episodes.member_of(view, member_id) is None:
        view.admit(member, joins=False)
    members.learn(member, event)
    episode = view.episode
    if episode is not None and (epoch > member.epoch or member.caught_up < view.frees):
        episode.touch(event.at_ms)
    if episode is not None and epoch > member.epoch and member.synced:
        ownership.gives_some_up(view, episode, member)
    view.heard, member.epoch = True, max(member.epoch, epoch)
    members.note_alive(member, event)
    member.classic, member.caught_up = True, view.frees
    episodes.end_if_reconciled(g, view, event.at_ms)


def _synced(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A member takes partitions, as many as it has more of than before. Which ones is not known: it is told their topics by name."""
    member, episode = view.members.get(event.member_id), view.episode
    partitions = next((one.partitions for one in event.assignments if one.member_id == event.member_id), None)
    if member is None or partitions is None:
        return
    members.note_alive(member, event)
    gained, member.synced = len(partitions) - member.synced, len(partitions)
    if episode is None or gained <= 0:
        return
    for partition in sorted(episode.unowned, key=lambda one: (episode.unowned[one], one))[:gained]:
        del episode.unowned[partition]
    episode.touch(event.at_ms)
    episodes.end_if_reconciled(g, view, event.at_ms)
