"""Slices: complete, in order of time, once, whatever the logs are."""

import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.logs.bytes import open_log
from jobs.logs.lines import LINE_LIMITS
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.spool import Spool, SpoolSettings
from jobs.logs.times import LocalTimes
from tests.logs.any_log import HOUR, YEARS, logs
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, write
from tests.logs.spooling import SMALL_BLOCKS, Consumer, assert_same, at_ms, brokers, run


def test_rows_of_a_slice(tmp_path):
    write(tmp_path / "in/c/b/kafka-request.log", [request(1), fetch(2), b"junk", request(4), fetch(5)])
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    common = {"cluster": "c", "broker": "b", "origin": "c/b/kafka-request.log"} | dict.fromkeys(
        ("text", "fault", "context", "repeated", "around")
    )
    lines = [
        {**common, "record": "line", "position": p, "at": at, "text": t.decode(), "fault": f, "lines": 1}
        for p, at, t, f in [(1, 1, request(1), None), (3, None, b"junk", "NO_TIMESTAMP"), (4, 4, request(4), None)]
    ]
    second = START_MS // 1_000
    clock = {**common, "record": "clock", "position": 5, "at": 5, "text": f"[{second},{second}]", "lines": 2}
    end = {**common, "record": "end", "origin": "", "position": 0, "at": 5, "lines": 0}
    got = [{**row, "at": None if row["at"] is None else at_ms(row) - START_MS} for row in consumer.rows]
    assert got == [*lines, clock, end]
    assert (report.lines_read, report.last) == (5, True)
    assert report.bytes_read == report.bytes_total == (tmp_path / "in/c/b/kafka-request.log").stat().st_size


def test_a_clock_tells_the_seconds_in_which_a_log_was_written(tmp_path):
    lines = [request(0), fetch(200), other(1_500), other(2_900), fetch(9_000), request(9_999), fetch(20_000)]
    write(tmp_path / "in/c/b/kafka-request.log", lines)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    first = START_MS // 1_000
    [clock] = [row for row in consumer.rows if row["record"] == "clock"]
    assert json.loads(clock["text"]) == [first, first + 2, first + 9, first + 9, first + 20, first + 20]


def test_however_a_log_is_sliced_it_was_heard_in_the_same_seconds(tmp_path):
    inputs = brokers(tmp_path / "in")
    heard = []
    for number, slice_lines in enumerate((100_000, 100)):
        consumer, _ = run(inputs, tmp_path / f"out-{number}", slice_lines=slice_lines, limits=SMALL_BLOCKS)
        seconds = {}
        for row in consumer.rows:
            stretches = json.loads(row["text"]) if row["record"] == "clock" else []
            for first, last in zip(stretches[::2], stretches[1::2], strict=True):
                seconds.setdefault(row["origin"], set()).update(range(first, last + 1))
        heard.append(seconds)
    assert heard[0] == heard[1]


