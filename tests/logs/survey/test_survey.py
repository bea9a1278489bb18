"""Whose lines they are: a recording gives the same rows however its files are laid out."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from jobs.answers.evidence import LineTime, find_lines
from jobs.logs.files import discover
from jobs.logs.slices import SlicerSettings
from jobs.logs.spool import Spool, SpoolSettings
from jobs.logs.survey.surveyed import SurveyedSlicer
from tests.effort import long
from tests.logs.envelopes.wrapping import in_json
from tests.logs.log_makers import START_MS, coordinator, other, request, write
from tests.logs.spooling import Consumer, at_ms, run

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[2] / "data" / "recordings" / "kafka-3.9.1"
LOGS = {
    f"{folder}/{name}": gzip.decompress((RECORDING / folder / f"{name}.gz").read_bytes())
    for folder in ("broker-1", "broker-2")
    for name in ("server.log", "kafka-request.log")
}


def told(consumer: Consumer) -> Counter[tuple[str, str, int | None, str]]:
    """Lines and clocks by broker. A line about a broker that has no id is anybody's where brokers share a file."""
    lines = Counter(
        ("" if "(kafka.log.LogManager)" in r["text"] else r["broker"], r["record"], at_ms(r), r["text"]) for r in consumer.of("line")
    )
    return lines + Counter((r["broker"], r["record"], None, "") for r in consumer.of("end"))


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    root = tmp_path_factory.mktemp("laid-out")
    for name, content in LOGS.items():
        write(root / "in/orders" / name, [content], b"")
    consumer, reports = run(root / "in", root / "out")
    return told(consumer), sum(report.lines_read for report in reports)


def flat(folder):
    for number, content in enumerate(LOGS.values()):
        write(folder / f"{number}.log", [content], b"")


def wrong_names(folder):
    for name, content in LOGS.items():
        broker, _, log = name.partition("/")
        write(folder / {"broker-1": "broker-2", "broker-2": "kafka-b"}[broker] / log, [content], b"")


def one_after_the_other(folder):
    write(folder / "all.log", [*LOGS.values()], b"")


def as_they_came(folder):
    """Sorted by time, as `docker compose logs` and collectors do it."""
    lines = [line for content in LOGS.values() for line in content.split(b"\n")[:-1]]
    # A stack trace has no time: it stays behind the line that it belongs to.
    last, timed = b"", []
    for line in lines:
        last = line[:24] if line[:2] == b"[2" else last
        timed.append((last, line))
    write(folder / "all.log", [line for _, line in sorted(timed, key=lambda t: t[0])])


@pytest.mark.parametrize("slice_lines", [long(100_000), 700])
@pytest.mark.parametrize("lay_out", [flat, wrong_names, one_after_the_other, as_they_came])
def test_the_layout_makes_no_difference(laid_out, tmp_path, lay_out, slice_lines):
    lay_out(tmp_path / "in/orders")
    consumer, reports = run(tmp_path / "in/orders", tmp_path / "out", slice_lines=slice_lines)
    assert (told(consumer), sum(report.lines_read for report in reports)) == laid_out


def test_a_run_that_is_interrupted_knows_whose_lines_the_rest_are_and_where(laid_out, tmp_path):
    one_after_the_other(tmp_path / "in/orders")
    consumer = Consumer()
    for _ in range(30):
        spool = Spool(tmp_path / "in/orders", tmp_path / "out", settings=SpoolSettings(slice_lines=500))
        for _ in spool.slices():
            break
        consumer.take(tmp_path / "out")
    run(tmp_path / "in/orders", tmp_path / "out", consumer, slice_lines=500)
    lines = Counter({key: count for key, count in told(consumer).items() if key[1] == "line"})
    assert lines == Counter({key: count for key, count in laid_out[0].items() if key[1] == "line"})
    file = b"".join(LOGS.values()).split(b"\n")
    assert all(file[row["position"] - 1].decode() == row["text"] for row in consumer.of("line"))


def notes(root):
    spool = Spool(root / "in", root / "out")
    for _ in spool.slices():
        pass
    return spool.notes


