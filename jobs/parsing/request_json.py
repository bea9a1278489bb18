"""What is read of the JSON of a request line: one structure, the union of all versions of all group APIs.

Shapes: kafka `RequestConvertToJson` and `clients/src/main/resources/common/message/*.json`. Any field may be missing or null: what a line
of its API and version must hold, request_checks.py says. A field of another type than Kafka's is an error, and so is what is no
strict JSON, wherever it stands. Fields that are not listed are passed over.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

Int32: TypeAlias = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_Int64: TypeAlias = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Struct(msgspec.Struct, rename="camel", gc=False):
    """A JSON object."""


class Header(_Struct):
    """`requestHeader`."""

    request_api_key: Int32 | None = None
    request_api_version: Int32 | None = None
    correlation_id: Int32 | None = None
    client_id: str | None = None
    request_api_key_name: str | None = None


class PartitionOffset(_Struct):
    """A partition in a commit, or in the answer to a commit or an OffsetFetch."""

    partition_index: Int32 | None = None
    committed_offset: _Int64 | None = None
    error_code: Int32 | None = None


class TopicOffsets(_Struct):
    """A topic of a commit, an OffsetFetch, or an answer to them."""

    name: str | None = None
    topic_id: str | None = None
    partition_indexes: list[Int32 | None] | None = None
    partitions: list[PartitionOffset | None] | None = None


class TopicIdPartitions(_Struct):
    """Partitions of a topic that a ConsumerGroupHeartbeat reports or assigns."""

    topic_id: str | None = None
    partitions: list[Int32 | None] | None = None


class Target(_Struct):
    """What a ConsumerGroupHeartbeat assigns."""

    topic_partitions: list[TopicIdPartitions | None] | None = None


class AcquiredRecords(_Struct):
    """Records that a ShareFetch gives to a member."""

    first_offset: _Int64 | None = None
    last_offset: _Int64 | None = None
    delivery_count: Int32 | None = None


class SharePartition(_Struct):
    """A partition in the answer to a ShareFetch or a ShareAcknowledge."""

    partition_index: Int32 | None = None
    error_code: Int32 | None = None
    acknowledge_error_code: Int32 | None = None
    acquired_records: list[AcquiredRecords | None] | None = None


class ShareTopic(_Struct):
    """A topic in such an answer."""

    topic_id: str | None = None
    partitions: list[SharePartition | None] | None = None


class Entry(_Struct):
    """A request, an answer, or an element of their lists: a protocol, a member, a group, a coordinator. In the order of requests."""

    group_id: str | None = None
    generation_id: Int32 | None = None
    generation_id_or_member_epoch: Int32 | None = None
    session_timeout_ms: Int32 | None = None
    rebalance_timeout_ms: Int32 | None = None
    member_id: str | None = None
    member_epoch: Int32 | None = None
    group_instance_id: str | None = None
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    protocols: list[Entry | None] | None = None
    name: str | None = None
    metadata: str | None = None
    assignments: list[Entry | None] | None = None
    assignment: str | Target | None = None  # base64 in SyncGroup
    reason: str | None = None
    subscribed_topic_names: list[str | None] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicIdPartitions | None] | None = None
    groups_names: list[str | None] | None = None
    key: str | None = None
    key_type: Int32 | None = None
    coordinator_keys: list[str | None] | None = None
    groups: list[Entry | None] | None = None
    topics: list[TopicOffsets | None] | None = None
    error_code: Int32 | None = None
    error_message: str | None = None
    leader: str | None = None
    skip_assignment: bool | None = None
    members: list[Entry | None] | None = None
    heartbeat_interval_ms: Int32 | None = None
    results: list[Entry | None] | None = None
    node_id: Int32 | None = None
    host: str | None = None
    port: Int32 | None = None
    coordinators: list[Entry | None] | None = None
    acquisition_lock_timeout_ms: Int32 | None = None
    responses: list[ShareTopic | None] | None = None


class Client(_Struct):
    """`clientInformation`."""

    software_name: str | None = None
    software_version: str | None = None


class Logged(_Struct):
    """A request with its answer, as logged."""

    request_header: Header | None = None
    request: Entry | None = None
    response: Entry | None = None
    connection: str | None = None
    total_time_ms: float | None = None
    request_queue_time_ms: float | None = None
    local_time_ms: float | None = None
    remote_time_ms: float | None = None
    response_queue_time_ms: float | None = None
    send_time_ms: float | None = None
    client_information: Client | None = None


decoded: Final = msgspec.json.Decoder(Logged).decode
"""The request in a JSON. MsgspecError, RecursionError: the text is not JSON, or a field has another type."""
