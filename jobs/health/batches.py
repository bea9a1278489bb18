"""What the queries report after each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class IngestedBatch(msgspec.Struct, frozen=True):
    """A micro-batch of ingest: the account of its lines by cluster, as (skipped, events, quarantined)."""

    batch_id: int
    lines: Mapping[str, tuple[int, int, int]]
    repeated: int = 0  # lines that came before, and are not in that account

    @property
    def lines_read(self) -> int:
        """All lines of the batch, repeated ones too."""
        return sum(map(sum, self.lines.values())) + self.repeated


class TrackedBatch(msgspec.Struct, frozen=True):
    """A micro-batch of track: what it wrote, rows by table with times in epoch ms; a summary per (cluster, shard) that it touched."""

    batch_id: int
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    summaries: Mapping[tuple[str, int], Mapping[str, int]]
