"""Runs of heartbeats: beats of one member with one rhythm share a row, which keeps when each arrived and which line it is.

A member beats every few seconds for weeks, always the same. What matters is kept: the run is cut where the group, the generation,
the answer or the connection changes, where an answer was held up, and where the rhythm does: where a gap differs by more than half
from the one before it.
How the lines were batched decides where rows begin, never what they say: laid out again, rows of any batching give the same beats.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model.events import PROMPT_MS

_KEY: Final = (
    "cluster", "broker", "source", "origin", "kind", "group_id", "api_version", "connection", "client_id", "software", "member_id",
    "instance_id", "generation", "error_code",
)  # fmt: skip
_BEAT: Final = ("received_at", "position", "at", "correlation_id")


def heartbeat_runs(rows: DataFrame, columns: list[str]) -> DataFrame:
    """HEARTBEAT rows of PARSED, one a line, as rows of runs with the given columns of group_events.

    `at` and `received_at` are the first beat's, `last_at` is the arrival of the last. `beats` counts from `received_at`, both cut to
    the millisecond: their sum is the arrival of each beat, whichever beat is the first of its row.
    """
    beats = F.sort_array(F.collect_list(F.struct(F.unix_millis("received_at").alias("ms"), *_BEAT)))
    # A beat whose answer was held up says so in a row of its own: the tracker must know when it was logged.
    held_up = F.unix_millis("at") - F.unix_millis("received_at") > PROMPT_MS
    alone = F.when(held_up, F.col("position")).otherwise(F.lit(-1)).alias("alone")
    members = rows.groupBy(*_KEY, alone).agg(beats.alias("all"), F.first("client_host").alias("client_host"))
    runs = members.select(*_KEY, "client_host", F.explode(_runs(F.col("all"))).alias("run"))
    run, first = F.col("run"), F.get("run", F.lit(0))
    derived = {
        **{name: first[name] for name in _BEAT},
        "last_at": F.element_at("run", -1).received_at,
        "beat_count": F.size("run"),
        "beats": F.transform(run, lambda beat: F.coalesce((beat.ms - first.ms).cast("int"), F.lit(0))),
        "longest_gap_ms": F.array_max(_gaps(run)),
        "positions": F.transform(run, lambda beat: F.coalesce(beat.position, F.lit(0))),
        "lines": F.size("run"),
    }
    kept = {name: F.col(name) for name in (*_KEY, "client_host")}
    return runs.select(*((derived | kept).get(name, F.lit(None)).alias(name) for name in columns))


def _runs(beats: Column) -> Column:
    """Beats in order, cut into runs: an array of arrays."""

    def gap(index: Column) -> Column:
        return F.get(beats, index).ms - F.get(beats, index - 1).ms

    def starts(index: Column) -> Column:
        changed = F.abs(gap(index) - gap(index - 1)) * 2 > gap(index - 1)
        return (index == 0) | ((index >= 2) & changed)

    cuts = F.filter(F.sequence(F.lit(0), F.size(beats) - 1), starts)
    following = F.concat(F.slice(cuts, 2, F.size(cuts)), F.array(F.size(beats)))
    return F.zip_with(cuts, following, lambda start, end: F.slice(beats, start + 1, end - start))


def _gaps(run: Column) -> Column:
    """Times between neighbours; empty for one beat."""
    later = F.slice(run, 2, F.size(run))
    return F.transform(later, lambda beat, index: beat.ms - F.get(run, index).ms)
