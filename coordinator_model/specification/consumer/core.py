"""What a consumer group has besides its state, and the steps that more than one handler takes: timers and writes.

Kafka: the timers of `GroupMetadataManager`, the executor, and the writes of `CoordinatorRuntime`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_model.errors import Error
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.effects import ConsumerGroupEffect, RecordsWritten
from coordinator_model.specification.consumer.group_state import ConsumerGroupState, replay_all
from coordinator_model.specification.consumer.member import ClassicMetadata, ConsumerGroupMember
from coordinator_model.specification.consumer.records import ClassicGroupWritten, ConsumerGroupRecord, LogRecord, OffsetCommitted
from coordinator_model.specification.consumer.topics import TopicImage
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.hash_maps import TimelineHashMap
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.timers import JOIN, SESSION, SYNC, TimerKey, Timers

REBALANCE: Final = "rebalance"
"""A member has to give up partitions (`groupRebalanceTimeoutKey`)."""
REFRESH_NEVER_MS: Final = 2**31 - 1
"""`METADATA_REFRESH_INTERVAL_MS`."""


class Successor(NamedTuple):
    """The classic group that a consumer group has become, and whether its members have to join again."""

    group: ClassicGroup
    rebalances: bool


@dataclass(slots=True)
class Operation:
    """What a handler decided: the records to write, and what they mean."""

    records: list[LogRecord] = field(default_factory=list)
    effects: list[ConsumerGroupEffect] = field(default_factory=list)
    when_written: list[Callable[[], None]] = field(default_factory=list)
    """Steps that follow the write, and not a failed one."""


@dataclass(slots=True, eq=False)
class ConsumerGroupCore:
    """One consumer group, or the place of one that does not exist: timers of it may still run."""

    group_id: str
    config: ConsumerGroupConfig
    now_ms: int
    overrides: GroupOverrides = field(default_factory=GroupOverrides)
    image: TopicImage = field(default_factory=TopicImage)
    state: ConsumerGroupState | None = None
    timers: Timers = field(default_factory=Timers)
    revoking_epochs: dict[str, int] = field(default_factory=dict)
    """Member => its epoch when its rebalance timer was set."""
    wanted_expressions: tuple[str, ...] = ()
    """The expressions that wait for their resolution, in the order in which they will be resolved."""
    offsets: TimelineHashMap[str, TimelineHashMap[int, OffsetCommitted]] = field(default_factory=TimelineHashMap)
    """Topic => partition => what was committed. Offsets can be there without a group."""
    successor: Successor | None = None
    """What this group has just become. Whoever called takes it over."""
    append_error: Error = Error.NONE
    """The error of every write to the log while the present request is handled."""
    effects: list[ConsumerGroupEffect] = field(default_factory=list)

    def member(self, state: ConsumerGroupState, member_id: str) -> ConsumerGroupMember:
        """`getOrMaybeCreateMember`, which creates none. A request of an id that no member has is refused."""
        member = state.members.get(member_id)
        if member is None:
            raise RefusedRequestError(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # Timers. They are set and cancelled when a decision is made, so that a failed write does not undo it.

    def restart_session(self, member_id: str, classic: ClassicMetadata | None = None) -> None:
        """`scheduleConsumerGroupSessionTimeout`. A member of the classic protocol has a timeout of its own."""
        timeout_ms = self.overrides.session_timeout_ms or self.config.session_timeout_ms
        self.timers.set((SESSION, member_id, 0), self.now_ms + (timeout_ms if classic is None else classic.session_timeout_ms))

    def start_rebalance_timer(self, member: ConsumerGroupMember) -> None:
        """`scheduleConsumerGroupRebalanceTimeout`: with the timeout and the epoch of now."""
        self.timers.set((REBALANCE, member.member_id, 0), self.now_ms + member.rebalance_timeout_ms)
        self.revoking_epochs[member.member_id] = member.epoch

    def cancel_rebalance_timer(self, member_id: str) -> None:
        """`cancelGroupRebalanceTimeout`."""
        self.timers.cancel((REBALANCE, member_id, 0))
        self.revoking_epochs.pop(member_id, None)

    def start_join_timer(self, member: ConsumerGroupMember) -> None:
        """`scheduleConsumerGroupJoinTimeoutIfAbsent`."""
        key: TimerKey = (JOIN, member.member_id, 0)
        if key not in self.timers.deadlines:
            self.timers.set(key, self.now_ms + member.rebalance_timeout_ms)

    def cancel_timers(self, member_id: str) -> None:
        """`cancelTimers`."""
        self.cancel_rebalance_timer(member_id)
        for kind in (SESSION, JOIN, SYNC):
            self.timers.cancel((kind, member_id, 0))

    @property
    def release(self) -> KafkaVersion:
        """The behaviour of the broker's release."""
        return self.config.version

    @property
    def heartbeat_interval_ms(self) -> int:
        """`consumerGroupHeartbeatIntervalMs`."""
        return self.overrides.heartbeat_interval_ms or self.config.heartbeat_interval_ms

    @property
    def assignment_interval_ms(self) -> int:
        """`consumerGroupAssignmentIntervalMs`: the setting of the group, cut to the bounds of the broker (`GroupConfig.evaluate`)."""
        own, config = self.overrides.assignment_interval_ms, self.config
        if own is None:
            return config.assignment_interval_ms
        return min(max(own, config.min_assignment_interval_ms), config.max_assignment_interval_ms)

    # Topics.

    def take_topics(self, image: TopicImage) -> None:
        """`onNewMetadataImage`: if a topic of the group differs, the next heartbeat has to look."""
        before, self.image = self.image, image.new_up_to(self.image.version_with_new_topics)
        if self.state is not None and any(before.named(name) != image.named(name) for name in self.state.names):
            self.state.refresh_at_ms = 0

    # Writes.

    def write(self, operation: Operation) -> Error:
        """Write the records of an operation, and let them take effect. Kafka's writes take time, these end at once."""
        if operation.records and self.append_error is not Error.NONE:
            if self.state is not None:
                self.state.replay_in_vain(_of_group(operation.records))
            return self.config.classic.version.log_errors.get(self.append_error, self.append_error)
        self.take_records(operation.records)
        self.effects.extend(operation.effects)
        if operation.records:
            self.effects.append(RecordsWritten(self.now_ms, tuple(operation.records)))
        for step in operation.when_written:
            step()
        return Error.NONE

    def take_records(self, records: Iterable[LogRecord]) -> None:
        """Let records that are in the log take effect."""
        records = list(records)
        self.state = replay_all(self.state, _of_group(records), self.release)
        for record in records:
            if isinstance(record, OffsetCommitted):
                self._take_offset(record)

    def give_up_to(self, successor: ClassicGroup, *, rebalances: bool) -> None:
        """The group is a classic group now, and its members have to join again if it `rebalances`."""
        self.successor = Successor(successor, rebalances)

    def _take_offset(self, record: OffsetCommitted) -> None:
        if record.topic not in self.offsets:
            self.offsets.put(record.topic, TimelineHashMap())
        partitions = self.offsets[record.topic]
        if record.offset is not None:
            partitions.put(record.partition, record)
            return
        partitions.remove(record.partition)
        if not partitions:
            self.offsets.remove(record.topic)


def _of_group(records: Iterable[LogRecord]) -> list[ConsumerGroupRecord]:
    return [record for record in records if not isinstance(record, (OffsetCommitted, ClassicGroupWritten))]
