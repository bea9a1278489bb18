"""The differences between the releases of the Java client that a group notices.

Read from the sources of the clients. The claims K01 to K21 of docs/claims.md list them row by row, and tests/clients/test_claims_client.py
tests them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator_model.specification.releases import before, changing, since, values_of


@dataclass(frozen=True)
class ClientVersion:
    """How one release of the Java client behaves."""

    name: str
    heartbeat_thread: bool = field(metadata=since(0, 10, 1))
    """Heartbeats come from a thread (KIP-62). Before, they come from poll()."""
    heartbeat_while_completing: bool = field(metadata=since(2, 6, 1))
    """The thread starts with the answer to JoinGroup. Before: with the answer to SyncGroup."""
    ignores_old_generations: bool = field(metadata=since(2, 6))
    """An error answer to a heartbeat of an older generation is ignored."""
    illegal_generation_drops_member_id: bool = field(metadata=changing(False, {(0, 10, 1): True, (3, 2): False}))
    """ILLEGAL_GENERATION makes the client drop its member id too (up to 0.10.0 only as the answer to SyncGroup)."""
    look_up_disconnects: bool = field(metadata=since(1, 0, 2))
    """Looking up the coordinator closes the connection, so its unanswered requests are lost."""
    found_restarts_heartbeats: bool = field(metadata=before(2, 1))
    """Finding the coordinator starts the timers of heartbeats and poll() again."""
    grace_ms: int = field(metadata=changing(1, {(2, 1): 0}))
    """1: a time limit ends when it is exceeded. 0: when it is reached, as with the Timer of 2.1."""
    join_version: int = field(
        metadata=changing(0, {(0, 10, 1): 1, (0, 11): 2, (2,): 3, (2, 2): 4, (2, 3): 5, (2, 4): 6, (2, 5): 7, (3, 2): 9})
    )
    """The newest JoinGroup that the client speaks."""
    session_timeout_ms: int = field(metadata=changing(30_000, {(0, 10, 1): 10_000, (3, 0): 45_000}))
    """The default of session.timeout.ms."""
    request_timeout_ms: int = field(metadata=changing(40_000, {(0, 10, 1): 305_000, (2,): 30_000}))
    """The default of request.timeout.ms."""

    @classmethod
    def of(cls, name: str) -> ClientVersion:
        """The client of the release called `name`."""
        return cls(name, **values_of(cls, name))
