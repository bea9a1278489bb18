"""Answers to ConsumerGroupHeartbeat: what a member was told, and what it has done since.

* An answer with fewer partitions and the epoch of the request tells the member to give partitions up.
* The answer that raises a member's epoch says that it has given them up, and so does a request that lists what it owns without them. It
  has done so before the request arrives, however long the answer takes: that one waits until the records are replicated.
* The epoch of any other answer is the group's.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.consumerGroupHeartbeat, CurrentAssignmentBuilder (4.x); KIP-848.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import consumer_findings, margins
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes, doubtful_epochs, episodes, members, ownership
from coordinator_model.tracker.consumer.ownership import note_partitions, note_share, take_partitions
from coordinator_model.tracker.consumer.without_logs import departed, silence
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
"""Member epochs in requests (KIP-848): the second is of static members."""


def take(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes the answer to a heartbeat."""
    if event.error_code != Error.NONE:
        consumer_findings.refused(g, view, event)
        _refused(g, view, event)
        return
    view.heard = True
    if event.generation == LEAVES:
        member = episodes.member_of(view, event.member_id)
        if member is not None:
            members.learn(member, event)
            episodes.note_leave(g, view, event, member.member_id)
        else:
            departed.explain(g, view, event.member_id, reasons.MEMBER_LEFT, ref(event))
    elif event.generation == LEAVES_FOR_A_WHILE:
        member = view.members.get(event.member_id)
        if member is not None:
            ownership.left_for_a_while(view, member, event.at_ms)
    else:
        _accepted(g, view, event)


def _accepted(g: Emitter, view: ConsumerView, event: Event) -> None:
    if event.generation > 0 and any(gone.member_id == event.member_id and gone.gone_ms >= event.received_ms > 0 for gone in view.gone):
        return  # it was answered before the member departed, and is logged after
    if doubtful_epochs.is_doubtful(view, event):
        return
    member = _member(g, view, event)
    _note_subscription(g, view, member, event)
    at_ms, epoch = event.at_ms, event.answer_generation
    if member.partitions is None and event.owned is not None and event.generation > 0:
        _learn_owned(view, member, event.owned)
    partitions = next((assigned.partitions for assigned in event.assignments), None)
    lost = tuple(p for p in member.partitions or () if partitions is not None and p not in partitions)
    told = lost if epoch == member.epoch else ()
    gave_up = epoch > member.epoch or (event.owned is not None and member.told_ms >= 0 and set(event.owned).isdisjoint(member.giving))
    if epoch > member.epoch or not (told or member.told_ms >= 0):
        episodes.seen(g, view, event, epoch)
    episodes.removed_unseen(g, view, event)
    if epoch > member.epoch or lost or set(partitions or ()) - set(member.partitions or ()):
        member.waits = -1  # no record showed this before
    note_progress(view, member, event, partitions, told=told, gave_up=gave_up)
    margins.check_silence(g, view, member, event)
    members.note_heartbeat(member, event)
    member.classic = False
    silence.forget_vanished(g, view, event, member)
    episodes.end_if_reconciled(g, view, at_ms)
    margins.check_expressions(g, view, event)


def note_progress(
    view: ConsumerView, member: ConsumerMember, event: Event, partitions: tuple[str, ...] | None, *, told: tuple[str, ...], gave_up: bool
) -> None:
    """Takes the epoch and the partitions that an answer gives a member. `told`: it has to give these up. `gave_up`: it gave some up."""
    _note_episode(view, member, event, partitions, is_told=bool(told), gave_up=gave_up)
    epoch, at_ms = event.answer_generation, event.at_ms
    if epoch > member.epoch:
        member.reach(epoch, at_ms)
    if told:
        ownership.told_to_revoke(view, member, told, at_ms)
    if partitions is not None:
        member.partitions = partitions
        note_partitions(view, epoch, len(partitions))
    member.caught_up = view.frees


