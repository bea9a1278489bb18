"""Decides which lines are kept of the files that `rebalance dump-offsets` and `rebalance poll` write: one JSON object a line.

    {"format":"rebalance-offsets-1","from":"…","began":"…"}                    the first line: makes two dumps differ from the start
    {"timestamp":1795242559456,"partition":7,"offset":812,"key":"AAIABm9yZGVycw==","value":"AAMACGNv…"}
    {"timestamp":1795242560012,"group":"orders","state":"Stable","members":[…]}
    {"timestamp":1795242560019,"group":"orders","offsets":{"payments-0":[812,815]},"ids":{"payments":"luYOBvZtQMueJqQy4F4ETQ"}}

The files lie in folders named `offsets` and `poll` inside a cluster's folder, and are read side by side with the brokers' logs.
The folder stands in the place of a broker, so the records move no broker's clock.
"""

from __future__ import annotations

import re
from typing import Final

from coordinator_model.events import OFFSETS_SOURCE, POLL_SOURCE
from jobs.logs.faults import BAD_TIMESTAMP, NO_TIMESTAMP
from jobs.logs.judge import LineJudge
from jobs.logs.times import LocalTimes

FOLDERS: Final = frozenset({OFFSETS_SOURCE, POLL_SOURCE})
COMMIT_KEYS: Final = frozenset({0, 1})
GROUP_KEYS: Final = frozenset({*range(2, 9), 16})
"""The key types of records with committed offsets, and of those that describe groups (jobs/parsing/stored_records.py)."""

_FILE: Final = re.compile(r"\.jsonl(?:\.gz)?$")
_TIME: Final = re.compile(rb'"timestamp": ?(\d{1,17})[,}]')  # a quote inside of a text has a backslash before it
_ANY_TIME: Final = re.compile(rb'"timestamp":')
_HEADER: Final = re.compile(rb'\{"format": ?"')
_OTHER_KEY: Final = re.compile(rb'"key": ?"(?:[B-Za-z0-9+/]|A[C-Za-z0-9+/]|AA[k-z0-9+/]|AB[E-Za-z0-9+/])')
"""A record's key, in base64, whose first two bytes are none of these numbers: no commit, and no group of consumers."""
_GROUP: Final = b'"group":'
_KEY: Final = b'"key":'

_FIRST_MS: Final = 1_262_304_000_000  # 2010, before there was Kafka
_LAST_MS: Final = 4_102_444_800_000  # 2100


def is_record_file(name: str) -> bool:
    """Whether a file of this name holds records, if its folder says so too."""
    return bool(_FILE.search(name)) and not name.startswith((".", "_"))


def holds_records(broker: str, name: str) -> bool:
    """Whether a file holds records, by what stands in the place of its broker, and its name or path."""
    return broker in FOLDERS and bool(_FILE.search(name))


def record_source(head: bytes) -> str:
    """The source of a file's records, by how the file begins: for a file in no folder of that name."""
    return POLL_SOURCE if _GROUP in head or b'"polled":' in head or b'"rebalance-poll' in head else OFFSETS_SOURCE


def record_time(line: bytes) -> int | None:
    """When a record was written, epoch ms; None if the line is not a record."""
    if not line.startswith(b"{"):
        return None
    match = _TIME.search(line)
    at_ms = int(match[1]) if match is not None else -1
    return at_ms if _FIRST_MS <= at_ms < _LAST_MS else None


class RecordTimes(LocalTimes):
    """Times of records: epoch milliseconds, anywhere in the line."""

    exact = True  # a broker wrote them as numbers: a jump in time is what it says

    def minute(self, text: bytes) -> int | None:  # noqa: ARG002
        """No line begins with its time."""
        return None

    def read(self, line: bytes, near_ms: int) -> int | None:  # noqa: ARG002
        """The record's time."""
        return record_time(line)


class RecordJudge(LineJudge):
    """Judges the lines of a file of records."""

    def timed(self, line: bytes, fault: str) -> str | None:
        """Skips what concerns no consumer group: other kinds of groups, and signs of life of a poll."""
        if fault:
            return fault
        if _KEY in line:
            return None if _OTHER_KEY.search(line) else ""
        return "" if _GROUP in line else None

    def untimed(self, line: bytes, fault: str) -> str:
        """Skips the header alone."""
        if fault or not line.strip() or _HEADER.match(line):
            return fault
        return BAD_TIMESTAMP if _ANY_TIME.search(line) else NO_TIMESTAMP
