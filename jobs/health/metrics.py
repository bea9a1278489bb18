"""The metrics of a run: their names and types, and the server from which Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.common.errors import UserError

Samples = Mapping[str, Mapping[tuple[str, ...], float | None]]
"""Values by the name of the metric, then by its label values. None: not known, and left out."""

_OF_GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "rebalances_total": ("Rebalances that ended.", ("cause",)),
    "rebalance_seconds_total": ("Time that rebalances took whose start was seen.", ()),
    "unavailable_partition_seconds_total": ("Sum over partitions of the time without an owner at work.", ()),
    "records_reread_max_total": ("Records that were read twice after rebalances, at most.", ()),
    "records_lag_added_total": ("Records that came while nobody read their partition because of a rebalance.", ()),
    "findings_total": ("Findings.", ("code", "severity")),
}
"""What is counted of each cluster, and of each group."""
COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "rebalance_batch_phase_seconds_total": ("Time of micro-batches by phase.", ("query", "phase")),
    "rebalance_input_rows_total": ("Lines read by ingest, rows of group_events read by track.", ("query",)),
    "rebalance_output_rows_total": ("Lines that became events, rows that track wrote.", ("query",)),
    "rebalance_lines_total": ("Lines of logs by what became of them.", ("cluster", "outcome")),
    "rebalance_rows_written_total": ("Rows that track wrote, by table.", ("table",)),
    "rebalance_late_events_total": ("Events that came too late to be put in order.", ("cluster",)),
    "rebalance_divergences_total": ("Findings MODEL_DIVERGENCE.", ("cluster",)),
    **{f"rebalance_{name}": (text, ("cluster", *labels)) for name, (text, labels) in _OF_GROUPS.items()},
    **{f"rebalance_group_{name}": (text, ("cluster", "group", *labels)) for name, (text, labels) in _OF_GROUPS.items()},
    "rebalance_group_rows_left_out_total": ("Rebalances and findings of groups that have no metrics of their own.", ("cluster",)),
    "rebalance_health_write_failures_total": ("Failed attempts to write pipeline_health.", ()),
    "rebalance_alerts_sent_total": ("Findings that a receiver of alerts got.", ("receiver",)),
    "rebalance_alerts_failed_total": ("Posts of alerts that failed.", ("receiver", "reason")),
    "rebalance_alerts_left_out_total": ("Findings that were not sent.", ("receiver", "reason")),
}
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "rebalance_build_info": ("Always 1; the version that runs.", ("version",)),
    "rebalance_start_time_seconds": ("When the process began.", ()),
    "rebalance_query_active": ("Whether the streaming query runs.", ("query",)),
    "rebalance_lag_events": ("Rows of the query's input that wait.", ("query",)),
    "rebalance_waiting_seconds": ("For how long the query has had input and finished nothing.", ("query",)),
    "rebalance_lag_bytes": ("Bytes of log files not read yet, when the newest slice was cut.", ()),
    "rebalance_lag_seconds": ("Age of the newest event when track's newest micro-batch ended.", ()),
    "rebalance_resident_memory_bytes": ("Resident memory.", ("process",)),
    "rebalance_last_batch_timestamp_seconds": ("When the newest micro-batch with input ended.", ("query",)),
    "rebalance_event_time_seconds": ("Newest event time that track has reached.", ("cluster",)),
    "rebalance_groups": ("Groups that the tracker follows.", ("cluster",)),
    "rebalance_held_events": ("Events in the reorder buffer.", ("cluster",)),
    "rebalance_state_bytes": ("The tracker's state, encoded.", ("cluster",)),
    "rebalance_group_members": ("Members of the group.", ("cluster", "group")),
    "rebalance_group_state": ("1 for the state that the group is in.", ("cluster", "group", "state")),
    "rebalance_group_open_since_timestamp_seconds": ("When the rebalance began that has not ended.", ("cluster", "group")),
    "rebalance_group_open_overdue": ("Whether it has lasted longer than its rebalance timeout.", ("cluster", "group")),
    "rebalance_group_last_rebalance_timestamp_seconds": ("When the newest rebalance ended.", ("cluster", "group")),
    "rebalance_alerts_waiting": ("Findings that a receiver of alerts has not got yet.", ("receiver",)),
}


def families(samples: Samples) -> Iterator[Metric]:
    """The counters and gauges that have samples."""
    for name, values in samples.items():
        metric = _family(name)
        for labels, value in sorted(values.items()):
            if value is not None:
                metric.add_metric([label.encode("utf-8", errors="replace").decode() for label in labels], value)
        if metric.samples:
            yield metric


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    if name in COUNTERS:
        text, labels = COUNTERS[name]
        return CounterMetricFamily(name, text, labels=labels)
    text, labels = GAUGES[name]
    return GaugeMetricFamily(name, text, labels=labels)


@contextmanager
def serving(host: str, port: int, *collectors: Collector) -> Iterator[int]:
    """Answers a scrape for as long as this lasts; yields the port, a free one if `port` is 0. UserError: the port cannot be used."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot serve metrics at {host}:{port}: {reason}; give another --metrics-port or --metrics-host") from None
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
