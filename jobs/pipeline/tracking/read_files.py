"""What clients read, and ends of logs and of transactions, for the shards that a process tracks: the first of them reads the files.

Every shard may need any of it. In packets it would pass through Spark once for each: of 2 million lines, 375 of 444 MB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_model.events import FETCH, LIST_OFFSETS, WRITE_TXN_MARKERS
from coordinator_model.offsets.reads import NOT_TOLD, Reads, client_key, kind_of, span_of
from jobs.common.stores import Place, place_of, readable
from jobs.pipeline.tracking.plain_beats import ms_of

_COLUMNS: Final = ("cluster", "kind", "origin", "connection", "client_id", "client_host", "position", "received_at", "reads")
_TIMES: Final = ("first_ms", "last_ms", "asked_ms", "end_ms")
_OFFSETS: Final = ("position", "reached", "end", "previous", "stable")
_ROWS: Final = 64 << 10  # at a time


def have_reads(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Whether rows of `group_events` are of the kinds with `reads`."""
    return pc.is_in(rows["kind"], pa.array([FETCH, LIST_OFFSETS, WRITE_TXN_MARKERS]))


def batches_of(path: Place, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """These columns of a file, so many rows at a time."""
    with pq.ParquetFile(readable(path)) as file:
        yield from file.iter_batches(rows, columns=list(columns), use_threads=False)


@lru_cache(maxsize=1)
def reads_of(files: tuple[str, ...]) -> Mapping[str, list[Reads]]:
    """What rows of these files of `group_events` tell, by cluster. Keeps the last answer: shards of a micro-batch have the same files."""
    found: dict[str, list[Reads]] = {}
    for name in files:
        rows = pa.Table.from_batches([rows.filter(have_reads(rows)) for rows in batches_of(place_of(name), _COLUMNS, _ROWS)])
        for cluster, reads in _by_log(rows):
            found.setdefault(cluster, []).append(reads)
    return found


def _by_log(rows: pa.Table) -> Iterator[tuple[str, Reads]]:
    """What the connections of each log tell, and its cluster."""
    for log in rows.group_by(["cluster", "origin"]).aggregate([]).sort_by([("cluster", "ascending"), ("origin", "ascending")]).to_pylist():
        own = rows.filter(pc.and_(pc.equal(rows["cluster"], log["cluster"]), pc.equal(rows["origin"], log["origin"]))).combine_chunks()
        counts, reads = pc.list_value_length(own["reads"]).to_numpy(), own["reads"].combine_chunks().flatten()
        begins = ms_of(own["received_at"])
        first, last, asked, end_at = (pc.fill_null(reads.field(name), 0).to_numpy() + np.repeat(begins, counts) for name in _TIMES)
        position, reached, end, previous, stable = (pc.fill_null(reads.field(name), NOT_TOLD).to_numpy() for name in _OFFSETS)
        end_at = np.where((end == NOT_TOLD) & (stable == NOT_TOLD), NOT_TOLD, end_at)
        encoded = reads.field("partition").dictionary_encode()
        partitions, of = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        transactions = reads.field("transactions").to_numpy(zero_copy_only=False)
        judged = span_of(first), kind_of(position, end), of, first, position, last, reached
        columns = *judged, end_at, end, transactions, asked, previous, stable
        is_list = pc.not_equal(own["kind"], FETCH).combine_chunks().to_numpy(zero_copy_only=False)
        row = np.repeat(np.arange(len(counts)), np.where(is_list, counts, 1))  # of each part: each end, or marker, concerns others
        counts = np.where(is_list[row], 1, counts[row])
        parts = own.take(pa.array(row))
        clients = map(client_key, parts["client_id"].to_pylist(), parts["client_host"].to_pylist())
        named = of[np.cumsum(counts) - counts].tolist()
        keys = [partitions[place] if ends else client for client, place, ends in zip(clients, named, is_list[row].tolist(), strict=True)]
        yield (
            log["cluster"],
            Reads(
                origin=log["origin"],
                connections=[zlib.crc32(name.encode()) for name in parts["connection"].to_pylist()],
                keys=keys,
                positions=parts["position"].to_pylist(),
                counts=counts.tolist(),
                partitions=partitions,
                numbers=[np.asarray(column, np.int64).data for column in columns],
            ),
        )
