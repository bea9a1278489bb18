"""Records of `__consumer_offsets` about a group of the consumer protocol: all that the coordinator knows of it, to the millisecond.

Each operation of the coordinator writes its records at one time, in the order of `specification/consumer`: who is gone, what a member says
of itself, the epoch, the target assignment, what the sender of the heartbeat has now. So records show all rounds, who joined, who changed a
subscription, and what each member acknowledged. Two things they do not show: heartbeats that change nothing, and why a member is gone.
A departure is UNKNOWN, except for one at the end of the member's rebalance timeout.

The topic is compacted, from its beginning up to some offset. If a record with an epoch and one with the epoch before it are both there,
the second lies behind that offset: then nothing of its operation is missing, and the members so far are all members.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes, episodes, following, members, ownership
from coordinator_model.tracker.consumer.episode_rows import PROTOCOL
from coordinator_model.tracker.consumer.heartbeats import LEAVES_FOR_A_WHILE
from coordinator_model.tracker.consumer.ownership import note_partitions, note_share, take_partitions
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

_UNRELEASED: Final = "UNRELEASED_PARTITIONS"
_GUESSED: Final = frozenset({"", reasons.SUBSCRIPTION_CHANGED, reasons.REGEX_RESOLVED})
"""Causes that lines name only because an epoch follows them."""
_EXPLAINED: Final = members.DEPARTURES - {reasons.UNKNOWN}
_TIMER_MS: Final = 1_000  # within which a timer that is due removes a member
_JOINED_FROM: Final = 0  # the epoch before of a member that joined with this heartbeat


def take(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes a record. What an earlier operation wrote without raising the epoch takes effect."""
    earlier = [one for one in view.changes if one.sign.source == kinds.OFFSETS_SOURCE and one.at_ms < event.at_ms]
    episodes.forget(g, view, earlier)
    if event.kind in _HANDLERS:
        _HANDLERS[event.kind](g, view, event)


def _epoch(g: Emitter, view: ConsumerView, event: Event) -> None:
    if event.state == kinds.REMOVED:
        view.settle(*(one for one in view.changes if one.sign.source == kinds.OFFSETS_SOURCE))
        if not view.members:  # else it becomes a classic group, and its members stay
            following.group_removed(g, view, event)
        return
    stored = [one for one in view.changes if one.sign.source == kinds.OFFSETS_SOURCE]
    for change in stored:
        if rules.is_first_epoch(g, view, event.generation) and change.comer is not None:
            change.cause, change.comer.joined_ms = reasons.MEMBER_JOINED, change.at_ms
    is_whole = rules.is_first_epoch(g, view, event.generation) or event.generation == view.stored_epoch + 1
    episodes.raised(g, view, event)
    one = episodes.round_of(view, event.generation)
    if one is not None and is_whole and one.cause in _GUESSED:
        told = next((change for change in stored if one.same_metadata or not change.doubtful), None)
        unsaid = reasons.SUBSCRIPTION_CHANGED if one.same_metadata else reasons.METADATA_CHANGED
        one.cause = unsaid if told is None else told.cause
        one.member_id = "" if told is None else told.member_id
    view.know_all(is_all=view.complete or is_whole)
    view.stored_epoch = event.generation


def _member(g: Emitter, view: ConsumerView, event: Event) -> None:
    if event.state == kinds.REMOVED:
        _gone(g, view, event)
        return
    member = _returned(g, view, event) or view.members.get(event.member_id)
    topics = next((tuple(sorted(protocol.topics)) for protocol in event.protocols if protocol.topics is not None), ())
    assignor = next((protocol.name for protocol in event.protocols if protocol.name != PROTOCOL), "")
    comer = next((one.comer for one in view.changes_about(event.member_id) if one.comer is not None), None)
    if member is None and comer is not None:
        member = comer  # a line shows the same
    elif member is None:
        cause = reasons.MEMBER_JOINED if view.complete else ""
        member = ConsumerMember(event.member_id, joined_ms=event.at_ms if view.complete else -1)
        episodes.note(g, view, event, cause, event.member_id, member)
    elif (member.topics, member.regex or "", member.assignor) != (topics, event.subscribed_regex or "", assignor):
        cause = reasons.SUBSCRIPTION_CHANGED if member.topics is not None else ""
        is_vote = (member.topics, member.regex or "") == (topics, event.subscribed_regex or "")
        if not is_vote or rules.votes_may_raise(g, view):
            episodes.note(g, view, event, cause, event.member_id, doubtful=is_vote)
    members.learn(member, event)
    member.assignor = assignor
    member.classic = event.session_timeout_ms >= 0


