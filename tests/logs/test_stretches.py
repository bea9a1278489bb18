"""Logs that several processes read side by side give the lines of one read in order, wherever stretches begin and whatever is damaged."""

import threading
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jobs.logs import spool
from jobs.logs.bytes import Fingerprint
from jobs.logs.envelopes import Unwrapper
from jobs.logs.files import LogFile
from jobs.logs.jumps import LogEnd
from jobs.logs.lines import LineLimits
from jobs.logs.mark import KeptLines, Mark
from jobs.logs.slice_rows import shares_in
from jobs.logs.slices import SlicerSettings
from jobs.logs.spool import Spool, SpoolSettings
from jobs.logs.stretches import reading
from jobs.logs.stretches.reading import LogPlace, Stretch, foretold, log_read, read_stretch
from jobs.logs.workers import Workers
from tests.effort import every, long
from tests.logs.any_log import logs
from tests.logs.envelopes.test_pieces import cri
from tests.logs.log_makers import api_versions, coordinator, other, request, write
from tests.logs.spooling import Consumer, assert_same, at_ms, brokers, rows_of_part, run
from tests.logs.test_spool_crashes import CrashError, crash_after

pytestmark = pytest.mark.slow

SMALL = LineLimits(block_bytes=2_000)
SHARES = 3
LINES = 600


def place(path, zone="UTC"):
    fingerprint = Fingerprint.of(path.read_bytes()[:4096])
    return LogPlace(LogFile("c", "b", "f", path), fingerprint, zone, SlicerSettings(tolerance_ms=60_000, limits=SMALL, unwrap=Unwrapper()))


def starts_of_lines(path):
    data = path.read_bytes()
    return [0, *(index + 1 for index, byte in enumerate(data) if byte == ord(b"\n"))]


def in_order(log, first, lines):
    """What one read of so many lines keeps, from a mark on; None if it stops before a jump in time."""
    kept, reader = KeptLines(), log.reader(first)
    done = reader.read(kept, max_lines=lines, log_end=LogEnd.HOLD) == lines
    seconds = reader.take_seconds()
    reader.close()
    rows = list(zip(kept.positions, kept.ats, kept.texts, map(kept.faults.get, range(len(kept))), strict=True))
    return (rows, reader.mark, seconds) if done else None


@given(logs(), st.integers(1, 6), st.sets(st.integers(0, 40), max_size=4), st.sampled_from(["UTC", "America/New_York"]))
def test_any_log_in_stretches_is_as_read_in_order_or_not_taken(tmp_path_factory, lines, begun, cuts, zone):
    path = write(tmp_path_factory.mktemp("log") / "kafka-request.log", [request(0), *lines])
    log, starts = place(path, zone), starts_of_lines(path)
    opened = in_order(log, Mark(), min(begun, len(starts) - 1))
    if opened is None:
        return
    start = opened[1]
    places = sorted({start.offset, starts[-1], *(starts[cut] for cut in cuts if cut < len(starts) and starts[cut] > start.offset)})
    first = replace(start, line=0)
    marks = [first, *(foretold(log, first, start.offset, offset) for offset in places[1:-1])]
    if None in marks or len(places) < 2:
        return
    stretches = [Stretch(log, mark, end, path.with_name(f"part-{end}"), SHARES) for mark, end in zip(marks, places[1:], strict=True)]
    read = log_read(start, stretches, [read_stretch(stretch) for stretch in stretches])
    if read is None:
        return
    rows, mark, seconds = in_order(log, start, len(starts) - 1 - start.line)
    assert read.mark == mark
    assert set(read.seconds) == {second for a, b in zip(seconds[::2], seconds[1::2], strict=True) for second in range(a, b + 1)}
    found = [
        (row["position"], at_ms(row), row["text"].encode(), row["fault"])
        for before, stretch, _ in read.places()
        for row in rows_of_part(stretch.part, before)
    ]
    assert found == rows


