"""What the queries report after each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class IngestedBatch:
    """A micro-batch of ingest: the account of its lines by cluster, as (skipped, events, quarantined)."""

    batch_id: int
    lines: Mapping[str, tuple[int, int, int]]
    repeated: int = 0  # lines that came before, and are not in that account

    @property
    def lines_read(self) -> int:
        """All lines of the batch, repeated ones too."""
        return sum(map(sum, self.lines.values())) + self.repeated


@dataclass(frozen=True)
class TrackedBatch:
    """A micro-batch of track: rows per table, a summary per (cluster, shard) that it touched, MODEL_DIVERGENCE findings by cluster.

    `of_groups`: rows of the tables that the metrics of groups are made of, with times in epoch ms.
    """

    batch_id: int
    rows: Mapping[str, int]
    summaries: Mapping[tuple[str, int], Mapping[str, int]]
    divergences: Mapping[str, int]
    of_groups: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
