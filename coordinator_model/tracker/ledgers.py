"""The offsets of the groups of a shard: takes them out of events, and has them explained when the rows of rebalances are there.

The tracker of a group does not see offsets, so they cost a calm group little. A ledger is decoded in a batch that has offsets of its group,
or rows of its rebalances, or if something in it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.offsets.explain import explain
from coordinator_model.offsets.ledger import Ledger, decode, encode, seen
from coordinator_model.offsets.reads import Read, Reads, client_key
from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker.codec import ShardState
from coordinator_model.view.rows import REBALANCES, Row
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View

HEARD_MS: Final = 3_600_000
"""When a group was heard of last is known to so much."""
CONCERNED_MS: Final = 24 * HEARD_MS
"""So long a group is known to have to do with a client, or a partition, after the last word about its offsets there."""


class Ledgers:
    """The ledgers of a shard, some of them decoded."""

    def __init__(self, state: ShardState, settings: TrackerSettings) -> None:
        self._state = state
        self._settings = settings
        self._open: dict[str, Ledger] = {}

    def take(self, event: Event) -> None:
        """Takes what an event shows of offsets."""
        if (found := seen(event)) is not None:
            self._of(event.group_id).take(found)

    def take_reads(self, group_id: str, reads: Iterable[Read]) -> None:
        """Takes what a client of a group read."""
        if self._state.known(group_id).offsets or group_id in self._open:
            self._of(group_id).take_reads(reads)

    def note_unwritten(self, view: View) -> None:
        """Notes when the first rebalance of a group began whose row is not written yet."""
        began = [rebalance.started_ms for rebalance in view.unfinished()]
        if view.consumer is not None:
            began += [episode.rounds[0].at_ms for episode in view.consumer.unfinished() if episode.rounds]
        if began:
            self._state.unwritten[view.group_id] = min(began)
        else:
            self._state.unwritten.pop(view.group_id, None)

    def explain(self, rows: Iterable[Row], horizon_of: Callable[[str], int], is_ended: Callable[[str], bool]) -> list[Row]:
        """The rows that follow from what was taken, and from the new rows of rebalances.

        `horizon_of`: up to when all lines of a group are there. `is_ended`: whether nothing more comes of a group.
        """
        state = self._state
        rebalances: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            if row.table == REBALANCES and (state.known(row.values["group_id"]).offsets or row.values["group_id"] in self._open):
                rebalances.setdefault(row.values["group_id"], []).append(row.values | {"stopped": row.stopped})
        made: list[Row] = []
        for group_id in sorted({*self._open, *rebalances, *state.unexplained}):
            ledger = self._of(group_id)
            found = explain(
                ledger,
                rebalances.get(group_id, ()),
                horizon_of(group_id),
                unwritten_ms=state.unwritten.get(group_id),
                not_read_ms=self._settings.not_read_ms,
                ended=is_ended(group_id),
                topics=state.topics,
            )
            made += [Row(row.table, {"group_id": group_id, **row.values}) for row in found]
            state.group(group_id).offsets = encode(ledger)
        state.unexplained = sorted(group_id for group_id, ledger in self._open.items() if ledger.waits)
        self._open.clear()
        return made

    def forget(self, group_id: str) -> None:
        """Forgets a group."""
        self._state.unwritten.pop(group_id, None)
        self._state.unexplained = [other for other in self._state.unexplained if other != group_id]

    def _of(self, group_id: str) -> Ledger:
        if group_id not in self._open:
            blob = self._state.known(group_id).offsets
            self._open[group_id] = decode(blob) if blob else Ledger()
        return self._open[group_id]


class Readings:
    """The clients and partitions of a shard: brings FETCH and LIST_OFFSETS, which name no group, to the ledgers of the groups concerned.

    A client is known by its id and its host, as of its requests about offsets. These come before its first FETCH, so they are in the same
    batch or in an earlier one: the logs of all brokers are read side by side, in the order of time. What the end of a log is concerns every
    group that has offsets in it, whoever asked.
    """

    def __init__(self, state: ShardState, ledgers: Ledgers) -> None:
        self._concerned = state.concerned
        self._topics = state.topics
        self._ledgers = ledgers

    def know(self, event: Event) -> None:
        """Takes the client and the partitions of an event about offsets."""
        if event.offsets is None:
            return
        if event.offsets.topic_ids:
            self.learn(event)
        group_id, at_ms = event.group_id, event.at_ms
        for key in (client_key(event.client_id, event.client_host), *event.offsets.partitions):
            groups = self._concerned.setdefault(key, {}) if key else {}
            since_ms, heard_ms = groups.get(group_id, (NEVER, -1))
            if not since_ms <= at_ms < heard_ms + HEARD_MS:
                groups[group_id] = min(since_ms, at_ms), max(heard_ms, at_ms)

    def learn(self, event: Event) -> None:
        """Takes the names of topics that are told beside their ids."""
        for named, topic_id in zip(event.offsets.partitions, event.offsets.topic_ids, strict=False) if event.offsets is not None else ():
            told = event.at_ms, named if event.kind == kinds.TOPIC_NAMED else named.rpartition("-")[0]
            if topic_id:
                self._topics.by_id[topic_id] = min(self._topics.by_id.get(topic_id, told), told)

    def learn_compacted(self, event: Event) -> None:
        """Takes that a topic is compacted."""
        for topic in event.offsets.partitions if event.offsets is not None else ():
            self._topics.compacted[topic] = min(self._topics.compacted.get(topic, NEVER), event.at_ms)

    def take(self, logs: Iterable[Reads]) -> None:
        """Takes the requests of logs, after all events of the batch."""
        concerned: dict[str, dict[str, int]] = {}
        for reads in logs:
            concerned = concerned or self._concerned_by_name()
            for key, own in reads.of(concerned):
                for group_id, since_ms in sorted(concerned[key].items()):
                    self._ledgers.take_reads(group_id, (read for read in own if read.last_ms >= since_ms))

    def _concerned_by_name(self) -> dict[str, dict[str, int]]:
        """The groups of each client and of each partition, and since when. Partitions have the names of their topics, if they were told."""
        found: dict[str, dict[str, int]] = {}
        for key, groups in self._concerned.items():
            topic, _, number = key.rpartition("-")
            told_ms, name = self._topics.by_id.get(topic, (-1, ""))
            own = found.setdefault(f"{name}-{number}" if name else key, {})
            for group_id, (since_ms, _) in groups.items():
                own[group_id] = min(own.get(group_id, NEVER), max(since_ms, told_ms))
        return found

    def forget_before(self, at_ms: int) -> None:
        """Forgets clients and partitions that were not heard of for long before a time."""
        for key, groups in list(self._concerned.items()):
            kept = {group_id: told for group_id, told in groups.items() if told[1] + CONCERNED_MS >= at_ms}
            if kept:
                self._concerned[key] = kept
            else:
                del self._concerned[key]
