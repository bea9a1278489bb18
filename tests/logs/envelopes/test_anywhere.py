"""A line of a broker or a client, in any layout and in anything around it, says what the plain line says."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.logs.clients.envelopes import client_line
from jobs.logs.clients.judge import is_consumer_line
from jobs.logs.envelopes import unwrapped
from jobs.logs.times import LocalTimes
from jobs.parsing import broker_log, client_log, coordinator_log, request_log
from tests.logs.envelopes.wrapping import CLOUDWATCH, COLLECTORS, CONTAINERS, COPIES, EXACT_PATTERNS, PATTERNS, real_lines

CLIENTS = Path(__file__).parents[2] / "data" / "clients"
UTC = LocalTimes("UTC")
MS = 1_000
BROKERS = [
    line
    for log in ("kafka-3.9.1/broker-2/server.log", "kafka-4.2.0/broker-1/server.log", "kafka-3.9.1/broker-2/kafka-request.log")
    for line in real_lines(log, most=2_000)
    if b"[GroupCoordinator " in line or b"[GroupMetadataManager " in line or re.search(rb"_GROUP\"|Kafka version|Transition from ST", line)
][::7]
CONSUMERS = [
    line
    for path in sorted(CLIENTS.rglob("*.log"))
    if path.stem != "logback-default"  # which writes no date
    for line in path.read_bytes().splitlines()
    if is_consumer_line(client_line(line))
][::3]


def of_broker(text):
    bare = unwrapped(text)
    at = UTC.read(bare, 0)
    line = bare.decode()
    parsers = ((request_log.is_request_line, request_log), (coordinator_log.is_coordinator_line, coordinator_log))
    parser = next((parser for is_one, parser in parsers if is_one(line)), broker_log)
    return at, parser.row(line, at and at * MS)


def of_client(text):
    bare = client_line(text)
    at = UTC.read(bare, 0)
    row = client_log.row(bare.decode(), at and at * MS, "payments")
    return at, {name: value for name, value in row.items() if name != "raw"}


INNERMOST = {
    *("JSON in a text, escaped twice", "JSON in a text, quotes of the message escaped"),
    *("get-log-events --output text", "filter-log-events --output text"),
}
"""Which stand around a line, and around nothing else."""
WRAPS = {**CONTAINERS, **COPIES, **CLOUDWATCH, **COLLECTORS}
LAYOUTS = {**PATTERNS, **EXACT_PATTERNS, "Kafka's own": lambda line: line}
NESTED = st.lists(st.sampled_from(sorted(WRAPS)), max_size=2).filter(
    lambda names: not INNERMOST.intersection(names[1:]) and not any(name.endswith("CSV") for name in names[:-1])
)


def wrapped(text, names):
    for name in names:
        assume(not name.endswith("CSV") or b'"' in text or b"," in text)  # CSV ends a field without quotes nowhere
        text = WRAPS[name](text)
    return text


def test_there_are_lines():
    assert len(BROKERS) > 50
    assert len(CONSUMERS) > 30
    assert {of_broker(line)[1]["verdict"] for line in BROKERS} <= {"event", "skipped"}
    assert "event" in {of_client(line)[1]["verdict"] for line in CONSUMERS}


@given(line=st.sampled_from(BROKERS), layout=st.sampled_from(sorted(LAYOUTS)), names=NESTED)
def test_a_brokers_line_in_anything(line, layout, names):
    assert of_broker(wrapped(LAYOUTS[layout](line), names)) == of_broker(line)


@given(line=st.sampled_from(CONSUMERS), names=NESTED)
def test_a_clients_line_in_anything(line, names):
    assert of_client(wrapped(line, names)) == of_client(line)
