"""The requests that only consumer groups know, and their answers."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.member import Partitions

MEMBER_MAKES_ITS_ID: Final = 1
"""From this version of ConsumerGroupHeartbeat on (`CONSUMER_GENERATED_MEMBER_ID_REQUIRED_VERSION`). Before, the coordinator makes it."""
KNOWS_EPOCHS: Final = 9
"""The first version of OffsetCommit with errors about epochs."""


class ConsumerGroupHeartbeat(NamedTuple):
    """ConsumerGroupHeartbeat (KIP-848). None, and a timeout of -1: not sent, as the last heartbeat said it.

    `fresh_member_id` is the id that the coordinator makes for a member of version 0 that has none; Kafka takes a random one.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    """Empty and None differ: None says nothing."""
    api_version: int = MEMBER_MAKES_ITS_ID
    client_id: str = ""
    client_host: str = ""
    fresh_member_id: str = ""


class ConsumerOffsetCommit(NamedTuple):
    """OffsetCommit of one offset. A consumer that assigns its own partitions sends epoch -1 and member id ""."""

    member_id: str
    epoch: int
    topic: str
    partition: int
    offset: int
    instance_id: str | None = None
    api_version: int = KNOWS_EPOCHS


class OffsetFetch(NamedTuple):
    """OffsetFetch of one offset (version 9: with member id and epoch). An admin client sends member id None and epoch -1."""

    member_id: str | None
    epoch: int
    topic: str
    partition: int


class ConsumerGroupHeartbeatAnswer(NamedTuple):
    """Answer to ConsumerGroupHeartbeat."""

    error: Error
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """None: as before."""
    message: str | None = None


class OffsetFetchAnswer(NamedTuple):
    """Answer to OffsetFetch; -1: nothing committed."""

    error: Error
    offset: int = -1