@pytest.mark.parametrize("size", [long(60), 150, long(5_000)])
def test_a_stretch_may_begin_between_the_pieces_of_a_line(tmp_path, size):
    """As a container's runtime stores long lines."""
    path = write(tmp_path / "0.log", [piece for second in range(12) for piece in cri(request(second * 1_000), size)])
    log, starts = place(path), starts_of_lines(path)
    start = in_order(log, Mark(), 1)[1]
    rows, mark, _ = in_order(log, start, len(starts) - 1 - start.line)
    first = replace(start, line=0)
    for middle in starts[2:-1]:
        marks = [first, foretold(log, first, starts[max(1, starts.index(middle) - 20)], middle)]
        ends = [middle, starts[-1]]
        stretches = [Stretch(log, at, end, path.with_name(f"part-{end}"), SHARES) for at, end in zip(marks, ends, strict=True)]
        read = log_read(start, stretches, [read_stretch(stretch) for stretch in stretches])
        assert read.mark == mark
        found = [
            (row["position"], row["text"].encode()) for before, stretch, _ in read.places() for row in rows_of_part(stretch.part, before)
        ]
        assert found == [(position, text) for position, _, text, _ in rows]


@pytest.mark.parametrize(
    ("changed_at", "probe", "is_taken"),
    [
        (99, 1, True),  # nothing changes
        (24, 20, True),  # the lines before the second stretch show it
        (24, 28, False),  # they do not: the second stretch would have kept its first line
        (35, 28, True),  # it changes in the last stretch
    ],
)
def test_a_level_that_changes_unseen_between_stretches_is_read_in_order(tmp_path, changed_at, probe, is_taken):
    lines = [api_versions(n * 1_000, 29 if n < changed_at else 33) if n % 4 == 0 else request(n * 1_000) for n in range(50)]
    lines[28] = lines[29] = request(29_000)
    path = write(tmp_path / "kafka-request.log", lines)
    log, starts = place(path), starts_of_lines(path)
    start = in_order(log, Mark(), 10)[1]
    rows, mark, _ = in_order(log, start, 40)
    marks = [first := replace(start, line=0), foretold(log, first, starts[probe], starts[30])]
    ends = [starts[30], starts[50]]
    stretches = [Stretch(log, at, end, tmp_path / f"{end}", SHARES) for at, end in zip(marks, ends, strict=True)]
    taken = log_read(start, stretches, [read_stretch(stretch) for stretch in stretches])
    assert (taken is not None) == is_taken
    if taken is not None:
        assert (taken.mark, taken.kept) == (mark, len(rows))


class OwnProcess:
    """Does the work of others in this process; something else before."""

    def __init__(self, before=lambda: None):
        self.count = Counter()
        self.before = before

    def __call__(self, function, work):
        self.before()
        self.count[function] += len(work)
        return [function(piece) for piece in work]


@pytest.fixture(scope="module")
def backlog(tmp_path_factory):
    """Logs of three brokers that nobody writes to, and what one read of them in order gives."""
    folder = tmp_path_factory.mktemp("backlog")
    return brokers(folder / "in", lines=LINES), *run(folder / "in", folder / "whole", slice_lines=240, fold=True)


SETTINGS = {"slice_lines": 60, "stretch_bytes": 3_000, "limits": SMALL, "fold": True}


def in_stretches(inputs, out, consumer=None, before=lambda: None):
    return run(inputs, out, consumer, Workers(2, OwnProcess(before)), **SETTINGS)


def test_a_folder_in_stretches_gives_the_lines_of_one_read_in_order(backlog, tmp_path):
    inputs, whole, reports = backlog
    consumer, found = in_stretches(inputs, tmp_path / "out")
    assert consumer.parts > 20
    assert_same(consumer, whole)
    assert sum(report.lines_read for report in found) == sum(report.lines_read for report in reports)
    # A clock covers all lines before it, and none after it.
    for before, after in pairwise(consumer.slices):
        newest = {row["origin"]: row["at"] for row in before if row["record"] == "clock"}
        late = [row for row in after if row["record"] == "line" and row["at"] < newest.get(row["origin"], row["at"])]
        assert late == []
    in_stretches(inputs, tmp_path / "out", consumer)
    assert not list((tmp_path / "out/parts").iterdir())


