"""Lines of a broker as other systems hand them out: what is read of them is what is read of the plain log."""

import json
import random

import pytest

from jobs.logs.envelopes import unwrapped
from jobs.logs.mark import KeptLines
from tests.effort import every
from tests.logs.envelopes.wrapping import ALL, CONTAINERS, EXACT_PATTERNS, PATTERNS, STAMP, in_json, in_pattern, real_lines
from tests.logs.reading import read, reader, rows

OWN = b"[2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group g (kafka.coordinator.group.GroupCoordinator)"
EXACT = OWN.replace(b"456]", b"456Z]")
LOGS = [("kafka-3.9.1/broker-2/server.log", 500), ("kafka-3.9.1/broker-2/kafka-request.log", 0), ("kafka-4.2.0/broker-1/server.log", 1_000)]


@pytest.fixture(scope="module", params=LOGS, ids=lambda log: log[0])
def plain(request, tmp_path_factory):
    """Lines of a real log, and what is kept of them."""
    lines = real_lines(*request.param)
    path = tmp_path_factory.mktemp("plain") / "plain.log"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    kept, count = read(path)
    assert count == len(lines)
    assert len(kept) > 100
    return lines, rows(kept)


def kept_of(path, lines, **options):
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    kept, count = read(path, **options)
    assert count == len(lines)
    return rows(kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(3, ALL))
def test_each_envelope_is_taken_off(plain, tmp_path, name):
    lines, expected = plain
    assert kept_of(tmp_path / "wrapped.log", [ALL[name](line) for line in lines]) == expected


@pytest.mark.parametrize("name", EXACT_PATTERNS)
def test_an_exact_time_counts_in_every_zone(plain, tmp_path, name):
    lines, expected = plain
    wrapped = [EXACT_PATTERNS[name](line) for line in lines]
    exact = [(number, at, text[:24] + b"Z" + text[24:], fault) for number, at, text, fault in expected]
    # Lines that have no pattern, such as those of stack traces, keep what they had.
    assert kept_of(tmp_path / "wrapped.log", wrapped, zone="Asia/Kolkata") == exact


def test_envelopes_that_change_within_a_file(plain, tmp_path):
    lines, expected = plain
    chance = random.Random(5)
    wraps = [*ALL.values(), *EXACT_PATTERNS.values(), lambda line: line]
    found = kept_of(tmp_path / "mixed.log", [chance.choice(wraps)(line) for line in lines])
    assert [(number, at, text.replace(b"Z]", b"]", 1), fault) for number, at, text, fault in found] == expected


@pytest.mark.parametrize("step", [1, 7, 500])
def test_a_wrapped_log_is_read_on_from_where_it_was(plain, tmp_path, step):
    """The mark counts the bytes of the file, not those of what is kept."""
    lines, expected = plain
    lines = lines[:400]
    path = tmp_path / "wrapped.log"
    path.write_bytes(b"".join((CONTAINERS["CRI"](line) if number % 3 else line) + b"\n" for number, line in enumerate(lines)))
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


def strimzi(line):
    """`%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n`: Strimzi and AMQ Streams with log4j 2."""
    return in_pattern(lambda d, t, _, p, m, c: b"%s %s %-5s [main] %s:71 - %s" % (d, t, p, c.rpartition(b".")[2], m))(line)


