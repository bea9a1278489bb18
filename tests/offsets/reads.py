"""FETCH requests as the tracker gets them: through the code of each stage between the log and the shard."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
from msgspec import msgpack

from coordinator_model.events import FETCH
from jobs.logs.fetches.lines import Fetched, Sender, encoded
from jobs.parsing.event_rows import finished, laid_out
from jobs.parsing.runs.fetch_runs import fetch_rows
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from tests.tracker.story import START_MS

HOST = "10.0.0.7"


class Asked(NamedTuple):
    """A FETCH of one partition, by the time of its answer, ms since the start of the story. `client`: its id."""

    at_ms: int
    client: str
    partition: str
    position: int
    end: int = -1
    number: int = 1  # of the client's connection


def rows_of(asked: Sequence[Asked], topics: dict[str, tuple[str, int, int]] | None = None) -> pa.Table:
    """The rows of group_events."""
    senders = sorted({(one.client, one.number) for one in asked})
    partitions = sorted({one.partition for one in asked})
    cells = array("q")
    for line, one in enumerate(asked, 1):
        place = senders.index((one.client, one.number)), partitions.index(one.partition)
        cells.extend((*place, START_MS + one.at_ms, one.position, one.end, line))
    told = [Sender(f"10.0.0.1:9092-{HOST}:{4_000 + number}-{ord(client[0])}", client, "java 4.2.0") for client, number in senders]
    fetched = Fetched(told, partitions, cells.tobytes(), topics or {}, len(asked))
    row = {"cluster": "c", "broker": "broker-1", "origin": "request", "position": len(asked), "repeated": encoded(fetched)}
    return finished(laid_out(fetch_rows(pa.Table.from_pylist([row]))), 0)


def blobs(asked: Iterable[Asked]) -> list[bytes]:
    """What a shard gets (`reads.packed`)."""
    rows = rows_of([*asked])
    schema = pa.schema([rows.schema.field(name) for name in packets.COLUMNS])
    batches = pa.Table.from_arrays([rows[name] for name in packets.COLUMNS], schema=schema).combine_chunks().to_batches()
    found = [packet for batch in packets.packed(Spread(1, tasks=1), batches) for packet in batch["events"].to_pylist()]
    assert FETCH in rows["kind"].to_pylist()
    return [blob for packet in found for blob in msgpack.decode(packet)[2]]
