"""A coordinator: the groups of the partitions that it leads, and their log.

It answers the requests that need no group (wrong coordinator, still loading, absent group), creates and removes groups, keeps
what they write to the log and when they committed, and runs the clean-up. Kafka: `GroupCoordinatorService` and
`GroupCoordinatorShard` (4.x), `GroupCoordinator` and `GroupMetadataManager` (to 3.9).

Not modelled: the offsets themselves (only whether a group has committed), transactions, authorization, and the consumer groups of
KIP-848 (consumer/coordinator.py has them). Writes to the log take no time. Loading takes none either, unless `load_begin` starts it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import Effect, GroupWritten, Outcome, Transition
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.handlers.leave import absent_group_answer, leave_error
from coordinator_model.specification.handlers.rebalance import check_orphans, prepare_rebalance
from coordinator_model.specification.loading import answer_parked, load_group, orphaned_join_phase, unload_group
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.specification.requests import (
    UNKNOWN_MEMBER_ID,
    Answer,
    CommitAnswer,
    DeleteAnswer,
    DeleteGroup,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    Reply,
    Request,
    SyncAnswer,
    SyncGroup,
    Ticket,
    error_answer,
)
from coordinator_model.specification.timers import NEVER
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State

_WHOLE_BROKER = -1


class CoordinatorOutcome(NamedTuple):
    """The result of a call: the replies that are due now, and what happened inside the groups, by group id."""

    replies: list[Reply]
    effects: list[tuple[str, Effect]]


class Coordinator:
    """The group coordinator of one broker."""

    def __init__(self, config: CoordinatorConfig, now_ms: int, partitions: Iterable[int]) -> None:
        self.config = config
        self.version = config.version
        self.owned = set(partitions)
        self.loading: set[int] = set()
        self.groups: dict[str, ClassicGroup] = {}
        self.log: dict[str, StoredGroup] = {}
        """The last written state of each group: `__consumer_offsets` after compaction."""
        self.offsets: dict[str, int] = {}
        """The time of the last commit of each group that has offsets."""
        self._orphans: dict[str, list[tuple[int, int]]] = {}
        self._due: list[tuple[int, str]] = []
        self._scheduled: dict[str, int] = {}
        self._start_cleanup(now_ms)

    # Requests and time.

    def handle(
        self, group_id: str, request: Request, now_ms: int, ticket: Ticket = 0, *, append_error: Error = Error.NONE
    ) -> CoordinatorOutcome:
        """Handle a request to `group_id` that arrives at `now_ms`."""
        self._begin(now_ms)
        answer = self.refusal(group_id, request)
        if answer is None:
            answer = self._to_group(group_id, request, now_ms, ticket, append_error)
        if answer is not None:
            self._replies.append(Reply(ticket, now_ms, answer))
        return self._outcome()

    def advance(self, now_ms: int) -> CoordinatorOutcome:
        """Let time pass in all groups."""
        self._begin(now_ms)
        return self._outcome()

    def _begin(self, now_ms: int) -> None:
        """Start a call, with all that is due before it."""
        self._replies: list[Reply] = []
        self._effects: list[tuple[str, Effect]] = []
        self._run_until(now_ms)

    def _outcome(self) -> CoordinatorOutcome:
        return CoordinatorOutcome(self._replies, self._effects)

    def _run_until(self, now_ms: int) -> None:
        while True:
            cleanup = min(self._cleanup_due.values(), default=NEVER)
            # In the same millisecond a clean-up comes before the timers, because it was scheduled before them.
            limit = min(now_ms, cleanup - 1)
            while self._due and self._due[0][0] <= limit:
                due, group_id = heapq.heappop(self._due)
                if self._scheduled.get(group_id) == due:
                    del self._scheduled[group_id]
                    self._note(group_id, self.groups[group_id].advance(limit))
            if cleanup > now_ms:
                return
            self._cleanup(cleanup)

    def _note(self, group_id: str, outcome: Outcome) -> None:
        """Take over the outcome of a group."""
        self._replies.extend(outcome.replies)
        died = False
        for effect in outcome.effects:
            self._effects.append((group_id, effect))
            if isinstance(effect, GroupWritten):
                if effect.stored is None:
                    self.log.pop(group_id, None)
                else:
                    self.log[group_id] = effect.stored
            elif isinstance(effect, Transition):
                died = effect.to_state is State.DEAD
        if died:
            self._forget(group_id)
            return
        due = self.groups[group_id].timers.earliest
        if due < self._scheduled.get(group_id, NEVER):
            self._scheduled[group_id] = due
            heapq.heappush(self._due, (due, group_id))

    def _forget(self, group_id: str) -> None:
        del self.groups[group_id]
        self._scheduled.pop(group_id, None)

    # Answers that need no group.

    def partition(self, group_id: str) -> int:
        """The partition of the group."""
        return coordinator_partition(group_id, self.config.offsets_topic_num_partitions)

    def refusal(self, group_id: str, request: Request) -> Answer | None:
        """The answer that needs no group.

        `validateGroupStatus` (to 3.9), the checks of `GroupCoordinatorService` and `CoordinatorRuntime` (4.x).
        """
        version = self.version
        needs_group_id = version.group_id_checked_by_every_api and not isinstance(request, (OffsetCommit, DeleteGroup))
        if group_id == "" and (needs_group_id or isinstance(request, JoinGroup)):
            return self._answer(request, Error.INVALID_GROUP_ID)
        partition = self.partition(group_id)
        bounds = self._session_bounds(request)
        if bounds is not None and version.session_bounds_checked_first:
            return bounds
        if version.loading_checked_before_ownership and partition in self.loading:
            return self._loading_answer(request)
        if partition not in self.owned:
            return self._elsewhere(request, Error.NOT_COORDINATOR)
        if partition in self.loading and (answer := self._loading_answer(request)) is not None:
            return answer
        return bounds

    def _session_bounds(self, request: Request) -> Answer | None:
        """`group.min.session.timeout.ms` <= session timeout <= `group.max.session.timeout.ms`."""
        config = self.config
        if not isinstance(request, JoinGroup):
            return None
        if config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
            return None
        return self._answer(request, Error.INVALID_SESSION_TIMEOUT)

    def _loading_answer(self, request: Request) -> Answer | None:
        """A heartbeat is accepted, so that members keep their sessions. SyncGroup makes the client send JoinGroup again."""
        if isinstance(request, Heartbeat):
            return HeartbeatAnswer(Error.NONE)
        if isinstance(request, SyncGroup):
            error = self.version.sync_while_loading
            return None if error is Error.NONE else SyncAnswer(error)
        return self._elsewhere(request, Error.COORDINATOR_LOAD_IN_PROGRESS)

    def _elsewhere(self, request: Request, error: Error) -> Answer:
        answer = self._answer(request, error)
        if isinstance(answer, JoinAnswer) and not self.version.refusal_echoes_member_id:
            return answer._replace(member_id=UNKNOWN_MEMBER_ID)
        return answer

    def _answer(self, request: Request, error: Error) -> Answer:
        """An answer that consists of `error` alone."""
        if isinstance(request, JoinGroup):
            generation = -1 if self.version.join_errors_with_generation_minus_one else 0
            return JoinAnswer(error, request.member_id, generation)
        if isinstance(request, LeaveGroup):
            return leave_error(request, error, shared=not self.version.batched_leave)
        return error_answer(request, error)

    # Groups.

    def _to_group(self, group_id: str, request: Request, now_ms: int, ticket: Ticket, append_error: Error) -> Answer | None:
        """Let the group handle the request. Returns the answer for a group that does not exist; None if the group replies."""
        created = group_id not in self.groups
        if created:
            answer = self._absent_group_answer(request)
            if answer is not None:
                if isinstance(request, OffsetCommit) and answer.error is Error.NONE:
                    self.offsets[group_id] = now_ms
                return answer
            group = self.groups[group_id] = ClassicGroup(group_id, self.config, now_ms)
            group.orphans = self._orphans.get(group_id, [])
        group = self.groups[group_id]
        outcome = group.handle(request, now_ms, ticket, append_error=append_error)
        self._note(group_id, outcome)
        if created and isinstance(request, JoinGroup) and self.version.created_group_is_written:
            self._write_created_group(group, ticket, append_error)
        if isinstance(request, OffsetCommit) and Reply(ticket, now_ms, CommitAnswer(Error.NONE)) in outcome.replies:
            self.offsets[group_id] = now_ms
        elif isinstance(request, DeleteGroup) and group_id not in self.groups:
            self.offsets.pop(group_id, None)
        return None

    def _absent_group_answer(self, request: Request) -> Answer | None:
        """The answer for a group that does not exist; None if the request creates the group."""
        if isinstance(request, LeaveGroup):
            return absent_group_answer(request, batched=self.version.batched_leave)
        if isinstance(request, OffsetCommit):
            if request.generation < 0:
                return None if self.version.commit_creates_group else CommitAnswer(Error.NONE)
            v9 = request.api_version >= 9
            return CommitAnswer(self.version.commit_to_absent_group_v9 if v9 else Error.ILLEGAL_GENERATION)
        if isinstance(request, JoinGroup) and request.member_id == UNKNOWN_MEMBER_ID:
            return None
        if isinstance(request, DeleteGroup) and self.version.delete_groups:
            return DeleteAnswer(Error.GROUP_ID_NOT_FOUND)
        error = Error.UNSUPPORTED_VERSION if isinstance(request, DeleteGroup) else Error.UNKNOWN_MEMBER_ID
        return self._answer(request, error)

    def _write_created_group(self, group: ClassicGroup, ticket: Ticket, append_error: Error) -> None:
        """4.0: write a group that its first JoinGroup has created."""
        group_id = group.group_id
        if append_error is Error.NONE:
            self.log[group_id] = StoredGroup(0, None, None, None, (), group.state_since_ms)
            return
        error = self.version.log_errors.get(append_error, append_error)
        if all(reply.ticket != ticket for reply in self._replies):
            self._replies.append(Reply(ticket, group.now_ms, JoinAnswer(error, UNKNOWN_MEMBER_ID)))
        self._forget(group_id)

    # Groups that change to the consumer protocol, and back.

    def give_up(self, group_id: str, now_ms: int) -> CoordinatorOutcome:
        """The group is a consumer group now. Whoever waits has to join again."""
        self._begin(now_ms)
        group = self.groups[group_id]
        group.replies = []
        answer_parked(group, Error.REBALANCE_IN_PROGRESS)
        self._replies.extend(group.replies)
        self.log.pop(group_id, None)
        self.offsets.pop(group_id, None)
        self._forget(group_id)
        return self._outcome()

    def take_over(self, group: ClassicGroup, now_ms: int, *, rebalances: bool) -> CoordinatorOutcome:
        """A consumer group has become this classic group (`convertToClassicGroup`); if it `rebalances`, its members have to join again."""
        self._begin(now_ms)
        self.groups[group.group_id] = group
        self.log[group.group_id] = group.stored()
        group.replies, group.effects = [], []
        if rebalances:
            prepare_rebalance(group, Trigger.DOWNGRADED)
        self._note(group.group_id, Outcome(group.replies, group.effects))
        return self._outcome()

    # Partitions come and go.

    def unload(self, partition: int, now_ms: int) -> CoordinatorOutcome:
        """Another broker leads `partition` now."""
        self._begin(now_ms)
        self._unload(partition, now_ms)
        return self._outcome()

    def _unload(self, partition: int, now_ms: int) -> None:
        self.owned.discard(partition)
        self.loading.discard(partition)
        if self.version.cleanup_per_partition:
            self._cleanup_due.pop(partition, None)
        for group in [group for group_id, group in self.groups.items() if self.partition(group_id) == partition]:
            if group.state is not State.DEAD:
                self._unload_group(group, now_ms)

    def _unload_group(self, group: ClassicGroup, now_ms: int) -> None:
        group_id = group.group_id
        preparing = group.state is State.PREPARING_REBALANCE
        orphan = orphaned_join_phase(group) if preparing and not self.version.empty_state else None
        effects = unload_group(group, now_ms)
        self._replies.extend(group.replies)
        self._effects.extend((group_id, effect) for effect in effects)
        if preparing:
            try:
                check_orphans(group)
            except ServerError:
                return  # 0.10.0: unloading stops here and leaves a Dead group behind
        self._forget(group_id)
        if orphan is not None:
            self._orphans.setdefault(group_id, []).append(orphan)

    def load_begin(self, partition: int, now_ms: int) -> CoordinatorOutcome:
        """This broker leads `partition` now and has begun to read it."""
        self._begin(now_ms)
        self.loading.add(partition)
        return self._outcome()

    def load(self, partition: int, now_ms: int) -> CoordinatorOutcome:
        """This broker leads `partition` and has read it. Groups that it already has do not change."""
        self._begin(now_ms)
        self._load(partition, now_ms)
        return self._outcome()

    def _load(self, partition: int, now_ms: int) -> None:
        self.owned.add(partition)
        self.loading.discard(partition)
        if self.version.cleanup_per_partition:
            self._cleanup_due.setdefault(partition, now_ms + self.config.offsets_retention_check_interval_ms)
        only_offsets = self.offsets if self.version.commit_creates_group else ()
        for group_id in dict.fromkeys([*self.log, *only_offsets]):
            if self.partition(group_id) == partition and group_id not in self.groups:
                stored = self.log.get(group_id) or StoredGroup(0, None, None, None, (), now_ms)
                group = self.groups[group_id] = load_group(group_id, self.config, stored, now_ms)
                group.orphans = self._orphans.get(group_id, [])
                self._note(group_id, Outcome(group.replies, group.effects))

    def restart(self, config: CoordinatorConfig, now_ms: int) -> CoordinatorOutcome:
        """Every partition moves to a new coordinator with other settings, which starts at once."""
        self._begin(now_ms)
        partitions = sorted(self.owned)
        for partition in partitions:
            self._unload(partition, now_ms)
        self.config = config
        self.version = config.version
        self._start_cleanup(now_ms)
        for partition in partitions:
            self._load(partition, now_ms)
        return self._outcome()

    # Clean-up.

    def _start_cleanup(self, now_ms: int) -> None:
        first = now_ms + self.config.offsets_retention_check_interval_ms
        parts = self.owned if self.version.cleanup_per_partition else {_WHOLE_BROKER}
        self._cleanup_due: dict[int, int] = dict.fromkeys(parts, first) if self.version.empty_state else {}

    def _cleanup(self, now_ms: int) -> None:
        """`cleanupGroupMetadata`, `cleanupExpiredOffsets`: expire offsets, and remove Empty groups without offsets."""
        for part, due in self._cleanup_due.items():
            if due == now_ms:
                self._cleanup_due[part] = now_ms + self.config.offsets_retention_check_interval_ms
                for group_id, group in list(self.groups.items()):
                    if part in (_WHOLE_BROKER, self.partition(group_id)):
                        self._cleanup_group(group, now_ms)

    def _cleanup_group(self, group: ClassicGroup, now_ms: int) -> None:
        group_id = group.group_id
        self._expire_offsets(group, now_ms)
        if group.state is State.EMPTY and group_id not in self.offsets:
            self.log.pop(group_id, None)
            group.effects = []
            group.now_ms = now_ms
            group.transition_to(Trigger.OFFSETS_EXPIRED)
            self._note(group_id, Outcome([], group.effects))

    def _expire_offsets(self, group: ClassicGroup, now_ms: int) -> None:
        committed_ms = self.offsets.get(group.group_id)
        if committed_ms is None:
            return
        kept_since_ms = committed_ms
        if self.version.offsets_expire_with_group and group.protocol_type is not None:
            # KIP-211: a group with members keeps its offsets, however old they are.
            if group.state is not State.EMPTY:
                return
            kept_since_ms = group.state_since_ms
        if now_ms - kept_since_ms >= self.config.offsets_retention_minutes * 60_000:
            del self.offsets[group.group_id]
