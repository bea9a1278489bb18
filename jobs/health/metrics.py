"""The metrics of a run as Prometheus reads them: conf/prometheus/metrics.md says what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.common.errors import UserError
from jobs.common.places import data_folder

Samples = Mapping[str, Mapping[tuple[str, ...], float | None]]
"""Values by the name of the metric, then by its label values. None: not known, and left out."""

_ROW: Final = re.compile(r"^\| `(\w+)` \| (.*?)\| (.+) \|$", re.MULTILINE)


@cache
def described() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Meaning and labels of each metric by its name, as conf/prometheus/metrics.md has them."""
    page = data_folder("conf/prometheus", "metrics.md") / "metrics.md"
    rows = _ROW.findall(page.read_text(encoding="utf-8"))
    return {name: (meaning, tuple(re.findall(r"\w+", labels))) for name, labels, meaning in rows}


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
    meaning, labels = described()[name]
    return (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(name, meaning, labels=labels)


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