def test_what_a_reader_should_know_is_noted(tmp_path):
    one_after_the_other(tmp_path / "a/in")
    assert notes(tmp_path / "a") == ["all.log holds 4 logs, one after the other, of broker-1, broker-2"]
    as_they_came(tmp_path / "b/in")
    assert notes(tmp_path / "b") == ["all.log has lines of broker-1, broker-2, which are told apart"]
    write(tmp_path / "c/in/kafka-9/server.log", [LOGS["broker-1/server.log"]], b"")
    write(tmp_path / "c/in/kafka-2/server.log", [LOGS["broker-2/server.log"]], b"")
    assert notes(tmp_path / "c") == ["kafka-9/server.log is a log of broker-1, by its lines"]


def node(number, ms):
    return coordinator(ms).replace(b"id=1", b"id=%d" % number)


def test_folders_that_have_one_node_at_the_same_time_are_different_clusters(tmp_path):
    for name in ("prod", "staging"):
        write(tmp_path / "in" / name / "server.log", [node(1, i * 1_000) for i in range(20)])
    consumer, _ = run(tmp_path / "in", tmp_path / "again")
    assert {row["broker"] for row in consumer.rows} == {"prod", "staging"}
    assert notes(tmp_path) == [
        "prod, staging have lines of node 1 at the same time, so they are different clusters: lay them out as <cluster>/<broker>/"
    ]


