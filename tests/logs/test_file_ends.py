"""Ends of files: they grow between runs, lose lines that were read, or another log that begins alike lies there.

A last line without its end waits for it, unless it is whole or its file cannot grow.
"""

import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.log_makers import coordinator, other, request, write
from tests.logs.spooling import Consumer, run

BANNER = b"\n".join(b"\tlog.flush.interval.%03d = 9223372036854775807" % i for i in range(100))
assert len(BANNER) > 4096


def texts(consumer, first=0):
    return [row["text"].encode() for row in consumer.of("line")[first:]]


@pytest.mark.parametrize("lost", [1, 40, 300, 3_000])
@pytest.mark.parametrize("half", [0, 30])
def test_lines_behind_a_lost_end_are_read_once(tmp_path, lost, half):
    """A machine loses power. The last lines, which were read, were never on the disk, but for `half` of one; the broker writes on."""
    before, after = [coordinator(i) for i in range(6_000)], [coordinator(9_000 + i) for i in range(50)]
    path = tmp_path / "in/b/server.log"
    write(path, before)
    consumer, _ = run(tmp_path / "in", tmp_path / "out", slice_lines=1_000)
    path.write_bytes(path.read_bytes()[: -sum(len(line) + 1 for line in before[-lost:])] + before[-lost][:half])
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in after))
    told = []
    s = Spool(tmp_path / "in", tmp_path / "out")
    s.troubles.tell = told.append
    reads = sum(report.lines_read for report in s.slices())
    consumer.take(tmp_path / "out")
    assert texts(consumer, 6_000)[-49:] == after[1:]
    again = reads - len(after)  # lines between the last place that is known and the end that was lost
    assert again == 0 if lost <= 300 else 0 <= again <= lost
    assert len(told) == 1
    assert f"{lost + again:,} line" in told[0]
    assert f"after line {6_000 - lost - again:,}: " in told[0]
    assert s.troubles.summary() == told
    assert len(s.troubles) == 0  # all that there is was read


def test_a_file_that_has_lost_its_end_is_told_until_it_grows(tmp_path):
    path = write(tmp_path / "in/b/server.log", [coordinator(i) for i in range(50)])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    write(path, [coordinator(i) for i in range(30)])
    summaries = []
    for _ in range(2):
        s = Spool(tmp_path / "in", tmp_path / "out")
        assert sum(report.lines_read for report in s.slices()) == 0
        summaries.append(s.troubles.summary())
    write(path, [coordinator(i) for i in (*range(30), *range(90, 99))])
    run(tmp_path / "in", tmp_path / "out", consumer)
    assert texts(consumer, 50) == [coordinator(i) for i in range(90, 99)]
    assert [len(lines) for lines in summaries] == [1, 1]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.lists(st.integers(0, 70), min_size=4, max_size=4))
def test_any_ends_may_be_lost_one_after_the_other(tmp_path_factory, grows, losses):
    folder = tmp_path_factory.mktemp("lost")
    path, consumer, kept, written, number = folder / "in/b/server.log", Consumer(), [coordinator(0)], [coordinator(0)], 1
    for more, lost in zip(grows, losses, strict=False):
        fresh = [coordinator(number + i) if i % 3 else other(number + i) for i in range(more)]
        number += more
        kept, written = kept + fresh, written + fresh
        write(path, kept)
        run(folder / "in", folder / "out", consumer)
        kept = kept[: max(1, len(kept) - lost)]
    assert texts(consumer) == [line for line in written if b"Group" in line]
    assert sum(consumer.counts().values()) == len(written)


@pytest.mark.parametrize("rest", [150, 350, 600])
def test_two_logs_that_begin_with_the_same_banner_are_two(tmp_path, rest):
    one, another = ([BANNER, *(coordinator(i) for i in range(start, start + size))] for start, size in ((0, 350), (5_000, rest)))
    write(tmp_path / "in/b/server.log", one)
    write(tmp_path / "in/b/server.log.1", another)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert sorted(texts(consumer)) == sorted([*one[1:], *another[1:]])
    assert run(tmp_path / "in", tmp_path / "out", consumer)[1] == []


@pytest.mark.parametrize("rest", [150, 350, 600])
def test_a_log_that_takes_the_place_of_another_with_the_same_banner_is_read_from_its_start(tmp_path, rest):
    one, another = ([BANNER, *(coordinator(i) for i in range(start, start + size))] for start, size in ((0, 350), (5_000, rest)))
    path = write(tmp_path / "in/b/server.log", one)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    write(path, another)
    s = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(slice_lines=100))
    reports = list(s.slices())
    consumer.take(tmp_path / "out")
    assert reports
    assert texts(consumer, 350) == another[1:]


LINES = [request(0), *((coordinator if i % 3 else other)(i) for i in range(1, 40))]
TEXT = b"".join(line + b"\n" for line in LINES)
HALF, WHOLE = b" INFO [GroupCoordinator id=1] Stabilized gr", coordinator(0)[24:]


def kept(consumer):
    return [(row["position"], row["text"]) for row in consumer.of("line")]


@given(st.lists(st.integers(1, len(TEXT)), max_size=4))
@example([len(TEXT) - 1])
@example([TEXT.index(b"\n") - 5, TEXT.index(b"\n")])
def test_runs_over_a_growing_log_keep_what_one_run_keeps(tmp_path_factory, cuts):
    folder = tmp_path_factory.mktemp("grows")
    whole, grown = Consumer(), Consumer()
    write(folder / "whole/b/server.log", LINES)
    run(folder / "whole", folder / "out", whole, half_lines=False)
    path = folder / "in/b/server.log"
    path.parent.mkdir(parents=True)
    for cut in [*sorted(cuts), len(TEXT)]:
        path.write_bytes(TEXT[:cut])
        run(folder / "in", folder / "grown", grown, half_lines=False)
    assert kept(grown) == kept(whole)
    assert sum(grown.counts().values()) == len(LINES)
    assert not grown.faults()


@pytest.mark.parametrize(("name", "end", "waits"), [("a.log", HALF, True), ("a.log", WHOLE, False), ("a.log.gz", HALF, False)])
def test_a_half_line_is_told_until_its_end_is_there(tmp_path, name, end, waits):
    line = coordinator(99)[:24] + end
    path = tmp_path / "in/b" / name
    path.parent.mkdir(parents=True)
    data = TEXT + line
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    told = [f"1 file read except for the last line: it has no line end yet; the next run reads it: {path}"]
    for _ in range(2):
        s = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(half_lines=False))
        list(s.slices())
        assert (s.troubles.summary(), len(s.troubles)) == (told if waits else [], 0)
