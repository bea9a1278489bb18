"""Tells what a line is, for `rebalance inspect`, by what its parser makes of it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from coordinator_model.events import BROKER_SOURCE, CLIENT_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.parsing.broker_log import is_api_versions
from jobs.parsing.kinds import row_of, source_of
from jobs.parsing.rows import SKIPPED, UNKNOWN_SOURCE

_API: Final = re.compile(r'(?a)"requestApiKeyName":"([A-Z_]+)"|RequestHeader\(apiKey=([A-Z_0-9]+)')


class Recognised(NamedTuple):
    """What a line is."""

    source: str  # of evidence, as in group_events; empty if the line is of no known kind
    kind: str = ""  # as in group_events, or the name of the request's API; empty if it concerns no group
    unknown: str = ""  # why the line is not understood
    client: str = ""  # name and version of the client's software


def recognise(line: str, broker: str, context: str = "") -> Recognised:
    """What a kept line without a fault is. `broker`: whose log it is in. `context`: what earlier lines say about it."""
    if broker in PSEUDO_BROKERS:
        return Recognised(broker, broker)
    source = source_of(broker, line)
    row = row_of(source, line, 0, context)
    source, refusal = row["source"], (row.get("refusal") or "").partition(":")[0]
    if row["verdict"] == SKIPPED and (source in (BROKER_SOURCE, UNKNOWN_SOURCE) or is_api_versions(line)):
        return Recognised("")
    api = _API.search(line) if source == REQUEST_SOURCE else None
    kind = CLIENT_SOURCE if source == CLIENT_SOURCE else row.get("kind") or ("" if api is None else api[api.lastindex or 0])
    return Recognised(source, kind, refusal, (row.get("software") or "") if source == REQUEST_SOURCE else "")
