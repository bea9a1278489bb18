"""Lines of a broker as other systems hand them out: what is read of them is what is read of the plain log."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from jobs.logs.envelopes import PREFIXES, unwrapped
from jobs.logs.mark import KeptLines
from tests.logs.reading import read, reader, rows

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2"
STAMP = b"2026-11-21T06:09:19.456789012Z"


def real_lines(name, most=1_500):
    return gzip.decompress((RECORDING / f"{name}.gz").read_bytes()).split(b"\n")[:-1][:most]


def in_json(name, **others):
    return lambda line: json.dumps({name: line.decode(), **others}, ensure_ascii=False).encode()


def strimzi(line):
    """The pattern of Strimzi's brokers: `%d{ISO8601} %p %m (%c) [%t]%n`."""
    return line[1:24] + line[25:] + b" [data-plane-kafka-request-handler-3]" if line[:2] == b"[2" else line


WRAPPED = {
    "docker compose logs": lambda line: b"broker-1  | " + line,
    "docker compose logs --timestamps": lambda line: b"broker-1  | " + STAMP + b" " + line,
    "docker service logs": lambda line: b"kafka_broker.1.x7f3a9@node-1    | " + line,
    "docker json-file": in_json("log", stream="stdout", time=STAMP.decode()),
    "CRI": lambda line: STAMP + b" stdout F " + line,
    "kubectl logs --timestamps": lambda line: STAMP + b" " + line,
    "kubectl logs --prefix": lambda line: b"[pod/kafka-0/kafka] " + line,
    "kubectl logs --prefix --timestamps": lambda line: b"[pod/kafka-0/kafka] " + STAMP + b" " + line,
    "stern": lambda line: b"kafka-0 kafka " + line,
    "journalctl": lambda line: b"Nov 21 06:09:19 node-1 kafka-server-start.sh[812]: " + line,
    "journalctl -o short-iso": lambda line: b"2026-11-21T06:09:19+0000 node-1 kafka[812]: " + line,
    "journalctl -o json": in_json("MESSAGE", _SYSTEMD_UNIT="kafka.service", __REALTIME_TIMESTAMP="1795241359456789"),
    "syslog, RFC 5424": lambda line: b"<134>1 2026-11-21T06:09:19.456Z node-1 kafka 812 - - " + line,
    "syslog, RFC 3164": lambda line: b"<134>Nov 21 06:09:19 node-1 kafka: " + line,
    "grep -r": lambda line: b"broker-1/server.log:" + line,
    "grep -rn": lambda line: b"logs/kafka-request.log.3:812:" + line,
    "Filebeat": in_json("message", agent={"type": "filebeat"}, host={"name": "node-1"}, log={"offset": 5}),
    "CloudWatch": in_json("message", timestamp=1795241359456, ingestionTime=1795241360000),
    "Google Cloud": in_json("textPayload", resource={"type": "k8s_container"}),
    "Splunk": in_json("_raw", host="node-1", source="/var/log/kafka/server.log"),
    "colours": lambda line: b"\x1b[32m" + line + b"\x1b[0m" if line[:2] == b"[2" else line,
    "Strimzi": strimzi,
    "Strimzi, kubectl logs --timestamps": lambda line: STAMP + b" " + strimzi(line),
}


@pytest.fixture(scope="module", params=["server.log", "kafka-request.log"])
def plain(request, tmp_path_factory):
    """Lines of a real log, and what is kept of them."""
    lines = real_lines(request.param)
    path = tmp_path_factory.mktemp("plain") / request.param
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    kept, count = read(path)
    assert count == len(lines)
    assert len(kept) > 100
    return lines, rows(kept)


@pytest.mark.parametrize("name", WRAPPED)
def test_each_envelope_is_taken_off(plain, tmp_path, name):
    lines, expected = plain
    path = tmp_path / "wrapped.log"
    path.write_bytes(b"".join(WRAPPED[name](line) + b"\n" for line in lines))
    kept, count = read(path)
    assert (count, rows(kept)) == (len(lines), expected)


def test_envelopes_that_change_within_a_file(plain, tmp_path):
    lines, expected = plain
    chance = random.Random(5)
    wraps = [*WRAPPED.values(), lambda line: line]
    path = tmp_path / "mixed.log"
    path.write_bytes(b"".join(chance.choice(wraps)(line) + b"\n" for line in lines))
    assert rows(read(path)[0]) == expected


