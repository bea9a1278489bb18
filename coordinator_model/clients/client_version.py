"""How the releases of the Java client differ, as far as the member of a group shows it.

Read from the sources of the clients, row by row as K01 to K21 of the claims that this project tests
(tests/clients/test_client.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator_model.specification.config import release_numbers


@dataclass(frozen=True)
class ClientVersion:
    """How one release of the Java client behaves."""

    name: str
    heartbeat_thread: bool
    """Heartbeats come from a thread (KIP-62, 0.10.1); before, from poll() alone."""
    heartbeat_while_completing: bool
    """The thread runs from the answer of JoinGroup on (2.6.1), before: of SyncGroup."""
    ignores_old_generations: bool
    """An error answer to a heartbeat of an older generation says nothing (2.6)."""
    illegal_generation_drops_member_id: bool
    """ILLEGAL_GENERATION costs the member id too (0.10.1 to 3.1; up to 0.10.0 as the answer to SyncGroup alone)."""
    look_up_disconnects: bool
    """To look for the coordinator ends the connection: what is unanswered on it is lost (1.0.2)."""
    found_restarts_heartbeats: bool
    """A coordinator that is found starts the clocks of heartbeats and poll() again (up to 2.0)."""
    grace_ms: int
    """A limit is over when it is exceeded (1, up to 2.0) or when it is reached (0, since 2.1 has Timer)."""
    join_version: int
    """The newest JoinGroup that it speaks."""
    session_timeout_ms: int
    """The default of session.timeout.ms."""
    request_timeout_ms: int
    """The default of request.timeout.ms."""

    @classmethod
    def of(cls, name: str) -> ClientVersion:
        """The client of the release called `name`."""
        v = release_numbers(name)
        joins = (
            ((0, 10, 1), 1),
            ((0, 11), 2),
            ((2, 0), 3),
            ((2, 2), 4),
            ((2, 3), 5),
            ((2, 4), 6),
            ((2, 5), 7),
            ((3, 2), 9),
        )
        sessions = (((0, 10, 1), 10_000), ((3, 0), 45_000))
        requests = (((0, 10, 1), 305_000), ((2, 0), 30_000))
        return cls(
            name=name,
            heartbeat_thread=v >= (0, 10, 1),
            heartbeat_while_completing=v >= (2, 6, 1),
            ignores_old_generations=v >= (2, 6),
            illegal_generation_drops_member_id=(0, 10, 1) <= v < (3, 2),
            look_up_disconnects=v >= (1, 0, 2),
            found_restarts_heartbeats=v < (2, 1),
            grace_ms=int(v < (2, 1)),
            join_version=max((version for since, version in joins if v >= since), default=0),
            session_timeout_ms=[30_000, *(ms for since, ms in sessions if v >= since)][-1],
            request_timeout_ms=[40_000, *(ms for since, ms in requests if v >= since)][-1],
        )