def _returned(g: Emitter, view: ConsumerView, event: Event) -> ConsumerMember | None:
    """The static member that comes back, mostly under a new id: its old one was removed just before, without raising the epoch."""
    gone = {change.member_id for change in view.changes if change.cause in members.DEPARTURES}
    for member in view.members.values():
        if event.instance_id == member.instance_id != "" and (member.member_id != event.member_id or member.member_id in gone):
            view.settle(*view.changes_about(member.member_id))
            members.rename(g, view, member, event.member_id, event.at_ms, ref(event))
            return member
    return None


def _gone(g: Emitter, view: ConsumerView, event: Event) -> None:
    member = view.members.get(event.member_id)
    told = next((one for one in view.changes_about(event.member_id) if one.cause in _EXPLAINED), None)
    if told is not None:
        told.at_ms, told.logged = event.at_ms, True  # a line of the same operation says why
    if member is None or told is not None:
        return
    view.settle(*view.changes_about(event.member_id))
    is_stuck = 0 <= member.revoke_by_ms <= event.at_ms < member.revoke_by_ms + _TIMER_MS
    episodes.note(g, view, event, reasons.REBALANCE_TIMEOUT if is_stuck else reasons.UNKNOWN, event.member_id)


def _target(g: Emitter, view: ConsumerView, event: Event) -> None:
    one = episodes.round_of(view, event.generation)
    if event.state == kinds.TIMED and view.since_4_3 < 0:
        view.since_4_3 = 1
        if one is not None and rules.is_first_epoch(g, view, event.generation) and view.epoch_before < 0:
            causes.founded(view)
    if one is not None and one.computed_ms < 0:
        one.computed_ms = event.at_ms
        one.target_ms = event.at_ms if event.state == kinds.TIMED else -1
        one.note(ref(event))


def _assignment(g: Emitter, view: ConsumerView, event: Event) -> None:
    if event.state == kinds.REMOVED or len(event.assignments) != 2:
        return
    member = view.members.get(event.member_id)
    if member is None:
        episodes.forget_logged(g, view)
        member = view.find(event.member_id)
    epoch, at_ms = event.answer_generation, event.at_ms
    assigned, pending = (one.partitions or () for one in event.assignments)
    lost = tuple(partition for partition in member.partitions or () if partition not in {*assigned, *pending})
    gave_up = not set(member.giving) <= set(pending)
    episode = view.episode
    if episode is not None:
        one = episode.rounds[-1]
        if not one.cause and (one.member_id, event.generation) == (event.member_id, _JOINED_FROM):
            one.cause, member.joined_ms = reasons.MEMBER_JOINED, at_ms
            episode.come(event.member_id)
        if gave_up:
            note_share(episode, member, at_ms - max(member.told_ms, one.called_ms()))
        elif 0 <= member.epoch < one.epoch and member.told_ms < 0 and (pending or epoch >= one.epoch):
            note_share(episode, member, max(at_ms - one.called_ms(), 0))
    if epoch == LEAVES_FOR_A_WHILE:
        ownership.left_for_a_while(view, member, at_ms)
    else:
        member.reach(epoch, at_ms)
        member.away_ms = -1
    if set(pending) != set(member.giving):
        member.revoke_by_ms = at_ms + member.rebalance_timeout_ms if pending and member.rebalance_timeout_ms >= 0 else -1
    if gave_up:
        ownership.revoked(view, member, at_ms, ownership.ACKNOWLEDGED)
    if episode is not None:
        ownership.free(view, episode, member, lost, at_ms)
        take_partitions(episode, member, assigned, at_ms)
        episode.touch(at_ms)
    if set(pending) - set(member.giving):
        ownership.told_to_revoke(view, member, pending, at_ms)
    member.partitions, member.giving, member.waits = assigned, pending, int(event.state == _UNRELEASED)
    member.caught_up = view.frees
    note_partitions(view, epoch, len(assigned))
    episodes.end_if_reconciled(g, view, at_ms)


def _expression(g: Emitter, view: ConsumerView, event: Event) -> None:
    if event.state != kinds.REMOVED:
        episodes.forget_logged(g, view)  # the result of a search for topics is an operation of its own
        episodes.note(g, view, event, reasons.REGEX_RESOLVED, "")


_HANDLERS: Final[dict[str, Callable[[Emitter, ConsumerView, Event], None]]] = {
    kinds.EPOCH_STORED: _epoch,
    kinds.MEMBER_STORED: _member,
    kinds.TARGET_STORED: _target,
    kinds.CURRENT_STORED: _assignment,
    kinds.EXPRESSION_STORED: _expression,
}
"""The others say nothing new: what is to be assigned shows when it is, the number of topics in the epoch."""
