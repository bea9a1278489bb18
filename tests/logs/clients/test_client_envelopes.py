# ruff: noqa: E501 - lines are as long as clients write them
"""Lines of clients of many kinds, as they write them and as other systems hand them out: what is read of them is the same."""

import gzip
import json
import time
from pathlib import Path

import pytest

from jobs.logs.bytes import open_log
from jobs.logs.clients import envelopes
from jobs.logs.clients.envelopes import client_line
from jobs.logs.clients.judge import ClientJudge
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from tests.logs.envelopes.wrapping import in_json
from tests.logs.log_makers import START_MS

DATA = Path(__file__).parents[2] / "data" / "clients"
DEBUG = DATA.parent / "recordings" / "kafka-4.2.0" / "clients" / "ad-bidder-1.log.gz"
REAL = sorted((DATA / "cluster" / "clients").rglob("*.log"))
MS = START_MS + 1_250
COLLECTED = b"2026-11-21T06:00:09.456789012Z"  # later than the line's own time

WRAPPED = {
    "docker compose logs": lambda line: b"payments-1  | " + line,
    "docker compose logs --timestamps": lambda line: b"payments-1  | " + COLLECTED + b" " + line,
    "docker json-file": in_json("log", stream="stderr", time=COLLECTED.decode()),
    "CRI": lambda line: COLLECTED + b" stderr F " + line,
    "kubectl logs --prefix --timestamps": lambda line: b"[pod/payments-0/app] " + COLLECTED + b" " + line,
    "stern": lambda line: b"payments-7d4b9c app " + line,
    "journalctl": lambda line: b"Nov 21 06:00:09 node-1 payments[812]: " + line,
    "journalctl -o short-iso": lambda line: b"2026-11-21T06:00:09+0000 node-1 payments[812]: " + line,
    "journalctl -o json": in_json("MESSAGE", _SYSTEMD_UNIT="payments.service", __REALTIME_TIMESTAMP="1795241359456789"),
    "syslog, RFC 5424": lambda line: b"<134>1 2026-11-21T06:00:09.456Z node-1 payments 812 - - " + line,
    "grep -rn": lambda line: b"payments/app.log:812:" + line,
    "Filebeat": in_json("message", agent={"type": "filebeat"}, log={"offset": 5}, **{"@timestamp": COLLECTED.decode()}),
    "CloudWatch": in_json("message", timestamp=1795241359456, ingestionTime=1795241360000),
    "Google Cloud": in_json("textPayload", timestamp=COLLECTED.decode(), resource={"type": "k8s_container"}),
    "colours": lambda line: b"\x1b[2m" + line[:10] + b"\x1b[0;39m" + line[10:] + b"\x1b[0m",
    "Fluent Bit of CRI": in_json("log", date=1795241359.456, kubernetes={"pod_name": "payments-0"}),
    "compose of colours": lambda line: b"payments-1  | \x1b[32m" + line + b"\x1b[0m",
}


def kept_of(path, zone="UTC"):
    kept = KeptLines()
    reader = LogReader(lambda: open_log(path), LocalTimes(zone), judge=ClientJudge)
    count = reader.read(kept)
    rows = [(kept.positions[i], kept.ats[i], kept.texts[i], kept.contexts.get(i), kept.faults.get(i)) for i in range(len(kept))]
    return rows, count


def said(text):
    """What a line says, without what stands before it."""
    return text[text.index(b"[Consumer ") if b"[Consumer " in text else text.index(b"|") :].partition(b" (org.apache")[0]


