"""What each hand-over of a partition cost in records, computed from what consumers processed and a producer wrote, and from nothing else.

A partition is handed over when another consumer processes its next record. The same is told when its consumer itself goes back, leaves
records out, or processes nothing for a while although records wait.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

SILENT_MS = 5_000
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
    def owner(self):
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
    zombie: bool  # the partition stayed where it was: a former owner woke up and processed what it still had in hand
    reread: int = 0  # records that the new owner processed again, until the next hand-over


def hand_overs(processed, produced):
    """All hand-overs, in order of time. Each group reads the topic of its own name."""
    written = defaultdict(list)
    for record in produced:
        written[record.topic, record.partition].append(record)
    read = defaultdict(list)
    for line in processed:
        read[line.group, line.partition].append(line)
    told = []
    for place, lines in read.items():
        partition = _Partition(written[place], {line.offset for line in lines})
        for line in sorted(lines, key=lambda line: line.at):
            partition.read(line)
        told += partition.told
    return sorted(told, key=lambda over: (over.resumed_at, over.group, over.partition))


class _Partition:
    """One partition as consumers process it. `told`: its hand-overs so far."""

    def __init__(self, written, ever):
        """`ever`: the offsets that are processed at any time."""
        self.told = []
        self._written_at = {record.offset: record.at for record in written}
        self._times = sorted(self._written_at.values())
        self._ever = ever
        self._seen = set()
        self._highest = -1
        self._newest = {}  # the newest offset, by owner
        self._zombies = {}
        self._previous = None  # of the owner
        self._over = None

    def read(self, line):
        """Reads the next line."""
        if self._previous is not None and self._has_in_hand(line, self._previous):
            over = self._zombies.get(line.owner) or self._begin(line, self._previous, zombie=True)
            self._zombies[line.owner] = over
        else:
            if self._previous is not None and self._is_handed_over(line, self._previous):
                self._over = self._begin(line, self._previous, zombie=False)
            over = self._over
            self._previous = line
            self._zombies.pop(line.owner, None)
        if over is not None and line.offset in self._seen:
            over.reread += 1
        self._seen.add(line.offset)
        self._newest[line.owner] = line.offset
        self._highest = max(self._highest, line.offset)

    def _has_in_hand(self, line, previous):
        """Whether this is a zombie, which goes on where it was although others went further: an owner begins at a committed offset."""
        return line.owner != previous.owner and line.offset == self._newest.get(line.owner, -2) + 1 and line.offset <= self._highest

    def _is_handed_over(self, line, previous):
        if line.owner != previous.owner or line.offset != previous.offset + 1:
            return True
        waited = line.at - self._written_at.get(line.offset, line.at)
        return min(line.at - previous.at, waited) >= SILENT_MS

    def _begin(self, line, previous, *, zombie):
        left_out = range(self._highest + 1, line.offset)
        over = HandOver(
            group=line.group,
            partition=line.partition,
            old_client=previous.client,
            old_run=previous.run,
            new_client=line.client,
            new_run=line.run,
            stopped_at=previous.at,
            stopped_offset=self._highest,
            resumed_at=line.at,
            resumed_offset=line.offset,
            lag_added=bisect_right(self._times, line.at) - bisect_right(self._times, previous.at),
            skipped=sum(offset in self._written_at and offset not in self._ever for offset in left_out),
            zombie=zombie,
        )
        self.told.append(over)
        return over


def after_actions(told, actions):
    """Lines of truth.jsonl: each hand-over with what was done to its group while the partition stood still, else with the last before.

    `actions`: by group, in order of time.
    """
    for over in told:
        before = [action for action in actions[over.group] if action["at"] <= over.resumed_at]
        meanwhile = [action for action in before if action["at"] >= over.stopped_at]
        yield {**vars(over), "actions": [action["text"] for action in meanwhile or before[-1:]]}
