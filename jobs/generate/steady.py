"""Heartbeats and commits of members to whom nothing happens.

What the specification would answer is known, so nobody asks it: the lines of a member differ in their times and numbers only.
"""

from __future__ import annotations

import random
from itertools import cycle
from typing import Final

from jobs.generate.book import DRIFTS, MASK, POOL, RING, Book
from jobs.generate.fetches import Fetching
from jobs.generate.groups import COMMIT_EVERY_MS, Group, Member
from jobs.generate.request_text import HEARTBEAT, OFFSET_COMMIT, filled

HEARTBEAT_MS: Final = 3_000


class Steady:
    """All members of a cluster that are steady, by the time at which they are due."""

    def __init__(self, book: Book, chance: random.Random, fetching: Fetching | None = None) -> None:
        self._book = book
        self._fetching = fetching
        self._drift = cycle([chance.choice(DRIFTS) for _ in range(POOL)]).__next__
        self._beats: list[list[Member]] = [[] for _ in range(RING)]
        self._commits: list[list[Member]] = [[] for _ in range(RING)]

    def add(self, group: Group, now_ms: int) -> None:
        """The members of a group are steady from now on. `last_ms` says when each was heard."""
        group.settle()
        for member in group.members:
            member.due_ms = max(member.last_ms + HEARTBEAT_MS + self._drift(), now_ms)
            self._beats[member.due_ms & MASK].append(member)
            if member.commit:
                member.commit_due_ms = max(member.commit_due_ms, now_ms)
                self._commits[member.commit_due_ms & MASK].append(member)

    def remove(self, group: Group) -> None:
        """Something happens to a group."""
        for member in group.members:
            member.due_ms = -1

    def write(self, begin_ms: int, end_ms: int) -> None:
        """Write the lines of a span of time, and those of the book and of fetches that are due in it."""
        all_beats, all_commits, others, write_others = self._beats, self._commits, self._book.later, self._book.write
        fetching = self._fetching
        for at_ms in range(begin_ms, end_ms):
            slot = at_ms & MASK
            if beats := all_beats[slot]:
                all_beats[slot] = []
                self._write_beats(at_ms, beats)
            if commits := all_commits[slot]:
                all_commits[slot] = []
                self._write_commits(at_ms, commits)
            if fetching is not None:
                fetching.write(at_ms)
            if at_ms in others:
                write_others(at_ms)

    def _write_beats(self, at_ms: int, due: list[Member]) -> None:
        head, tail, logs = self._book.stamp(at_ms) + HEARTBEAT.header, self._book.tail, self._book.requests
        prompt, drift, ring = self._book.times.prompt, self._drift, self._beats
        next_ms = at_ms + HEARTBEAT_MS
        for member in due:
            if member.due_ms != at_ms:
                continue  # it was removed meanwhile
            member.correlation_id = number = member.correlation_id + 1
            logs[member.broker].append(f"{head}{number}{member.beat}{prompt()}{tail}")
            member.last_ms = at_ms
            member.due_ms = due_ms = next_ms + drift()
            ring[due_ms & MASK].append(member)

    def _write_commits(self, at_ms: int, due: list[Member]) -> None:
        book = self._book
        head = book.stamp(at_ms) + OFFSET_COMMIT.header
        for member in due:
            if member.commit_due_ms != at_ms or member.due_ms < 0 or not member.commit:
                continue
            member.correlation_id += 1
            told = filled(member.commit, member.commits().values())
            book.requests[member.broker].append(f"{head}{member.correlation_id}{told}{book.times.prompt()}{book.tail}")
            member.commit_due_ms = at_ms + COMMIT_EVERY_MS + self._drift()
            self._commits[member.commit_due_ms & MASK].append(member)
