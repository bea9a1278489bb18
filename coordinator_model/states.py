"""The five states of a classic group. specification/transitions.py has the changes between them.

Source: org.apache.kafka.coordinator.group.classic.ClassicGroupState (4.x), kafka.coordinator.group.GroupState (to 3.9).
"""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """State of a classic group. Values are Kafka's names."""

    EMPTY = "Empty"
    """No members; committed offsets may remain. JoinGroup => PREPARING_REBALANCE; offsets expired or deleted => DEAD."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for JoinGroup of all members. All joined, or join timer => COMPLETING_REBALANCE; no member left => EMPTY."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waiting for the leader's assignment. It arrives => STABLE; a member joins, leaves or rejoins => PREPARING_REBALANCE."""

    STABLE = "Stable"
    """Members heartbeat and consume. A member joins, leaves, fails or rejoins => PREPARING_REBALANCE."""

    DEAD = "Dead"
    """Removed, or its coordinator moved."""
