"""A line of a broker or a client, in any layout and in anything around it, says what the plain line says."""

import re
from pathlib import Path

import pytest
from hypothesis import assume, example, given
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


QUOTES = "JSON in a text, quotes of the message escaped"


@given(line=st.sampled_from(BROKERS), layout=st.sampled_from(sorted(LAYOUTS)), names=NESTED)
@example(line=next(line for line in BROKERS if b"Completed request:" in line), layout="EcsLayout.json", names=[QUOTES])
@example(line=next(line for line in BROKERS if b"Coordinator 2]" in line), layout="JsonLayout, docker json-file", names=[QUOTES, "list"])
@example(line=next(line for line in BROKERS if b"Coordinator 2]" in line), layout="%highlight", names=["jq .message", "bold"])
@example(line=next(line for line in BROKERS if b"Starting up." in line), layout="%highlight", names=["jq .message", "grep -A"])
@example(
    line=next(line for line in BROKERS if b"Starting up." in line), layout="%highlight of level and logger", names=["Azure, ContainerLogV2"]
)
def test_a_brokers_line_in_anything(line, layout, names):
    assert of_broker(wrapped(LAYOUTS[layout](line), names)) == of_broker(line)


LOGFMT = b'time=2026-11-22T22:50:35.700Z level=INFO msg="leaving group" group=kgo member_id=kgo-c-f5479c33-c806-4d66-8752-b04ebb5c081e'


@given(line=st.sampled_from(CONSUMERS), names=NESTED)
@example(line=LOGFMT, names=["list"])
@example(line=LOGFMT, names=["bold"])
@example(line=LOGFMT, names=[QUOTES])
@example(line=next(line for line in CONSUMERS if line[:1] == b"{"), names=["jq .message", "Datadog, CSV"])
@example(line=next(line for line in CONSUMERS if b"] Stopped" in line), names=["JSON with a field of its own"])
def test_a_clients_line_in_anything(line, names):
    assert of_client(wrapped(line, names)) == of_client(line)


SAYS = "[Consumer clientId=c-7, groupId=orders] consumer poll timeout has expired. This means the time"
COORDINATOR = "[GroupCoordinator 3]: Member c-1 in group orders has failed, removing it from the group"
LOGGER = "kafka.coordinator.group.GroupCoordinator"
AT = "2025-03-01 13:50:29"
EPOCH_MS = 1_740_837_029_000


@pytest.mark.parametrize("around", [
    "2025.03.01 13:50:29.000000 [ 32591 ] {{}} <Warning> Storage (t1): {}", "25/03/01 13:50:29 WARN ConsumerCoordinator: {}",
    "2025-03-01 13:50:29 WARNING org.apache.kafka.clients.X handlePollTimeoutExpiry {}", "01/Mar/2025:13:50:29 {}",
    "01 Mar 2025 13:50:29 WARN {}", "Mar 1, 2025 1:50:29 PM {}", "Sat Mar  1 13:50:29 2025 {}", "2025 Mar 01 13:50:29 | {}",
    "20250301-13:50:29 {}", "13:50:29,000 2025-03-01 {}", "2025-03-01T14:50:29.000+0100 {}", "1740837029000 WARN {}",
    "2025-03-01 19:20:29 2025-03-01 13:50:29,000 WARN   ||  {}   [org.apache.kafka.clients.consumer.internals.X]",
    "{} 2025-03-01 13:50:29,000", "2025-03-01 13:50:29,000\tWARN\t\t{}", '{{"ours": "{}", "timestamp": "2025-03-01T13:50:29Z"}}',
])  # fmt: skip
def test_dates_and_layouts(around):
    for words, told in ((SAYS, of_client), (f"{COORDINATOR} ({LOGGER})", of_broker)):
        at, row = told(around.format(words).encode())
        assert (at, row["verdict"], row["group_id"]) == (EPOCH_MS, "event", "orders")


@pytest.mark.parametrize("around", ["13:50:29.123 {}", "[13:50:29 WARN] {}", "03/01/25 13:50:29 WARN {}", "3/1/2025 1:50:29 PM {}", "{}"])
def test_what_is_no_date_and_time(around):
    assert of_client(around.format(SAYS).encode())[0] is None
    assert of_broker(around.format(f"{COORDINATOR} ({LOGGER})").encode())[0] is None


@pytest.mark.parametrize("line", [
    f"[{AT},000] INFO   {COORDINATOR}   ({LOGGER})", f"[{AT},000] INFO {COORDINATOR.replace('group ', 'group   ')} ({LOGGER})",
    f"[{AT},000]\tINFO\t{COORDINATOR}\t({LOGGER})", f"[{AT},000] INFO [thread] {COORDINATOR} ({LOGGER})",
    f"[{AT},000] INFO {COORDINATOR} ({LOGGER})`", f"[{AT},000] INFO {COORDINATOR} ({LOGGER})</code></pre>",
    f"[{AT},000] INFO {LOGGER} fail - server=3 - {COORDINATOR}", f"{AT},000 | INFO | {LOGGER} | {COORDINATOR.replace(' has', '  has  ')}",
])  # fmt: skip
def test_runs_of_blanks_and_marks_around_kafkas_own_pattern(line):
    at, row = of_broker(line.encode())
    assert (at, row["verdict"], row["group_id"], row["member_id"]) == (EPOCH_MS, "event", "orders", "c-1")


def test_blanks_in_a_name_stay():
    line = f"[{AT},000] INFO {COORDINATOR.replace('orders', 'my  orders')} ({LOGGER})".encode()
    assert of_broker(line)[1]["group_id"] == "my  orders"


@pytest.mark.parametrize("line", [
    f"{AT},000 ? {COORDINATOR}; and more",
    f"[{AT},000] INFO what is this {COORDINATOR} of no logger",
    f"[{AT},000] INFO [GroupCoordinator 3]: A new sentence. ({LOGGER})",
])  # fmt: skip
def test_what_looks_like_a_coordinators_line_is_never_unrelated(line):
    assert of_broker(line.encode())[1]["verdict"] == "quarantine"
