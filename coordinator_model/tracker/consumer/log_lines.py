"""Lines of the coordinator about groups of the consumer protocol. The line with a cause is followed by the line with the epoch.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (3.7 to 4.4). Their templates: jobs/sentences/consumer.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import consumer_findings, margins, troubles
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes, episodes, heartbeats, members, ownership
from coordinator_model.tracker.consumer.without_logs import client_words, departed, lost_lines
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

_CLASSIC: Final = "using the classic protocol"
_FIRST_STREAMS_EPOCH: Final = 2
"""A new streams group has epoch 1, and the first member raises it. Seen at a broker of Kafka 4.2.0."""
_ASSIGNOR: Final = re.compile(r"with '([^']+)' assignor")
_TARGETED: Final = re.compile(r"([^\s{}=,]+)=(?:Member)?Assignment(?:Impl)?\(")
_PARTITIONS: Final = re.compile(r"state=(\w+), assignedPartitions=\[([^\]]*)\](?: and revokedPartitions=\[([^\]]*)\])?\.")
_TASKS: Final = re.compile(r"state=(\w+), assignedTasks=\(active=\[([^\]]*)\].* and tasksPendingRevocation=\(active=\[([^\]]*)\]")
_EPOCH_OF_TASK: Final = re.compile(r"@\d+$")
_UNREVOKED: Final = ("UNREVOKED_PARTITIONS", "UNREVOKED_TASKS")
_UNRELEASED: Final = ("UNRELEASED_PARTITIONS", "UNRELEASED_TASKS")
"""A member that is to have what others have not given up yet, standby tasks included: the group is not Stable before it is."""


def member_joins(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A member joins. One that is a member already raises the epoch only with another subscription."""
    episodes.raise_departures(g, view, event.at_ms)
    episodes.end_if_emptied(g, view)
    if event.instance_id:
        lost_lines.note_replaced(g, view, event)
    if event.member_id in view.members:
        episodes.note(g, view, event, reasons.SUBSCRIPTION_CHANGED, event.member_id, doubtful=True)
        return
    member = ConsumerMember(event.member_id, event.instance_id, joined_ms=event.at_ms, classic=_CLASSIC in event.reason)
    episodes.note(g, view, event, reasons.MEMBER_JOINED, event.member_id, member)


