"""Heartbeats as rows of PARSED: those that the log reader recognised by their shape, and those of bundles (jobs/kafka/bundles.py).

They are most lines of a request log. One pattern reads all their fields, which costs a tenth of what JSON and its checks cost; the rows are
those that request_log.py makes of the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, REQUEST_SOURCE
from jobs.common.text import printable
from jobs.kafka.bundles import BundleError, Heartbeats, decoded
from jobs.logs.heartbeats.beat_numbers import durations_us
from jobs.logs.heartbeats.beats import NO_INTERVAL, SHAPE, told_by
from jobs.logs.times import LENGTH
from jobs.parsing.request_checks import client_host
from jobs.parsing.rows import COMMON, EVENT, PARSED, RAW_CHARACTERS, UNKNOWN_SOURCE, refused

NOT_SHIPPED: Final = "NOT_SHIPPED"
"""Code of `quarantine.reason`: a record of the topic that `rebalance ship` did not write; the detail says what is wrong with it."""

_GROUP_NUMBERS: Final = ("generation", "api_version", "error_code")
_OFFSET: Final = (1 << 48) - 1  # of a place (jobs/pipeline/topic_records.py)
_MS: Final = 1_000  # microseconds


def of_lines(lines: pa.RecordBatch) -> pa.Table:
    """Rows of RAW lines whose `repeated` is not null, with `occurred_at` for `at`."""
    found = [match for text in lines["text"].to_pylist() if (match := SHAPE.fullmatch(text.encode(), LENGTH)) is not None]
    told = [told_by(match) for match in found]
    ones = [1] * len(found)  # each line is of a group and a member of its own
    beats = Heartbeats(
        groups=[group for group, *_ in told],
        members=ones,
        client_ids=[client_id for _, _, client_id, _, _ in told],
        instance_ids=[instance_id for _, _, _, instance_id, _ in told],
        member_ids=[member_id for _, member_id, *_ in told],
        connections=[connection for *_, connection in told],
        beats=ones,
        positions=lines["position"].to_pylist(),
        ats=(lines["occurred_at"].cast(pa.int64()).to_numpy() // _MS).tolist(),
        correlation_ids=[int(match["correlation_id"]) for match in found],
        durations=durations_us([match["times"] for match in found]).tolist() if found else [],
    )
    return pa.table(_columns(beats, {}) | {name: lines[name] for name in (*COMMON, "repeated")})


def of_bundle(record: Mapping[str, Any]) -> pa.Table:
    """Rows of a RAW record of a bundle, with `occurred_at` for `at`: one for each heartbeat, or one in quarantine."""
    value = record["repeated"] or b""
    shared = {name: record[name] for name in ("cluster", "broker", "origin", "place")} | {"lines": 1}
    try:
        return pa.table(_columns(decoded(value, record["text"]), shared))
    except BundleError as error:
        raw = printable(value[:RAW_CHARACTERS].decode("utf-8", "backslashreplace"), RAW_CHARACTERS)
        row = {name: record[name] for name in COMMON} | refused(UNKNOWN_SOURCE, f"{NOT_SHIPPED}: no heartbeats: {error}", raw)
        row |= {"cluster": "", "broker": "", "origin": record["context"], "position": record["place"] & _OFFSET}
        return pa.Table.from_pylist([row], PARSED)


def _columns(beats: Heartbeats, shared: Mapping[str, Any]) -> dict[str, pa.Array]:
    """The columns of PARSED that heartbeats decide, and those that all of them share: a row for each."""
    of_sender = np.repeat(np.arange(len(beats.beats), dtype=np.int32), beats.beats)
    of_group = np.repeat(np.arange(len(beats.groups), dtype=np.int32), beats.members)[of_sender]
    hosts = [client_host(connection) for connection in beats.connections]
    connections = [connection if host else None for connection, host in zip(beats.connections, hosts, strict=True)]
    softwares = [None if group.software == "unknown unknown" else group.software for group in beats.groups]
    at_us = np.array(beats.ats, np.int64) * _MS
    kinds = [HEARTBEAT if group.interval_ms == NO_INTERVAL else CONSUMER_GROUP_HEARTBEAT for group in beats.groups]
    texts = {
        "kind": (of_group, kinds),
        "group_id": (of_group, [group.group_id for group in beats.groups]),
        "member_id": (of_sender, beats.member_ids),
        "client_id": (of_sender, beats.client_ids),
        "instance_id": (of_sender, beats.instance_ids),
        "connection": (of_sender, connections),
        "client_host": (of_sender, hosts),
        "software": (of_group, softwares),
    }
    intervals = np.array([group.interval_ms for group in beats.groups], np.int32)
    columns = {name: pa.array(values, pa.string()).take(pa.array(of)) for name, (of, values) in texts.items()}
    consumer = pc.equal(columns["kind"], CONSUMER_GROUP_HEARTBEAT)
    numbers = {name: np.array([getattr(group, name) for group in beats.groups], np.int32)[of_group] for name in _GROUP_NUMBERS}
    shared = {"verdict": EVENT, "source": REQUEST_SOURCE, **shared}
    return {
        **{name: pa.repeat(pa.scalar(value, PARSED.field(name).type), len(beats.positions)) for name, value in shared.items()},
        "position": pa.array(beats.positions, pa.int64()),
        "occurred_at": pa.array(at_us).cast(PARSED.field("occurred_at").type),
        "received_at": pa.array(at_us - np.array(beats.durations, np.int64)).cast(PARSED.field("received_at").type),
        "correlation_id": pa.array(beats.correlation_ids, pa.int32()),
        **{name: pa.array(values) for name, values in numbers.items()},
        **columns,
        # Only steady heartbeats of the consumer protocol are there: their answers repeat the request.
        "answer_member_id": pc.if_else(consumer, columns["member_id"], None),
        "answer_generation": pc.if_else(consumer, pa.array(numbers["generation"]), None),
        "rebalance_timeout_ms": pc.if_else(consumer, pa.scalar(-1, pa.int32()), None),
        "heartbeat_interval_ms": pc.if_else(consumer, pa.array(intervals[of_group]), None),
    }
