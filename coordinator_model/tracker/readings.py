"""What clients read: brings it from FETCH requests, which name no group, to the ledgers of the groups that these clients are members of.

A client is known by its id and its host, as of its requests about offsets. These come before its first FETCH, so they are in the same batch
or in an earlier one: the logs of all brokers are read side by side, in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.events import REQUEST_SOURCE, Event
from coordinator_model.reads import client_key, unpacked
from coordinator_model.tracker.codec import ShardState
from coordinator_model.tracker.ledgers import Ledgers
from coordinator_model.view.rows import Ref

CLIENT_MS: Final = 24 * 3_600_000
"""So long a client is known after its last request about offsets."""


class Readings:
    """The clients of a shard, and what they read."""

    def __init__(self, state: ShardState, ledgers: Ledgers) -> None:
        self._clients = state.clients
        self._topics = state.topics
        self._ledgers = ledgers

    def know(self, event: Event) -> None:
        """Takes the client of an event about offsets."""
        client = client_key(event.client_id, event.client_host)
        if client and event.offsets is not None:
            groups = self._clients.setdefault(client, {})
            since_ms, heard_ms = groups.get(event.group_id, (event.at_ms, event.at_ms))
            groups[event.group_id] = min(since_ms, event.at_ms), max(heard_ms, event.at_ms)

    def learn(self, event: Event) -> None:
        """Takes the names of topics that are told beside their ids."""
        for name, topic_id in zip(event.offsets.partitions, event.offsets.topic_ids, strict=True) if event.offsets is not None else ():
            told = (event.at_ms, name)
            self._topics[topic_id] = min(self._topics.get(topic_id, told), told)

    def take(self, blobs: Iterable[bytes]) -> None:
        """Takes FETCH requests (`reads.packed`), after all events of the batch."""
        for reads in map(unpacked, blobs):
            for place, own in reads.of_clients(self._clients):
                client, sign = reads.clients[place], Ref(REQUEST_SOURCE, reads.origin, reads.positions[place])
                for group_id, (since_ms, _) in sorted(self._clients[client].items()):
                    told = [read for read in own if read.last_ms >= since_ms]
                    self._ledgers.take_reads(group_id, reads.connections[place], client, sign, told)

    def forget_before(self, at_ms: int) -> None:
        """Forgets clients that were not heard for long before a time, and groups that are forgotten."""
        for client, groups in list(self._clients.items()):
            kept = {group_id: told for group_id, told in groups.items() if told[1] + CLIENT_MS >= at_ms}
            if kept:
                self._clients[client] = kept
            else:
                del self._clients[client]
