"""A document in which a log store hands out lines says what the plain log says."""

import gzip
import json
import tracemalloc

import pytest

from jobs.logs.bytes import open_log
from jobs.logs.content.verdict import Writer, own_line, writer_of
from jobs.logs.envelopes import documents
from jobs.logs.faults import shown
from jobs.logs.times import LocalTimes
from tests.logs.envelopes.shapes import EVENTS, LOKI, SHAPES
from tests.logs.envelopes.wrapping import real_lines
from tests.logs.log_makers import write
from tests.logs.reading import read
from tests.logs.spooling import run

LOGS = ("kafka-4.2.0/broker-2/server.log", "kafka-3.9.1/broker-1/server.log", "kafka-4.2.0/broker-2/kafka-request.log")


def timed_lines(name, most=400):
    """Lines of a recording that keep something, with their times; without stack traces."""
    lines = [
        line
        for line in real_lines(name, most=20_000)
        if line[:3] == b"[20" and line[-1:] == b")" and (b"roup" in line or line[-3:] == b"ar)")
    ]
    return lines[:most]


def kept(path):
    """Time and text of each line that is kept. Of answers to ApiVersions only the first one is, in the order in which a file is read."""
    found, count = read(path)
    rows = [
        (at, text.replace(b"Z]", b"]", 1))
        for index, (at, text) in enumerate(zip(found.ats, found.texts, strict=True))
        if b"API_VERSIONS" not in text and index not in found.faults
    ]
    return rows, count


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_document_says_what_the_log_says(shape, name, tmp_path):
    lines = timed_lines(name)
    plain, _ = kept(write(tmp_path / "server.log", lines))
    assert len(plain) > 50
    path = tmp_path / "export.json"
    path.write_bytes(SHAPES[shape](with_times(lines)))
    found, count = kept(path)
    assert found == plain if shape != "gcloud" else found[::-1] == plain
    assert count - len(lines) in (0, 1, 2, 3)  # a command or names of columns before it


@pytest.mark.parametrize("shape", ["Loki, query_range", "CloudWatch, a subscription", "Elastic's integration of Kafka", "indented"])
def test_a_large_document_is_cut_part_by_part(shape, tmp_path, monkeypatch):
    """As if it were a thousand times as large: no part but an entry is read as a whole."""
    lines = timed_lines(LOGS[0], 100)
    path = tmp_path / "export.json"
    path.write_bytes(SHAPES[shape](with_times(lines)))
    whole = kept(path)
    monkeypatch.setattr(documents, "_WHOLE_BYTES", 3_000)
    monkeypatch.setattr(documents, "SAMPLE_BYTES", 5_000)
    assert kept(path) == whole
    assert len(whole[0]) > 50


