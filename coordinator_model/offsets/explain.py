"""From the offsets of a group and the rows of its rebalances to rows of `rebalance_offsets` and findings, in the order of time.

Each rebalance takes its place among the offsets at its end. What was seen of offsets after the start of a rebalance that is not written yet
waits for it, so that the rows do not depend on when lines and rows come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, Final

from msgspec.structs import replace

from coordinator_model import events as kinds
from coordinator_model.offsets import handovers, troubles
from coordinator_model.offsets.ledger import OF_NOBODY, Ledger, Partition, Seen, Start, Topics
from coordinator_model.offsets.reads import OUT_OF_RANGE, SPAN_MS, End, Read, span_of
from coordinator_model.view.rows import Row

WAIT_MS: Final = 600_000
"""So long after its end a hand-over waits to be read again, and for its lag to be what it was. It bounds what a storm keeps waiting."""


def explain(
    ledger: Ledger,
    rebalances: Iterable[Mapping[str, Any]],
    until_ms: int,
    *,
    unwritten_ms: int | None,
    not_read_ms: int,
    ended: bool,
    topics: Topics,
) -> list[Row]:
    """Takes what was seen before a time; returns the rows that follow.

    `rebalances`: rows of the group that are new. `unwritten_ms`: when the first rebalance began whose row is not written yet. `ended`:
    nothing more comes.
    """
    if ended:
        until_ms = max([until_ms, *(one.at_ms + SPAN_MS for one in ledger.waiting)])  # what other brokers tell later, its own does not
    elif unwritten_ms is not None:
        until_ms = max(min(until_ms, unwritten_ms), until_ms - WAIT_MS)
    until_ms = span_of(until_ms)  # what was read is told by whole spans
    rows: list[Row] = []
    ahead = [*ledger.rebalances, *({name: row[name] for name in handovers.COLUMNS} for row in rebalances)]
    ahead.sort(key=lambda row: (row["ended_at"], row["started_at"]))
    for seen in ledger.due(until_ms):
        while ahead and ahead[0]["ended_at"] < seen.at_ms:
            rows += handovers.begin(ledger, ahead.pop(0))
        if ledger.open or ledger.closed:
            rows += handovers.overdue(ledger, seen.at_ms - WAIT_MS)
        if isinstance(seen, Read):
            rows += _position(ledger, seen, topics)
        elif isinstance(seen, End):
            rows += _end(ledger, seen, not_read_ms, topics)
        else:
            rows += _read(ledger, seen, not_read_ms, topics)
    while ahead and (ended or ahead[0]["ended_at"] < until_ms):
        rows += handovers.begin(ledger, ahead.pop(0))
    ledger.rebalances = ahead
    return rows + handovers.overdue(ledger, None if ended else until_ms - WAIT_MS)


def _read(ledger: Ledger, seen: Seen, not_read_ms: int, topics: Topics) -> list[Row]:
    offsets = seen.offsets
    if seen.shares:
        ledger.share(seen)
    if offsets is None:
        return []
    if seen.generation >= 0 and seen.is_commit:
        ledger.member_commit_ms = seen.at_ms
    elif seen.kind == kinds.OFFSET_FETCH and ledger.rebalanced_ms >= 0:
        ledger.starts_seen = True
    rows: list[Row] = []
    ends, ids = offsets.ends or repeat(-1), offsets.topic_ids or repeat("")
    for named, offset, end, topic_id in zip(offsets.partitions, offsets.committed, ends, ids, strict=False):
        name, partition = ledger.find(named, seen.at_ms, topics, topic_id)
        ledger.partitions[name] = partition
        if seen.kind == kinds.OFFSETS_POLLED:
            rows += _polled(ledger, name, offset, end, seen)
            rows += troubles.standing_still(ledger, name, seen.at_ms, seen.sign, not_read_ms)
        elif seen.kind == kinds.OFFSET_FETCH:
            rows += troubles.expired(partition, name, offset, seen)
            partition.start = Start(seen.at_ms, offset, seen.client, seen.sign)
            handovers.start(ledger, name)
        elif offset < 0:
            partition.lose()
        else:
            rows += _committed(ledger, partition, name, offset, seen)
    return rows


def _position(ledger: Ledger, read: Read, topics: Topics) -> list[Row]:
    """A client reads on."""
    name, partition = ledger.find(read.partition, read.last_ms, topics)
    if name not in ledger.partitions:
        return []  # of another group
    if read.end == OUT_OF_RANGE:
        partition.lose(out_of_range=True)
        partition.runs = [run for run in partition.runs if run.connection != read.connection]  # it begins anew
        return []
    partition.read(read)
    handovers.read(ledger, name, read)
    return troubles.none_committed(ledger, partition, name)


def _end(ledger: Ledger, told: End, not_read_ms: int, topics: Topics) -> list[Row]:
    name, partition = ledger.find(told.partition, told.at_ms, topics)
    if name not in ledger.partitions:
        return []  # of another group
    partition.end(told)
    return [*handovers.know_end(ledger, name), *troubles.standing_still(ledger, name, told.at_ms, told.sign, not_read_ms)]


def _committed(ledger: Ledger, partition: Partition, name: str, offset: int, seen: Seen) -> list[Row]:
    # A coordinator takes a commit without a member only while there are none (GroupMetadataManager, OffsetMetadataManager).
    is_empty = ledger.members == 0 and (seen.since_ms if seen.kind == kinds.OFFSETS_POLLED else seen.at_ms) > ledger.rebalanced_ms
    if seen.generation < 0 and not seen.client[0] and (is_empty or seen.kind == kinds.OFFSET_COMMIT):
        seen = replace(seen, generation=OF_NOBODY)
    rows = [*troubles.set_forward(partition, name, offset, seen), *troubles.read_again(ledger, name, seen)]
    last, lost = partition.last, partition.lost >= 0
    if last is not None and (offset < last.last or lost):
        gone = troubles.expired(partition, name, -1, seen) if lost and not partition.out_of_range else []
        told = troubles.moved(ledger, name, offset, seen)
        rows += [*gone, *told] if told else []
    if lost:
        handovers.begin_elsewhere(ledger, name, seen)
    partition.commit(seen.at_ms, offset, seen)
    return rows + handovers.commit(ledger, name, seen.at_ms, offset, seen) if ledger.open else rows


def _polled(ledger: Ledger, name: str, offset: int, end: int, seen: Seen) -> list[Row]:
    """A poll shows the end of a log. It shows a commit, too, where no line does: then the offset is another one than was seen last."""
    partition = ledger.partitions[name]
    rows: list[Row] = []
    if end >= 0:
        partition.ends.add(seen.at_ms, end, seen.since_ms)
        rows = handovers.know_end(ledger, name)
    last = partition.last
    if last is None or offset > last.last or last.last_ms < seen.since_ms:
        if offset >= 0 and (last is None or offset != last.last):
            rows += _committed(ledger, partition, name, offset, seen)
        elif offset < 0:
            partition.lose()
    return rows
