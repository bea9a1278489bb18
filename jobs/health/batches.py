"""What the queries report after each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class IngestedBatch:
    """What a micro-batch came to: the account of its lines by cluster, as (skipped, events, quarantined)."""

    batch_id: int
    lines: Mapping[str, tuple[int, int, int]]


@dataclass(frozen=True)
class TrackedBatch:
    """What a micro-batch came to: rows per table, a summary per (cluster, shard) that it touched, MODEL_DIVERGENCE findings by cluster."""

    batch_id: int
    rows: Mapping[str, int]
    summaries: Mapping[tuple[str, int], Mapping[str, int]]
    divergences: Mapping[str, int]
