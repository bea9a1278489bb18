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
from jobs.parsing.broker_log import BROKER_SENTENCES, BROKER_SHAPE, is_api_versions, level_of
from jobs.parsing.coordinator_log import SENTENCES, SHAPE
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


def recognise(line: str, broker: str) -> Recognised:
    """What a kept line without a fault is. `broker`: whose log it is in."""
    if broker == CLIENTS:
        return Recognised(CLIENT_SOURCE, CLIENT_SOURCE)
    if broker in PSEUDO_BROKERS:
        return Recognised(broker, broker)
    place = line.find(_REQUEST)
    if place >= 0:
        return _request(line, place + len(_REQUEST))
    shape = SHAPE.match(line)
    if shape is None:
        return _of_broker(line)
    return _sentence(shape[4])


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


def _sentence(sentence: str) -> Recognised:
    if len(sentence) > _MAX_LENGTH:
        return Recognised(COORDINATOR_SOURCE, "LONG")
    reading = SENTENCES.read(sentence)
    if reading is None:
        return Recognised(COORDINATOR_SOURCE, unknown=Refusal.UNKNOWN_TEMPLATE)
    return Recognised(COORDINATOR_SOURCE, reading.template.kind, versions=reading.template.versions)


def _of_broker(line: str) -> Recognised:
    shape = BROKER_SHAPE.match(line) if len(line) <= _MAX_LENGTH else None
    reading = BROKER_SENTENCES.read(shape[1]) if shape is not None else None
    return Recognised("") if reading is None else Recognised(BROKER_SOURCE, reading.template.kind, versions=reading.template.versions)
