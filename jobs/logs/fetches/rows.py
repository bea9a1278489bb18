"""The requests of a slice that become numbers, and the records that carry them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from coordinator_model.events import FETCH, LIST_OFFSETS
from jobs.logs.blocks import Block, Numbers
from jobs.logs.fetches.lines import METADATA, WIDTH, Fetched, LogFetches, Sender, encoded, json_in
from jobs.logs.times import LENGTH, NEVER
from schemas.names import FETCHES

_VERSION: Final = b'"requestApiVersion":'


class Fetches:
    """The requests of a slice that became numbers, by log."""

    def __init__(self) -> None:
        self._logs: dict[object, LogFetches] = {}
        self._headers: dict[object, bytes] = {}  # of each log: what stands in a FETCH between the time and the version of the request
        self.count = 0  # lines that became numbers

    def take(self, log: object, api: str, line: bytes, position: int, at_ms: int) -> None:
        """Takes a line of a log, which is one of BY_NUMBERS, with its number and its time."""
        own = self._logs.get(log)
        if own is None:
            own = self._logs[log] = LogFetches()
        request = json_in(line, 0, len(line))
        if api == METADATA:
            own.learn(request, position, at_ms)
            return
        take = own.take_fetch if api == FETCH else own.take_ends if api == LIST_OFFSETS else own.take_markers
        is_taken = take(request, position, at_ms)
        self.count += is_taken
        if is_taken and api == FETCH and log not in self._headers:
            self._headers[log] = line[LENGTH : line.find(_VERSION, LENGTH)]

    def take_block(self, log: object, block: Block, ats: Numbers, first_position: int, lines: Sequence[int]) -> Sequence[int]:
        """Takes those of some lines of a block that begin as a FETCH of the log did; returns the others. `ats`: the times of all lines."""
        header = self._headers.get(log)
        if not header or not len(lines):
            return lines
        index = np.asarray(lines, np.int64)
        starts, ends = block.starts[index], block.ends[index]
        begins = (ats[index] != NEVER) & block.own[index] & (ends - starts > LENGTH + len(header))
        begins[begins] = block.windows(len(header), starts[begins] + LENGTH) == header
        text, take, left = block.text, self._logs[log].take_fetch, []
        found = np.flatnonzero(begins)
        places = zip(*(column[found].tolist() for column in (starts, ends, index + first_position, ats[index])), strict=True)
        for place, (start, end, position, at_ms) in zip(found.tolist(), places, strict=True):
            if not take(json_in(text, start, end), position, at_ms):
                left.append(place)
        self.count += len(found) - len(left)
        begins[left] = False
        others: list[int] = index[~begins].tolist()
        return others

    def of(self, log: object) -> LogFetches | None:
        """Those of one log. None: it has none."""
        return self._logs.get(log) or None


def fetch_rows(own: LogFetches | None, cluster: str, broker: str, origin: str, shares: int = 1) -> list[list[dict[str, Any]]]:
    """The FETCHES of a log, in so many shares. All requests of a connection have the same share in every slice."""
    if own is None:
        return [[] for _ in range(shares)]
    names = [zlib.crc32(sender.connection.encode()) % shares for sender in own.senders]
    cells, partitions, rows = np.frombuffer(own.cells, np.int64).reshape(-1, WIDTH), own.partitions, list[list[dict[str, Any]]]()
    share_of = np.array(names, np.int64)[cells[:, 0]] if len(cells) else np.zeros(0, np.int64)
    for share in range(shares):
        mine, topics = cells[share_of == share], own.topics if share == 0 else {}
        told = [[at_ms, position] for _, at_ms, position in topics.values()]
        ats, positions = np.concatenate([mine[:, [2, 5]], np.array(told, np.int64).reshape(-1, 2)]).T
        if not len(ats):
            rows.append([])
            continue
        last = int(positions.max())
        fetched = _compact(mine, own.senders, partitions, topics, last)
        row = {"cluster": cluster, "broker": broker, "record": FETCHES, "origin": origin, "position": last, "at": int(ats.max()) * 1_000}
        rows.append([row | {"lines": len(np.unique(mine[:, 5])), "repeated": encoded(fetched)}])
    return rows


def _compact(cells: Numbers, senders: list[Sender], partitions: list[str], topics: dict[str, tuple[str, int, int]], last: int) -> Fetched:
    """These cells with the senders and partitions that are theirs alone."""
    cells = cells.copy()
    used, cells[:, 0] = np.unique(cells[:, 0], return_inverse=True)
    named, cells[:, 1] = np.unique(cells[:, 1], return_inverse=True)
    return Fetched([senders[of] for of in used.tolist()], [partitions[of] for of in named.tolist()], cells.tobytes(), topics, last)
