"""What ingest and track counted since the process began: by micro-batch for `pipeline_health`, and in sum for the metrics.

Both queries report from threads of their own, the metrics are read from another: every method takes the lock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from jobs.health.batch_health import BatchHealth, Counted
from jobs.health.exposition import COUNTER, GAUGE, HISTOGRAM, Histogram, Metric, Sample

if TYPE_CHECKING:
    from jobs.health.batches import IngestedBatch, TrackedBatch

BUCKETS: Final = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds of a micro-batch."""

_OUTCOMES: Final = ("skipped", "event", "quarantined")
_PHASES: Final = {"latest_offset": "latest_offset_ms", "planning": "planning_ms", "add_batch": "add_batch_ms", "commit": "commit_ms"}


class Tally:
    """Counts, and the newest figure of what is not counted but measured."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, int], Counted] = {}
        self._lines: Counter[tuple[str, str]] = Counter()  # by cluster, outcome
        self._rows: Counter[str] = Counter()  # by table
        self._late: Counter[str] = Counter()  # by cluster
        self._divergences: Counter[str] = Counter()  # by cluster
        self._summaries: dict[tuple[str, int], Mapping[str, int]] = {}  # by cluster, shard
        self._newest: dict[str, BatchHealth] = {}  # by query
        self._durations: dict[str, Histogram] = {}
        self._phases: Counter[tuple[str, str]] = Counter()  # milliseconds by query, phase
        self._input: Counter[str] = Counter()
        self._output: Counter[str] = Counter()
        self.tracked_batches = 0

    def ingested(self, query: str, batch: IngestedBatch) -> None:
        """What an ingest query came to in a micro-batch."""
        with self._lock:
            for cluster, counts in batch.lines.items():
                self._lines.update({(cluster, outcome): count for outcome, count in zip(_OUTCOMES, counts, strict=True)})
            skipped, events, quarantined = (sum(counts[index] for counts in batch.lines.values()) for index in range(3))
            self._counted[query, batch.batch_id] = Counted(
                input_rows=skipped + events + quarantined, output_rows=events, quarantined=quarantined
            )

    def tracked(self, query: str, batch: TrackedBatch) -> None:
        """What the tracker came to in a micro-batch."""
        with self._lock:
            self.tracked_batches += 1
            self._rows.update(batch.rows)
            self._divergences.update(batch.divergences)
            late: Counter[str] = Counter()
            for (cluster, _), summary in batch.summaries.items():
                late[cluster] += summary["new_late_events"]
                self._divergences[cluster] += 0  # a counter begins with 0, or its first step is not seen as one
            self._late.update(late)
            self._summaries.update(batch.summaries)
            self._counted[query, batch.batch_id] = Counted(
                output_rows=sum(batch.rows.values()),
                late_events=sum(late.values()),
                divergences=sum(batch.divergences.values()),
                event_ms=max((summary["at_ms"] for summary in self._summaries.values()), default=None),
                groups=self._sum("groups"),
                held_events=self._sum("held_events"),
                state_bytes=self._sum("state_bytes"),
            )

    def _sum(self, name: str) -> int:
        return sum(summary[name] for summary in self._summaries.values())

    @property
    def rebalances(self) -> int:
        """Rebalances that the tracker wrote."""
        return self._rows["rebalances"]

    def summaries(self) -> list[Mapping[str, int]]:
        """The newest summary of each shard."""
        with self._lock:
            return list(self._summaries.values())

    def counted(self, query: str, batch_id: int) -> Counted:
        """What the query counted in a micro-batch. It is told once."""
        with self._lock:
            found = self._counted.get((query, batch_id), Counted())
            self._counted = {key: value for key, value in self._counted.items() if key[0] != query or key[1] > batch_id}
        return found

    def finished(self, row: BatchHealth) -> None:
        """A micro-batch that had input."""
        with self._lock:
            self._newest[row.query] = row
            self._durations.setdefault(row.query, Histogram(BUCKETS)).observe(row.duration_ms / 1_000)
            self._phases.update({(row.query, phase): getattr(row, column) or 0 for phase, column in _PHASES.items()})
            self._input[row.query] += row.input_rows
            self._output[row.query] += row.output_rows or 0

    def newest(self, query: str) -> BatchHealth | None:
        """The query's newest micro-batch with input."""
        with self._lock:
            return self._newest.get(query)

    def metrics(self) -> list[Metric]:
        """All of it, as Prometheus takes it."""
        with self._lock:
            return [*self._batch_metrics(), *self._line_metrics(), *self._state_metrics()]

    def _batch_metrics(self) -> list[Metric]:
        durations = [sample for query, histogram in sorted(self._durations.items()) for sample in histogram.samples({"query": query})]
        phases = [Sample(spent / 1_000, {"query": query, "phase": phase}) for (query, phase), spent in sorted(self._phases.items())]
        return [
            Metric("rebalance_batch_duration_seconds", HISTOGRAM, "Time that micro-batches with input took.", tuple(durations)),
            Metric("rebalance_batch_phase_seconds_total", COUNTER, "Time of micro-batches by phase.", tuple(phases)),
            Metric("rebalance_input_rows_total", COUNTER, "Lines read by ingest, rows of group_events read by track.", _of(self._input)),
            Metric("rebalance_output_rows_total", COUNTER, "Lines that became events, rows that track wrote.", _of(self._output)),
            Metric(
                "rebalance_last_batch_timestamp_seconds",
                GAUGE,
                "When the newest micro-batch with input ended.",
                tuple(Sample(row.at / 1_000, {"query": query}) for query, row in sorted(self._newest.items())),
            ),
        ]

    def _line_metrics(self) -> list[Metric]:
        lines = [Sample(count, {"cluster": cluster, "outcome": outcome}) for (cluster, outcome), count in sorted(self._lines.items())]
        return [
            Metric("rebalance_lines_total", COUNTER, "Lines of logs by what became of them.", tuple(lines)),
            Metric("rebalance_rows_written_total", COUNTER, "Rows that track wrote, by table.", _of(self._rows, "table")),
            Metric("rebalance_late_events_total", COUNTER, "Events that came too late to be put in order.", _of(self._late, "cluster")),
            Metric("rebalance_divergences_total", COUNTER, "Findings MODEL_DIVERGENCE.", _of(self._divergences, "cluster")),
        ]

    def _state_metrics(self) -> list[Metric]:
        sums = {name: Counter[str]() for name in ("groups", "held_events", "state_bytes")}
        reached: dict[str, int] = {}
        for (cluster, _), summary in self._summaries.items():
            reached[cluster] = max(reached.get(cluster, 0), summary["at_ms"])
            for name, by_cluster in sums.items():
                by_cluster[cluster] += summary[name]
        times = tuple(Sample(at / 1_000, {"cluster": cluster}) for cluster, at in sorted(reached.items()))
        return [
            Metric("rebalance_event_time_seconds", GAUGE, "Newest event time that track has reached.", times),
            Metric("rebalance_groups", GAUGE, "Groups that the tracker follows.", _of(sums["groups"], "cluster")),
            Metric("rebalance_held_events", GAUGE, "Events in the reorder buffer.", _of(sums["held_events"], "cluster")),
            Metric("rebalance_state_bytes", GAUGE, "The tracker's state, encoded.", _of(sums["state_bytes"], "cluster")),
        ]


def _of(counter: Mapping[str, int], label: str = "query") -> tuple[Sample, ...]:
    return tuple(Sample(count, {label: name}) for name, count in sorted(counter.items()))
