"""Which evidence there is, and what cannot be answered without the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final, NamedTuple

from coordinator_model.events import CLIENT_SOURCE, CLIENTS, COORDINATOR_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.errors import LakehouseError
from jobs.common.stores import Place
from jobs.common.times import duration

BROKER_SOURCES: Final = frozenset({COORDINATOR_SOURCE, REQUEST_SOURCE})
LATE_MS: Final = 60_000
"""Logs of one incident begin within this time of each other."""


class Coverage(NamedTuple):
    """What was read of a cluster."""

    cluster: str
    files: int
    sources: Mapping[str, AbstractSet[str]]  # by broker; of `clients` and of captures too
    begins: Mapping[str, int]  # by broker: when its logs begin, epoch ms
    first: datetime | None  # events, UTC
    last: datetime | None


def coverage(lakehouse: Place | QuestionReader) -> list[Coverage]:
    """What a lakehouse was made of, a cluster each, in order of their names."""
    try:
        reader = lakehouse if isinstance(lakehouse, QuestionReader) else QuestionReader(lakehouse)
    except LakehouseError:  # nothing was written yet
        return []
    files = reader.found(
        "SELECT cluster, count(DISTINCT origin) AS n, bool_or(broker = $clients) AS has_clients FROM input_lines"
        " GROUP BY cluster ORDER BY cluster",
        {"clients": CLIENTS},
    )
    parts = reader.found(
        "SELECT cluster, broker, source, min(occurred_at) AS earliest, max(greatest(occurred_at, last_at)) AS latest,"
        " epoch_ms(min(received_at)) AS begin FROM group_events GROUP BY ALL ORDER BY ALL",
        {},
    )
    found = []
    for cluster, count, has_clients in ((row["cluster"], row["n"], row["has_clients"]) for row in files):
        own = [row for row in parts if row["cluster"] == cluster and row["source"] != "clock"]
        sources: dict[str, set[str]] = {CLIENTS: set()} if has_clients else {}
        for row in own:
            sources.setdefault(row["broker"], set()).add(row["source"])
        clocks = [row for row in parts if row["cluster"] == cluster and row["source"] == "clock" and row["begin"] is not None]
        begins = {row["broker"]: row["begin"] for row in clocks}
        first, last = min((row["earliest"] for row in own), default=None), max((row["latest"] for row in own), default=None)
        found.append(Coverage(cluster, count, sources, begins, first, last))
    return found


def missing(sources: Mapping[str, AbstractSet[str]], begins: Mapping[str, int], unseen: Sequence[int] = ()) -> list[str]:
    """What cannot be answered for lack of evidence, a sentence each.

    `begins`: when the logs of each broker begin, epoch ms. `unseen`: nodes that coordinate groups, and have no log here.
    """
    brokers = {name: own for name, own in sources.items() if own & BROKER_SOURCES}
    texts = []
    if not brokers and not PSEUDO_BROKERS & sources.keys():
        texts.append(
            "no broker log: it would show who began each rebalance and what it cost. Each broker writes a server.log, or to its"
            " container's log"
        )
    texts += [f"no log of node {node}, which coordinates groups: their rebalances there are missing" for node in unseen]
    earliest = min((begins[name] for name in brokers if name in begins), default=0)
    texts += [
        f"the logs of {name} begin {duration(begins[name] - earliest)} after the first ones: what it did before is missing. A restarted"
        " container has its earlier log in `kubectl logs --previous`"
        for name in sorted(brokers)
        if begins.get(name, 0) - earliest > LATE_MS
    ]
    without_requests = sorted(name for name, own in brokers.items() if REQUEST_SOURCE not in own)
    without_coordinator = sorted(name for name, own in brokers.items() if COORDINATOR_SOURCE not in own)
    if without_requests:
        texts.append(
            f"no request log of {', '.join(without_requests)}: it would show heartbeats and near misses, the member that the others"
            " waited for, refused commits, client versions and partitions"
        )
    if without_coordinator:
        texts.append(f"no server.log of {', '.join(without_coordinator)}: it would prove expired sessions and name each cause")
    if not any(CLIENT_SOURCE in own for own in sources.values()) and not PSEUDO_BROKERS & sources.keys():
        texts.append(
            "there are application logs, but none of their lines was usable: `rebalance inspect` shows why"
            if CLIENTS in sources
            else "no application logs: they would say why a client left or rejoined"
        )
    return texts
