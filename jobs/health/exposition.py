r"""Prometheus' text format, version 0.0.4: metrics as a scrape reads them.

# HELP rebalance_batches_total Micro-batches finished.
# TYPE rebalance_batches_total counter
rebalance_batches_total{query="track"} 12
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*\Z")


@dataclass(frozen=True)
class Sample:
    """A value under its labels. `suffix`: of a histogram's parts."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric with its samples: no two with the same labels."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]

    def __post_init__(self) -> None:
        names = [label for sample in self.samples for label in sample.labels]
        if not _NAME.match(self.name) or not all(map(_LABEL.match, names)):
            raise ValueError(f"no name for a metric or a label: {self.name}, {names}")


class Histogram:
    """Counts values by buckets: each holds what is no greater than its bound."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = (*sorted(bounds), math.inf)
        self._counts = [0] * len(self.bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self._sum += value
        for index, bound in enumerate(self.bounds):
            self._counts[index] += value <= bound

    def samples(self, labels: Mapping[str, str]) -> list[Sample]:
        """Its buckets, sum and count."""
        buckets = [
            Sample(count, {**labels, "le": _number(bound)}, "_bucket") for bound, count in zip(self.bounds, self._counts, strict=True)
        ]
        return [*buckets, Sample(self._sum, labels, "_sum"), Sample(self._counts[-1], labels, "_count")]


def render(metrics: Iterable[Metric]) -> str:
    """The text of a scrape. Metrics without a sample are left out."""
    lines = []
    for metric in metrics:
        if not metric.samples:
            continue
        lines += [f"# HELP {metric.name} {_escaped(metric.help)}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [f"{metric.name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}" for sample in metric.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    shown = (f'{name}="{_escaped(value, quoted=True)}"' for name, value in labels.items())
    return "{" + ",".join(shown) + "}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)
