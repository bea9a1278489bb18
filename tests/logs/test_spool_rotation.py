"""Logs that are rotated, compressed, copied or moved while the spool reads them: each line comes once."""

import gzip
import os
import shutil
from itertools import zip_longest

import pyarrow.parquet as pq
import pytest

from jobs.logs import spool
from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.log_makers import coordinator, write
from tests.logs.spooling import SMALL_BLOCKS, Consumer, run


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


@pytest.mark.parametrize("follow", [True, False])
def test_a_log_that_is_emptied_while_it_is_read_and_grows_again_is_read_on_in_its_copy(tmp_path, follow):
    """copytruncate: where the reader goes on in its open file, there are lines of the next log by then."""
    path = tmp_path / "in/b/server.log"
    old, new = ([coordinator(at, f"Stabilized group g generation {at}.") for at in range(at, at + 5_000)] for at in (10_000, 20_000))
    write(path, old)
    settings = SpoolSettings(poll_seconds=0.01, patience_seconds=0.0, slice_lines=500, limits=SMALL_BLOCKS)
    s = Spool(tmp_path / "in", tmp_path / "out", settings=settings)
    looks, texts = [], []

    def stop():
        looks.append(1)
        return len(looks) > 30

    for report in s.slices(follow=follow, stop=stop):
        texts += [r["text"] for r in pq.read_table(report.path).to_pylist() if r["record"] == "line"]
        if not path.with_name("server.log.1").exists():
            shutil.copyfile(path, path.with_name("server.log.1"))
            write(path, new)
    pairs = zip_longest(texts, (line.decode() for line in old + new))
    assert [pair for pair in pairs if pair[0] != pair[1]][:3] == []


@pytest.mark.parametrize("follow", [True, False])
def test_a_log_that_moves_on_between_two_names_of_a_look_is_one_log(tmp_path, follow):
    """The look finds it under its old name and, a moment later, under its new one."""
    first, second = tmp_path / "in/b/server.log.1", tmp_path / "in/b/server.log.2"
    write(first, [coordinator(i) for i in range(100)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    write(second, [coordinator(1_000 + i) for i in range(100)])
    looks = []

    def find(root):
        for file in spool.discover(root):
            yield file
            if not looks and file.path == first:
                looks.append(1)
                second.rename(second.with_name("server.log.3"))
                first.rename(second)
                write(first, [coordinator(2_000 + i) for i in range(100)])

    s = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(poll_seconds=0.01, patience_seconds=0.0), find=find)
    polls = iter(range(6))
    assert sum(r.lines_read for r in s.slices(follow=follow, stop=lambda: next(polls, None) is None)) == 200
    consumer.take(tmp_path / "out")
    assert len({row["text"] for row in consumer.of("line")}) == len(consumer.of("line")) == 300


def _copy_half(path):
    path.with_name("server.log.1").write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _copy(path):
    shutil.copyfile(path, path.with_name("server.log.1"))


def _empty(path):
    path.write_bytes(b"")


def _rename(path):
    path.rename(path.with_name("server.log.1"))


@pytest.mark.parametrize("rotation", [[_rename], [_copy_half, _copy, _empty]])
def test_rotation_before_any_reading_of_a_file_neither_loses_nor_repeats_a_line(tmp_path, monkeypatch, rotation):
    """Whatever of the file is read: its beginning, its lines, or what stands before the place that was reached."""
    pread, numbers, reads = os.pread, [], 0

    def reading(descriptor, size, position):
        nonlocal reads
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            reads += 1
            if reads >= moment and steps:
                steps.pop(0)(path)
                grow(0 if steps else 40)
        return pread(descriptor, size, position)

    def grow(count):
        with path.open("ab") as file:
            for _ in range(count):
                numbers.append(len(numbers))
                file.write(coordinator(numbers[-1], f"Stabilized group g generation {numbers[-1]} with 3 members.") + b"\n")

    def stopped():
        looks.append(1)
        if len(looks) < 4 and len(steps) in (0, len(rotation)):  # what is written between copying and emptying is lost to anybody
            grow(40)
        return len(looks) > 8

    monkeypatch.setattr(os, "pread", reading)
    moment = 0
    while moment <= reads:  # as long as the last one came to its moment
        moment, reads, numbers, looks, told = moment + 1, 0, [], [], []
        folder = tmp_path / str(moment)
        path = folder / "in/b/server.log"
        path.parent.mkdir(parents=True)
        steps = list(rotation)
        grow(40)
        s = Spool(folder / "in", folder / "out", settings=SpoolSettings(poll_seconds=0.001, patience_seconds=0.0))
        s.troubles.tell = told.append
        for _ in s.slices(follow=True, stop=stopped):
            pass
        consumer = Consumer()
        consumer.take(folder / "out")
        found = sorted(int(row["text"].partition("generation ")[2].split()[0]) for row in consumer.of("line"))
        assert found == numbers, (moment, told)
        assert not any("cut short" in text for text in told)
    assert moment > 20


def test_a_log_in_whose_place_another_stands_between_the_look_and_the_next_is_not_cut_short(tmp_path):
    """Rotation moves it on, and gzip has just created the file of the next log under its name."""
    folder, told = tmp_path / "in/b", []
    path = write(folder / "server.log.1", [coordinator(i) for i in range(50)])

    class Rotating(Spool):
        def _look_at(self, file):
            look = super()._look_at(file)
            if file == path and len(path.read_bytes().splitlines()) == 60:
                path.rename(folder / "server.log.2")
                path.write_bytes(b"")
            return look

    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    with path.open("ab") as file:
        file.write(b"".join(coordinator(50 + i) + b"\n" for i in range(10)))
    s = Rotating(tmp_path / "in", tmp_path / "out")
    s.troubles.tell = told.append
    assert sum(r.lines_read for r in s.slices()) == 10
    consumer.take(tmp_path / "out")
    assert told == []
    assert len({row["position"] for row in consumer.of("line")}) == len(consumer.of("line")) == 60
