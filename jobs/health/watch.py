"""Watches the streaming queries of a process in a thread beside them, and writes `pipeline_health`, the status file and the metrics.

The thread asks Spark for the newest progress every second (0.3 ms a query), and, where it missed some, for all progress that Spark still
has. No failure in this module reaches the pipeline: the first one is reported in one line, and all of them show in the status file.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.failures import root_cause
from jobs.common.places import version
from jobs.common.text import printable
from jobs.health import status
from jobs.health.batch_health import Memory, batch_health, measured
from jobs.health.group_tally import GroupTally
from jobs.health.health_table import HealthTable
from jobs.health.lag import rows_behind
from jobs.health.metrics import families
from jobs.health.status import QueryStatus, Status
from jobs.health.tally import TRACK, Tally
from jobs.lakehouse.folder import Lakehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from typing_extensions import Self

    from jobs.health.batches import IngestedBatch, TrackedBatch

_LOOK_SECONDS: Final = 1.0
_STATUS_MS: Final = 5_000
_PATIENCE_SECONDS: Final = 5.0


@dataclass
class _QueryState:
    """A query, and the newest progress that was seen of it. Times are epoch ms."""

    query: StreamingQuery
    batch_id: int = -1
    sources: list[Mapping[str, Any]] = field(default_factory=list)  # of the newest progress
    finished_ms: int | None = None
    waiting_since_ms: int | None = None
    lag_events: int | None = None
    active: bool = True


class Watch(Collector):
    """The watch over one process that works in a lakehouse, for as long as this context lasts. At its end it writes how the process ended.

    `warn` gets one line at the first failure of the watch. `interrupted`: whether a signal stopped the process. `groups`: how many groups
    have metrics of their own; 0: there are no metrics of groups.
    """

    def __init__(
        self, house: Lakehouse, *, once: bool, warn: Callable[[str], None], interrupted: Callable[[], bool], groups: int = 0
    ) -> None:
        self._house = house
        self._interrupted = interrupted
        self._once = once
        self._warn = warn
        self._table = HealthTable(house.folder)
        self._queries: dict[str, _QueryState] = {}
        self._unread_bytes: Callable[[], int | None] = lambda: None
        self.away: Callable[[], str | None] = lambda: None
        self._jvm: int | None = None
        self._memory = Memory()
        self._started_ms = _now_ms()
        self._status_ms = 0
        self._warned = False
        self._spark_alive = False
        self._looking = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
        self.tally = Tally()
        self.groups = GroupTally(groups) if groups else None

    def ingested(self, query: str) -> Callable[[IngestedBatch], None]:
        """Observer of an ingest query."""
        return lambda batch: self.tally.ingested(query, batch)

    def tracked(self, batch: TrackedBatch) -> None:
        """Observer of the tracker."""
        self.tally.tracked(batch)
        if self.groups is not None:
            self.groups.tracked(batch.rows)

    def __enter__(self) -> Self:
        self._write_status(status.RUNNING, None)
        self._thread.start()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, KeyboardInterrupt) or (error is None and self._interrupted()):
            self._finish(status.STOPPED)
        elif error is None:
            self._finish(status.FINISHED)
        else:
            self._finish(status.FAILED, str(error) if isinstance(error, (UserError, QueryFailedError)) else root_cause(error))

    def follow(self, spark: SparkSession, queries: Mapping[str, StreamingQuery], unread: Callable[[], int | None]) -> None:
        """Watches these queries. `unread`: bytes of log files that wait; None if there are no files."""
        jvm: Any = spark._jvm  # noqa: SLF001 - the way to Java that PySpark has
        self._jvm = int(jvm.java.lang.ProcessHandle.current().pid())
        self._unread_bytes = unread
        self._queries = {name: _QueryState(query) for name, query in queries.items()}
        self._spark_alive = True

    def replaced(self, name: str, query: StreamingQuery) -> None:
        """Watches this query in the place of one that has ended."""
        with self._looking:
            self._queries[name] = _QueryState(query)

    def leave(self) -> None:
        """Reads the last progress of the queries, which have stopped, and asks them no more: Spark is about to end."""
        self._look()
        self._spark_alive = False

    def _finish(self, state: str, reason: str | None = None) -> None:
        """Writes that the process ends in this state."""
        self._end.set()
        self._thread.join(timeout=_PATIENCE_SECONDS)
        if not self._thread.is_alive():  # else the file system hangs, and would hang this thread too
            self._table.flush(_now_ms(), at_once=True)
            self._write_status(state, reason)

    def _work(self) -> None:
        try:
            if self.groups is not None:
                self.groups.seed(self._house.folder)
        except Exception as error:  # noqa: BLE001 - the thread must live on
            self._complain(f"{type(error).__name__}: {error}")
        while not self._end.wait(_LOOK_SECONDS):
            try:
                self._look()
                self._table.flush(_now_ms())
                if _now_ms() - self._status_ms >= _STATUS_MS:
                    self._refresh()
                    self._write_status(status.RUNNING, None)
            except Exception as error:  # noqa: BLE001, PERF203 - the thread must live on
                self._complain(f"{type(error).__name__}: {error}")

    def _look(self) -> None:
        with self._looking:
            for name, state in self._queries.items() if self._spark_alive else ():
                try:
                    self._look_at(name, state)
                except Exception:  # noqa: BLE001, PERF203 - the JVM is gone: the pipeline reports it
                    state.active = False

    def _look_at(self, name: str, state: _QueryState) -> None:
        query = state.query
        state.active = query.isActive
        for progress in finished_progress(query, state.batch_id):
            state.batch_id = progress["batchId"]
            state.sources = progress["sources"]
            state.lag_events = rows_behind(self._house, state.sources)
            counts = self.tally.batch_counts(name, state.batch_id)
            state.waiting_since_ms = None
            if not progress["numInputRows"]:
                continue
            lag_bytes = self._unread_bytes() if name == "ingest" else None
            self._memory = measured(self._jvm)
            row = batch_health(name, progress, counts, lag_events=state.lag_events, lag_bytes=lag_bytes, memory=self._memory)
            state.finished_ms = row.occurred_at
            self._table.add(row)
            self.tally.finished(row)
        query_status = query.status
        if (query_status["isTriggerActive"] and query_status["isDataAvailable"]) or state.lag_events:
            state.waiting_since_ms = state.waiting_since_ms or _now_ms()
        else:
            state.waiting_since_ms = None

    def _refresh(self) -> None:
        """Measures what changes while no micro-batch ends."""
        self._memory = measured(self._jvm)
        for state in self._queries.values():
            if state.sources:
                state.lag_events = rows_behind(self._house, state.sources)

    def _write_status(self, state: str, reason: str | None) -> None:
        self._status_ms = _now_ms()
        try:
            status.write(self._house.status, self.status(state, reason))
            problem = self._table.problem
        except OSError as error:
            problem = f"{self._house.status}: {error.strerror}"
        if problem is not None:
            self._complain(problem)

    def _complain(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"the pipeline's own health cannot be written ({printable(problem, 400)}); the pipeline runs on")

    def status(self, state: str = status.RUNNING, reason: str | None = None) -> Status:
        """The process at present."""
        queries = tuple(
            QueryStatus(name, query.active, query.finished_ms, query.waiting_since_ms, query.lag_events)
            for name, query in self._queries.items()
        )
        return Status(
            pid=os.getpid(),
            state=state,
            once=self._once,
            started_ms=self._started_ms,
            at_ms=_now_ms(),
            stopping=self._interrupted(),
            reason=reason,
            away=self.away(),
            unwritten=self._table.problem,
            lag_bytes=self._unread_bytes(),
            queries=queries,
        )

    def collect(self) -> Iterator[Metric]:
        """All metrics, as prometheus_client asks for them."""
        now = self.status()
        newest = self.tally.newest(TRACK)
        lag_ms = newest.lag_ms if newest is not None else None
        samples: dict[str, dict[tuple[str, ...], float | None]] = {
            "rebalance_build_info": {(version(),): 1},
            "rebalance_start_time_seconds": {(): now.started_ms / 1_000},
            "rebalance_query_active": {(query.query,): query.active for query in now.queries},
            "rebalance_lag_events": {(query.query,): query.lag_events for query in now.queries},
            "rebalance_waiting_seconds": {
                (query.query,): max(now.at_ms - query.waiting_since_ms, 0) / 1_000 if query.waiting_since_ms else 0 for query in now.queries
            },
            "rebalance_lag_bytes": {(): now.lag_bytes},
            "rebalance_lag_seconds": {(): None if lag_ms is None else lag_ms / 1_000},
            "rebalance_resident_memory_bytes": {(process,): size for process, size in asdict(self._memory).items()},
            "rebalance_health_write_failures_total": {(): self._table.failures},
        }
        yield from families(samples)
        yield from self.tally.metrics()
        if self.groups is not None:
            yield from self.groups.metrics()


def finished_progress(query: StreamingQuery, batch_id: int) -> list[dict[str, Any]]:
    """Progress of the micro-batches that finished after this one, in order.

    An idle query reports now and then as well, under the number of the micro-batch to come.
    """
    newest: Any = query.lastProgress
    if newest is None or newest.batchId <= batch_id or (newest.batchId == batch_id + 1 and not _executed(newest.durationMs)):
        return []
    several: list[Any] = [newest] if newest.batchId == batch_id + 1 else query.recentProgress
    progress = (json.loads(each.json) for each in several)
    return [one for one in progress if one["batchId"] > batch_id and _executed(one["durationMs"])]


def _executed(durations: Mapping[str, int]) -> bool:
    return "addBatch" in durations


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
