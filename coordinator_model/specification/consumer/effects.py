"""What happens in a consumer group while it handles a request or lets time pass, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from coordinator_model.specification.consumer.records import LogRecord


class BumpCause(str, Enum):
    """Why the epoch of a group moved."""

    JOIN = "join"
    LEAVE = "leave"
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    """A member did not give up partitions in time, or one of the classic protocol did not join or sync in time."""
    SUBSCRIPTION = "subscription"
    """A member changed what it asks for: topics, an expression, or since 4.4 an assignor that most members prefer then."""
    METADATA = "metadata"
    """A topic changed. The heartbeat that noticed it is that of a bystander."""
    EXPRESSION_RESOLVED = "expression_resolved"


class GroupEpochBumped(NamedTuple):
    """The group epoch moved: a rebalance begins, or another round of it. `member_id` is None where no member is the cause."""

    at_ms: int
    epoch: int
    cause: BumpCause
    member_id: str | None


class TargetComputed(NamedTuple):
    """The target was computed for the group epoch."""

    at_ms: int
    epoch: int
    assignor: str


class RecordsWritten(NamedTuple):
    """One batch of records is in the log."""

    at_ms: int
    records: Sequence[LogRecord]


ConsumerGroupEffect = GroupEpochBumped | TargetComputed | RecordsWritten
