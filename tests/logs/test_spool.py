"""Slices: complete, in order of time, once, whatever happens in between."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs import spool
from jobs.logs.bytes import open_log
from jobs.logs.lines import LINE_LIMITS, LineLimits
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.spool import ARROW_SCHEMA, Spool, SpoolSettings
from jobs.logs.times import LocalTimes
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, write
from tests.logs.test_reader import HOUR, YEARS, logs

SMALL_BLOCKS = LineLimits(block_bytes=2_000)


class Consumer:
    """Does what Spark does: takes slices in order of their dates, and deletes them."""

    def __init__(self):
        self.slices = []

    def take(self, folder):
        for path in sorted((folder / "slices").iterdir(), key=lambda p: p.stat().st_mtime):
            table = pq.read_table(path)
            assert table.schema.equals(ARROW_SCHEMA)
            self.slices.append(table.to_pylist())
            path.unlink()

    @property
    def rows(self):
        return [row for rows in self.slices for row in rows]

    def of(self, record):
        return [row for row in self.rows if row["record"] == record]

    def lines(self):
        """What was kept, by log: comparable whatever the slices were."""
        return {origin: [r for r in self.of("line") if r["origin"] == origin] for origin in {r["origin"] for r in self.rows}}

    def counts(self):
        counts = Counter()
        for row in self.rows:
            counts[row["origin"]] += row["lines"]
        return {origin: n for origin, n in counts.items() if n}


def run(inputs, folder, consumer=None, **settings):
    consumer = consumer or Consumer()
    reports = []
    for report in Spool(inputs, folder, settings=SpoolSettings(**settings)).slices():
        reports.append(report)
        consumer.take(folder)
    return consumer, reports


def brokers(root, count=3, lines=200, step=100):
    """Brokers with a request log and a server log each, of the same span of time."""
    for b in range(count):
        write(root / f"b{b}" / "kafka-request.log", [(request, fetch)[i % 3 == 0](i * step + b) for i in range(lines)])
        write(root / f"b{b}" / "server.log", [(coordinator, other)[i % 2](i * step * 5 + b) for i in range(lines // 5)])
    return root


def at_ms(row):
    return None if row["at"] is None else round((row["at"] - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000)


def test_rows_of_a_slice(tmp_path):
    write(tmp_path / "in/c/b/kafka-request.log", [request(1), fetch(2), b"junk", request(4), fetch(5)])
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    common = {"cluster": "c", "broker": "b", "origin": "c/b/kafka-request.log", "text": None, "fault": None, "context": None}
    lines = [
        {**common, "record": "line", "position": p, "at": at, "text": t.decode(), "fault": f, "lines": 1}
        for p, at, t, f in [(1, 1, request(1), None), (3, None, b"junk", "NO_TIMESTAMP"), (4, 4, request(4), None)]
    ]
    second = START_MS // 1_000
    clock = {**common, "record": "clock", "position": 5, "at": 5, "text": f"[{second},{second}]", "lines": 2}
    end = {**common, "record": "end", "origin": "", "position": 0, "at": 5, "lines": 0}
    got = [{**row, "at": None if row["at"] is None else at_ms(row) - START_MS} for row in consumer.rows]
    assert got == [*lines, clock, end]
    assert (report.lines_read, report.kept, report.skipped, report.last) == (5, 3, 2, True)
    assert report.faults == {"NO_TIMESTAMP": 1}
    assert report.newest_ms == START_MS + 5
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
    assert [r.newest_ms for r in reports] == sorted(r.newest_ms for r in reports)


def test_any_number_of_lines_may_have_the_same_time(tmp_path):
    write(tmp_path / "in/b/kafka-request.log", [request(7)] * 3000 + [b"junk"] * 3000)
    _, reports = run(tmp_path / "in", tmp_path / "out", slice_lines=100, limits=SMALL_BLOCKS)
    assert max(r.lines_read for r in reports) <= 300
    assert sum(r.lines_read for r in reports) == 6000


def test_modification_times_rise(tmp_path):
    inputs = brokers(tmp_path / "in")
    paths = [r.path for r in Spool(inputs, tmp_path / "out", settings=SpoolSettings(slice_lines=50)).slices()]
    dates = [int(p.stat().st_mtime) for p in paths]
    assert dates == list(range(dates[0], dates[0] + len(paths)))
    assert len(paths) > 4


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
    assert consumer.lines() == whole.lines()
    assert consumer.counts() == whole.counts()
    newest = 0
    for rows in consumer.slices:
        times = [at_ms(r) for r in rows if r["record"] == "line"]
        assert min(times) > newest
        newest = max(times)


def test_one_broker_comes_later(tmp_path):
    inputs = brokers(tmp_path / "in", lines=3000)
    consumer, _ = run(inputs, tmp_path / "out", slice_lines=500, limits=SMALL_BLOCKS, delays={"b1": 60_000})
    compared = 0
    for rows in consumer.slices[:-1]:
        newest = {r["broker"]: at_ms(r) for r in rows if r["record"] == "clock"}
        if {"b0", "b1"} <= newest.keys() and newest["b0"] < START_MS + 290_000:
            compared += 1
            assert abs(newest["b0"] - newest["b1"] - 60_000) < 2_000
    assert compared > 5
    assert consumer.lines() == run(inputs, tmp_path / "out1")[0].lines()


# Rotation.


def test_rotated_and_compressed_logs_are_read_on(tmp_path):
    inputs, out = tmp_path / "in", tmp_path / "out"
    log = write(inputs / "b/server.log", [coordinator(i) for i in range(50)])
    consumer, _ = run(inputs, out)
    with log.open("ab") as f:
        f.write(coordinator(50) + b"\n")
    log.rename(inputs / "b/server.log.2026-11-21-06")
    write(log, [coordinator(100), coordinator(101)])
    run(inputs, out, consumer)
    assert [(r["origin"], r["position"]) for r in consumer.of("line")[50:]] == [
        ("b/server.log.2026-11-21-06", 51),
        ("b/server.log", 1),
        ("b/server.log", 2),
    ]
    rotated = inputs / "b/server.log.2026-11-21-06"
    (inputs / "b/server.log.2026-11-21-06.gz").write_bytes(gzip.compress(rotated.read_bytes() + coordinator(51) + b"\n"))
    rotated.unlink()
    run(inputs, out, consumer)
    assert [(r["origin"], r["position"]) for r in consumer.of("line")[53:]] == [("b/server.log.2026-11-21-06.gz", 52)]
    assert run(inputs, out, consumer)[1] == []


def test_a_copy_is_not_read_twice(tmp_path):
    lines = [coordinator(i) for i in range(50)]
    log = write(tmp_path / "in/b/server.log", lines)
    write(tmp_path / "in/b/server.log.1", lines[:20])
    (tmp_path / "in/b/server.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    write(tmp_path / "in/b2/server.log", lines)  # another broker's, which happens to be the same
    s = Spool(tmp_path / "in", tmp_path / "out")
    assert sum(r.lines_read for r in s.slices()) == 100
    assert [f.origin for f in s.duplicates] == ["b/server.log.gz", "b/server.log.1"]


@pytest.mark.parametrize("count", [3, 20_000])
def test_a_log_that_is_moved_between_the_look_and_the_reading_is_read_at_the_next_look(tmp_path, count):
    folder = tmp_path / "in/b"
    path = write(folder / "server.log", [coordinator(i) for i in range(count)])
    looks = []

    def stop():
        looks.append(1)
        return len(looks) > 6

    def find(root):
        found = spool.discover(root)
        if not looks:
            path.rename(folder / "server.log.1")  # and never changes again
        return found

    settings = SpoolSettings(poll_seconds=0.01, patience_seconds=0.0, slice_lines=1_000)
    s = Spool(tmp_path / "in", tmp_path / "out", settings=settings, find=find)
    assert sum(r.lines_read for r in s.slices(follow=True, stop=stop)) == count


def test_a_log_that_is_moved_while_others_are_read_is_read_at_the_next_look(tmp_path):
    folder = tmp_path / "in/b"
    write(folder / "server.log.1", [coordinator(i) for i in range(3_000)])
    path = write(folder / "server.log", [coordinator(3_000 + i) for i in range(3_000)])
    s = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(poll_seconds=0.01, patience_seconds=0.0, slice_lines=1_000))
    looks, read = [], 0

    def stop():
        looks.append(1)
        return len(looks) > 3

    for report in s.slices(follow=True, stop=stop):
        read += report.lines_read
        if path.exists():
            (folder / "server.log.1").rename(folder / "server.log.2")
            path.rename(folder / "server.log.1")
    assert read == 6_000


@pytest.mark.parametrize("follow", [True, False])
def test_logs_moved_while_they_are_read_come_in_the_order_of_their_times(tmp_path, follow):
    folder = tmp_path / "in/b"
    for number in range(10):  # .9 is the oldest
        write(folder / f"server.log.{number}", [coordinator((9 - number) * 1_000 + i) for i in range(1_000)])
    s = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(poll_seconds=0.01, patience_seconds=0.0, slice_lines=500))
    looks, times, moves = [], [], 0

    def stop():
        looks.append(1)
        return len(looks) > 30

    for report in s.slices(follow=follow, stop=stop):
        times += [r["at"] for r in pq.read_table(report.path).to_pylist() if r["record"] == "line"]
        if moves < 5:
            for number in range(9 + moves, moves - 1, -1):
                (folder / f"server.log.{number}").rename(folder / f"server.log.{number + 1}")
            moves += 1
    assert len(times) == 10_000
    assert times == sorted(times)


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
    assert report.faults["DAMAGED_FILE"] == 2
    assert sum(r["lines"] for r in consumer.rows) == report.lines_read + 2
    assert report.skipped <= 1  # what was left of the last line
    assert run(tmp_path / "in", tmp_path / "out", consumer)[1] == []


def test_empty_inputs(tmp_path):
    (tmp_path / "in").mkdir()
    assert run(tmp_path / "in", tmp_path / "out")[1] == []
    write(tmp_path / "in/b/server.log", [])
    (tmp_path / "in/b/x.log.gz").write_bytes(gzip.compress(b""))
    assert run(tmp_path / "in", tmp_path / "out")[1] == []
    write(tmp_path / "in/b/server.log", [b""])
    consumer, [report] = run(tmp_path / "in", tmp_path / "out")
    assert (report.lines_read, report.newest_ms) == (1, None)
    assert [(r["record"], r["lines"], r["at"]) for r in consumer.rows] == [("clock", 1, None), ("end", 0, None)]


# Jumps in time that a log alone cannot decide.


@pytest.mark.parametrize("slice_lines", [7, 100_000])
def test_a_quiet_log_is_believed_when_another_was_there(tmp_path, slice_lines):
    write(tmp_path / "in/b/server.log", [coordinator(0), coordinator(5 * HOUR)])
    assert run(tmp_path / "in", tmp_path / "out1")[1][0].faults == {"TIMESTAMP_OUTLIER": 1}
    write(tmp_path / "in/b/kafka-request.log", [fetch(i * HOUR // 10) for i in range(60)])
    _, reports = run(tmp_path / "in", tmp_path / "out2", slice_lines=slice_lines)
    assert not any(r.faults for r in reports)
    write(tmp_path / "in/b/controller.log", [other(0), other(YEARS)])
    _, reports = run(tmp_path / "in", tmp_path / "out3", slice_lines=slice_lines)
    assert [r.faults for r in reports if r.faults] == [{"TIMESTAMP_OUTLIER": 1}]


# Following.


def follow(inputs, folder, steps, consumer=None, **settings):
    """Runs with `steps`, called one after each look."""
    consumer = consumer or Consumer()
    steps = iter(steps)
    s = Spool(inputs, folder, settings=SpoolSettings(poll_seconds=0, **settings))

    def stop():
        step = next(steps, None)
        if step:
            step()
        return step is None

    reports = []
    for report in s.slices(follow=True, stop=stop):
        reports.append(report)
        consumer.take(folder)
    return consumer, reports


def test_follow(tmp_path):
    log = write(tmp_path / "in/b/server.log", [coordinator(i) for i in range(10)])

    def append(data, path=log):
        def step():
            with path.open("ab") as f:
                f.write(data)

        return step

    def rotate():
        log.rename(tmp_path / "in/b/server.log.1")
        write(log, [coordinator(200)])

    steps = [
        append(coordinator(10)[:50]),
        append(coordinator(10)[50:]),
        append(b"\n" + coordinator(5 * HOUR) + b"\n"),  # a jump: not believed yet
        append(b"".join(coordinator(11 + i) + b"\n" for i in range(9))),
        rotate,
        append(coordinator(30) + b"\n", tmp_path / "in/b/server.log.1"),
        lambda: None,
    ]
    consumer, reports = follow(tmp_path / "in", tmp_path / "out", steps)
    assert [r.lines_read for r in reports] == [10, 1, 10, 1, 1]
    assert not consumer.of("end")
    assert [(r["origin"], r["position"]) for r in consumer.of("line")][-2:] == [("b/server.log", 1), ("b/server.log.1", 22)]
    assert [r["position"] for r in consumer.of("line") if r["fault"]] == [12]
    texts = [r["text"] for r in consumer.of("line")]
    assert len(texts) == len(set(texts)) == 23
    # Then once: the input ends, though nothing was added.
    _, [report] = run(tmp_path / "in", tmp_path / "out", consumer)
    assert (report.lines_read, report.last) == (0, True)
    assert consumer.rows[-1]["record"] == "end"


def test_follow_then_once_takes_what_was_waited_for(tmp_path):
    log = write(tmp_path / "in/b/server.log", [coordinator(i) for i in range(10)])
    with log.open("ab") as f:
        f.write(coordinator(5 * 60_000) + b"\n" + coordinator(6 * 60_000))
    consumer, [report] = follow(tmp_path / "in", tmp_path / "out", [lambda: None])
    assert report.lines_read == 10
    _, [report] = run(tmp_path / "in", tmp_path / "out", consumer)
    assert (report.lines_read, report.last) == (2, True)
    assert not any(r["fault"] for r in consumer.rows)


def test_patience(tmp_path):
    write(tmp_path / "in/b/server.log", [coordinator(0), coordinator(1), coordinator(5 * 60_000)])
    _, reports = follow(tmp_path / "in", tmp_path / "out", [lambda: None, lambda: None], patience_seconds=0)
    assert sum(r.lines_read for r in reports) == 3


def test_throttle(tmp_path):
    inputs = brokers(tmp_path / "in")
    most, slept = 0, []
    s = Spool(inputs, tmp_path / "out", settings=SpoolSettings(slice_lines=50, max_pending=2))
    consumer = Consumer()
    waiting = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: (slept.append(seconds), consumer.take(tmp_path / "out")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "time", waiting)
        for _ in s.slices():
            most = max(most, len(list((tmp_path / "out/slices").iterdir())))
    assert most == 3
    assert slept
    with pytest.raises(ValueError, match="max_pending"):
        SpoolSettings(max_pending=1)


# Crashes.


class CrashError(Exception):
    pass


def crash_after(monkeypatch, target, name, calls):
    """Lets a function be called so many times, then crashes: before its work, or after."""
    original, seen = getattr(target, name), []

    def wrapped(*args, **kwargs):
        seen.append(1)
        if len(seen) > calls // 2:
            if calls % 2:
                original(*args, **kwargs)
            raise CrashError
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, wrapped)


@pytest.mark.parametrize("where", [(Path, "replace"), (spool, "write_whole"), (spool.pq, "write_table"), (os, "fsync")])
@pytest.mark.parametrize("calls", range(8))
def test_a_crash_anywhere_loses_and_doubles_nothing(tmp_path, where, calls):
    inputs = brokers(tmp_path / "in", lines=60)
    whole, _ = run(inputs, tmp_path / "whole")
    consumer, out = Consumer(), tmp_path / "out"
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            crash_after(patch, *where, calls)
            try:
                run(inputs, out, consumer, slice_lines=40)
            except CrashError:
                consumer.take(out)
    run(inputs, out, consumer, slice_lines=40)
    consumer.take(out)
    assert consumer.lines() == whole.lines()
    assert consumer.counts() == whole.counts()
    assert [r["record"] for r in consumer.slices[-1]].count("end") == 3
    assert not list((out / "_pending").iterdir())
    assert run(inputs, out, consumer)[1] == []


def test_a_state_of_another_version_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/state.json").write_text('{"version": 99}')
    with pytest.raises(ValueError, match="version 99"):
        Spool(tmp_path, tmp_path / "out")


# Any input.


@given(
    inputs=st.lists(st.tuples(st.sampled_from(["b1", "b2"]), logs(), st.booleans()), max_size=4),
    slice_lines=st.sampled_from([1, 3, 20, 100_000]),
    delay=st.sampled_from([0, 60_000]),
    stops=st.lists(st.integers(1, 4), max_size=3),
)
def test_any_input_in_any_slices(tmp_path_factory, inputs, slice_lines, delay, stops):
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
    for rows in whole.slices:
        for origin in {r["origin"] for r in rows}:
            positions = [r["position"] for r in rows if r["origin"] == origin and r["record"] == "line"]
            assert positions == sorted(set(positions))

    consumer = Consumer()
    for stop in [*stops, None]:
        settings = SpoolSettings(slice_lines=slice_lines, delays={"b1": delay})
        for count, _ in enumerate(Spool(folder / "in", folder / "out", settings=settings).slices(), 1):
            consumer.take(folder / "out")
            if count == stop:
                break
    assert consumer.lines() == whole.lines()
    assert consumer.counts() == whole.counts()


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
    _, reports = run(tmp_path / "in", tmp_path / "out", slice_bytes=300_000)
    assert len(reports) > 5
    assert max(r.kept for r in reports) * 10_000 < 300_000 + 2 * LINE_LIMITS.block_bytes
