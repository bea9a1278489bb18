"""Counts of ingest and track since the process began: by micro-batch for `pipeline_health`, and in sum for the metrics.

Each query reports from its own thread, and another thread reads the metrics: every method takes the lock.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram, disable_created_metrics
from prometheus_client.metrics_core import Metric

from coordinator_model.diagnosis.catalogue import MODEL_DIVERGENCE
from jobs.health.batch_health import BatchCounts, BatchHealth
from jobs.health.metrics import described, families
from schemas.names import FINDINGS, REBALANCES, REBALANCES_PROVISIONAL

if TYPE_CHECKING:
    from jobs.health.batches import IngestedBatch, TrackedBatch

_BUCKETS: Final = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Upper bounds of the histogram of micro-batches, in seconds."""

TRACK: Final = "track"
"""The query of the tracker."""

_DURATION: Final = "rebalance_batch_duration_seconds"
_OUTCOMES: Final = ("skipped", "event", "quarantined")
_PHASES: Final = {"latest_offset": "latest_offset_ms", "planning": "planning_ms", "add_batch": "add_batch_ms", "commit": "commit_ms"}
_SUMS: Final = ("groups", "held_events", "state_bytes")
"""Figures of a shard's summary that are added up."""

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series beside each of the histogram, with the time at which it was made


class Tally:
    """Sums of all micro-batches, and the newest summary of each shard."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], BatchCounts] = {}  # by query, micro-batch
        self._counters: defaultdict[str, defaultdict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))  # by metric, labels
        self._summaries: dict[tuple[str, int], Mapping[str, int]] = {}  # by cluster, shard
        self._newest: dict[str, BatchHealth] = {}  # by query
        self._durations = Histogram(_DURATION, *described()[_DURATION], buckets=_BUCKETS, registry=None)
        self.batches: Counter[str] = Counter()  # by query
        self.lines: Counter[str] = Counter()  # that were read, repeated ones too, by query

    def ingested(self, query: str, batch: IngestedBatch) -> None:
        """Adds a micro-batch of an ingest query."""
        with self._lock:
            self.batches[query] += 1
            self.lines[query] += batch.lines_read
            for cluster, counts in batch.lines.items():
                for outcome, count in zip(_OUTCOMES, counts, strict=True):
                    self._counters["rebalance_lines_total"][cluster, outcome] += count
            skipped, events, quarantined = (sum(counts[index] for counts in batch.lines.values()) for index in range(3))
            self._counts[query, batch.batch_id] = BatchCounts(
                input_rows=skipped + events + quarantined, output_rows=events, quarantined=quarantined
            )

    def tracked(self, batch: TrackedBatch) -> None:
        """Adds a micro-batch of the tracker."""
        with self._lock:
            self.batches[TRACK] += 1
            self._summaries.update(batch.summaries)
            written = {table: len(rows) for table, rows in batch.rows.items() if table != REBALANCES_PROVISIONAL}
            for table, count in written.items():
                self._counters["rebalance_rows_written_total"][table,] += count
            for (cluster, _), summary in batch.summaries.items():
                self._counters["rebalance_late_events_total"][cluster,] += summary["new_late_events"]
                # A counter begins with 0, or Prometheus does not see its first step.
                self._counters["rebalance_divergences_total"][cluster,] += 0
            diverging = [row["cluster"] for row in batch.rows.get(FINDINGS, ()) if row["code"] == MODEL_DIVERGENCE.code]
            for cluster in diverging:
                self._counters["rebalance_divergences_total"][cluster,] += 1
            self._counts[TRACK, batch.batch_id] = BatchCounts(
                input_rows=sum(summary["rows"] for summary in batch.summaries.values()),
                output_rows=sum(written.values()),
                late_events=sum(summary["new_late_events"] for summary in batch.summaries.values()),
                divergences=len(diverging),
                event_time=max((summary["at_ms"] for summary in self._summaries.values()), default=None),
                **{name: sum(summary[name] for summary in self._summaries.values()) for name in _SUMS},
            )

    def finished(self, row: BatchHealth) -> None:
        """Adds Spark's figures of a micro-batch that had input."""
        self._durations.labels(row.query).observe(row.duration_ms / 1_000)
        with self._lock:
            self._newest[row.query] = row
            for phase, column in _PHASES.items():
                self._counters["rebalance_batch_phase_seconds_total"][row.query, phase] += (getattr(row, column) or 0) / 1_000
            self._counters["rebalance_input_rows_total"][row.query,] += row.input_rows
            self._counters["rebalance_output_rows_total"][row.query,] += row.output_rows or 0

    def batch_counts(self, query: str, batch_id: int) -> BatchCounts:
        """Takes out the counts of a micro-batch; those of earlier ones are forgotten."""
        with self._lock:
            counts = self._counts.get((query, batch_id), BatchCounts())
            self._counts = {key: value for key, value in self._counts.items() if key[0] != query or key[1] > batch_id}
        return counts

    def newest(self, query: str) -> BatchHealth | None:
        """The query's newest micro-batch with input."""
        with self._lock:
            return self._newest.get(query)

    @property
    def rebalances(self) -> int:
        """Rebalances that the tracker wrote."""
        with self._lock:
            return int(self._counters["rebalance_rows_written_total"].get((REBALANCES,), 0))

    def summaries(self) -> list[Mapping[str, int]]:
        """The newest summary of each shard."""
        with self._lock:
            return list(self._summaries.values())

    def metrics(self) -> Iterator[Metric]:
        """The metrics of all that was counted."""
        gauges: defaultdict[str, defaultdict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))
        with self._lock:
            for (cluster, _), summary in self._summaries.items():
                reached = gauges["rebalance_event_time_seconds"]
                reached[cluster,] = max(reached[cluster,], summary["at_ms"] / 1_000)
                for name in _SUMS:
                    gauges[f"rebalance_{name}"][cluster,] += summary[name]
            for query, row in self._newest.items():
                gauges["rebalance_last_batch_timestamp_seconds"][query,] = row.occurred_at / 1_000
            durations = [metric for metric in self._durations.collect() if metric.samples]
            return iter([*durations, *families(self._counters), *families(gauges)])