def static_member_returns(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A static member is back, under a new id. It raises the epoch only with another subscription."""
    episodes.forget_logged(g, view)
    old = view.find(event.member_id)
    old.instance_id = event.instance_id or old.instance_id
    old.classic = _CLASSIC in event.reason
    new_id = event.answer_member_id or event.member_id
    members.rename(g, view, old, new_id, event.at_ms, ref(event))
    episodes.note(g, view, event, reasons.SUBSCRIPTION_CHANGED, new_id, doubtful=True)


def static_member_away(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A static member left for a while (epoch -2): its partitions stay with it."""
    episodes.forget_logged(g, view)
    ownership.left_for_a_while(view, view.find(event.member_id, event.instance_id), event.at_ms)


def _departs(cause: str) -> Callable[[Emitter, ConsumerView, Event], None]:
    def handle(g: Emitter, view: ConsumerView, event: Event) -> None:
        if event.member_id not in view.members and any(member.member_id == event.member_id for member in view.gone):
            departed.explain(g, view, event.member_id, cause, ref(event))
            return
        episodes.forget_logged(g, view, at_ms=event.at_ms)  # it may have come without raising the epoch
        member = view.find(event.member_id)
        member.instance_id = event.instance_id or member.instance_id
        if event.rebalance_timeout_ms >= 0:
            member.rebalance_timeout_ms = event.rebalance_timeout_ms
        if cause == reasons.SESSION_TIMEOUT:
            margins.learn_session_timeout(view, member, event.at_ms)
        view.settle(*(one for one in view.changes_about(event.member_id) if not one.logged))  # its request told so before
        told = client_words.cause_of_leave(member, event.at_ms) if cause == reasons.MEMBER_LEFT else cause
        episodes.note(g, view, event, told, event.member_id)
        if view.group_type:
            episodes.raised_silently(g, view)

    return handle


def epoch_raised(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The group has a new epoch."""
    if view.epoch < 0:
        is_of_streams = view.group_type == kinds.STREAMS
        view.know_all(is_all=event.generation == _FIRST_STREAMS_EPOCH if is_of_streams else rules.is_first_epoch(g, view, event.generation))
    episodes.end_if_emptied(g, view)
    episodes.raised(g, view, event)


def target_computed(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The target assignment of an epoch is there. Some releases log it: then it names all members, and others departed before."""
    assignor = _ASSIGNOR.search(event.reason)
    episodes.computed(g, view, event, assignor[1] if assignor is not None else "")
    targeted = set(_TARGETED.findall(event.reason)) if event.reason.endswith("}.") else set()
    gone = sorted(view.members.keys() - targeted) if targeted else []
    changes = [Change(event.at_ms, reasons.UNKNOWN, member_id, ref(event), logged=True) for member_id in gone]
    one = episodes.round_of(view, event.generation)
    if changes and one is not None and not one.cause:
        causes.tell(g, view, one, *changes, named=len(changes) == 1)
        return
    for change in changes:
        members.take_effect(g, view, change)


def expressions_resolved(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Regular expressions were resolved anew: the epoch is raised if they match other topics than before."""
    episodes.note(g, view, event, reasons.REGEX_RESOLVED, "")


def group_read_back(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A coordinator has read the group back: its members need not join again."""
    episodes.forget_logged(g, view)
    view.loaded_ms = max(view.loaded_ms, event.at_ms)
    if event.member_count >= 0:
        view.know_all(is_all=event.member_count == len(view.members))


def group_given_up(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A coordinator gave the group up, at this epoch."""
    episodes.forget_logged(g, view)
    episodes.found_at(g, view, event)
    view.given_up = (event.at_ms, ref(event))


def assignment_stored(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes what a member has from now on, and what it has to give up. The answer to its heartbeat follows, and says the same.

    Consumer groups have such lines at INFO up to Kafka 3.9, at DEBUG since 4.0; share and streams groups at INFO. A streams group has tasks
    in the place of partitions. Members of a share group give nothing up.
    """
    found = _PARTITIONS.search(event.reason) or _TASKS.search(event.reason)
    if found is None or event.generation < 0:
        return
    episodes.forget_logged(g, view)
    view.heard, epoch = True, event.generation
    member = view.find(event.member_id)
    partitions, revoked = (_listed(found[2]), _listed(found[3])) if view.group_type != kinds.SHARE else (None, ())
    must_give_up = found[1] in _UNREVOKED
    told = revoked if must_give_up and set(revoked) - set(member.giving) else ()
    gave_up = not must_give_up or not set(member.giving) <= set(revoked)  # it may be told of others at once
    answer = event._replace(answer_generation=epoch)
    if epoch > view.epoch:
        episodes.seen(g, view, answer._replace(generation=epoch), epoch)
    heartbeats.note_progress(view, member, answer, partitions, told=told, gave_up=gave_up)
    member.waits = int(found[1] in _UNRELEASED)
    episodes.end_if_reconciled(g, view, event.at_ms)


def topics_updated(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A member subscribes to other topics than before, which raises the epoch. The first ones of a member come with its join."""
    joins = any(change.logged and change.member_id == event.member_id and change.comer is not None for change in view.changes)
    if not joins and event.member_id in view.members:
        episodes.note(g, view, event, reasons.SUBSCRIPTION_CHANGED, event.member_id)


def _listed(text: str | None) -> tuple[str, ...]:
    """Partitions or active tasks of a printed list. A task is printed with the epoch in which it was assigned."""
    return tuple(_EPOCH_OF_TASK.sub("", one) for one in (text or "").split(", ") if one)


HANDLERS: Final[dict[str, Callable[[Emitter, ConsumerView, Event], None]]] = {
    kinds.JOINED: member_joins,
    kinds.RETURNED: static_member_returns,
    kinds.DEPARTED: _departs(reasons.MEMBER_LEFT),
    kinds.AWAY: static_member_away,
    kinds.EXPIRED: _departs(reasons.SESSION_TIMEOUT),
    kinds.STUCK: _departs(reasons.REBALANCE_TIMEOUT),
    kinds.EPOCH_RAISED: epoch_raised,
    kinds.TARGET_COMPUTED: target_computed,
    kinds.REGEX_RESOLVED: expressions_resolved,
    kinds.CONFIG_CHANGED: lambda g, view, event: episodes.note(g, view, event, reasons.GROUP_CONFIG_CHANGED, ""),  # whoever heard of it
    kinds.ASSIGNMENT_STORED: assignment_stored,
    kinds.TOPICS_UPDATED: topics_updated,
    kinds.READ_BACK: group_read_back,
    kinds.GIVEN_UP: group_given_up,
    kinds.REFUSED: consumer_findings.classic_member_refused,
    kinds.OWNED: lambda g, _, event: troubles.instance_taken(g, event),
    kinds.FENCED: lambda g, _, event: troubles.instance_taken(g, event),
    kinds.TROUBLE: lambda g, _, event: troubles.note(g, event),
}
"""By what the line tells (`Event.state`). Other lines change nothing."""
