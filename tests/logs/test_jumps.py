"""Times of lines that do not fit those of their neighbours."""

from __future__ import annotations

import pytest

from jobs.logs.jumps import LogEnd
from jobs.logs.mark import KeptLines
from tests.logs.any_log import HOUR, YEARS
from tests.logs.log_makers import START_MS, fetch, request, write
from tests.logs.reading import judged, read, reader, rows


def test_outlier_in_the_middle(tmp_path):
    lines = [request(i) for i in range(20)]
    lines[10] = fetch(YEARS)
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert [r for r in rows(kept) if r[3]] == [(11, None, lines[10], "TIMESTAMP_OUTLIER")]
    assert [r[1] for r in rows(kept) if not r[3]] == [START_MS + i for i in range(20) if i != 10]


@pytest.mark.parametrize("far", [YEARS, -YEARS])
def test_outlier_first(tmp_path, far):
    lines = [request(far), *[request(i) for i in range(10)]]
    assert judged(tmp_path, lines)[:2] == [(1, "TIMESTAMP_OUTLIER"), (2, "")]


def test_the_newest_line_may_stand_first_in_an_excerpt(tmp_path):
    assert judged(tmp_path, [request(HOUR), request(1), request(0)]) == [(1, ""), (2, ""), (3, "")]
    assert judged(tmp_path, [request(YEARS), request(1), request(0)])[0] == (1, "TIMESTAMP_OUTLIER")


def test_outlier_last(tmp_path):
    assert judged(tmp_path, [request(0), request(YEARS)]) == [(1, ""), (2, "TIMESTAMP_OUTLIER")]
    assert judged(tmp_path, [request(0), request(HOUR)]) == [(1, ""), (2, "")]


def test_two_outliers_together(tmp_path):
    lines = [request(0), request(YEARS), request(YEARS // 2), request(1), request(2)]
    assert [f for _, f in judged(tmp_path, lines)] == ["", "TIMESTAMP_OUTLIER", "TIMESTAMP_OUTLIER", "", ""]


def test_a_silence_is_no_outlier(tmp_path):
    lines = [request(i * 5 * HOUR) for i in range(20)]
    assert all(not fault for _, fault in judged(tmp_path, lines)[:-1])  # the last has nothing to confirm it


def test_a_silence_is_no_outlier_though_a_damaged_line_follows(tmp_path):
    lines = [request(0), *[request(HOUR * 9 + i) for i in range(9)]]
    lines.insert(4, request(-YEARS))
    assert all(not fault for _, fault in judged(tmp_path, lines))


def test_outlier_while_the_clock_is_behind(tmp_path):
    """The broker's clock was set back by a day: what comes is behind, and a damaged line must not carry time away."""
    lines = [*[request(24 * HOUR + i) for i in range(9)], *[request(i) for i in range(20)]]
    lines[20] = request(YEARS)
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert [p for p, _, _, f in rows(kept) if f] == [21]


def test_older_lines_keep_their_time_and_move_none(tmp_path):
    path = write(tmp_path / "a.log", [request(HOUR), request(0), request(HOUR + 1)])
    r, kept = reader(path), KeptLines()
    r.read(kept)
    assert kept.ats == [START_MS + HOUR, START_MS, START_MS + HOUR + 1]
    assert r.mark.newest_ms == START_MS + HOUR + 1


def test_an_open_jump_waits_for_its_followers(tmp_path):
    path = write(tmp_path / "a.log", [*[request(i) for i in range(9)], request(5 * HOUR)])
    r, kept = reader(path, final=False), KeptLines()
    assert r.read(kept, log_end=LogEnd.HOLD) == 9
    assert r.read(kept, log_end=LogEnd.IDLE) == 0  # too far to be believed alone, and the log may go on
    assert r.read(kept, log_end=LogEnd.HOLD, witness_ms=START_MS + 5 * HOUR) == 1
    r = reader(path, final=False)
    assert r.read(kept := KeptLines(), log_end=LogEnd.END) == 10
    assert list(kept.faults.values()) == ["TIMESTAMP_OUTLIER"]


def test_berlin_in_october(tmp_path):
    lines = [b"[2026-10-25 02:59:59,000] DEBUG x", b"[2026-10-25 02:00:00,000] DEBUG x", b"[2026-10-25 03:00:00,000] DEBUG x"]
    path = write(tmp_path / "a.log", [line + request(0)[30:] for line in lines])
    r, kept = reader(path, zone="Europe/Berlin"), KeptLines()
    r.read(kept)
    first = kept.ats[0]
    assert [at - first for at in kept.ats] == [0, 1000, HOUR + 1000]
