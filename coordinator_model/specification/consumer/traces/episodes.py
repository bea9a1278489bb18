"""The rebalances of a consumer group: episodes of one or more rounds, who held partitions, and which partitions nobody had.

An episode begins with the first bump of the group epoch in a group at rest, and ends when the group is Stable or Empty again. Each bump in
it is a round. A round is reached when all members are reconciled to its epoch, or it is superseded by the next bump. Unlike a rebalance of
a classic group, an episode stops nobody but the partitions that move: `holders` are the members that were told to give up partitions,
and `unowned` the partitions that nobody had for a while.

All of this follows from the bumps and the records of a group: `EpisodeReader` takes what a `ConsumerGroup` says of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.effects import BumpCause, ConsumerGroupEffect, GroupEpochBumped, RecordsWritten
from coordinator_model.specification.consumer.group_state import ConsumerGroupPhase, ConsumerGroupState, replay_all
from coordinator_model.specification.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState, Partitions
from coordinator_model.specification.consumer.records import ClassicGroupWritten, OffsetCommitted
from coordinator_model.specification.consumer.topics import TopicId

ACKNOWLEDGED: Final = "acknowledged"
STATIC_LEAVE: Final = "static_leave"
"""How a member stops to hold partitions, besides the causes that remove it."""

_AT_REST: Final = (ConsumerGroupPhase.STABLE, ConsumerGroupPhase.EMPTY)


@dataclass(slots=True)
class EpisodeRound:
    """One bump of the group epoch."""

    epoch: int
    at_ms: int
    cause: BumpCause
    member_id: str | None
    reached_ms: int | None = None
    superseded: bool = False


@dataclass(slots=True)
class PartitionHolder:
    """A member that has to give up partitions, until it has acknowledged that or is no longer there.

    `partitions` are those it was told last: a target that came meanwhile can make it give up others right after.
    """

    member_id: str
    from_ms: int
    partitions: Partitions
    until_ms: int | None = None
    ended: str | None = None


@dataclass(slots=True, frozen=True)
class UnownedPartition:
    """A partition that nobody had from one time to another."""

    topic_id: TopicId
    partition: int
    from_ms: int
    until_ms: int


@dataclass(slots=True)
class GroupEpisode:
    """One rebalance. Without an end: it goes on."""

    start_ms: int
    rounds: list[EpisodeRound] = field(default_factory=list)
    holders: list[PartitionHolder] = field(default_factory=list)
    unowned: list[UnownedPartition] = field(default_factory=list)
    end_ms: int | None = None
    end_phase: ConsumerGroupPhase | None = None


class EpisodeReader:
    """Reads the effects of one group, from its beginning on, in their order.

    `label` orders the topics in which partitions find an owner at one moment.
    """

    def __init__(self, release: KafkaVersion, label: Callable[[TopicId], str] = str) -> None:
        self._release = release
        self._label = label
        self.episodes: list[GroupEpisode] = []
        self._state: ConsumerGroupState | None = None
        self._open: GroupEpisode | None = None
        self._free_since: dict[tuple[TopicId, int], int] = {}
        """Since when partitions have no owner that had one."""
        self._bumps: list[GroupEpochBumped] = []

    def read(self, effects: Iterable[ConsumerGroupEffect]) -> None:
        """Go on with these effects."""
        for effect in effects:
            if isinstance(effect, GroupEpochBumped):
                self._bumps.append(effect)
            elif isinstance(effect, RecordsWritten):
                self._take(effect)

    def _take(self, batch: RecordsWritten) -> None:
        owned_before = set() if self._state is None else set(self._state.owner_epochs)
        records = [record for record in batch.records if not isinstance(record, (OffsetCommitted, ClassicGroupWritten))]
        self._state = replay_all(self._state, records, self._release)
        members = {} if self._state is None else dict(self._state.members.items())
        owned_after = set() if self._state is None else set(self._state.owner_epochs)
        cause = None
        for bump in self._bumps:
            self._begin_round(bump)
            cause = bump.cause
        self._bumps = []
        self._note_holders(batch.at_ms, members, cause)
        self._note_owners(batch.at_ms, owned_before, owned_after)
        self._maybe_end(batch.at_ms)

    def _begin_round(self, bump: GroupEpochBumped) -> None:
        if self._open is None:
            self._open = GroupEpisode(bump.at_ms)
            self.episodes.append(self._open)
        if self._open.rounds:  # the episode goes on, so no assignment was complete
            self._open.rounds[-1].superseded = True
        self._open.rounds.append(EpisodeRound(bump.epoch, bump.at_ms, bump.cause, bump.member_id))

    def _note_holders(self, at_ms: int, members: dict[str, ConsumerGroupMember], cause: BumpCause | None) -> None:
        if self._open is None:
            return
        holding = set()
        for holder in [holder for holder in self._open.holders if holder.until_ms is None]:
            member = members.get(holder.member_id)
            if member is not None and _holds(member):
                holding.add(holder.member_id)
                holder.partitions = member.pending
            else:
                holder.until_ms, holder.ended = at_ms, _how_ended(member, cause)
        for member_id, member in members.items():
            if _holds(member) and member_id not in holding:
                self._open.holders.append(PartitionHolder(member_id, at_ms, member.pending))

    def _note_owners(self, at_ms: int, before: set[tuple[TopicId, int]], after: set[tuple[TopicId, int]]) -> None:
        for partition in before - after:
            self._free_since[partition] = at_ms
        for topic_id, number in sorted(after - before, key=lambda partition: (self._label(partition[0]), partition[1])):
            since_ms = self._free_since.pop((topic_id, number), at_ms)
            if self._open is not None and since_ms < at_ms:
                self._open.unowned.append(UnownedPartition(topic_id, number, since_ms, at_ms))

    def _maybe_end(self, at_ms: int) -> None:
        episode, state = self._open, self._state
        if episode is None:
            return
        phase = ConsumerGroupPhase.EMPTY if state is None else state.phase
        last = episode.rounds[-1]
        if phase in _AT_REST:
            last.reached_ms = at_ms if phase is ConsumerGroupPhase.STABLE else None
            episode.end_ms, episode.end_phase = at_ms, phase
            self._open = None


def _holds(member: ConsumerGroupMember) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch != STATIC_LEAVE_EPOCH


def _how_ended(member: ConsumerGroupMember | None, cause: BumpCause | None) -> str:
    """How a member stopped to hold partitions. A group that becomes a classic one does so without a bump, because somebody left."""
    if member is None:
        return BumpCause.LEAVE.value if cause is None else cause.value
    return STATIC_LEAVE if member.epoch == STATIC_LEAVE_EPOCH else ACKNOWLEDGED
