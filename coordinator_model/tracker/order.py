"""The one order in which a tracker takes the events of its group.

The order depends on the contents of the lines, and on their place in a file only where nothing else tells them apart. Lines that were
shuffled, cut into other batches or read from another file come out in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.quiet import runs

# Lines of the coordinator log of one millisecond, in the order in which the coordinator writes them within a generation.
_PHASE: Final[dict[str, int]] = {
    kinds.STABILIZED: 1,
    kinds.ASSIGNMENT_RECEIVED: 2,
    kinds.GROUP_EMPTY: 3,
    kinds.PREPARING_REBALANCE: 4,
    kinds.GROUP_UNLOADED: 6,
}


def sort_key(event: Event) -> tuple[Any, ...]:
    """By line time; then lines of clients, the coordinator's own by generation and phase, requests by arrival, stored records.

    Records of KIP-848 groups come before requests: a heartbeat is answered after they are written.
    """
    if event.source == kinds.CLIENT_SOURCE:
        return (event.at_ms, -1, event.kind, event.client_id, event.connection, event.member_id, event.reason, event.origin, event.position)
    if event.kind == kinds.CONSUMER_GROUP_LOG:
        # One operation writes a line with a cause and a line with the epoch, and two may fall into a millisecond: only the file tells.
        return (event.at_ms, 0, -1, 0, "", "", "", "", "", 0, event.origin, event.position)
    if event.source == "coordinator":
        phase = _PHASE.get(event.kind, 0)
        # Lines without a generation are about members that join and depart: they come before the change of state that they cause.
        return (
            event.at_ms, 0, event.generation if phase else -1, phase, event.kind, event.member_id, event.reason,
            event.instance_id, "", 0, event.origin, event.position,
        )  # fmt: skip
    if event.kind in kinds.CONSUMER_GROUP_RECORDS:
        # One operation writes several: only the file tells in which order. Its answer comes after them.
        return (event.at_ms, 1, event.origin, event.position)
    if event.source in kinds.PSEUDO_BROKERS:
        return (
            event.at_ms, 3, event.source, event.generation, event.kind == kinds.GROUP_MEMBER, event.kind, event.state, event.member_id,
            event.origin, event.position,
        )  # fmt: skip
    return (
        event.at_ms, 2, event.received_ms, 0, event.kind, event.connection, event.correlation_id, event.origin, event.position,
        event.member_id, event.client_id, event.instance_id,
    )  # fmt: skip


def same_line(one: Event, other: Event) -> bool:
    """Whether two events are one line that was delivered or copied twice.

    They are equal except for their place, or they are the same request of a connection, which numbers its requests: a copy with other
    contents is damaged, and comes after the original.
    """
    if one.correlation_id >= 0 and one.correlation_id == other.correlation_id and one.connection == other.connection != "":
        return one.kind == other.kind and one.broker == other.broker and one.at_ms == other.at_ms
    return (
        one.at_ms == other.at_ms
        and one.kind == other.kind
        and one.broker == other.broker
        and one._replace(origin="", position=0, positions=()) == other._replace(origin="", position=0, positions=())
    )


def divided(events: Iterable[Event], at_ms: int) -> tuple[list[Event], list[Event]]:
    """The events before a time in their order, and the others. Runs are cut."""
    before, since = runs.divided(events, at_ms)
    return sorted(before, key=sort_key), since