def test_a_log_of_two_lines_that_begins_late_holds_nobody_up(tmp_path):
    """Whether its first line bears a true time is open until the others have come there. They are read in stretches up to then."""
    inputs = brokers(tmp_path / "in", lines=LINES)
    write(inputs / "b0/server.log", [coordinator(52_000), coordinator(52_003)])
    whole, _ = run(inputs, tmp_path / "whole", slice_lines=240, fold=True)
    consumer, _ = in_stretches(inputs, tmp_path / "out")
    assert consumer.parts > 20
    assert_same(consumer, whole)


def test_lines_of_a_stretch_that_do_not_fit_into_memory_at_once_are_written_by_and_by(backlog, tmp_path, monkeypatch):
    inputs, whole, _ = backlog
    monkeypatch.setattr(reading, "_HELD_BYTES", 1_000)
    groups = []

    def look():
        groups.extend(shares_in(path) for path in (tmp_path / "out/parts").iterdir())

    consumer, _ = in_stretches(inputs, tmp_path / "out", before=look)
    assert max(groups) > 2 * SHARES
    assert_same(consumer, whole)


def rotate(path):
    """As log4j does: the file gets another name and a new one takes its place."""
    path.rename(path.with_name(path.name + ".1"))
    write(path, [request(10_000_000)])


