"""Turns rows of PARSED into rows of group_events: heartbeats in runs, a row per group of a line, a clock per broker.

This is Arrow and plain Python, in one pass over what Spark has parsed. The same in Spark expressions cost two seconds a micro-batch for
planning and for the stages of the groupings, however few the rows (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.specification.partition import coordinator_partition
from jobs.parsing.rows import EVENT, EVENTS, GROUP, arranged, clock_seconds
from jobs.parsing.runs.heartbeat_runs import heartbeat_runs
from schemas.names import CLOCK, GROUP_EVENTS
from schemas.tables import arrow_schema_of

_ARROW: Final = arrow_schema_of(GROUP_EVENTS)
_SECOND: Final = 1_000_000  # microseconds
_INT_MAX: Final = (1 << 31) - 1
_CLOCK: Final = ["cluster", "broker", "kind", "occurred_at", "origin", "position", "raw"]


def beat_rows(beats: pa.Table) -> pa.Table:
    """All heartbeats (`are_beats`) of a micro-batch (PARSED) as rows of group_events, without what `finished` adds."""
    return laid_out(heartbeat_runs(beats))


def event_rows(rows: pa.Table, *, clocks: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    """All other rows of PARSED of a micro-batch, events and clocks, as rows of group_events, without what `finished` adds.

    `clocks`: rows of PARSED to add, without their null columns.
    """
    lines = _with_offsets(rows.filter(pc.equal(rows["verdict"], EVENT)))
    of_clocks = rows.filter(pc.and_(pc.equal(rows["verdict"], CLOCK), pc.is_valid(rows["occurred_at"])))
    own = _with(of_clocks.select(_CLOCK), "occurred_at", of_clocks["occurred_at"].cast(pa.int64()))
    return pa.concat_tables([*_spread(lines), _clocks([*own.to_pylist(), *clocks])])


def finished(rows: pa.Table, batch_id: int) -> pa.Table:
    """Adds the batch id and the partition of each group."""
    return _with(_placed(rows), "batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), len(rows))).cast(_ARROW)


def laid_out(rows: pa.Table) -> pa.Table:
    """Rows with all columns of group_events; missing ones are null."""
    return pa.table(arranged(dict(zip(rows.column_names, rows.columns, strict=True)), len(rows), EVENTS), schema=EVENTS)


def _spread(rows: pa.Table) -> Iterator[pa.Table]:
    """A row for each line. A line that names several groups gets a row for each, the first of which accounts for the line."""
    several = pc.fill_null(pc.greater(pc.list_value_length(rows["groups"]), 0), False)
    yield laid_out(rows.filter(pc.invert(several)))
    listing = rows.filter(several)
    if not len(listing):
        return
    entries = listing["groups"].to_pylist()
    spread = listing.take(pa.array([index for index, groups in enumerate(entries) for _ in groups], pa.int64()))
    flat = [entry or {} for groups in entries for entry in groups]
    for name in GROUP.names:
        own = pa.array([entry.get(name) for entry in flat], spread.schema.field(name).type)
        spread = _with(spread, name, pc.coalesce(own, spread[name]))
    stands = [1 if number == 0 else 0 for groups in entries for number, _ in enumerate(groups)]
    yield laid_out(_with(spread, "lines", pc.multiply(spread["lines"], pa.array(stands, pa.int32()))))


def _with_offsets(rows: pa.Table) -> pa.Table:
    """Rows with the offsets of `committed`. A parser in Python writes texts: lists cost it three times as much."""
    if rows["committed"].null_count == len(rows):
        return rows
    texts = pc.split_pattern(rows["committed"].combine_chunks(), ",")
    parts = pc.extract_regex(texts.flatten(), "^(?P<partition>.*)=(?P<offset>-?[0-9]+)$")
    kind = _ARROW.field("offsets").type
    read = {"partition": parts.field("partition"), "offset": parts.field("offset").cast(pa.int64())}
    fields = [kind.value_type.field(index) for index in range(kind.value_type.num_fields)]
    values = pa.StructArray.from_arrays([read.get(field.name, pa.nulls(len(parts), field.type)) for field in fields], fields=fields)
    offsets = pa.ListArray.from_arrays(texts.offsets, values, mask=texts.is_null()).cast(kind)
    return _with(rows, "offsets", pc.coalesce(rows["offsets"].cast(kind), pa.chunked_array([offsets])))


def _with(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _clocks(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """How far each broker's logs were read, and in which seconds the broker wrote: a row per broker and kind of clock.

    A broker's time is the latest of its origins; the broker wrote when any of its logs has a line. `beats` has the stretches as first,
    last, first, last, … seconds since `received_at`.
    """
    latest: dict[tuple[str, str, str], tuple[int, str, int]] = {}
    seconds: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        key = row["cluster"], row["broker"], row["kind"]
        latest[key] = max(latest.get(key, (-1, "", 0)), (row["occurred_at"], row["origin"], row["position"]))
        seconds.setdefault(key, []).extend(clock_seconds(row["raw"]))
    made = []
    for (cluster, broker, kind), (at, origin, position) in sorted(latest.items()):
        own = seconds[cluster, broker, kind]
        base = min(own, default=at // _SECOND)
        made.append(
            {
                "cluster": cluster, "broker": broker, "kind": kind, "source": CLOCK, "origin": origin, "position": position,
                "occurred_at": at, "received_at": base * _SECOND, "lines": 0, "beats": [min(second - base, _INT_MAX) for second in own],
            }
        )  # fmt: skip
    return pa.Table.from_pylist(made, schema=EVENTS)


def _placed(rows: pa.Table) -> pa.Table:
    """Adds the partition of `__consumer_offsets` that a group lives in, where the line does not name it."""
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    partitions = pa.array([coordinator_partition(group) for group in groups.dictionary.to_pylist()], pa.int32())
    own = partitions.take(groups.indices)
    return _with(rows, "coordinator_partition", pc.coalesce(rows["coordinator_partition"], own))
