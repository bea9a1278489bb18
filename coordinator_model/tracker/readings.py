"""What clients read: brings it from FETCH requests, which name no group, to the ledgers of the groups that these clients are members of.

A client is known by its id and its host, as of its requests about offsets. These come before its first FETCH, but in another log, and so
perhaps in a later batch. So FETCH requests are kept for a while, as they came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import msgpack

from coordinator_model.events import REQUEST_SOURCE
from coordinator_model.reads import Reads
from coordinator_model.tracker.codec import ShardState
from coordinator_model.tracker.ledgers import Ledgers
from coordinator_model.view.rows import Ref

CLIENT_MS: Final = 24 * 3_600_000
"""So long a client is known after its last request about offsets."""
_READS: Final = msgpack.Decoder(Reads)


class Readings:
    """The FETCH requests of a shard."""

    def __init__(self, state: ShardState, ledgers: Ledgers) -> None:
        self._state = state
        self._ledgers = ledgers

    def take(self, packed: Iterable[bytes]) -> None:
        """Takes FETCH requests (Reads, encoded), after all events of the batch."""
        new_clients, self._ledgers.new_clients = self._ledgers.new_clients, set()
        if new_clients:
            for _, earlier in self._state.reads:
                self._deliver(_READS.decode(earlier), new_clients)
        for one in packed:
            reads = _READS.decode(one)
            self._deliver(reads, self._state.clients.keys())
            self._state.reads.append((reads.base_ms, one))

    def _deliver(self, reads: Reads, clients: Iterable[str]) -> None:
        wanted = set(clients)
        for place, cells in reads.by_connection():
            client = reads.clients[place]
            if client not in wanted:
                continue
            sign, own = Ref(REQUEST_SOURCE, reads.origin, reads.positions[place]), reads.read(cells)
            for group_id in sorted(self._state.clients[client]):
                self._ledgers.take_reads(group_id, reads.connections[place], client, sign, own)

    def forget_before(self, at_ms: int) -> None:
        """Drops FETCH requests that began before a time, and clients that were not heard for long before."""
        for client, groups in list(self._state.clients.items()):
            self._state.clients[client] = {g: heard_ms for g, heard_ms in groups.items() if heard_ms + CLIENT_MS >= at_ms}
            if not self._state.clients[client]:
                del self._state.clients[client]
        self._state.reads = [(began_ms, packed) for began_ms, packed in self._state.reads if began_ms >= at_ms]
