"""Files that are no longer what was read of them: lines that were read are gone, or another log lies there that begins alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.log_makers import coordinator, other, write
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
    assert f"behind line {6_000 - lost - again:,}: " in told[0]
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