def test_a_document_of_many_megabytes_takes_little_memory(tmp_path, monkeypatch):
    """As if it were eight times as large."""
    monkeypatch.setattr(documents, "_WHOLE_BYTES", documents._WHOLE_BYTES // 8)
    path = tmp_path / "export.json"
    lines = with_times(timed_lines(LOGS[1], 400) * 80)
    path.write_bytes(LOKI(lines))
    size = path.stat().st_size
    del lines
    tracemalloc.start()
    with open_log(path) as log:
        count = sum(data.count(b"\n") for data in iter(lambda: log.read(1 << 18), b""))
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 32_000
    assert peak < 8 << 20 < size


@pytest.mark.parametrize("share", [0.3, 0.62, 0.999])
@pytest.mark.parametrize("shape", ["Loki, query_range", "indented", "OpenTelemetry, a document a line", "Elastic's integration of Kafka"])
def test_a_document_that_ends_too_early_loses_no_entry_but_its_last(shape, share, tmp_path):
    lines = timed_lines(LOGS[0], 100)
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    whole.write_bytes(SHAPES[shape](with_times(lines)))
    data = whole.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    found, _ = kept(cut)
    assert found[:-1] == kept(whole)[0][: len(found) - 1]
    assert len(found) >= share * 100 - 8


def test_a_damaged_entry_costs_no_other(tmp_path):
    lines = timed_lines(LOGS[0], 100)
    path = tmp_path / "export.json"
    data = SHAPES["OpenTelemetry, a document a line"](with_times(lines)).split(b"\n")
    data[3] = data[3][: len(data[3]) // 2]
    path.write_bytes(b"\n".join(data))
    plain, _ = kept(write(tmp_path / "server.log", lines))
    assert len(kept(path)[0]) >= len(plain) - 7  # those of the document, at most
    broken = EVENTS(with_times(lines)).replace(b"Stabilized", b"Stab\x01lized", 1)
    path.write_bytes(broken)
    assert len(kept(path)[0]) >= len(plain) - 1


@pytest.mark.parametrize("line", [
    b'{"a": "cut off', b'{"a": {"b": 1', b'["a", "b"]', b'{"message":"one entry","tags":["x y z of a list of words","b"]}', b'{"a": 1}',
    b'{"log":"a half line of [{\\"', b"[", b"[2026-11-21 06:09:19,456] INFO x",
])  # fmt: skip
def test_what_is_no_document_changes_nothing(line, tmp_path):
    lines = [line, *timed_lines(LOGS[0], 100), line, b"  at a.B", b""]
    text = b"".join(one + b"\n" for one in lines)
    for name, data in (("plain.log", text), ("packed.log", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        with open_log(tmp_path / name) as log:
            assert b"".join(iter(lambda log=log: log.read(1 << 18), b"")) == text


def test_what_follows_in_a_file_of_documents_is_read(tmp_path):
    lines = timed_lines(LOGS[0], 100)
    path = tmp_path / "in/export.json"
    path.parent.mkdir()
    documents_of = SHAPES["OpenTelemetry, a document a line"]
    whole = documents_of(with_times(lines))
    cut = whole.index(b"\n", len(whole) // 2) - 300  # amid a document
    path.write_bytes(whole[:cut])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    with path.open("ab") as file:
        file.write(whole[cut:])
    run(tmp_path / "in", tmp_path / "out", consumer)
    other, _ = run(tmp_path / "in", tmp_path / "other")
    assert sorted(row["text"] for row in consumer.of("line")) == sorted(row["text"] for row in other.of("line"))


def test_a_rebalancing_log_of_huawei_has_the_coordinators_sentences():
    said = "Assignment received from leader for group g for generation 1"
    entry = {"leaderId": "c-1", "generationId": "1", "reason": said, "groupId": "g", "coordinatorId": "0", "type": "END_REBALANCE"}
    line = json.dumps({"level": "INFO", "timestamp": "2023-03-23 17:23:22,906", "message": entry}).encode()
    assert own_line(line) == (
        f"[2023-03-23 17:23:22,906] INFO [GroupCoordinator 0]: {said} (kafka.coordinator.group.GroupCoordinator)".encode()
    )
    assert writer_of(line) is Writer.BROKER


def test_streams_of_a_document_are_logs_of_their_own(tmp_path):
    brokers = {f"kafka-{node}": timed_lines(f"kafka-4.2.0/broker-{node}/server.log", 100) for node in (1, 2)}
    values = {pod: [[f"{ms}000000", line] for ms, line in with_times(lines)] for pod, lines in brokers.items()}
    streams = [{"stream": {"app": "kafka", "pod": pod}, "values": rows} for pod, rows in values.items()]
    write(tmp_path / "in/loki.json", [json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}}).encode()])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"broker-1", "broker-2"}
    assert len(consumer.of("line")) > 100


@pytest.mark.parametrize(("shape", "more", "said"), [
    ("Elasticsearch, _search", {}, "100 of 10,000 or more entries are in it"),
    ("Loki, query_range", {}, "more may follow its 100 entries, exactly a page"),
    ("Elasticsearch, _search", {"timed_out": True, "hits": {"total": 100}}, "timed_out says so"),
    ("CloudWatch, filter-log-events", {"nextToken": "x"}, "another page follows it"),
    ("CloudWatch, get-query-results", {"statistics": {"recordsMatched": 53_211.0}}, "100 of 53,211 entries are in it"),
    ("Datadog's pipeline of Kafka", {}, "another page follows it"),
    ("CloudWatch, filter-log-events", {}, ""),
])  # fmt: skip
@pytest.mark.parametrize("whole_bytes", [4 << 20, 3_000])
def test_what_a_document_does_not_have_is_told(shape, more, said, whole_bytes, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_WHOLE_BYTES", whole_bytes)
    value = json.loads(SHAPES[shape](with_times(timed_lines(LOGS[0], 100))))
    for name, one in more.items():
        value[name] = {**value[name], **one} if name in value and isinstance(one, dict) else one
    path = tmp_path / "export.json"
    path.write_text(json.dumps(value))
    with open_log(path) as log:
        for _ in iter(lambda: log.read(1 << 18), b""):
            pass
        assert dict(log.left_out) == ({said: 1} if said else {})


def test_an_event_that_its_store_cut_and_a_sample_are_told(tmp_path):
    """CloudWatch cuts an event of 256 kB, of which it counts 26 bytes itself: the rest is the next event, or lost."""
    line, *others = with_times(timed_lines(LOGS[0], 4))
    for name, shape, first, more, said in (
        ("cut", EVENTS, "x" * (262_144 - 26), {}, {"lines of 262,118 bytes end there, where stores cut them": 1}),
        ("sample", SHAPES["New Relic"], line[1], {"itemCount": 10}, {"it is a sample, 1 of 10 entries": 1}),
        ("all", SHAPES["New Relic"], line[1], {"itemCount": 1}, {}),
    ):
        value = json.loads(shape([(line[0], f"{line[1]} {first}"[-len(first) :]), *others]))
        for entry in value["events"] if isinstance(value, dict) else value:
            entry.update(more)
        (tmp_path / name).write_text(json.dumps(value))
        with open_log(tmp_path / name) as log:
            for _ in iter(lambda log=log: log.read(1 << 18), b""):
                pass
            assert dict(log.left_out) == said


def test_a_sample_of_a_document_is_the_line_of_the_log():
    line = timed_lines(LOGS[0], 1)[0].decode()
    written = f'{{"timestamp":"2026-11-21T06:09:19.456Z","message":{json.dumps(line)},"container":"kafka-0"}}'
    assert shown(written, None) == shown(line, written.replace(json.dumps(line)[1:-1], "\0")) == line
    assert shown(written[:-40], None) == line[: len(line) - 40 + len('","container":"kafka-0"}')]
    assert shown(line, "broker-1  | \0") == f"broker-1  | {line}"


def with_times(lines):
    return [(LocalTimes("UTC").read(line, 0), line.decode()) for line in lines]
