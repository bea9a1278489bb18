"""What workers of Connect send in JoinGroup and get from SyncGroup: the bytes of the `connect` protocol type.

Kafka: ConnectProtocol (version 0, `eager`); IncrementalCooperativeConnectProtocol (1, `compatible`, and 2, `sessioned`; KIP-415, KIP-507).
A task is named as Kafka does, `connector-0`; a connector as `name (connector)`, which no task is called, since their names end in a number.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.events import CONNECTOR
from coordinator_model.kafka_bytes import FieldReader

_EAGER: Final = 0
_CONNECTOR_TASK: Final = -1
"""ConnectProtocol.CONNECTOR_TASK: the number of the connector itself in a list of tasks."""


class WorkerAssignment(NamedTuple):
    """What a worker is told. `revoked` is None if it is told all that it has; else it keeps what it has but for those, and gets more."""

    given: list[str]
    revoked: list[str] | None
    config_offset: int
    delay_ms: int


def read_state(data: bytes) -> list[str]:
    """The connectors and tasks that a worker has and keeps while it rejoins. UnreadableError: these are no bytes of a worker."""
    reader = FieldReader(data)
    version = reader.int16()
    reader.string()  # its URL
    reader.int64()  # how far it has read the config topic
    allocation = reader.nullable_bytes() if version > _EAGER else None
    return [] if not allocation else _assignment(allocation).given


def read_assignment(data: bytes) -> WorkerAssignment:
    """The assignment of a worker. UnreadableError: these are no bytes of one. No bytes: nothing is assigned."""
    return _assignment(data) if data else WorkerAssignment([], None, -1, 0)


def _assignment(data: bytes) -> WorkerAssignment:
    reader = FieldReader(data)
    version = reader.int16()
    reader.int16()  # error
    reader.string()  # the leader's member id
    reader.string()  # its URL
    config_offset = reader.int64()
    given = _named(reader)
    if version == _EAGER:
        return WorkerAssignment(given, None, config_offset, 0)
    return WorkerAssignment(given, _named(reader), config_offset, reader.int32())


def _named(reader: FieldReader) -> list[str]:
    """Connectors and tasks of a list, which may be null."""
    names = []
    for _ in range(max(reader.int32(), 0)):
        connector = reader.string()
        numbers = reader.array(reader.int32, 4)
        names += [CONNECTOR.format(connector) if number == _CONNECTOR_TASK else f"{connector}-{number}" for number in numbers]
    return names