def shorten(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def grow(path):
    with path.open("ab") as file:
        file.write(b"".join(request(101_000 + number) + b"\n" for number in range(50)))


@pytest.mark.parametrize("change", [rotate, grow])
def test_a_log_that_changes_between_the_plan_and_the_reading_loses_no_line(tmp_path, change):
    inputs = brokers(tmp_path / "in", lines=LINES)
    done = []

    def once():
        if not done:
            done.append(change(inputs / "b1/kafka-request.log"))

    consumer, _ = in_stretches(inputs, tmp_path / "out", before=once)
    in_stretches(inputs, tmp_path / "out", consumer)
    whole, _ = run(inputs, tmp_path / "whole", slice_lines=240, fold=True)
    assert done
    texts = [sorted(row["text"] for row in found.of("line")) for found in (consumer, whole)]
    assert texts[0] == texts[1]


def test_a_log_that_shrinks_between_the_plan_and_the_reading_gives_what_is_left(tmp_path):
    inputs = brokers(tmp_path / "in", lines=LINES)
    log = inputs / "b1/kafka-request.log"
    consumer, _ = in_stretches(inputs, tmp_path / "out", before=lambda: shorten(log) if log.stat().st_size > 100_000 else None)
    read = {row["text"].encode() for row in consumer.of("line") if row["origin"] == "b1/kafka-request.log"}
    left = {line for line in log.read_bytes().split(b"\n")[:-1] if b"HEARTBEAT" in line}
    assert left <= read


def test_workers_that_do_not_see_the_logs_are_not_asked_again(backlog, tmp_path):
    inputs, whole, _ = backlog
    asked = []

    def blind(_, work):
        asked.append(len(work))
        return [[None] * len(stretches) for stretches in work]

    consumer, _ = run(inputs, tmp_path / "out", None, Workers(2, blind), **SETTINGS)
    assert len(asked) == 1
    assert consumer.lines() == whole.lines()


def test_damage_in_the_middle_of_a_log_changes_nothing(tmp_path):
    """A cut line, an outlier in time and lines of another logger lie where stretches may begin."""
    lines = [request(second * 1_000) for second in range(400)]
    for number in range(20, 380, 7):
        lines[number] = (lines[number][:90], request(90_000_000), coordinator(number * 1_000), b"\tat x.Y(Z.java:1)", b"")[number % 5]
    inputs = tmp_path / "in"
    write(inputs / "b0/kafka-request.log", lines)
    write(inputs / "b1/kafka-request.log", [request(second * 1_000) for second in range(400)])
    consumer, _ = in_stretches(inputs, tmp_path / "out")
    whole, _ = run(inputs, tmp_path / "whole", fold=True)
    assert_same(consumer, whole)


def test_rotated_logs_are_read_in_stretches_from_their_first_lines_on(tmp_path):
    for number in range(4):
        write(tmp_path / f"in/b0/kafka-request.log.2026-11-21-0{number}", [request(1_000 * (400 * number + n)) for n in range(400)])
    begun = Counter()

    def read(function, work):
        begun.update(stretch.log.file.origin for stretches in work for stretch in stretches)
        return [function(stretches) for stretches in work]

    consumer, _ = run(tmp_path / "in", tmp_path / "out", None, Workers(2, read), **SETTINGS)
    whole, _ = run(tmp_path / "in", tmp_path / "whole", fold=True)
    assert len(begun) == 4
    assert_same(consumer, whole)


def test_a_log_whose_first_lines_are_of_several_kinds_is_begun_in_order(tmp_path):
    path = tmp_path / "in/b0/all.log"
    write(path, [line for n in range(200) for line in (request(1_000 * n), other(1_000 * n), coordinator(1_000 * n))])
    consumer, _ = in_stretches(tmp_path / "in", tmp_path / "out")
    whole, _ = run(tmp_path / "in", tmp_path / "whole", fold=True)
    assert_same(consumer, whole)


@pytest.mark.parametrize("cores", [long(1), 2, long(5), long(16)])
def test_all_tasks_read_about_as_much_however_long_the_logs_are(tmp_path, monkeypatch, cores):
    monkeypatch.setattr(spool, "_BEGIN_LINES", 60)
    for number, lines in enumerate((100, 900, 700)):
        write(tmp_path / f"in/b{number}/kafka-request.log", [request(1_000 * (n * 1_000 // lines)) for n in range(lines)])
    tasks = []

    def read(function, work):
        tasks.append([sum(stretch.end - stretch.mark.offset for stretch in stretches) for stretches in work])
        return [function(stretches) for stretches in work]

    run(tmp_path / "in", tmp_path / "out", None, Workers(cores, read), **(SETTINGS | {"slice_lines": 2_000}))
    assert [len(each) for each in tasks] == [cores]
    assert max(tasks[0]) < 1.2 * sum(tasks[0]) / cores


class Feeding(threading.Thread):
    """A spool at work, as the feeder has it: its workers come when it waits for them."""

    def __init__(self, inputs, folder, **settings):
        super().__init__(daemon=True)
        self.spool = Spool(inputs, folder, settings=SpoolSettings(**settings))
        self.spool.expects_workers = True
        self.consumer, self.stopped = Consumer(), threading.Event()

    def run(self):
        for _ in self.spool.slices(stop=self.stopped.is_set):
            self.consumer.take(self.spool.files.folder)

    def wait_until_it_waits(self):
        self.start()
        while not self.spool.waits_for_workers:
            assert self.is_alive()
            self.join(0.01)


def test_a_backlog_waits_for_workers_that_are_about_to_come(backlog, tmp_path):
    inputs, whole, _ = backlog
    feeding = Feeding(inputs, tmp_path / "out", **SETTINGS)
    feeding.wait_until_it_waits()
    assert not feeding.consumer.slices
    feeding.spool.workers = Workers(2, OwnProcess())
    feeding.join()
    assert feeding.consumer.parts
    assert feeding.consumer.lines() == whole.lines()


def test_a_spool_that_waits_for_workers_can_be_stopped(backlog, tmp_path):
    feeding = Feeding(backlog[0], tmp_path / "out", **SETTINGS)
    feeding.wait_until_it_waits()
    feeding.stopped.set()
    feeding.join()


def test_what_this_process_reads_in_a_moment_waits_for_nobody(backlog, tmp_path):
    inputs, whole, _ = backlog
    feeding = Feeding(inputs, tmp_path / "out", **(SETTINGS | {"slice_lines": 10_000}))
    feeding.start()
    feeding.join()
    assert feeding.consumer.lines() == whole.lines()


@pytest.mark.parametrize("where", [(spool, "write_whole"), (spool, "write_rows"), (spool, "log_read")])
@pytest.mark.parametrize("calls", every(4, range(6)))
def test_a_crash_anywhere_loses_and_doubles_nothing(tmp_path, where, calls):
    inputs = brokers(tmp_path / "in", lines=200)
    whole, _ = run(inputs, tmp_path / "whole", fold=True)
    consumer, out = Consumer(), tmp_path / "out"
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            crash_after(patch, *where, calls)
            try:
                in_stretches(inputs, out, consumer)
            except CrashError:
                consumer.take(out)
    in_stretches(inputs, out, consumer)
    consumer.take(out)
    assert consumer.parts
    assert_same(consumer, whole)
    in_stretches(inputs, out, consumer)
    assert not list((out / "parts").iterdir())
