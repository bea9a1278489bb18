"""ClassicGroup: an executable specification of one group of Kafka's classic group coordinator.

`handle` takes a request and the time, `advance` only the time. Both first fire the timers that are due, each at its own time,
and return the replies that are due and what happened inside. Time passes only through these two. For any sequence of requests
and times, a group gives the answers of Kafka's coordinator.

group_state.py holds what a group keeps. handlers/ holds the decisions: one module for each API of the protocol (join, sync,
heartbeat, leave, commit, delete), and what they share (rebalance, sessions, expiry). Names are Kafka's: `ClassicGroup` and
`GroupMetadataManager` (4.x), `GroupMetadata` and `GroupCoordinator` (to 3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification import timers
from coordinator_model.specification.effects import ExceptionThrown, Outcome
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import commit, delete, expiry, heartbeat, join, leave, rebalance, sessions, sync
from coordinator_model.specification.hash_maps import MapOrder
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import (
    DeleteGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    Request,
    SyncGroup,
    Ticket,
    error_answer,
)


class ClassicGroup(GroupState):
    """One group. Public attributes are its state; change them only through `handle` and `advance`."""

    __slots__ = ()

    def handle(self, request: Request, now_ms: int, ticket: Ticket = 0, *, append_error: Error = Error.NONE) -> Outcome:
        """Handle a request that arrives at `now_ms`.

        The outcome has the reply, unless the request is parked, and the replies to parked requests that this one releases.
        A later call replies to a parked request. `append_error` is the error of every write to the log that the request attempts.
        """
        self.replies = []
        self.effects = []
        if now_ms >= self.timers.earliest:
            self._fire_timers(now_ms)
        self.now_ms = max(self.now_ms, now_ms)  # a clock that steps back stands still
        self.append_error = append_error
        try:
            _HANDLERS[type(request)](self, request, ticket)
        except RefusedRequestError as refusal:
            self.reply(ticket, error_answer(request, refusal.error))
        except ServerError as error:
            if not self.version.answers_exceptions:
                self.effects.append(ExceptionThrown(self.now_ms, str(error)))
            self.reply(ticket, error_answer(request, Error.UNKNOWN_SERVER_ERROR))
        self.append_error = Error.NONE
        return Outcome(self.replies, self.effects)

    def advance(self, now_ms: int) -> Outcome:
        """Let time pass: fire every timer that is due at or before `now_ms`, each at its own time."""
        self.replies = []
        self.effects = []
        self._fire_timers(now_ms)
        self.now_ms = max(self.now_ms, now_ms)
        return Outcome(self.replies, self.effects)

    def renew_sessions(self, last: Sequence[tuple[str, int]]) -> None:
        """Handle many heartbeats and commits of members of a Stable group, answered NONE: (member id, time of its last one), by time.

        This is what `handle` does for each of them if no timer ends meanwhile: the caller makes sure of that.
        """
        for member_id, at_ms in last:
            self.now_ms = max(self.now_ms, at_ms)
            sessions.restart_session(self, self.members[member_id])

    def _fire_timers(self, now_ms: int) -> None:
        while (due := self.timers.pop_due(now_ms)) is not None:
            (kind, name, number), deadline = due
            self.now_ms = max(self.now_ms, deadline)
            try:
                if kind == timers.SESSION:
                    expiry.expire_session(self, name, number, deadline)
                elif kind == timers.SYNC:
                    rebalance.expire_pending_sync(self)
                elif kind == timers.JOIN:
                    rebalance.complete_join_phase(self)
                else:
                    rebalance.try_complete_initial_rebalance_else_schedule(self)
            except ServerError as error:
                self.effects.append(ExceptionThrown(self.now_ms, str(error)))

    def copy(self) -> ClassicGroup:
        """An independent group in the same state."""
        other = ClassicGroup.__new__(ClassicGroup)
        for name in _FIELDS:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, _COPIED) else value)
        other.open_sessions = {member_id: numbers.copy() for member_id, numbers in self.open_sessions.items()}
        return other


_FIELDS: Final = tuple(field.name for field in fields(GroupState))
_COPIED: Final = (dict, list, MapOrder, timers.Timers)

_HANDLERS: Final[dict[type, Callable[[GroupState, Any, Ticket], None]]] = {
    JoinGroup: join.join_group,
    SyncGroup: sync.sync_group,
    Heartbeat: heartbeat.heartbeat,
    LeaveGroup: leave.leave_group,
    OffsetCommit: commit.offset_commit,
    DeleteGroup: delete.delete_group,
}
