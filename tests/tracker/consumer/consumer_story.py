"""Stories of groups of the consumer protocol: what the coordinator logs, and what it answers to heartbeats."""

from __future__ import annotations

from typing import Any

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, Protocol
from coordinator_model.view.rows import Row
from tests.tracker.story import START_MS, Story

ALL, HALF, OTHER = ("t-0", "t-1"), ("t-0",), ("t-1",)
TOPICS = ("orders",)
TIMES = ("started_at", "ended_at", "occurred_at", "joined_at", "computed_at", "reconciled_at")


class ConsumerStory(Story):
    """Verbs of the protocol. Member ids are those of clients; partitions are written as `orders-0`."""

    def line(self, tells: str, member: str = "", **fields: Any) -> ConsumerStory:
        """A line of the coordinator."""
        self.log(kinds.CONSUMER_GROUP_LOG, state=tells, member_id=member, **fields)
        return self

    def joins(self, member: str, epoch: int, metadata_hash: int | None = None, **fields: Any) -> ConsumerStory:
        """… joins the consumer group. Bumped group epoch to … Computed a new target assignment for epoch …"""
        self.line(kinds.JOINED, member, **fields)
        return self.raised(epoch, metadata_hash).computed(epoch)

    def raised(self, epoch: int, metadata_hash: int | None = None) -> ConsumerStory:
        """Bumped group epoch to … with metadata hash …, which Kafka writes since 4.1."""
        reason = "" if metadata_hash is None else f"Bumped group epoch to {epoch} with metadata hash {metadata_hash}."
        return self.line(kinds.EPOCH_RAISED, generation=epoch, reason=reason)

    def computed(self, epoch: int, *targeted: str) -> ConsumerStory:
        """Computed a new target assignment for epoch … Some releases log the assignment too, with all members."""
        target = ": {" + ", ".join(f"{member}=MemberAssignment(partitions={{t=[0]}})" for member in targeted) + "}" if targeted else ""
        return self.line(kinds.TARGET_COMPUTED, generation=epoch, reason=f"for epoch {epoch} with 'uniform' assignor in 1ms{target}.")

    def beat(
        self,
        member: str,
        epoch: int,
        answer: int,
        partitions: tuple[str, ...] | None = None,
        topics: tuple[str, ...] | None = None,
        **fields: Any,
    ) -> ConsumerStory:
        """CONSUMER_GROUP_HEARTBEAT: the epoch that the member sends, and that of the answer. `partitions`: what the answer assigns."""
        self.request(
            kinds.CONSUMER_GROUP_HEARTBEAT,
            member,
            generation=epoch,
            answer_member_id=member,
            answer_generation=answer,
            protocols=() if topics is None else (Protocol("uniform", topics, (), ""),),
            assignments=() if partitions is None else (Assignment(member, partitions, ""),),
            **fields,
        )
        return self

    def refused(self, member: str, epoch: int, error: int) -> ConsumerStory:
        """A heartbeat that is refused."""
        self.request(kinds.CONSUMER_GROUP_HEARTBEAT, member, generation=epoch, error_code=error, answer_generation=0)
        return self

    def at(self, ms: int) -> ConsumerStory:
        """Moves the story's clock."""
        super().at(ms)
        return self


def told(rows: list[Row], name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of the rows of a table; times since the start of the story."""
    found = [row.values for row in rows if row.table == name]
    return [tuple(row[c] - START_MS if c in TIMES and row[c] is not None else row[c] for c in columns) for row in found]