def test_a_flat_log_keeps_its_node_beside_a_folder_that_has_the_same(tmp_path):
    write(tmp_path / "in/all.log", [node(1, i * 1_000) for i in range(20)])
    write(tmp_path / "in/staging/server.log", [node(1, i * 1_000 + 1) for i in range(20)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {(row["origin"], row["broker"]) for row in consumer.of("line")} == {("all.log", "broker-1"), ("staging/server.log", "staging")}


def test_a_log_that_follows_keeps_the_name_of_its_broker(tmp_path):
    """Rotation: the new server.log says nothing of its node yet, and lies beside another broker's log."""
    one, two = tmp_path / "in/one.log", tmp_path / "in/two.log"
    write(one, [node(7, i * 1_000) for i in range(20)])
    write(two, [node(8, i * 1_000) for i in range(20)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    one.rename(tmp_path / "in/one.log.1")
    write(one, [other(30_000), other(31_000)])
    run(tmp_path / "in", tmp_path / "out", consumer)
    assert {row["broker"] for row in consumer.of("clock") if row["origin"] == "one.log" and row["lines"]} == {"broker-7"}


def told_once(consumer):
    return [(row["broker"], at_ms(row), row["text"]) for row in consumer.of("line")]


@pytest.mark.parametrize("form", ["lines", "csv", "json"])
@pytest.mark.parametrize("slice_lines", [100_000, 37])
def test_an_export_that_lists_the_newest_line_first_is_read_from_its_end(tmp_path, form, slice_lines):
    """As CloudWatch's Logs Insights, Kibana and Datadog write it. A record may have several lines."""
    lines = [node(1, i * 5_000) for i in range(400)]
    wrap = {
        "lines": lambda line: line + b"\njava.lang.RuntimeException: x\n\tat a.b.C.d(C.java:7)",
        "csv": lambda line: b"2026-11-21T09:00:00Z,kafka-1," + b'"' + line.replace(b'"', b'""') + b'"',
        "json": lambda line: json.dumps({"@timestamp": "2026-11-21T09:00:00.000Z", "message": line.decode()}).encode(),
    }[form]
    write(tmp_path / "plain/a.log", [wrap(line) for line in lines])
    write(tmp_path / "in/export.log.gz" if form == "csv" else tmp_path / "in/export.log", [wrap(line) for line in reversed(lines)])
    expected, _ = run(tmp_path / "plain", tmp_path / "out-plain")
    consumer, reports = run(tmp_path / "in", tmp_path / "out", slice_lines=slice_lines)
    assert told_once(consumer) == told_once(expected)
    assert len(told_once(consumer)) == 400
    assert sum(report.lines_read for report in reports) == len(lines) * (3 if form == "lines" else 1)
    assert run(tmp_path / "in", tmp_path / "out", consumer)[1] == []
    slicer = SurveyedSlicer(lambda: discover(tmp_path / "in"), SlicerSettings())
    slicer.scan()
    assert [note.partition(" ")[2] for note in slicer.notes if "newest" in note] == [
        "lists the newest line first: it is read from its end, and its lines are numbered from there"
    ]
    origin, number = slicer.streams[0].origin, 4 if form == "lines" else 2
    assert find_lines(origin, {number: LineTime(5_000)}, discover(tmp_path / "in"))[number][1] == wrap(lines[1]).split(b"\n")[0]


@pytest.mark.parametrize(("lines", "told"), [(29, 0), (30, 1), (31, 0), (100, 1)])
def test_as_many_lines_as_a_store_hands_out_may_be_cut(tmp_path, lines, told):
    write(tmp_path / "in/kafka.log", [node(1, i * 5_000) for i in reversed(range(lines))])
    slicer = SurveyedSlicer(lambda: discover(tmp_path / "in"), SlicerSettings())
    slicer.scan()
    assert len([note for note in slicer.notes if f"may be cut: it has exactly {lines} lines" in note]) == told


def test_lines_that_a_terminal_has_wrapped_are_joined(tmp_path):
    lines = [node(1, i * 5_000) for i in range(50)] + [other(300_000), b"java.lang.RuntimeException: x", b"\tat a.b.C.d(C.java:7)"]
    wrapped = [line[at : at + 80] for line in lines for at in range(0, len(line), 80)]
    write(tmp_path / "plain/a.log", lines)
    write(tmp_path / "in/paste.txt", wrapped)
    expected, _ = run(tmp_path / "plain", tmp_path / "out-plain")
    for slice_lines in (100_000, 7):
        consumer, reports = run(tmp_path / "in", tmp_path / f"out-{slice_lines}", slice_lines=slice_lines)
        assert told_once(consumer) == told_once(expected)
        assert sum(report.lines_read for report in reports) == len(wrapped)
    assert [row["position"] for row in consumer.of("line")][:3] == [1, 3, 5]


def test_lines_that_may_have_been_wrapped_are_said_and_read_as_they_are(tmp_path):
    """Some other line without a time stands among them."""
    wrapped = [line[at : at + 80] for i in range(50) for line in [node(1, i * 5_000)] for at in (0, 80) if line[at:]]
    write(tmp_path / "paste.txt", [*wrapped, b"what is that?", b"and that?"])
    slicer = SurveyedSlicer(lambda: discover(tmp_path), SlicerSettings())
    slicer.scan()
    (note,) = [note for note in slicer.notes if "terminal" in note]
    assert note.startswith("a terminal of 80 columns may have wrapped the lines of paste.txt: it is read as it is")


LOGGER = b"org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
ENVELOPES = {
    "kubectl": lambda line: b"[pod/my-cluster-kafka-1/kafka] " + line,
    "stern": lambda line: b"my-cluster-kafka-1 kafka " + line,
    "Fluent Bit": in_json("log", kubernetes={"pod_name": "my-cluster-dual-role-1", "labels": {"strimzi.io/cluster": "my-cluster"}}),
    "Filebeat": in_json("message", kubernetes={"labels": {"strimzi_io/cluster": "my-cluster"}, "pod": {"name": "x-1"}}),
    "JSON in a text of JSON": lambda line: in_json("log")(in_json("message", kubernetes={"pod": {"name": "my-cluster-kafka-1"}})(line)),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_names_the_cluster_where_no_folder_does(tmp_path, name):
    lines = [node(1, i * 5_000) for i in range(20)]
    write(tmp_path / "in/pod.log", [ENVELOPES[name](line) for line in lines])
    write(
        tmp_path / "in/clients/app.log",
        [b"[2026-11-21 06:00:00,000] INFO [Consumer clientId=c, groupId=g] (Re-)joining group (" + LOGGER + b")"],
    )
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {(row["cluster"], row["broker"]) for row in consumer.of("end")} == {("my-cluster", "broker-1"), ("my-cluster", "clients")}
    write(tmp_path / "in/second.log", [node(2, i * 5_000) for i in range(100, 120)])  # without an envelope
    run(tmp_path / "in", tmp_path / "out", consumer)
    assert {row["cluster"] for row in consumer.of("line")} == {"my-cluster"}
    write(tmp_path / "prod/orders/broker-1/server.log", [ENVELOPES[name](line) for line in lines])
    consumer, _ = run(tmp_path / "prod", tmp_path / "out-2")
    assert {row["cluster"] for row in consumer.of("line")} == {"orders"}


def test_envelopes_that_name_several_clusters_name_none(tmp_path):
    write(tmp_path / "in/all.log", [b"[pod/%s-kafka-1/kafka] %s" % (name, node(1, at)) for at in range(20) for name in (b"a", b"b")])
    slicer = SurveyedSlicer(lambda: discover(tmp_path / "in"), SlicerSettings())
    slicer.scan()
    assert {stream.cluster for stream in slicer.streams} == {"default"}
    assert "the lines name several clusters, a, b: lay them out as <cluster>/<broker>/" in slicer.notes


def test_a_time_that_is_damaged_makes_no_section(tmp_path):
    lines = [node(1, i * 1_000) for i in range(600)]
    lines[300] = node(1, -7_200_000)
    lines[400:403] = [node(1, -7_200_000 + i) for i in range(3)]
    write(tmp_path / "in/server.log", lines)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert len({row["position"] for row in consumer.of("clock")}) == 1


def test_a_short_excerpt_between_two_longer_ones_is_one_of_its_own(tmp_path):
    hours = [3] * 12 + [2] * 3 + [1] * 12
    write(tmp_path / "in/prod/broker-1/server.log", [coordinator(START_MS + hour * 3_600_000 + n) for n, hour in enumerate(hours)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert Counter(row["fault"] for row in consumer.of("line")) == {None: len(hours)}


def test_the_hour_that_daylight_saving_repeats_makes_no_section(tmp_path):
    """25 October 2026, Berlin: 02:59:59 is followed by 02:00:00."""
    first, second = (
        [b"[2026-10-25 02:%02d:00,000] INFO [GroupCoordinator 1]: x (kafka.coordinator.group.GroupCoordinator)" % m for m in range(60)]
        for _ in "ab"
    )
    write(tmp_path / "in/server.log", [*first, *second])
    consumer, _ = run(tmp_path / "in", tmp_path / "out", timezone="Europe/Berlin")
    times = [at_ms(row) for row in consumer.of("line")]
    assert times == sorted(times)
    assert times[-1] - times[0] == 119 * 60_000


def test_an_unknown_address_is_a_broker_of_its_own_where_several_wrote(tmp_path):
    def at(address, ms):
        return request(ms).replace(b"}} (", b'},"connection":"%s-10.0.0.9:5000-1"} (' % address)

    lines = []
    for i in range(20):
        lines += [node(1, i * 1_000), node(2, i * 1_000 + 1), at(b"10.0.0.1:9092", i * 1_000 + 2)]
    write(tmp_path / "in/all.log", lines)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"broker-1", "broker-2", "10.0.0.1:9092"}
    assert min(at_ms(row) for row in consumer.of("line")) == START_MS


def test_where_brokers_ask_a_controller_for_its_versions_is_no_address_of_another_broker(tmp_path):
    """A broker that is its own controller logs these requests, too, at an address that no client knows."""
    staged = Path(__file__).parents[2] / "data" / "staged" / "kafka-4.4.0-consumer" / "broker-1" / "kafka-request.log.gz"
    text = gzip.decompress(staged.read_bytes())
    assert len({line.partition(b'"connection":"')[2].partition(b"-")[0] for line in text.splitlines()}) == 2
    write(tmp_path / "in/broker-1/kafka-request.log", [text], b"")
    assert notes(tmp_path) == []
