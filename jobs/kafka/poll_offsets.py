"""Asks a cluster for the committed offsets of groups and the ends of their partitions, and tells what has changed.

First all groups are asked for, then, when they have answered, the ends, so that no offset is beyond its end. The time of a line is when
the ends were asked for: each end is what it was then or a little later, each committed offset what it was then or a little earlier, both
by no more than the `took_ms` of the poll. `since` is the time of the poll before: until then a partition was as it was told last.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # public, although not said to be

from coordinator_model.kafka_bytes import uuid_text
from jobs.kafka.clients import Cluster, reason

TIMEOUT_SECONDS: Final = 30.0
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_T = TypeVar("_T")


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class Place(NamedTuple):
    """How far a group is in a partition. `committed`: -1 if nothing is; `end`: None and `topic_id`: "" if the brokers did not tell."""

    committed: int
    end: int | None
    topic_id: str


class ChildPoller:
    """An OffsetPoller in a process of its own, which begins anew if it ends.

    librdkafka ends its process where a broker answers that it is not the coordinator of a group (confluentinc/librdkafka#5040), as it
    may while a group moves to another broker.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool: ProcessPoolExecutor | None = None

    def poll(self, assigned: Mapping[str, Collection[Partition]]) -> tuple[int, list[dict[str, Any]]] | None:
        """What OffsetPoller.poll tells. None: the process ended; the next poll tells everything anew."""
        if self._pool is None:
            where = self._cluster.bootstrap, self._cluster.config
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin, initargs=where)
        try:
            return self._pool.submit(_poll, {group_id: list(partitions) for group_id, partitions in assigned.items()}).result()
        except BrokenProcessPool:
            self._pool = None
            return None


_OF_CHILD: Final[list[OffsetPoller]] = []


def _begin(bootstrap: str, config: Path | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends
    _OF_CHILD.append(OffsetPoller(Cluster(bootstrap, config).admin()))


def _poll(assigned: Mapping[str, Collection[Partition]]) -> tuple[int, list[dict[str, Any]]]:
    return _OF_CHILD[0].poll(assigned)


class OffsetPoller:
    """Polls the offsets of groups, and remembers what it told of each."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        self._told: dict[str, dict[Partition, Place]] = {}
        self._asked_ms: dict[str, int] = {}  # when the ends of each group were asked for last
        self._refusals: dict[str, str] = {}  # why groups did not tell their offsets when they were asked last

    def poll(self, assigned: Mapping[str, Collection[Partition]]) -> tuple[int, list[dict[str, Any]]]:
        """When the ends were asked for, and a line for each group of which something has changed. `assigned`: its members' partitions.

        Whatever is refused, or not answered in time, is missing in the lines.
        """
        committed, refusals = self._committed(assigned)
        wanted = {group_id: {*offsets, *assigned[group_id], *self._offsets_told(group_id)} for group_id, offsets in committed.items()}
        at_ms = time.time_ns() // 1_000_000
        ends, ids = self._ends_and_ids(sorted({partition for partitions in wanted.values() for partition in partitions}))
        found: dict[str, dict[str, Any]] = {
            group_id: {"error": f"offsets: {why}"} for group_id, why in refusals.items() if self._refusals.get(group_id) != why
        }
        for group_id, offsets in committed.items():
            told = self._told.get(group_id, {})
            places = {
                p: Place(offset, ends.get(p), ids.get(p.topic) or _id(told, p))
                for p in sorted(wanted[group_id])
                if (offset := offsets.get(p, -1)) is not None
            }
            found[group_id] = _changes(told, places)
            if "offsets" in found[group_id] and places.keys() <= told.keys():  # else the poll before did not ask for all of them
                found[group_id] = {"since": self._asked_ms[group_id], **found[group_id]}
            self._told[group_id] = {p: told[p] for p in told if p in offsets} | places
        self._told = {group_id: places for group_id, places in self._told.items() if group_id in assigned}
        self._asked_ms = dict.fromkeys(committed, at_ms)
        self._refusals = refusals
        return at_ms, [{"timestamp": at_ms, "group": group_id, **line} for group_id, line in sorted(found.items()) if line]

    def _offsets_told(self, group_id: str) -> Iterable[Partition]:
        """Partitions of which an offset was told: it is told, too, when there is none any more."""
        return (partition for partition, place in self._told.get(group_id, {}).items() if place.committed >= 0)

    def _committed(self, groups: Iterable[str]) -> tuple[dict[str, dict[Partition, int | None]], dict[str, str]]:
        """The committed offsets of groups (None: refused), and why other groups told nothing. All are asked before one is waited for."""
        asked: dict[str, Future[Any]] = {}
        for group_id in groups:
            if group_id:  # a group may be called "", but the client does not ask for it
                asked |= self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)], request_timeout=TIMEOUT_SECONDS)
        committed, refusals = {}, {}
        for group_id, future in asked.items():
            answer, refusal = _outcome(future)
            if refusal:
                refusals[group_id] = refusal
                continue
            committed[group_id] = {
                Partition(p.topic, p.partition): p.offset if p.error is None else None
                for p in answer.topic_partitions or ()
                if p.error is not None or p.offset >= 0
            }
        return committed, refusals

    def _ends_and_ids(self, partitions: Collection[Partition]) -> tuple[dict[Partition, int], dict[str, str]]:
        """The ends of partitions and the ids of their topics, as far as they are told. Brokers before 2.8 have no ids."""
        if not partitions:
            return {}, {}
        topics = sorted({partition.topic for partition in partitions})
        latest = {TopicPartition(*partition): _LATEST for partition in partitions}
        ends = self._admin.list_offsets(latest, request_timeout=TIMEOUT_SECONDS)
        described = self._admin.describe_topics(TopicCollection(topics), request_timeout=TIMEOUT_SECONDS)
        told = {Partition(p.topic, p.partition): end.offset for p, end in _answered(ends) if end.offset >= 0}
        return told, {name: text for name, topic in _answered(described) if (text := topic_id(topic.topic_id))}


def topic_id(uuid: Any) -> str:
    """A confluent_kafka.Uuid as Kafka prints it, "" for none. The client's own text has another alphabet: + and / for - and _."""
    halves = uuid.get_most_significant_bits(), uuid.get_least_significant_bits()
    return uuid_text(b"".join((half % (1 << 64)).to_bytes(8, "big") for half in halves)) if any(halves) else ""


def _id(told: Mapping[Partition, Place], partition: Partition) -> str:
    return told[partition].topic_id if partition in told else ""


def _changes(told: Mapping[Partition, Place], places: Mapping[Partition, Place]) -> dict[str, Any]:
    """What a line says of partitions that are not as they were told; nothing if there are none."""
    changed = {partition: place for partition, place in places.items() if told.get(partition) != place}
    ids = {p.topic: place.topic_id for p, place in changed.items() if place.topic_id != _id(told, p)}
    offsets = {str(partition): [place.committed, place.end] for partition, place in changed.items()}
    return ({"offsets": offsets} if changed else {}) | ({"ids": ids} if ids else {})


def _outcome(future: Future[Any]) -> tuple[Any, str]:
    """What was answered, or why nothing was."""
    try:
        return future.result(TIMEOUT_SECONDS + 5), ""
    except KafkaException as error:
        return None, reason(error)
    except FutureTimeoutError:
        return None, "no answer in time"


def _answered(futures: Mapping[_T, Future[Any]]) -> Iterable[tuple[_T, Any]]:
    for asked, future in futures.items():
        answer, refusal = _outcome(future)
        if not refusal:
            yield asked, answer