@pytest.mark.parametrize("log", REAL, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", WRAPPED)
def test_an_envelope_changes_nothing(log, name, tmp_path):
    plain, count = kept_of(log)
    wrapped = tmp_path / "app.log"
    wrapped.write_bytes(b"".join(WRAPPED[name](line) + b"\n" for line in log.read_bytes().splitlines()))
    rows, wrapped_count = kept_of(wrapped)
    assert wrapped_count == count
    assert [(n, at, said(text), *rest) for n, at, text, *rest in rows] == [(n, at, said(text), *rest) for n, at, text, *rest in plain]
    assert plain or "sarama" in log.name  # which said nothing of the kind


def test_all_layouts_of_one_consumer_say_the_same():
    """Log4j 2 wrote seven layouts at once, Logback four. Those that round to seconds or less keep the ms."""
    by_layout = {path.stem: kept_of(path)[0] for path in sorted((DATA / "java-formats").glob("*.log"))}
    for group, first in (("log4j2 connect", "log4j2-default"), ("logback spring logstash-encoder", "spring-boot-3")):
        layouts = [name for name in by_layout if name.startswith(tuple(group.split()))]
        assert len(layouts) >= 4
        expected = [said(text) for _, _, text, *_ in by_layout[first]]
        assert len(expected) == 15
        for name in layouts:
            assert [said(text) for _, _, text, *_ in by_layout[name]] == expected, name
            if name == "logback-default":  # no date
                assert {fault for *_, fault in by_layout[name]} == {"NO_TIMESTAMP"}
                continue
            times = zip([at for _, at, *_ in by_layout[name]], [at for _, at, *_ in by_layout[first]], strict=True)
            assert all(abs(one - other) <= 1 for one, other in times), name


def test_a_line_without_a_date_has_the_time_of_its_envelope(tmp_path):
    lines = (DATA / "java-formats" / "logback-default.log").read_bytes().splitlines()
    log = tmp_path / "app.log"
    log.write_bytes(b"".join(b"2026-11-21T08:00:01.250+02:00 stdout F " + line + b"\n" for line in lines))
    rows, _ = kept_of(log)
    assert {(at, fault) for _, at, _, _, fault in rows} == {(MS, None)}


JAVA = "[Consumer clientId=pay-1, groupId=payments] consumer poll timeout has expired. This means"
THREAD = "[thrd:main]: Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms for long-running message processing): leaving group"
SIGNED = f"%|MAXPOLL|pay-1#consumer-2| {THREAD}"
LOGGER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        # Spring Boot 3.4+: ElasticCommonSchema, Logstash and GraylogExtendedLogFormat StructuredLogFormatter
        ({"@timestamp": "2026-11-21T06:00:01.250Z", "log": {"level": "WARN", "logger": LOGGER}, "process": {"pid": 1, "thread": {"name": "main"}},
          "service": {"name": "orders", "node": {}}, "message": JAVA, "ecs": {"version": "8.11"}}, JAVA),
        ({"@timestamp": "2026-11-21T07:00:01.250+01:00", "@version": "1", "message": JAVA, "logger_name": LOGGER, "thread_name": "main", "level": "WARN", "level_value": 30000}, JAVA),
        ({"version": "1.1", "short_message": JAVA, "timestamp": 1795240801.250, "level": 4, "_level_name": "WARN", "_process_pid": 1, "_log_logger": LOGGER}, JAVA),
        # JsonLayout of Log4j 2 and Quarkus
        ({"instant": {"epochSecond": 1795240801, "nanoOfSecond": 250_999_000}, "thread": "main", "level": "WARN", "loggerName": LOGGER, "message": JAVA}, JAVA),
        ({"timestamp": "2026-11-21T06:00:01.250Z", "sequence": 5, "loggerName": LOGGER, "level": "WARN", "message": JAVA, "hostName": "h", "processId": 1}, JAVA),
        # What Google Cloud, Elasticsearch and Splunk export
        ({"timestamp": "2026-11-21T06:00:05Z", "jsonPayload": {"message": JAVA, "time": "2026-11-21T06:00:01.250Z"}, "resource": {}}, JAVA),
        ({"_index": "logs", "_source": {"@timestamp": "2026-11-21T06:00:01.250Z", "message": JAVA}}, JAVA),
        # A line of JSON in a line of JSON
        ({"log": json.dumps({"@timestamp": "2026-11-21T06:00:01.250Z", "message": JAVA}) + "\n", "stream": "stdout", "time": "2026-11-21T06:00:09Z"}, JAVA),
        # node-rdkafka (lib/client.js: event.log) and confluent-kafka-javascript (lib/kafkajs/_common.js: loggerTrampoline), logged as JSON
        ({"severity": 4, "fac": "MAXPOLL", "message": THREAD, "name": "pay-1#consumer-2", "time": 1795240801250}, SIGNED),
        ({"level": 40, "time": 1795240801250, "fac": "MAXPOLL", "timestamp": 1795240801250, "name": "pay-1#consumer-2", "msg": THREAD}, SIGNED),
        # confluent-kafka-python (confluent_kafka.c: "%s [%s] %s") with a JSON formatter
        ({"asctime": "x", "timestamp": "2026-11-21 06:00:01,250", "message": f"MAXPOLL [pay-1#consumer-2] {THREAD}"}, SIGNED),
        # .NET: ConsoleLogger in Loggers.cs
        (f"Warning|2026-11-21 06:00:01.250|pay-1#consumer-2|MAXPOLL| {THREAD}", SIGNED),
        # a LogHandler of .NET, or of any binding, that writes the message alone
        (f"2026-11-21 06:00:01.250 +00:00 [WRN] {THREAD}", f"%||| {THREAD}"),
        # librdkafka's line behind something unknown, and console.log of the object that node-rdkafka hands over, in a container
        (f"web.1 started, says: %4|1795240801.250|MAXPOLL|pay-1#consumer-2| {THREAD}", SIGNED[1:]),
        (f"2026-11-21T06:00:01.250Z stdout F   message: '{THREAD}", f"%||| {THREAD}"),
        # confluent-kafka-go: LogEvent.String in kafka/log.go
        (f"[2026-11-21T06:00:01.250Z][pay-1#consumer-2][MAXPOLL][4]{THREAD}", SIGNED),
        # rd_kafka_log_syslog in rdkafka.c
        (f"<28>1 2026-11-21T06:00:01.250Z node-1 rdkafka 812 - - MAXPOLL: pay-1#consumer-2: {THREAD}", SIGNED),
        # Go's loggers, as text: log/slog, logrus, zap's console, zerolog's JSON, kit
        ('time=2026-11-21T06:00:01.250Z level=INFO msg="leaving group" group="my orders" member_id=m-1', "%||franz-go| leaving group; group: my orders, member_id: m-1"),
        ('level=info ts=2026-11-21T06:00:01.250Z msg="leaving group" group=orders member_id=m-1', "%||franz-go| leaving group; group: orders, member_id: m-1"),
        ({"level": "info", "ts": 1795240801.25, "msg": "leaving group", "group": "orders", "member_id": "m-1"}, "%||franz-go| leaving group; group: orders, member_id: m-1"),
        ({"level": "info", "time": 1795240801250, "message": "leaving group", "group": "orders", "member_id": "m-1"}, "%||franz-go| leaving group; group: orders, member_id: m-1"),
        ("[2026-11-21 06:00:01.250] [INFO] leaving group; group: orders, member_id: m-1", "%||franz-go| leaving group; group: orders, member_id: m-1"),
        ("[sarama] 2026/11/21 06:00:01.250000 consumergroup/orders: lost ownership of map[orders:[0]] due to kafka server: x",
         "%||sarama| consumergroup/orders: lost ownership of map[orders:[0]] due to kafka server: x"),
        ("kafka reader: 2026/11/21 06:00:01.250000 Leaving group orders, member m-1", "%||kafka-go| Leaving group orders, member m-1"),
        # Python: formats of logging, and Loguru's
        ("WARNING:2026-11-21 06:00:01,250:kafka.coordinator:Heartbeat poll expired, leaving group", "%||kafka-python| Heartbeat poll expired, leaving group"),
        ("2026-11-21 06:00:01.250 | WARNING  | kafka.coordinator.base:run:986 - Heartbeat poll expired, leaving group", "%||kafka-python| Heartbeat poll expired, leaving group"),
        ({"event": "Heartbeat poll expired, leaving group", "logger": "kafka.coordinator", "timestamp": "2026-11-21T06:00:01.250000Z"}, "%||kafka-python| Heartbeat poll expired, leaving group"),
        ({"message": "Heartbeat failed for group orders because it is rebalancing", "name": "aiokafka.consumer.group_coordinator", "time": "2026-11-21T06:00:01.250Z"},
         "%||kafka-python| Heartbeat failed for group orders because it is rebalancing"),
        ("2026-11-21 06:00:01,250 WARNING aiokafka.consumer.group_coordinator: Heartbeat failed for group orders because it is rebalancing",
         "%||aiokafka| Heartbeat failed for group orders because it is rebalancing"),
        # KafkaJS: Winston, as its documentation shows it
        ({"level": "info", "message": "Consumer has joined the group", "extra": {"timestamp": "2026-11-21T06:00:01.250Z", "groupId": "orders", "memberId": "m-1"}, "timestamp": "2026-11-21T06:00:01.250Z"},
         "%||kafkajs| Consumer has joined the group; groupId: orders, memberId: m-1"),
        # ... and NestJS's logger; the fields stand behind the message, as with zap's console
        ('[Nest] 19 - 11/21/2026, 6:00:01 AM [ClientKafka] ERROR [Runner] The group is rebalancing, re-joining {"timestamp":"2026-11-21T06:00:01.250Z","logger":"kafkajs","groupId":"orders","memberId":"m-1","error":"The group is rebalancing, so a rejoin is needed"} +1m',
         "%||kafkajs| The group is rebalancing, re-joining; groupId: orders, memberId: m-1"),
        ('2026-11-21T06:00:01.250Z\tINFO\tkgo/log.go:9\tleaving group\t{"group": "orders", "member_id": "m-1"}',
         "%||franz-go| leaving group; group: orders, member_id: m-1"),
    ],
)  # fmt: skip
def test_each_form_becomes_one_of_few(line, says):
    bare = client_line(line.encode() if isinstance(line, str) else json.dumps(line).encode())
    assert bare.endswith(says.encode())
    assert LocalTimes("UTC").read(bare, START_MS) == MS
    assert client_line(bare) == bare


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"starting up",
        b"2026-11-21 06:00:01,250 INFO com.acme.App - joined the group chat; group: dev",
        b"2026-11-21 06:00:01,250 INFO com.acme.App - Stopped; everything",
        b"2026-11-21 06:00:01,250 INFO com.acme.App - leaving group by the door",
        b'{"time":"2026-11-21T06:00:01.250Z","msg":"joined","user":"ann"}',
        b'{"time":"2026-11-21T06:00:01.250Z","msg":"Stopped"}',
        b'2026-11-21T06:00:01.250Z\tINFO\tthe user joined\t{"group": "dev"}',
        b"100%|##########| 12/12 [00:01<00:00]",
        b"{not json",
        b"[1, 2]",
        b'{"message": 5, "time": true}',
    ],
)
def test_an_application_says_what_it_likes(line):
    assert b"%|" not in client_line(line).replace(b"100%|", b"")


