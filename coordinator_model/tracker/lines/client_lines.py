"""What a client's own log shows of its membership: why it left, and why it rejoined.

A client's log has its client.id, which several members may share, and its member id only when it joins or leaves. So a line without a
member id belongs to the member that the same log named before, else to the only member with that client.id. If there are several, the line
is not used: one log may hold the lines of several containers whose clients have one name, or of several clients that write no name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import clients_alone, departures
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter

NAMES_KEPT: Final = 256

_REJOINS: Final = (
    # rd_kafka_cgrp_* functions of librdkafka
    ("Metadata for subscribed topic(s) has changed", reasons.METADATA_CHANGED),
    ("rejoining group to redistribute previously owned partitions", reasons.REVOCATION_FOLLOW_UP),
    ("subscribe to new subscription", reasons.SUBSCRIPTION_CHANGED),
    # coordinator/consumer.py of kafka-python, group_coordinator.py of aiokafka
    ("complete cooperative move of", reasons.REVOCATION_FOLLOW_UP),
    ("Metadata for topic has changed", reasons.METADATA_CHANGED),
    # consumer_group.go of sarama, consumergroup.go of kafka-go
    ("partitions in topics", reasons.METADATA_CHANGED),
    ("Partition changes found", reasons.METADATA_CHANGED),
)
"""How clients that send no reason say that they decided to rejoin. What else they say is about rebalances that others began."""


def client_joined(g: Emitter, event: Event) -> None:
    """The client joined: its client name stands for this member in the log from now on."""
    if not event.member_id:
        return
    member = g.view.members.get(event.member_id)
    if member is not None:
        member.client_id = member.client_name() or event.client_id
        member.stalled_ms, member.stalled_sign = -1, None
    note_name(g, event)


def note_name(g: Emitter, event: Event) -> None:
    """Takes a line that names a member and its client."""
    names, name = g.view.client_names, f"{_name(event)}\n{event.member_id}"
    names.pop(name, None)
    names[name] = event.member_id
    if len(names) > NAMES_KEPT:
        del names[next(iter(names))]


def client_poll_timeout(g: Emitter, event: Event) -> None:
    """The application did not call poll() in time: a dynamic member leaves now, a static one falls silent (KIP-345)."""
    if clients_alone.is_unheard(g):
        return
    member_id = member_of(g, event)
    member = g.view.members.get(member_id)
    if member is None:
        departures.on_logged_stall(g, member_id, event)
        return
    member.client_id = member.client_name() or event.client_id
    member.says_it_stalled(event)
    if event.rebalance_timeout_ms >= 0:
        member.rebalance_timeout_ms = event.rebalance_timeout_ms


def client_leaves(g: Emitter, event: Event) -> None:
    """The client sends LeaveGroup and logs why. Clients send the reason, and brokers log it, from 3.2 on (KIP-800)."""
    member = g.view.members.get(event.member_id)
    stalled = reasons.of_leave(event.reason, by_admin=False) == reasons.POLL_TIMEOUT
    if member is not None:
        member.leaves_because = event.reason
        if stalled:
            member.says_it_stalled(event)
    elif stalled:
        departures.on_logged_stall(g, event.member_id, event)


def client_rejoins(g: Emitter, event: Event) -> None:
    """The client will rejoin and logs why."""
    member = g.view.members.get(member_of(g, event))
    if member is None:
        return
    if event.state:
        cause = event.state
    elif event.connection:
        cause = next((cause for words, cause in _REJOINS if event.reason.startswith(words)), reasons.of_known_rejoin(event.reason))
    else:
        cause = reasons.of_rejoin(event.reason, is_leader=False) if reasons.says_why(event.reason) else ""
    if cause:
        member.rejoins_ms, member.rejoins_because = event.at_ms, cause


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.CLIENT_JOINED: client_joined,
    kinds.CLIENT_POLL_TIMEOUT: client_poll_timeout,
    kinds.CLIENT_LEAVES: client_leaves,
    kinds.CLIENT_REJOINS: client_rejoins,
}


def _name(event: Event) -> str:
    return f"{event.origin}\n{event.connection or event.client_id}"


def member_of(g: Emitter, event: Event) -> str:
    """The member that a line is about; empty if that is unknown."""
    if event.member_id:
        return event.member_id
    if named := [member_id for name, member_id in g.view.client_names.items() if name == f"{_name(event)}\n{member_id}"]:
        return _one_of(g, named)
    if not event.client_id and not event.instance_id:
        return ""
    matching = [
        m.member_id
        for m in g.view.members.values()
        if (m.instance_id == event.instance_id if event.instance_id else m.client_name() == event.client_id)
    ]
    if not matching:
        undecided = departures.undecided(g)
        matching = [old.member_id for old in g.view.ended if old.member_id in undecided and old.client_id == event.client_id]
    return matching[0] if len(matching) == 1 else ""


def _one_of(g: Emitter, named: list[str]) -> str:
    """The member that a client is now, of those that its log named, the last one last; empty if several may be.

    It is the only one that is in the group or left it a moment ago, or the last one.
    """
    at_stake = g.view.members.keys() | departures.undecided(g)
    present = [member_id for member_id in named if member_id in at_stake]
    return "" if len(present) > 1 else next(iter(present or named[-1:]), "")