def test_slices_are_cut_in_time_brokers_together(tmp_path):
    inputs = brokers(tmp_path / "in", lines=2000)
    write(inputs / "b0/controller.log", [other(i * 60_000) for i in range(60)])  # sparse, and goes on for longer
    burst = [request(100_000 + i // 100) for i in range(3000)]
    write(inputs / "b2/kafka-request.log.1", burst)
    consumer, reports = run(inputs, tmp_path / "out", slice_lines=500, limits=SMALL_BLOCKS)
    assert len(reports) > 10
    assert max(r.lines_read for r in reports) < 700
    newest = START_MS - 1
    for rows in consumer.slices:
        times = [at_ms(r) for r in rows if r["record"] == "line"]
        clocks = [at_ms(r) for r in rows if r["record"] == "clock"]
        assert all(at > newest for at in times + clocks)  # nothing was left behind by the slice before
        newest = max(clocks)
    ends = [r for r in consumer.rows if r["record"] == "end"]
    assert ends == consumer.slices[-1][-3:]
    assert [r["broker"] for r in ends] == ["b0", "b1", "b2"]


def test_many_small_files_are_not_one_slice(tmp_path):
    for hour in range(30):
        write(tmp_path / f"in/b/server.log.{hour}", [coordinator(hour * HOUR + i * 60_000) for i in range(60)])
    _, reports = run(tmp_path / "in", tmp_path / "out", slice_lines=100)
    assert all(100 <= r.lines_read <= 160 for r in reports[:-1])


def test_any_number_of_lines_may_have_the_same_time(tmp_path):
    write(tmp_path / "in/b/kafka-request.log", [request(7)] * 3000 + [b"junk"] * 3000)
    _, reports = run(tmp_path / "in", tmp_path / "out", slice_lines=100, limits=SMALL_BLOCKS)
    assert max(r.lines_read for r in reports) <= 300
    assert sum(r.lines_read for r in reports) == 6000


def test_the_same_input_again_and_a_longer_one(tmp_path):
    inputs, out = brokers(tmp_path / "in"), tmp_path / "out"
    (inputs / "b0/server.log.1.gz").write_bytes(gzip.compress(other(-HOUR) + b"\n" + other(-HOUR + 1) + b"\n"))
    consumer, _ = run(inputs, out)
    before = len(consumer.rows)
    assert run(inputs, out, consumer)[1] == []
    with (inputs / "b1/kafka-request.log").open("ab") as log:
        log.write(request(HOUR) + b"\n")
    _, [report] = run(inputs, out, consumer)
    assert (report.lines_read, report.last) == (1, True)
    line, clock, *ends = consumer.rows[before:]
    assert (line["position"], line["origin"], clock["position"], clock["lines"]) == (201, "b1/kafka-request.log", 201, 0)
    assert [at_ms(e) for e in ends][1] == START_MS + HOUR
    assert run(inputs, out, consumer)[1] == []


def test_many_slices(tmp_path):
    inputs = brokers(tmp_path / "in", lines=1000)
    whole, _ = run(inputs, tmp_path / "out1")
    consumer, reports = run(inputs, tmp_path / "out2", slice_lines=180, limits=SMALL_BLOCKS)
    assert len(reports) >= 15
    assert_same(consumer, whole)
    newest = 0
    for rows in consumer.slices:
        times = [at_ms(r) for r in rows if r["record"] == "line"]
        assert min(times) > newest
        newest = max(times)


def test_a_last_line_without_end(tmp_path):
    log = write(tmp_path / "in/b/server.log", [coordinator(0)])
    with log.open("ab") as f:
        f.write(coordinator(1)[:70])
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    assert report.lines_read == 2
    with log.open("ab") as f:
        f.write(coordinator(1)[70:] + b"\n" + coordinator(2) + b"\n")
    _, [report] = run(tmp_path / "in", tmp_path / "out", consumer)
    assert report.lines_read == 1
    assert [r["position"] for r in consumer.of("line")] == [1, 2, 3]
    assert consumer.of("line")[-1]["text"] == coordinator(2).decode()


def test_damaged_file_is_told_once(tmp_path):
    path = tmp_path / "in/b/server.log.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"".join(coordinator(i * i) + b"\n" for i in range(5000)))[:9000])
    (tmp_path / "in/b/old.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(99))
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    assert consumer.faults()["DAMAGED_FILE"] == 2
    assert sum(r["lines"] for r in consumer.rows) == report.lines_read + 2
    assert sum(r["lines"] for r in consumer.of("clock")) <= 1  # what was left of the last line
    assert run(tmp_path / "in", tmp_path / "out", consumer)[1] == []


def test_empty_inputs(tmp_path):
    (tmp_path / "in").mkdir()
    assert run(tmp_path / "in", tmp_path / "out")[1] == []
    write(tmp_path / "in/b/server.log", [])
    (tmp_path / "in/b/x.log.gz").write_bytes(gzip.compress(b""))
    assert run(tmp_path / "in", tmp_path / "out")[1] == []
    write(tmp_path / "in/b/server.log", [b""])
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    assert report.lines_read == 1
    assert [(r["record"], r["lines"], r["at"]) for r in consumer.rows] == [("clock", 1, None), ("end", 0, None)]


@pytest.mark.parametrize("slice_lines", [7, 100_000])
def test_a_quiet_log_is_believed_when_another_was_there(tmp_path, slice_lines):
    write(tmp_path / "in/b/server.log", [coordinator(0), coordinator(5 * HOUR)])
    assert run(tmp_path / "in", tmp_path / "out1")[0].faults() == {"TIMESTAMP_OUTLIER": 1}
    write(tmp_path / "in/b/kafka-request.log", [fetch(i * HOUR // 10) for i in range(60)])
    assert not run(tmp_path / "in", tmp_path / "out2", slice_lines=slice_lines)[0].faults()
    write(tmp_path / "in/b/controller.log", [other(0), other(YEARS)])
    assert run(tmp_path / "in", tmp_path / "out3", slice_lines=slice_lines)[0].faults() == {"TIMESTAMP_OUTLIER": 1}


TWO_LOGS = [-90_000, 0, *[YEARS] * 3, *[0] * 8, 70_000]  # the second begins where time falls back
BACK_BEHIND_OUTLIERS = [0, -2 * HOUR // 3, *[HOUR // 3] * 3, -YEARS, 1_110_000]  # a slice ends among the outliers


@pytest.mark.slow
@example(inputs=[("b1", [request(ms) for ms in TWO_LOGS], False)], slice_lines=2, stops=[])
@example(inputs=[("b1", [request(ms) for ms in BACK_BEHIND_OUTLIERS], False)], slice_lines=2, stops=[])
@given(
    inputs=st.lists(st.tuples(st.sampled_from(["b1", "b2"]), logs(), st.booleans()), max_size=4),
    slice_lines=st.sampled_from([2, 20, 100_000]),
    stops=st.lists(st.integers(1, 4), max_size=3),
)
def test_any_input_in_any_slices(tmp_path_factory, inputs, slice_lines, stops):
    folder = tmp_path_factory.mktemp("spool")
    (folder / "in").mkdir()
    for number, (broker, lines, packed) in enumerate(inputs):
        first = b"log %d" % number * 20  # else two may be the same
        path = write(folder / "in" / broker / f"server.log.{number}", [first, *lines])
        if packed:
            path.write_bytes(gzip.compress(path.read_bytes()))
    whole, reports = run(folder / "in", folder / "whole")
    read = sum(r.lines_read for r in reports)
    assert read == sum(len(lines) + 1 for _, lines, _ in inputs)
    assert sum(whole.counts().values()) == read
    for lines in whole.logs(whole.ends()).values():
        positions = [line["position"] for line in lines]
        assert positions == sorted(set(positions))

    consumer = Consumer()
    for stop in [*stops, None]:
        settings = SpoolSettings(slice_lines=slice_lines)
        for count, _ in enumerate(Spool(folder / "in", folder / "out", settings=settings).slices(), 1):
            consumer.take(folder / "out")
            if count == stop:
                break
    assert_same(consumer, whole)


def test_one_log_gives_what_its_reader_gives(tmp_path):
    lines = [(request, fetch)[i % 3 == 0](i) for i in range(500)]
    path = write(tmp_path / "in/b/kafka-request.log", lines)
    kept = KeptLines()
    LogReader(lambda: open_log(path), LocalTimes("UTC")).read(kept)
    consumer, _ = run(tmp_path / "in", tmp_path / "out", slice_lines=64)
    assert [r["text"].encode() for r in consumer.of("line")] == kept.texts
    assert [r["position"] for r in consumer.of("line")] == kept.positions


def test_time_zones_by_cluster(tmp_path):
    write(tmp_path / "in/ny/b/server.log", [coordinator(0)])
    write(tmp_path / "in/eu/b/server.log", [coordinator(0)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out", timezone="Europe/Berlin", timezones={"ny": "America/New_York"})
    assert {r["cluster"]: (at_ms(r) - START_MS) // HOUR for r in consumer.of("line")} == {"eu": -1, "ny": 5}


def test_memory_is_bounded_by_a_slice(tmp_path):
    big = "g" * 10_000
    write(tmp_path / "in/b/kafka-request.log", [request(i, group=big) for i in range(400)])
    consumer, reports = run(tmp_path / "in", tmp_path / "out", slice_bytes=300_000)
    assert len(reports) > 5
    assert max(sum(r["record"] == "line" for r in rows) for rows in consumer.slices) * 10_000 < 300_000 + 2 * LINE_LIMITS.block_bytes
