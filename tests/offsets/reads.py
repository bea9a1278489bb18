"""FETCH requests as the tracker gets them: through the code of each stage between the log and the shard."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_model.events import FETCH
from coordinator_model.offsets.reads import Reads
from jobs.logs.fetches.lines import Fetched, Sender, encoded
from jobs.parsing.batch import finished
from jobs.parsing.runs.fetch_runs import fetch_rows
from jobs.pipeline.tracking.packets import decoded, packets_of
from jobs.pipeline.tracking.read_files import reads_of
from jobs.pipeline.tracking.spread import Spread
from tests.tracker.story import START_MS

HOST = "10.0.0.7"


class Asked(NamedTuple):
    """A request about one partition, by the time of its answer, ms since the start of the story. `client`: its id."""

    at_ms: int
    client: str
    partition: str
    position: int
    end: int = -1
    number: int = 1  # of the client's connection
    api: str = FETCH
    transactions: bool = False  # whether the answer has one that is open
    waited: int = 0  # for how long the request waited for the answer
    stable: int = -1  # the last stable offset


def rows_of(asked: Sequence[Asked], topics: dict[str, tuple[str, int, int]] | None = None) -> pa.Table:
    """The rows of group_events."""
    senders = sorted({(one.api, one.client, one.number) for one in asked})
    partitions = sorted({one.partition for one in asked})
    cells = array("q")
    for line, one in enumerate(asked, 1):
        place = senders.index((one.api, one.client, one.number)), partitions.index(one.partition)
        at_ms = START_MS + one.at_ms
        cells.extend((*place, at_ms, one.position, one.end, line, one.transactions, at_ms - one.waited, one.stable))
    told = [Sender(api, f"10.0.0.1:9092-{HOST}:{4_000 + number}-{ord(client[0])}", client, "java 4.2.0") for api, client, number in senders]
    fetched = Fetched(told, partitions, cells.tobytes(), topics or {}, len(asked))
    row = {"cluster": "c", "broker": "broker-1", "origin": "request", "position": len(asked), "repeated": encoded(fetched)}
    return finished(fetch_rows(pa.Table.from_pylist([row])), 0)


def logs(asked: Iterable[Asked]) -> list[Reads]:
    """What a shard gets."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        pq.write_table(rows_of([*asked]), path)
        (packet,) = [packet for batch in packets_of(Spread(1, tasks=1), [path]) for packet in batch["events"].to_pylist()]
        return reads_of(decoded([packet]).files)["c"]