def _note_episode(
    view: ConsumerView, member: ConsumerMember, event: Event, partitions: tuple[str, ...] | None, *, is_told: bool, gave_up: bool
) -> None:
    """Takes what an answer shows of the episode: who was waited for, and which partitions lost or found an owner."""
    at_ms, epoch, episode = event.at_ms, event.answer_generation, view.episode
    if episode is not None:
        one = episode.rounds[-1]
        if member.told_ms >= 0 and gave_up:
            note_share(episode, member, event.received_ms - max(member.told_ms, one.called_ms()))
        elif 0 <= member.epoch < one.epoch and (is_told or epoch >= one.epoch):
            note_share(episode, member, event.received_ms - one.called_ms())
    if gave_up:
        ownership.revoked(view, member, event.received_ms, ownership.ACKNOWLEDGED)
    if episode is None:
        return
    lost = tuple(p for p in member.partitions or () if partitions is not None and p not in partitions)
    ownership.free(view, episode, member, () if is_told else lost, at_ms)
    take_partitions(episode, member, partitions, at_ms)
    if epoch < episode.rounds[0].epoch:  # the answer is logged after the line about the next epoch
        episode.owners_before.update(dict.fromkeys(partitions or (), member.member_id))
        episode.unheard = [one for one in episode.unheard if one != member.member_id]
    episode.last_ms = max(episode.last_ms, at_ms)
    if gave_up or (partitions is not None and set(partitions) - set(member.partitions or ())):
        episode.changed_ms = max(episode.changed_ms, at_ms)


def _learn_owned(view: ConsumerView, member: ConsumerMember, owned: tuple[str, ...]) -> None:
    """Takes the partitions of a member whose answers before are not known."""
    member.partitions = owned
    if view.episode is not None and member.member_id in view.episode.unheard:
        view.episode.unheard.remove(member.member_id)
        view.episode.owners_before.update(dict.fromkeys(owned, member.member_id))


def _note_subscription(g: Emitter, view: ConsumerView, member: ConsumerMember, event: Event) -> None:
    topics, regex, assignor = member.topics, member.regex, member.assignor
    members.learn(member, event)
    is_vote = member.assignor != assignor and topics is not None and event.generation > 0
    if is_vote and rules.votes_may_raise(g, view):  # whether most members prefer it now, shows in the epoch
        causes.explain(g, view, _changed_subscription(member, event, doubtful=True), since_ms=event.received_ms)
    if topics is None and member.topics is not None:  # whether it subscribed to others before is not known
        unknown = Change(event.at_ms, reasons.UNKNOWN, "", ref(event), logged=False)
        causes.explain(g, view, unknown, since_ms=event.received_ms)
    if topics is None or (member.topics == topics and not _counts_at_once(view, member, regex)):
        return
    change = _changed_subscription(member, event)
    may_come_anew = event.generation == 0 and silence.is_silent(member, event.received_ms)  # it may have been removed meanwhile
    raises = event.answer_generation > view.epoch
    if not raises and _is_told(view, change, event.received_ms):
        return
    if (raises or not causes.explain(g, view, change, since_ms=event.received_ms)) and not may_come_anew:
        view.changes.append(change)


def _changed_subscription(member: ConsumerMember, event: Event, *, doubtful: bool = False) -> Change:
    return Change(event.at_ms, reasons.SUBSCRIPTION_CHANGED, member.member_id, ref(event), logged=False, doubtful=doubtful)


def _is_told(view: ConsumerView, change: Change, since_ms: int) -> bool:
    """Whether the coordinator's log has shown that this member changed its subscription with this heartbeat."""
    rounds = [one for episode in view.unfinished() for one in episode.rounds]
    return any((one.cause, one.member_id) == (change.cause, change.member_id) and one.at_ms >= since_ms for one in rounds)


def _counts_at_once(view: ConsumerView, member: ConsumerMember, before: str | None) -> bool:
    """Whether a member changed its regular expression to none, or to one whose topics are known. Others are resolved first.

    Source: org.apache.kafka.coordinator.group.GroupMetadataManager.maybeUpdateRegularExpressions (4.x).
    """
    if before is None or member.regex == before:
        return False
    gone = {change.member_id for change in view.changes if change.cause in members.DEPARTURES} | {member.member_id}
    return not member.regex or any(other.regex == member.regex for name, other in view.members.items() if name not in gone)


