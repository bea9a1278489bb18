"""The five states of a classic group, and which changes between them are possible.

Everything that decides whether a change of state is legal is in this file. Source:
org.apache.kafka.coordinator.group.classic.ClassicGroupState (4.x), kafka.coordinator.group.GroupState (to 3.9).
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(str, Enum):
    """State of a classic group. Values are Kafka's names."""

    EMPTY = "Empty"
    """No members; committed offsets may remain. JoinGroup => PREPARING_REBALANCE; offsets expired or deleted => DEAD."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for JoinGroup of all members. All joined or join timer => COMPLETING_REBALANCE; nobody left => EMPTY."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waiting for the leader's assignment. It came => STABLE; a member came, went or asked again => PREPARING_REBALANCE."""

    STABLE = "Stable"
    """Members heartbeat and consume. A member came, went, failed or asked again => PREPARING_REBALANCE."""

    DEAD = "Dead"
    """Removed, or its coordinator moved."""


VALID_PREVIOUS_STATES: Final[dict[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
    State.PREPARING_REBALANCE: frozenset({State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE}),
    State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    State.DEAD: frozenset(State),
}
"""From which states each state may be entered (`validPreviousStates`)."""
