"""The metrics of a run: their names and types, and the server from which Prometheus reads them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.common.errors import UserError

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
PATH: Final = "/metrics"
_TIMEOUT_SECONDS: Final = 10  # for a client that connects and sends nothing

Samples = Mapping[str, Mapping[tuple[str, ...], float | None]]
"""Values by the name of the metric, then by its label values. None: not known, and left out."""

COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "rebalance_batch_phase_seconds_total": ("Time of micro-batches by phase.", ("query", "phase")),
    "rebalance_input_rows_total": ("Lines read by ingest, rows of group_events read by track.", ("query",)),
    "rebalance_output_rows_total": ("Lines that became events, rows that track wrote.", ("query",)),
    "rebalance_lines_total": ("Lines of logs by what became of them.", ("cluster", "outcome")),
    "rebalance_rows_written_total": ("Rows that track wrote, by table.", ("table",)),
    "rebalance_late_events_total": ("Events that came too late to be put in order.", ("cluster",)),
    "rebalance_divergences_total": ("Findings MODEL_DIVERGENCE.", ("cluster",)),
    "rebalance_rebalances_total": ("Rebalances that ended.", ("cluster", "cause")),
    "rebalance_rebalance_seconds_total": ("Time that rebalances took whose start was seen.", ("cluster",)),
    "rebalance_unavailable_partition_seconds_total": ("Sum over partitions of the time without an owner at work.", ("cluster",)),
    "rebalance_records_reread_max_total": ("Records that were read twice after rebalances, at most.", ("cluster",)),
    "rebalance_records_lag_added_total": ("Records that came while nobody read their partition because of a rebalance.", ("cluster",)),
    "rebalance_findings_total": ("Findings.", ("cluster", "code", "severity")),
    "rebalance_group_rebalances_total": ("Rebalances that ended.", ("cluster", "group", "cause")),
    "rebalance_group_rebalance_seconds_total": ("Time that rebalances took whose start was seen.", ("cluster", "group")),
    "rebalance_group_unavailable_partition_seconds_total": (
        "Sum over partitions of the time without an owner at work.",
        ("cluster", "group"),
    ),
    "rebalance_group_records_reread_max_total": ("Records that were read twice after rebalances, at most.", ("cluster", "group")),
    "rebalance_group_records_lag_added_total": (
        "Records that came while nobody read their partition because of a rebalance.",
        ("cluster", "group"),
    ),
    "rebalance_group_findings_total": ("Findings.", ("cluster", "group", "code", "severity")),
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
    """Answers GET /metrics for as long as this lasts; yields the port, a free one if `port` is 0. UserError: the port cannot be used.

    Always in the text format 0.0.4, in which counters have no `_created` series beside them.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_SECONDS
        server_version = "rebalance"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != PATH:
                self.send_error(HTTPStatus.NOT_FOUND, explain=f"the metrics are at {PATH}")
                return
            body = b"".join(map(generate_latest, collectors))
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: object) -> None:
            """Logs nothing: a scrape comes every few seconds."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def server_bind(self) -> None:
            """Binds without HTTPServer's lookup of the host's full name, which may wait long for a name server."""
            TCPServer.server_bind(self)
            self.server_name, self.server_port = host, self.server_address[1]

        def handle_error(self, *_: object) -> None:
            """Ignores clients that go away in the middle."""

    try:
        server = Server((host, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot serve metrics at {host}:{port}: {reason}; give another --metrics-port or --metrics-host") from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
