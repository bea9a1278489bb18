"""Stored records of a group, and answers of Admin describe: all that clusters show whose logs cannot be read.

Beside a broker's lines they add only the identity and the assignment of members. Alone they show one rebalance for each generation: that
it ended, not when it began, and seldom why. The cause is UNKNOWN except for

* MEMBER_JOINED: the generation follows the one before, and has one member more, or the one before was empty;
* SUBSCRIPTION_CHANGED: it follows the one before, has the same members, and one of them subscribes to other topics.

The start is then the latest possible one, and durations from the start are null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.states import State
from coordinator_model.tracker import endings, membership, phases
from coordinator_model.tracker.consumer import following, migrations
from coordinator_model.tracker.consumer.without_logs import polled, stored_records
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import client_in
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import ref

COOPERATIVE: Final = "cooperative"
"""Part of the names of assignors whose members keep their partitions while they rejoin."""


def group_stored(g: Emitter, event: Event) -> None:
    """A GroupMetadata record: a generation and its assignment, an empty group, or the end of the group."""
    view = g.view
    if event.state == State.DEAD.value:
        _record_removed(g, event)
    elif view.broker:
        _confirm(g, event)
    else:
        migrations.become_classic_group(g, event)
        if event.members:
            _stored_stable(g, event)
        else:
            _stored_empty(g, event)


def group_described(g: Emitter, event: Event) -> None:
    """An answer of Admin describe. It is not used for a group that records show too: they say more, with exact times."""
    view = g.view
    if view.broker or kinds.OFFSETS_SOURCE in view.brokers:
        return
    if view.consumer_protocol and event.state == State.DEAD.value:
        polled.take(g, following.view_of(g), event)
        return
    polled.become_classic(g, event)
    if event.state == State.DEAD.value:
        endings.group_removed(g, event)
    elif event.state == State.STABLE.value:
        _described_stable(g, event)
    elif event.state == State.EMPTY.value:
        if view.state in (None, State.DEAD):
            _settle(g, State.EMPTY)
        elif view.state is not State.EMPTY:
            _emptied(g, event, event.at_ms, -1)
    elif view.open is None:
        if view.state is State.DEAD:
            _settle(g, State.EMPTY)
        running = phases.open_rebalance(g, event.at_ms, exact=False, signs=[ref(event)])
        running.bounded = True


def group_member(g: Emitter, event: Event) -> None:
    """The identity of a member. Beside a broker's lines: only what those lack, and nothing that moves a timer."""
    if g.view.consumer is not None:
        polled.identify(g.view.consumer, event)
    member = g.view.members.get(event.member_id)
    if member is None:
        return
    if g.view.broker:
        event = event._replace(
            instance_id=member.instance_id or event.instance_id,
            client_id=member.client_id or event.client_id,
            client_host=member.client_host or event.client_host,
            session_timeout_ms=-1,
            rebalance_timeout_ms=-1,
        )
    membership.learn(member, event)


def consumer_group_described(g: Emitter, event: Event) -> None:
    """A poll of a KIP-848 group. It is not used for a group that records show too."""
    if g.view.broker or kinds.OFFSETS_SOURCE in g.view.brokers:
        return
    migrations.become_consumer_group(g, event)
    polled.take(g, following.view_of(g), event)


def consumer_group_record(g: Emitter, event: Event) -> None:
    """A record of a KIP-848 group. A group has such records only while it follows that protocol; tombstones end them."""
    if g.view.consumer_protocol or event.state != kinds.REMOVED:
        migrations.become_consumer_group(g, event)
        polled.give_way(g)
        stored_records.take(g, following.view_of(g), event)


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.GROUP_STORED: group_stored,
    kinds.GROUP_DESCRIBED: group_described,
    kinds.GROUP_MEMBER: group_member,
    kinds.CONSUMER_GROUP_DESCRIBED: consumer_group_described,
    **dict.fromkeys(kinds.CONSUMER_GROUP_RECORDS, consumer_group_record),
}