@pytest.mark.parametrize("step", [1, 7, 500])
def test_a_wrapped_log_is_read_on_from_where_it_was(plain, tmp_path, step):
    """The mark counts the bytes of the file, not those of what is kept."""
    lines, expected = plain
    lines = lines[:600]
    path = tmp_path / "wrapped.log"
    path.write_bytes(b"".join((WRAPPED["CRI"](line) if number % 3 else line) + b"\n" for number, line in enumerate(lines)))
    mark, found, count = None, [], 0
    while True:
        log, kept = reader(path, mark), KeptLines()
        read_lines = log.read(kept, max_lines=step)
        mark = log.mark
        log.close()
        if not read_lines:
            break
        count += read_lines
        found += rows(kept)
    assert mark.offset == path.stat().st_size
    assert (count, found) == (len(lines), [row for row in expected if row[0] <= len(lines)])


@pytest.mark.parametrize("line", [
    b"", b"{", b'{"log":7}', b'{"log":"a text"}', b"\tat kafka.Kafka.main(Kafka.scala)", b"broker-1  | a text", STAMP + b" stdout F ",
    b"2026-11-21 06:09:19,456 something else",
    b"2026-11-21 06:09:19,456] INFO x (a.B)", b"broker-1  | [2026-11-21 06:09:19,456 INFO x (a.B)",
    b"server.log:812:", b"Caused by: java.io.IOException: No space left on device",
])  # fmt: skip
def test_what_holds_no_line_of_a_broker_stays_as_it_is(line):
    assert unwrapped(line) is line


def test_every_line_of_a_coordinator_keeps_its_logger_where_the_pattern_shortens_it():
    """As Strimzi's brokers write since Kafka 4. Times lose their milliseconds."""
    folder = RECORDING.parents[1] / "kafka-4.2.0" / "broker-2"
    for line in gzip.decompress((folder / "server.log.gz").read_bytes()).splitlines():
        if not (found := re.fullmatch(rb"\[([^,]*),\d{3}\] ([A-Z]+) (.*) \(([\w.$]+)\)", line, re.DOTALL)):
            continue
        time, level, message, logger = found.groups()
        if b"coordinator.group" in logger or b"CoordinatorRuntime" in logger:
            short = b"%s %-5s [thread-1] %s:812 - %s" % (time, level, logger.rpartition(b".")[2], message)
            assert unwrapped(STAMP + b" stdout F " + short) == b"[%s,000] %s %s (%s)" % (time, level, message, logger)


def test_a_request_whose_time_has_no_milliseconds_is_refused(tmp_path):
    """The causes of one recording in two were wrong with such times. Lines of a coordinator do not need them."""
    request, coordinator = real_lines("kafka-request.log")[0], b"[GroupCoordinator 1]: Stabilized group g generation 1"
    coarse = [
        b"2026-11-21 06:09:19 DEBUG [t-1] logger:8 - " + request.partition(b" DEBUG ")[2].removesuffix(b" (kafka.request.logger)"),
        b"2026-11-21 06:09:20 INFO  [t-1] GroupCoordinator:8 - " + coordinator,
    ]
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(STAMP + b" stdout F " + line + b"\n" for line in coarse))
    first, second = rows(read(path)[0])
    assert first[3] == "NO_TIMESTAMP"
    assert second[2:] == (b"[2026-11-21 06:09:20,000] INFO " + coordinator + b" (kafka.coordinator.group.GroupCoordinator)", "")


def test_other_patterns_of_log4j():
    own = b"[2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group g (kafka.coordinator.group.GroupCoordinator)"
    said = b"[GroupCoordinator 1]: Stabilized group g"
    logger = b"kafka.coordinator.group.GroupCoordinator"
    assert unwrapped(b"2026-11-21 06:09:19,456 INFO  " + said + b" (" + logger + b") [main]") == own
    assert unwrapped(b"2026-11-21T06:09:19.456 [main] INFO  " + logger + b" - " + said) == own
    assert unwrapped(b"2026-11-21 06:09:19.456789 INFO [main] " + logger + b": " + said) == own
    assert unwrapped(b"2026-11-21 06:09:19 INFO  [main] GroupCoordinator:812 - " + said) == own.replace(b",456", b",000")
    assert unwrapped(b"2026-11-21 06:09:19 INFO  [main] KafkaServer:? - text") == b"[2026-11-21 06:09:19,000] INFO text (KafkaServer)"
    assert unwrapped(b"2026-11-21 06:09:19 INFO " + logger + b" - " + said) == own.replace(b",456", b",000")


def test_every_prefix_is_tried_here():
    """Or a pattern could go wrong unseen."""
    samples = [wrap(b"[2026-11-21 06:09:19,456] INFO x (a.B)") for wrap in WRAPPED.values()] + [b"\xef\xbb\xbf[2026"]
    assert {name for name, prefix in PREFIXES.items() if any(prefix.match(sample) for sample in samples)} == set(PREFIXES)
