"""Groups that change their protocol while they have members (KIP-848, online migration).

A consumer that joins a classic group turns it into a consumer group. When the last member of the consumer protocol is gone, while
members of the classic protocol stay, the group is classic again: its generation is the group's epoch, and it rebalances at once. Both are a
row of `group_transitions`. Members go on: nobody comes or goes by it.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup;
ClassicGroup.fromConsumerGroup, ConsumerGroup.fromClassicGroup (4.x).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.states import State
from coordinator_model.tracker import membership, phases
from coordinator_model.tracker.consumer import closing, members
from coordinator_model.tracker.consumer.without_logs import silence
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter, write_transition
from coordinator_model.view.members import EndedMembership, ObservedMember
from coordinator_model.view.rows import ref
from coordinator_model.view.view import View

TO_CONSUMER: Final = "CONVERTED_TO_CONSUMER"
TO_CLASSIC: Final = "CONVERTED_TO_CLASSIC"
"""Values of `group_transitions.trigger`."""


def become_consumer_group(g: Emitter, event: Event) -> None:
    """From now on the group follows the consumer protocol; a classic rebalance ends without a result."""
    view = g.view
    if view.consumer_protocol:
        return
    at_ms, sign = event.received_ms, ref(event)
    view.consumer_protocol = True
    phases.abandon(g, at_ms, [sign])
    view.consumer = _from_classic(view)
    if view.state not in (None, State.DEAD):
        to_state = State.EMPTY if view.state is State.EMPTY else State.STABLE
        write_transition(g, at_ms, (view.state.value, to_state.value), view.generation, TO_CONSUMER, [sign])
        view.consumer.state = to_state.value
    view.forget()
    view.state = None


def become_classic_group(g: Emitter, event: Event) -> None:
    """From now on the group follows the classic protocol: an episode ends without a result, members of the classic protocol stay."""
    view = g.view
    if not view.consumer_protocol:
        return
    consumer = view.consumer or ConsumerView()
    leaving = _leaving(consumer, event)
    by_request = event.source == kinds.REQUEST_SOURCE
    at_ms = max(leaving[-1].at_ms, view.since_ms) if leaving and by_request else event.received_ms
    before = len(consumer.members)
    closing.cut_off(g, at_ms)
    view.state = State.STABLE if before or not consumer.complete else State.EMPTY
    if consumer.state:
        write_transition(g, at_ms, (consumer.state, view.state.value), consumer.epoch, TO_CLASSIC, [ref(event)])
    for change in leaving:
        members.take_effect(g, consumer, change)
    view.consumer_protocol, view.consumer, view.converted_ms = False, None, at_ms
    stay = {member.member_id: _observed(member, at_ms) for member in consumer.members.values()}
    view.take_over(stay, before if consumer.complete else -1)
    view.leader_id = ""
    if consumer.epoch >= 0:
        view.make_generation(at_ms, consumer.epoch)
    for change in leaving:
        _note_departure(view, change, consumer.gone)
    if leaving and by_request:  # else the coordinator's own line follows
        by = view.unclaimed[-1]
        phases.open_rebalance(g, at_ms, exact=False, old_generation=consumer.epoch, trigger=by, cause=by.cause, signs=[ref(event)])


def proves_classic(view: View, event: Event) -> bool:
    """Whether a line shows that a group that followed the consumer protocol is classic now.

    A member of the classic protocol that joins a consumer group is told no leader: the coordinator assigns.
    """
    if event.kind != kinds.JOIN_GROUP:
        return event.kind == kinds.PREPARING_REBALANCE and reasons.is_conversion(event.reason)
    epoch = view.consumer.epoch if view.consumer is not None else -1
    return event.error_code == Error.NONE and event.leader_id != "" and event.answer_generation > epoch


def _from_classic(classic: View) -> ConsumerView:
    """The estimate of a group that begins to follow the protocol: each member has the epoch of its last classic generation."""
    joined = {
        member.member_id: ConsumerMember(
            **member.shared(), epoch=classic.generation, heard_ms=member.seen_ms, classic=True, synced=len(member.partitions or ())
        )
        for member in classic.members.values()
    }
    return ConsumerView(epoch=classic.generation if joined else -1, members=joined, complete=classic.complete)


def _leaving(consumer: ConsumerView, event: Event) -> list[Change]:
    """The departures of all members of the consumer protocol that were left. Of one that no line tells, silence may."""
    noted = [one for one in consumer.changes if one.cause in members.DEPARTURES and one.member_id in consumer.members]
    named = {one.member_id for one in noted}
    untold = [
        Change(
            event.received_ms, silence.cause_of(member, event.received_ms), member.member_id, member.last_sign or ref(event), logged=False
        )
        for member in consumer.members.values()
        if not member.classic and member.member_id not in named
    ]
    return [*untold, *noted]


def _observed(member: ConsumerMember, at_ms: int) -> ObservedMember:
    """A member of the classic group, whose session begins anew."""
    heard_ms = member.heard_ms
    return ObservedMember(
        **member.shared(), renewed_ms=at_ms, seen_ms=heard_ms, beat_ms=heard_ms, sessions_seen=heard_ms >= 0, vouched=True
    )


def _note_departure(view: View, change: Change, gone: Sequence[ConsumerMember]) -> None:
    """A departure belongs to the classic rebalance that it begins."""
    member = next(one for one in reversed(gone) if one.member_id == change.member_id)
    known = EndedMembership(member.member_id, member.instance_id, member.client_id, member.client_host, connection=member.connection)
    ended = known.changed(at_ms=change.at_ms, kind=member.end_kind, generation=view.generation, signs=[change.sign])
    view.end(ended)
    view.unclaimed.append(membership.trigger_of(ended, change.cause, "", change.at_ms))