def test_seconds_are_what_strimzis_pattern_loses(plain, tmp_path):
    lines, expected = plain
    if b"Completed request" in lines[0]:
        return
    found = kept_of(tmp_path / "wrapped.log", [strimzi(line) for line in lines])
    assert found == [(number, at // 1000 * 1000, text[:21] + b"000" + text[24:], fault) for number, at, text, fault in expected]


def test_every_line_of_a_coordinator_keeps_its_logger_where_the_pattern_shortens_it():
    for line in real_lines("kafka-4.2.0/broker-2/server.log", most=5_000):
        if b"(org.apache.kafka.coordinator.group." in line or b".CoordinatorRuntime" in line:
            assert unwrapped(STAMP + b" stdout F " + strimzi(line)) == line[:21] + b"000" + line[24:]


def test_a_request_whose_time_has_no_milliseconds_is_refused(tmp_path):
    """The causes of one recording in two were wrong with such times. Lines of a coordinator do not need them."""
    request = real_lines("kafka-3.9.1/broker-2/kafka-request.log")[0]
    coarse = [strimzi(request), in_pattern(lambda d, t, _, p, m, c: b"[%sT%sZ] %s %s (%s)" % (d, t, p, m, c))(request)]
    coarse += [in_json("message", timestamp=1795241359)(request[32:].rpartition(b" (")[0]), STAMP + b" stdout F " + coarse[0], strimzi(OWN)]
    *requests, coordinator = kept_of(tmp_path / "0.log", coarse)
    assert [fault for *_, fault in requests] == ["NO_TIMESTAMP"] * 4
    assert coordinator[2:] == (OWN.replace(b",456", b",000"), "")


@pytest.mark.parametrize("line", [
    b"", b"{", b'{"log":7}', b'{"log":"a text"}', b"[1, 2]", b'"a text"', b"\tat kafka.Kafka.main(Kafka.scala)", b"broker-1  | a text",
    STAMP + b" stdout F ", STAMP + b" stdout F a text", b"2026-11-21 06:09:19,456 something else", b'a,"2026-11-21 06:09:19",b',
    b"2026-11-21 06:09:19,456] INFO x (a.B)", b"broker-1  | [2026-11-21 06:09:19,456 INFO x (a.B)",
    b"[2026-11-21 06:09:19,45] INFO x (a.B)", b"2026-13-21T06:09:19.456+01:00 INFO x (a.B)",
    b"server.log:812:", b"Caused by: java.io.IOException: No space left on device at 06:09:19", b"[" * 5_000 + b"06:09:19",
    b'{"a":' * 5_000 + b"06:09:19", b'06:09:19,"' + b'"a text of some length","' * 50_000,
    b"\x1b[m" + b" " * 200_000 + b"06:09:19", b'{"timestamp":1795241359456,"level":"INFO","message":"a text"}',
])  # fmt: skip
def test_what_holds_no_line_of_a_broker_stays_as_it_is(line):
    assert unwrapped(line) is line


def test_the_brokers_own_time_counts_where_it_is_there():
    assert unwrapped(in_json("message", timestamp=1)(OWN)) == OWN
    assert unwrapped(b"2026-11-21T06:10:00Z " + OWN) == OWN
    assert unwrapped(b"2026-11-21T06:10:00Z " + OWN.replace(b"[2026-11-21 06:09:19,456]", b"2026-11-21T07:09:19.456+01:00")) == EXACT


@pytest.mark.parametrize(("time", "stamp"), [
    (b"2026-11-21T01:09:19,456-05", EXACT), (b"2026-11-21 11:39:19.456789 +0530", EXACT), (b"1795241359456", EXACT),
    (b"2026-11-21T06:09:19.456Z", EXACT), (b"1795241359", EXACT.replace(b"456Z", b"000Z")),
    (b"2026-11-21T06:09:19", OWN.replace(b"456]", b"000]")),
])  # fmt: skip
def test_times_of_other_forms(time, stamp):
    assert unwrapped(OWN.replace(b"[2026-11-21 06:09:19,456]", time)) == stamp


def test_a_message_alone_has_the_time_of_its_envelope():
    message = OWN[31:].rpartition(b" (")[0]
    assert unwrapped(b"2026-11-21T06:09:19.456Z stdout F " + message) == EXACT
    assert unwrapped(in_json("MESSAGE", __REALTIME_TIMESTAMP="1795241359456789")(message)) == EXACT
    assert unwrapped(in_json("LogEntry", TimeGenerated="11/21/2026, 6:09:19.456 AM")(message)) == EXACT
    request = b'Completed request:{"requestHeader":{}}'
    assert unwrapped(in_json("message", timestamp=1795241359456)(request)) == (
        b"[2026-11-21 06:09:19,456Z] INFO " + request + b" (kafka.request.logger)"
    )
    assert unwrapped(message) is message


def test_a_line_that_ends_without_its_logger_may_have_been_cut():
    cut = OWN.partition(b" (kafka")[0]
    assert unwrapped(b"broker-1  | " + cut) == cut
    assert unwrapped(cut.replace(b"[2026-11-21 06:09:19,456]", b"2026-11-21 06:09:19,456")) == cut


def test_only_the_first_line_of_a_text_is_the_brokers():
    assert unwrapped(in_json("log")(OWN + b"\njava.lang.Exception\n\tat a.B\n")) == OWN
    assert unwrapped(b'2026-11-21 06:10:00,"' + OWN) == OWN  # of a CSV field that goes on in the next line


def test_colours_inside_of_a_message_stay():
    """A client may have named itself so, to look like another."""
    member = OWN.replace(b"group g", b"group pay\x1b[0mments")
    assert unwrapped(b"broker-1  | " + member) == member
    assert unwrapped(b"\x1b[32m" + member + b"\x1b[0m") == member


def test_lines_of_other_containers_are_not_damage(tmp_path):
    """`docker compose logs` of a broker that logs requests, with an application beside it."""
    broker = [b"kafka-1  | " + line for line in real_lines("kafka-3.9.1/broker-2/kafka-request.log", most=300)]
    shop = [b'shop-api-1  | {"level":"info","msg":"GET /cart %d"}' % number for number in range(300)]
    path = tmp_path / "compose.log"
    path.write_bytes(b"".join(line + b"\n" for pair in zip(broker, shop, strict=True) for line in pair))
    kept, count = read(path)
    assert count == 600
    assert kept.faults == {}


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"log": {"offset": 1}},
        {"log": 1, "extra": [{}]},
        {"log": "no line"},
        {"log": "[2026-11-21 06:09:19,456] INFO cut"},
        {"message": None},
    ],
)
def test_a_usual_field_is_read_whatever_the_other_holds(others):
    """Filebeat has an object in `log` beside the line in `message`; log shippers add what they like."""
    line = b'[2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: A "quoted" word. (kafka.coordinator.group.GroupCoordinator)'
    for name in ("message", "log", "MESSAGE"):
        fields = {"host": {"name": "a"}, **others, name: f"{line.decode()}\n"}
        assert unwrapped(json.dumps(fields).encode()) == line
        assert unwrapped(json.dumps({"_source": fields}).encode()) == line


@pytest.mark.parametrize("name", ["Confluent for Kubernetes", "bars", "ttcc", "no thread"])
def test_every_line_of_a_coordinator_is_found_where_the_logger_stands_before_it(name):
    """Some sentences of GroupMetadata have no prefix, so their own beginnings have to be known."""
    for log in ("kafka-3.9.1/broker-1/server.log", "kafka-4.2.0/broker-2/server.log"):
        for line in real_lines(log, most=5_000):
            if b"coordinator.group." in line and line.endswith(b")"):
                assert unwrapped(PATTERNS[name](line)) == line