def _record_removed(g: Emitter, event: Event) -> None:
    """The record was deleted: the group was deleted, or its offsets expired. A group with members was converted instead (KIP-848)."""
    view = g.view
    if view.consumer_protocol:
        return
    if view.state is State.EMPTY or not (view.broker or view.members or view.open):
        endings.group_removed(g, event)
    elif not view.broker:
        migrations.become_consumer_group(g, event)


def _confirm(g: Emitter, event: Event) -> None:
    """Adds the assignment from a record of the same generation, where no request of a broker's log showed it."""
    view = g.view
    if event.generation != view.generation or view.consumer_protocol:
        return
    candidates = [r for r in view.unfinished() if r.generation == event.generation and r.joined_ms >= 0]
    assigned = {a.member_id: a.partitions for a in event.assignments}
    cooperative = COOPERATIVE in event.protocol  # a record does not show which partitions were kept meanwhile
    for rebalance in candidates[-1:]:
        rebalance.protocol = rebalance.protocol or event.protocol
        rebalance.leader_id = rebalance.leader_id or event.leader_id
        decoded = {m: p for m, p in assigned.items() if p is not None}
        if rebalance.assigned is None and assigned and len(decoded) == len(assigned) and not cooperative:
            rebalance.assigned, rebalance.stored = decoded, True
            rebalance.note(ref(event))
    for member_id, partitions in assigned.items():
        member = view.members.get(member_id)
        if member is not None and member.partitions is None and not cooperative:
            member.partitions = partitions


def _stored_empty(g: Emitter, event: Event) -> None:
    view = g.view
    made = event.generation > max(view.generation, 0) or view.state is State.STABLE or view.open is not None
    if made and view.state is not None:
        _emptied(g, event, max(event.received_ms, view.completed_ms), event.generation)
    else:
        _settle(g, State.EMPTY)
        view.generation = event.generation


def _stored_stable(g: Emitter, event: Event) -> None:
    view = g.view
    if event.generation == view.generation and view.state is State.STABLE and view.open is None:
        _replace_static(g, event)  # stored again, within its generation
        return
    first = view.state is None and event.generation != 1
    follows = event.generation == view.generation + 1 and view.generation >= 0
    if view.state is None and not first:
        _settle(g, State.EMPTY)  # the first generation has none before it
        follows = True
    joined_ms = min(max(event.received_ms, view.completed_ms), event.at_ms)
    running = _begin(g, event, joined_ms, event.generation - 1)
    if follows:
        _cause(g, running, event)
    phases.joined(g, joined_ms, event.generation, exact=False, signs=[ref(event)])
    _list_members(g, running, event, joined_ms, known=not first)
    phases.ended(g, event.at_ms, signs=[])


def _described_stable(g: Emitter, event: Event) -> None:
    view = g.view
    if view.state is None:
        _settle(g, State.STABLE)
        for entry in event.members:
            view.add(entry.member_id, -1).instance_id = entry.instance_id
        _assign(g, event)
        view.protocol = event.protocol
        view.load(len(view.members))
        return
    owned = {m.member_id: m.partitions or () for m in view.members.values()}
    if view.open is None and owned == {a.member_id: a.partitions or () for a in event.assignments}:
        view.last_ok_ms = event.at_ms
        return
    if view.state is State.DEAD:
        _settle(g, State.EMPTY)
    known_before = view.complete  # not if the first poll saw the group amid a rebalance
    running = _begin(g, event, event.at_ms, -1)
    if known_before:
        _cause(g, running, event)
    _list_members(g, running, event, event.at_ms, known=known_before)
    phases.ended(g, event.at_ms, signs=[ref(event)])


def _settle(g: Emitter, state: State) -> None:
    """Takes a state without a transition: nothing shows how the group came into it."""
    view = g.view
    view.state = state
    view.nobody_is_there()
    view.generation = -1


def _begin(g: Emitter, event: Event, at_ms: int, old_generation: int) -> Rebalance:
    """The rebalance whose end the event shows: it began by then."""
    running = g.view.open
    if running is None:
        running = phases.open_rebalance(g, at_ms, exact=False, old_generation=old_generation, signs=[ref(event)])
    running.bounded = True
    return running


