"""java.util.logging writes the time of a line into the line before it."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.bytes import open_log
from jobs.logs.clients.judge import ClientJudge
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from tests.logs.log_makers import START_MS, write

SAYS = b"[Consumer clientId=c1, groupId=orders] Request joining group due to: group is already rebalancing"
HEADER = b"Nov 21, 2026 6:00:%02d AM org.apache.kafka.clients.consumer.internals.AbstractCoordinator requestRejoin"


def pair(second, before=b""):
    return [before + HEADER % second, before + b"INFO: " + SAYS]


def read(path, mark=None, **how):
    kept = KeptLines()
    reader = LogReader(lambda: open_log(path), LocalTimes("UTC"), mark, judge=ClientJudge)
    reader.read(kept, **how)
    rows = [(kept.positions[i], kept.ats[i], kept.texts[i], kept.faults.get(i), kept.around.get(i)) for i in range(len(kept))]
    return rows, reader.mark


def test_a_line_has_the_time_of_the_line_before(tmp_path):
    lines = [*pair(1), b"SEVERE: no Kafka", *pair(2, b"app-1  | "), *pair(3, b"2026-11-21T11:30:09.1Z "), b"INFO: " + SAYS]
    rows, _ = read(write(tmp_path / "app.log", lines))
    assert [(n, at, fault) for n, at, _, fault, _ in rows] == [
        *((n, START_MS + s * 1_000, None) for n, s in ((2, 1), (5, 2), (7, 3))),
        (8, None, "NO_TIMESTAMP"),
    ]
    assert {text.partition(b"] INFO ")[2] for _, _, text, *_ in rows[:3]} == {SAYS}


def test_it_is_shown_as_it_stands_in_the_file(tmp_path):
    rows, _ = read(write(tmp_path / "app.log", [*pair(1), b"WARNING: " + SAYS]))
    assert [(text, around) for *_, text, _, around in rows] == [
        (b"[2026-11-21 06:00:01,000] INFO " + SAYS, b"INFO: " + SAYS),
        (b"WARNING: " + SAYS, None),
    ]


@given(seconds=st.lists(st.integers(0, 59), max_size=6), cuts=st.lists(st.integers(1, 3), max_size=12))
def test_no_cut_matters(tmp_path_factory, seconds, cuts):
    lines = [line for second in sorted(seconds) for line in (*pair(second), b"\tat some.Class")]
    path = write(tmp_path_factory.mktemp("log") / "app.log", lines)
    whole, _ = read(path)
    assert len(whole) == len(seconds)
    pieces, mark = [], None
    for count in [*cuts, 1 << 60]:
        rows, mark = read(path, mark, max_lines=count)
        pieces += rows
    assert pieces == whole
