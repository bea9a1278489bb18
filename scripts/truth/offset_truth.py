"""What each hand-over of a partition cost in records, computed from what consumers processed and a producer wrote, and from nothing else.

A partition is handed over when another consumer processes its next record. The same is told when its consumer itself goes back, leaves
records out, or processes nothing for a while although records wait.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SILENT_MS: Final = 3_000
"""So long a consumer keeps a record waiting before that is told. Fetching and a busy machine take less."""


class Produced(NamedTuple):
    """A record that the broker acknowledged."""

    at: int  # epoch ms, its timestamp
    topic: str
    partition: int
    offset: int


class Processed(NamedTuple):
    """A record that a consumer processed. A client that was started again has a higher `run`."""

    at: int
    group: str
    client: str
    run: int
    partition: int
    offset: int

    @property
    def owner(self) -> tuple[str, int]:
        """The process."""
        return self.client, self.run


@dataclass
class HandOver:
    """One hand-over. Times are epoch ms."""

    group: str
    partition: int
    old_client: str
    old_run: int
    new_client: str
    new_run: int
    stopped_at: int  # the old owner processed its last record
    stopped_offset: int  # of the newest record that anybody had processed
    resumed_at: int  # the new owner processed its first record
    resumed_offset: int
    lag_added: int  # records written in between
    skipped: int  # records between the two offsets that nobody ever processed
    reread: int = 0  # records that the new owner processed again, until the next hand-over


def hand_overs(processed: Iterable[Processed], produced: Iterable[Produced], topics: Mapping[str, str] | None = None) -> list[HandOver]:
    """All hand-overs, in order of time. `topics`: the topic of each group; a group has one topic, by default that of its name."""
    written: dict[tuple[str, int], list[Produced]] = defaultdict(list)
    for record in produced:
        written[record.topic, record.partition].append(record)
    read: dict[tuple[str, int], list[Processed]] = defaultdict(list)
    for line in processed:
        read[line.group, line.partition].append(line)
    told: list[HandOver] = []
    for (group, partition), lines in read.items():
        topic = group if topics is None else topics[group]
        told += _of_partition(sorted(lines, key=lambda line: line.at), sorted(written[topic, partition], key=lambda record: record.offset))
    return sorted(told, key=lambda over: (over.resumed_at, over.group, over.partition))


def _of_partition(lines: Sequence[Processed], written: Sequence[Produced]) -> Iterator[HandOver]:
    times = sorted(record.at for record in written)
    written_at = {record.offset: record.at for record in written}
    ever = {line.offset for line in lines}
    seen: set[int] = set()
    highest = -1
    over: HandOver | None = None
    previous: Processed | None = None
    for line in lines:
        if previous is not None and _is_handed_over(previous, line, written_at.get(line.offset, line.at)):
            if over is not None:
                yield over
            left_out = range(highest + 1, line.offset)
            over = HandOver(
                group=line.group,
                partition=line.partition,
                old_client=previous.client,
                old_run=previous.run,
                new_client=line.client,
                new_run=line.run,
                stopped_at=previous.at,
                stopped_offset=highest,
                resumed_at=line.at,
                resumed_offset=line.offset,
                lag_added=bisect_right(times, line.at) - bisect_right(times, previous.at),
                skipped=sum(offset in written_at and offset not in ever for offset in left_out),
            )
        if over is not None and line.offset in seen:
            over.reread += 1
        seen.add(line.offset)
        highest = max(highest, line.offset)
        previous = line
    if over is not None:
        yield over


def _is_handed_over(previous: Processed, line: Processed, written_at: int) -> bool:
    if line.owner != previous.owner or line.offset != previous.offset + 1:
        return True
    return min(line.at - previous.at, line.at - written_at) >= SILENT_MS


def after_actions(told: Iterable[HandOver], actions: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Lines of truth.jsonl: each hand-over with what was last done to its group before. `actions`: by group, in order of time."""
    for over in told:
        before = [action for action in actions[over.group] if action["at"] <= over.resumed_at]
        last = before[-1] if before else {"at": None, "text": None}
        yield {**vars(over), "action": last["text"], "action_at": last["at"]}
