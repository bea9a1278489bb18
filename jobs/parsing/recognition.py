"""Tells in Python what a line is, for `rebalance inspect`: the same templates as the parsers', one line at a time."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from coordinator_model.events import (
    BROKER_RELEASE,
    BROKER_SOURCE,
    CLIENT_SOURCE,
    CLIENTS,
    COORDINATOR_SOURCE,
    PSEUDO_BROKERS,
    REQUEST_SOURCE,
)
from jobs.parsing import client_log, coordinator_log
from jobs.parsing.broker_log import BROKER_SENTENCES, BROKER_SHAPE, is_api_versions, level_of
from jobs.parsing.rows import Refusal

_MAX_LENGTH: Final = 1 << 12  # of a sentence: those of longer ones take long to match
_REQUEST: Final = "Completed request:"
_OLD_REQUEST: Final = re.compile(r"Completed request:RequestHeader\(apiKey=([A-Z_0-9]+)")


class Recognised(NamedTuple):
    """What a line is."""

    source: str  # of evidence, as in group_events; empty if the line is of no known kind
    kind: str = ""  # as in group_events, or the name of the request's API; empty if it concerns no group
    unknown: str = ""  # why the line is not understood
    client: str = ""  # name and version of the client's software
    versions: str = ""  # Kafka releases that write the sentence


def recognise(line: str, broker: str, context: str = "") -> Recognised:
    """What a kept line without a fault is. `broker`: whose log it is in. `context`: what earlier lines say about it."""
    if broker == CLIENTS:
        row = client_log.row(line, 0, context)
        return Recognised(CLIENT_SOURCE, CLIENT_SOURCE, unknown=row.get("refusal") or "")
    if broker in PSEUDO_BROKERS:
        return Recognised(broker, broker)
    place = line.find(_REQUEST)
    if place >= 0:
        return _request(line, place + len(_REQUEST))
    if coordinator_log.is_coordinator_line(line):
        refusal = coordinator_log.row(line, 0).get("refusal")
        _, reading = (None, None) if refusal else coordinator_log.read(line)
        if refusal or reading is not None:
            kind, versions = ("", "") if reading is None else (reading.template.kind, reading.template.versions)
            return Recognised(COORDINATOR_SOURCE, kind, refusal or "", versions=versions)
    return _of_broker(line)


def _request(line: str, start: int) -> Recognised:
    old = _OLD_REQUEST.search(line, start - len(_REQUEST))
    if old is not None:
        return Recognised(REQUEST_SOURCE, old[1])
    if is_api_versions(line):
        return Recognised("") if level_of(line) is None else Recognised(BROKER_SOURCE, BROKER_RELEASE, versions="since 3.7")
    try:
        request, _ = json.JSONDecoder().raw_decode(line, start)
        header: Any = request["requestHeader"]
        client = request.get("clientInformation") or {}
        software = f"{client.get('softwareName', '')} {client.get('softwareVersion', '')}".strip()
        return Recognised(REQUEST_SOURCE, str(header["requestApiKeyName"]), client=software)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        without_answer = line.startswith(("{api_key=", "Name:"), start)  # Kafka 0.9 to 0.11
        return Recognised(REQUEST_SOURCE, unknown=Refusal.OLD_FORMAT if without_answer else Refusal.INVALID_JSON)


def _of_broker(line: str) -> Recognised:
    shape = BROKER_SHAPE.match(line) if len(line) <= _MAX_LENGTH else None
    reading = BROKER_SENTENCES.read(shape[1]) if shape is not None else None
    return Recognised("") if reading is None else Recognised(BROKER_SOURCE, reading.template.kind, versions=reading.template.versions)