@pytest.mark.parametrize(
    ("time_", "ms"),
    [
        (1795240801, 1_000), (1795240801.25, 1_250), (1795240801250, 1_250), (1795240801250000, 1_250), (1795240801250999999, 1_250), ("1795240801250999", 1_250),
        ("2026-11-21T06:00:01.25Z", 1_250), ("2026-11-21T06:00:01.250999999Z", 1_250), ("2026-11-21T11:30:01,250+0530", 1_250), ("2026-11-21 06:00:01", 1_000),
        (12.5, None), (True, None), ("soon", None), (1e300, None), (float("nan"), None), (None, None), ({"seconds": 1}, None),
    ],
)  # fmt: skip
def test_times_of_entries(time_, ms):
    bare = client_line(json.dumps({"ts": time_, "msg": "Heartbeat poll expired, leaving group"}).encode())
    assert LocalTimes("UTC").read(bare, START_MS) == (None if ms is None else START_MS + ms)


def test_a_local_time_in_json_is_one_of_the_zone():
    bare = client_line(b'{"timestamp": "2026-11-21 07:00:01.250", "message": "Heartbeat poll expired, leaving group"}')
    assert LocalTimes("Europe/Berlin").read(bare, START_MS) == MS


def test_most_lines_cost_little():
    """Two thousand lines of an application took 2 s with a pattern that backtracks. This only sees that nothing of the kind came back."""
    lines = [
        b"2026-11-21 06:00:01,250 INFO com.acme.App - " + word * 40 for word in (b"group ", b"a: ", b"[x] ", b"Group heartbeat ", b"k=v ")
    ] * 400
    began = time.process_time()
    for line in lines:
        client_line(line)
    assert time.process_time() - began < 10


BEHIND = (
    b"", b"\r", b"  ", b" 2026-11-21 06:10:00,000", b" 1795241563424", b"\t1795241563424", b" (a.b.Client)",
    b" [org.apache.kafka.Client]", b'"}',
)  # fmt: skip


def test_a_line_of_librdkafka_alone_is_read_as_any_other_line(monkeypatch):
    """It has a short way, since most lines at its debug level are such."""
    written = gzip.decompress(DEBUG.read_bytes()).split(b"\n")
    lines = [line + behind for line in written for behind in BEHIND]
    short = [*map(client_line, lines)]
    taken = sum(envelopes._of_librdkafka(line) is not None for line in lines)
    monkeypatch.setattr(envelopes, "_of_librdkafka", lambda _: None)
    assert short == [*map(client_line, lines)]
    assert taken > len(lines) / len(BEHIND) / 2
