"""Which broker answers to FIND_COORDINATOR name as the coordinator of a group, and which one answers for it."""

from __future__ import annotations

from msgspec import Struct

from coordinator_model.view.rows import Ref


class FoundCoordinator(Struct, array_like=True):
    """The coordinator that the last answer to FIND_COORDINATOR named."""

    node: int
    address: str
    at_ms: int
    sign: Ref


class Suspect(Struct, array_like=True):
    """The first answer of a broker for the group after FIND_COORDINATOR had named another broker."""

    at_ms: int
    node: int
    broker: str
    api: str
    member_id: str
    client_id: str
    client_host: str
    error_code: int
    sign: Ref