def _emptied(g: Emitter, event: Event, at_ms: int, generation: int) -> None:
    """The group is empty; nothing shows how its members departed."""
    view = g.view
    _begin(g, event, at_ms, generation - 1 if generation > 0 else -1)
    for member_id in sorted(view.members):
        membership.remove(g, member_id, at_ms, reasons.UNKNOWN, [ref(event)])
    phases.emptied(g, at_ms, generation, signs=[ref(event)])


def _cause(g: Emitter, running: Rebalance, event: Event) -> None:
    """Adds what started the rebalance, if the members before and after leave no doubt."""
    view = g.view
    listed = {entry.member_id: entry for entry in event.members}
    added, departed = sorted(listed.keys() - view.members.keys()), view.members.keys() - listed.keys()
    culprit, cause = "", ""
    if running.from_state is State.EMPTY:
        culprit, cause = added[0] if len(added) == 1 else "", reasons.MEMBER_JOINED
    elif len(added) == 1 and not departed:
        culprit, cause = added[0], reasons.MEMBER_JOINED
    elif not added and not departed:
        other = [m for m, entry in sorted(listed.items()) if entry.topics is not None and view.members[m].topics not in ((), entry.topics)]
        if len(other) == 1:
            culprit, cause = other[0], reasons.SUBSCRIPTION_CHANGED
    if cause:
        instance_id = listed[culprit].instance_id if culprit else ""
        client_id = client_in(culprit, instance_id)
        phases.add_trigger(g, RebalanceTrigger(running.started_ms, cause, culprit, instance_id, client_id, sign=ref(event)))


def _list_members(g: Emitter, running: Rebalance, event: Event, joined_ms: int, *, known: bool) -> None:
    """Takes the members of the new generation. `known`: those of the one before are known."""
    view = g.view
    listed = {entry.member_id: entry for entry in event.members}
    instances = {entry.instance_id for entry in event.members if entry.instance_id}
    for member in sorted(view.members.values(), key=lambda m: m.member_id):
        if member.member_id not in listed:
            kind = reasons.REPLACED if member.instance_id in instances else reasons.UNKNOWN
            membership.remove(g, member.member_id, joined_ms, kind, [ref(event)])
        elif COOPERATIVE in event.protocol:
            running.kept[member.member_id] = member.partitions or ()
    for entry in event.members:
        new = entry.member_id not in view.members
        member = view.add(entry.member_id, joined_ms if known else -1)
        member.instance_id = entry.instance_id or member.instance_id
        if new and not known:
            running.moves.note(entry.member_id, came=False)
        if entry.topics is not None:
            member.topics = tuple(sorted(entry.topics))
    view.protocol, view.leader_id = event.protocol, event.leader_id
    view.protocol_type = event.protocol_type or view.protocol_type
    running.protocol, running.leader_id = event.protocol, event.leader_id
    running.stored, running.joined_ms = True, joined_ms
    view.list_members(running, len(listed))
    _assign(g, event)
    if all(a.partitions is not None for a in event.assignments):
        running.assigned = {a.member_id: a.partitions or () for a in event.assignments}


def _replace_static(g: Emitter, event: Event) -> None:
    """A static member rejoined under a new id within the generation, and keeps the assignment of its old id (KIP-345)."""
    view = g.view
    listed = {entry.member_id: entry for entry in event.members}
    for old in sorted(view.members.values(), key=lambda m: m.member_id):
        new = next((e for e in event.members if e.instance_id and e.instance_id == old.instance_id), None)
        if old.member_id not in listed and new is not None:
            membership.remove(g, old.member_id, event.at_ms, reasons.REPLACED, [ref(event)])
            view.add(new.member_id, event.at_ms).instance_id = new.instance_id
    view.leader_id = event.leader_id
    _assign(g, event)


def _assign(g: Emitter, event: Event) -> None:
    assigned = {a.member_id: a.partitions for a in event.assignments}
    for member in g.view.members.values():
        member.partitions = assigned.get(member.member_id, member.partitions)
