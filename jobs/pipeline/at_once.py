"""Processes a small input in this process, without Spark and without a JVM: `rebalance explain`.

It calls what the tasks and the writers of the queries call, one after the other, so the tables hold the rows that `run` would write. It
keeps no checkpoint: the lakehouse cannot be continued.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_model.events import BROKER_SOURCE
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.imports import without_pandas
from jobs.common.settings import Settings
from jobs.common.stores import Place, readable, remove_tree
from jobs.lakehouse import opening, reader
from jobs.lakehouse.folder import Lakehouse, check_input, mark_ended, opened, remember_input
from jobs.lakehouse.followers import files_after
from jobs.lakehouse.tables import ensure_table
from jobs.logs.workers import THIS_PROCESS
from jobs.parsing import kinds
from jobs.pipeline.feeder import Feeder, check_source
from jobs.pipeline.ingest import LineWriter
from jobs.pipeline.run_progress import RunProgress, RunResult, result_of
from jobs.pipeline.tracking import shards
from jobs.pipeline.tracking.incident_table import IncidentTable
from jobs.pipeline.tracking.packets import packets_by_shard
from jobs.pipeline.tracking.track import WRITTEN, write_rows
from schemas import names
from schemas.tables import FOLDED_TABLES, INGEST_TABLES

MOST_LINES: Final = 50_000
"""Of an input that is worth no JVM, whose start takes longer than to process so many lines here."""


def process(
    source: Path,
    folder: Place,
    *,
    settings: Settings,
    most_lines: int,
    show: Callable[[RunProgress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> RunResult | None:
    """Processes the logs at `source` into a new lakehouse at `folder`, as `run` with `once` does. Raises UserError and QueryFailedError.

    None: the input has more lines than `most_lines`. Its first slices wait in the lakehouse, and `run` continues with them.
    """
    started = time.monotonic()
    check_source(source, once=True)
    check_input(folder, source, warn)
    with without_pandas(), opened(folder, settings) as house:
        before = reader.account(folder)
        remember_input(house, source)
        feeder = Feeder(source, house, settings, follow=False, tell=warn)
        show(RunProgress("reading", share=feeder.share_read))
        with _stage("reading the input"):
            slices = feeder.cut(most_lines)
        for note in feeder.take_notes():
            warn(note)
        if slices is None:
            return None
        mark_ended(house, settings)
        for name, schema in (INGEST_TABLES | WRITTEN | FOLDED_TABLES).items():
            ensure_table(folder, name, schema)
        show(RunProgress("parsing"))
        with _stage("ingest"):
            lines, of_brokers = _ingest(slices, feeder, house)
        remove_tree(house.spool)
        show(RunProgress("tracking"))
        with _stage("track"):
            told = _track(folder, settings, of_brokers=of_brokers)
        return result_of(before, {**before, **lines, **told}, started, feeder)


@contextmanager
def _stage(name: str) -> Iterator[None]:
    """Says which stage an error is of, as `run` does."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise QueryFailedError(name, f"{type(error).__name__}: {error}") from error


def _ingest(slices: Sequence[Place], feeder: Feeder, house: Lakehouse) -> tuple[Counter[str], bool]:
    """The account of the lines, and whether there are some about brokers that come and go."""
    counts, of_brokers = Counter[str](), False
    write = LineWriter(house.folder, feeder.files.parts).write
    for batch_id, path in enumerate(slices):
        lines = pq.ParquetFile(readable(path)).read(use_threads=False).combine_chunks()
        rows = pa.concat_tables([kinds.parsed(batch) for batch in lines.to_batches()])
        of_brokers = of_brokers or BROKER_SOURCE in rows["source"].to_pylist()
        account = write(rows, batch_id, THIS_PROCESS)
        counts.update({name: pc.sum(account[name]).as_py() for name in ("lines_read", "skipped", "events", "quarantined") if len(account)})
    return counts, of_brokers


def _track(folder: Place, settings: Settings, *, of_brokers: bool) -> dict[str, int]:
    """Tracks all events as one micro-batch; returns the rows of some tables. `of_brokers`: some are about brokers that come and go."""
    tracker = shards.tracker_settings(settings)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in WRITTEN}
    table = folder / names.GROUP_EVENTS
    files = (table / new.path for new in files_after(opening.opened(table), {}))
    packets = packets_by_shard(settings.shards, files)
    for key, own in sorted(packets.items()):
        for row, at_end in shards.follow_whole(key, own, tracker):
            rows[row.table].append({**row.values, "cluster": key[0], names.AT_END: at_end})
    write_rows(folder, rows, 0)
    IncidentTable(folder).take(rows, brokers=of_brokers)
    return {name: len(rows[name]) for name in (names.REBALANCES, names.FINDINGS)}
