"""Times of lines that do not fit those of their neighbours."""

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


@pytest.mark.parametrize(
    ("times", "outliers"),
    [
        ([YEARS, *range(10)], [1]),
        ([-YEARS, *range(10)], [1]),
        ([HOUR, 1, 0], []),  # the newest line may stand first in an excerpt
        ([YEARS, 1, 0], [1]),
        ([0, YEARS], [2]),
        ([0, HOUR], []),
        ([0, YEARS, YEARS // 2, 1, 2], [2, 3]),
        ([hour * HOUR for hour in range(0, 100, 5)], [20]),  # silences are none, but nothing confirms the last time
        ([0, *(9 * HOUR + n for n in range(3)), -YEARS, *(9 * HOUR + n for n in range(3, 9))], []),
        # Excerpts one behind the other: those of three consumers, and the newest first.
        ([0, 99_000, 99_001, 16, 99_002, 99_003, -1_000, 37], []),
        ([HOUR, 4 * HOUR, 0], []),
        ([0, HOUR, HOUR + 1, 2, 3], [2, 3]),  # some other program writes the time of another zone
        # The broker's clock was set back by a day: what comes is behind, and a damaged line must not carry time away.
        ([*(24 * HOUR + n for n in range(9)), *range(11), YEARS, *range(12, 20)], [21]),
    ],
)
def test_outliers(tmp_path, times, outliers):
    assert [position for position, fault in judged(tmp_path, [request(ms) for ms in times]) if fault] == outliers


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
