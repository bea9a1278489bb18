"""A group of the consumer protocol under observation: which of its events say something, and what they say."""

from __future__ import annotations

from coordinator_model import events as kinds
from coordinator_model.diagnosis import consumer_findings
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import (
    causes,
    classic_members,
    closing,
    episode_rows,
    episodes,
    heartbeats,
    log_lines,
    members,
    prediction,
    undecided,
)
from coordinator_model.tracker.consumer.without_logs import departed, silence
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref


def observe(g: Emitter, event: Event) -> None:
    """Takes an event of a group that follows the consumer protocol."""
    view = view_of(g)
    if event.broker not in g.view.brokers:  # a group of which heartbeats alone are logged is not at its end before its broker's log is
        g.view.brokers.append(event.broker)
    if rules.learn(view, event) and view.episode is not None:
        causes.founded(view)
    if _founds_anew(g, view, event):
        changes = view.changes
        group_removed(g, view, event._replace(at_ms=event.at_ms - 1))  # some time before
        view = view_of(g)
        view.changes = [one for one in changes if one.comer is not None]
    episode_rows.taken_up(g, view, event.received_ms, [ref(event)])
    prediction.observe(view, event)
    if event.kind == kinds.CONSUMER_GROUP_HEARTBEAT:
        heartbeats.take(g, view, event)
        _note_silent(g, view, event)
    elif event.kind in kinds.HEARTBEATS_OF_OTHERS:
        _take_of_others(g, view, event)
    elif event.kind == kinds.CONSUMER_GROUP_LOG and event.state in log_lines.HANDLERS:
        view.group_type = event.protocol_type or view.group_type
        log_lines.HANDLERS[event.state](g, view, event)
    elif event.kind in (kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT):
        consumer_findings.refused_commit(g, view, event)
    elif event.kind == kinds.DELETE_GROUPS and event.error_code == Error.NONE:
        group_removed(g, view, event)
    elif event.source == "request":
        classic_members.take(g, view, event)
    elif event.kind in (kinds.GROUPS_DELETED, kinds.GROUP_DEAD):
        prediction.drop(view, undecided.NOT_FOLLOWED)
        group_removed(g, view, event)
    prediction.note_end(view, event)


def _take_of_others(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes a heartbeat of a share or a Streams group: the coordinator's log tells of its members, but not which client each is."""
    if event.error_code == Error.UNKNOWN_MEMBER_ID:
        consumer_findings.refused(g, view, event)
    elif event.error_code == Error.INVALID_REQUEST:
        consumer_findings.rejected(g, view, event)
    elif event.error_code == Error.NONE and (member := members.known(view, event.member_id)) is not None:
        member.learn(event)


def view_of(g: Emitter) -> ConsumerView:
    """The estimate of a group that follows the protocol."""
    if g.view.consumer is None:  # the first line of the group that follows the protocol
        g.view.consumer = ConsumerView()
    return g.view.consumer


def group_removed(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The group was deleted, or its offsets expired: a new one of its name begins anew. It was Empty: its last members had gone.

    Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.validateDeleteGroup (4.x).
    """
    if view.episode is not None:
        for member_id in list(view.members):
            view.episode.depart(member_id)
            members.take_effect(g, view, Change(event.at_ms, reasons.UNKNOWN, member_id, ref(event), logged=False))
        view.know_all()
        episodes.end(view, event.at_ms, end_seen=False)
    closing.cut_off(g, event.at_ms)
    if view.state != episode_rows.DEAD:
        episode_rows.write_removal(g, view, event.at_ms, ref(event))
    stored_epoch = min(view.stored_epoch, 0)
    g.view.consumer = ConsumerView(
        epoch=rules.epoch_before_first(g, view),
        complete=True,
        state=episode_rows.DEAD,
        stored_epoch=stored_epoch,
        prediction=view.prediction,
        since_4_3=view.since_4_3,
    )


def _founds_anew(g: Emitter, view: ConsumerView, event: Event) -> bool:
    """Whether the group has a first epoch again, though no line says that it was removed: the one about expired offsets names no group."""
    is_answer = event.kind == kinds.CONSUMER_GROUP_HEARTBEAT
    epoch = event.answer_generation if is_answer else event.generation
    if view.epoch <= epoch or view.episode is not None or not (view.complete or (view.state and not view.members)):
        return False
    if is_answer:
        begins = rules.founds(g, view, event)
    else:
        begins = rules.is_first_epoch(g, view, epoch) and (event.kind == kinds.EPOCH_STORED or event.state == kinds.EPOCH_RAISED)
    return begins and all(0 <= member.heard_ms < event.received_ms - silence.SILENT_MS for member in view.members.values())


def _note_silent(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The request log goes on, so members that records show to be gone, and that have fallen silent, are gone because of that."""
    for member in departed.fell_silent(view):
        if silence.is_silent(member, event.at_ms):
            departed.explain(g, view, member.member_id, reasons.SESSION_TIMEOUT, ref(event))