def _member(g: Emitter, view: ConsumerView, event: Event) -> ConsumerMember:
    """The member that sent a heartbeat: one that joins comes with the epoch that its answer has."""
    member_id = event.answer_member_id or event.member_id
    joins = event.generation == 0
    if joins and view.epoch < 0 and event.answer_generation > 1 and not rules.founds(g, view, event):
        view.epoch = event.answer_generation  # it may be a member that joins again, which raises no epoch
    if joins and event.answer_generation <= view.epoch:
        episodes.forget_logged(g, view, member_id)  # its join raised no epoch
    leaving = {change.member_id for change in view.changes if change.cause in members.DEPARTURES}
    member = episodes.member_of(view, member_id) if not joins or member_id not in leaving else None  # else it comes anew
    if joins and event.instance_id:
        same = (one for one in view.members.values() if one.instance_id == event.instance_id and one.member_id not in leaving)
        returned = next(same, None)
        if returned is not None and _was_removed(g, view, returned, member, event):
            _note_removal(g, view, returned, event)
        elif returned is not None and (returned.away_ms >= 0 or member is None):
            members.rename(g, view, returned, member_id, event.received_ms, ref(event))
            return returned
    if member is not None:
        if joins and member.joined_ms < 0:
            member.joined_ms = event.received_ms
        return member
    member = ConsumerMember(member_id, joined_ms=event.received_ms if joins else -1)
    if joins:
        members.learn(member, event)
    epoch = event.answer_generation
    if joins and not causes.explain_join(g, view, event, member):
        if _raises_the_epoch(g, view, member, epoch):
            episodes.note(g, view, event, reasons.MEMBER_JOINED, member_id, member)
        episodes.seen(g, view, event, epoch)
        if view.changes and view.changes[-1].comer is member:
            return member  # the target of its epoch comes later
    return view.admit(member, joins=joins and view.complete)  # it raised no epoch itself


def _was_removed(g: Emitter, view: ConsumerView, old: ConsumerMember, known: ConsumerMember | None, event: Event) -> bool:
    """Whether the last member with the instance id of one that joins is gone for good: one that is only away does not raise the epoch.

    `known`: the member that joins, if the coordinator's log has shown it.
    """
    if known is not None:
        return known is not old
    silent_ms = event.received_ms - max(old.heard_ms, view.loaded_ms, g.view.moved_ms)
    return old.heard_ms >= 0 and silent_ms >= margins.SESSION_TIMEOUT_MS and event.answer_generation > view.epoch + 1


def _note_removal(g: Emitter, view: ConsumerView, old: ConsumerMember, event: Event) -> None:
    """The epoch that its removal raised is the one before that of the join, or a line has shown it before."""
    is_new = event.answer_generation > view.epoch
    cause = silence.cause_of(old, event.received_ms) if is_new else reasons.UNKNOWN
    change = Change(event.at_ms, cause, old.member_id, old.last_sign or ref(event), logged=False)
    if is_new:
        view.changes.append(change)
    else:
        members.take_effect(g, view, change)


def _raises_the_epoch(g: Emitter, view: ConsumerView, member: ConsumerMember, epoch: int) -> bool:
    """Whether a member that joins raises the epoch. One that subscribes to nothing does not, nor does one with a new expression.

    That is resolved first. Up to Kafka 4.2 the first member always raises it, and the answer to the join shows that.
    """
    lags = rules.since_4_3(g, view)
    gone = {one.member_id for one in view.gone} | {one.member_id for one in view.changes if one.cause in members.DEPARTURES}
    is_new = view.complete or member.member_id in gone  # else it may be a member that joins again
    if 0 <= epoch <= view.epoch and not (lags and is_new):
        return False
    return (epoch == 1 and not lags) or bool(member.topics) or (bool(member.regex) and _counts_at_once(view, member, ""))


def _refused(g: Emitter, view: ConsumerView, event: Event) -> None:
    """An answer UNKNOWN_MEMBER_ID shows that the coordinator removed a member, though no line says so."""
    member = view.members.get(event.member_id)
    if member is not None and member.joined_ms >= event.received_ms:
        return  # it was refused before it joined
    if member is not None:
        member.tried_ms = event.received_ms
    if event.error_code != Error.UNKNOWN_MEMBER_ID or member is None or event.instance_id not in ("", member.instance_id):
        return  # an instance id that nobody has is refused so, too
    if any(change.member_id == member.member_id and change.cause in members.DEPARTURES for change in view.changes):
        return  # it has left, or was refused before
    change = Change(event.at_ms, silence.cause_of(member, event.received_ms), member.member_id, ref(event), logged=False)
    if view.episode is not None and any(not one.cause and one.at_ms > member.heard_ms for one in view.episode.rounds):
        silence.depart(g, view, change)
        episodes.end_if_reconciled(g, view, event.at_ms)
        return
    view.changes.append(change)
