"""The bytes of one log: lines, damage, and that it does not matter how it is cut. Compressions: formats/test_formats.py."""

import gzip

from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.logs.bytes import UNREADABLE
from jobs.logs.envelopes import unwrapped
from jobs.logs.jumps import Jump
from jobs.logs.lines import LineLimits
from jobs.logs.mark import KeptLines, Mark
from jobs.logs.reader import FOREVER
from jobs.logs.times import NEVER
from tests.logs.any_log import YEARS, logs
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, write
from tests.logs.reading import read, reader, rows


def test_line_ends(tmp_path):
    lines = [request(1), coordinator(2), b"", request(3)]
    kept, count = read(write(tmp_path / "a.log", lines, b"\r\n"))
    assert [(p, t) for p, _, t, _ in rows(kept)] == [(1, lines[0]), (2, lines[1]), (4, lines[3])]
    assert count == 4
    write(tmp_path / "b.log", lines, b"\n").write_bytes(b"\n".join(lines))  # no end of the last line
    assert read(tmp_path / "b.log") == (kept, 4)


def test_no_text(tmp_path):
    good = request(1)
    lines = [good, good.replace(b"c", b"\xff", 1), fetch(2) + b"\0", other(3) + b"\x1b[0m", "é".join(["x"] * 9).encode(), good]
    kept, _ = read(write(tmp_path / "a.log", lines))
    faulty = [(p, f) for p, _, _, f in rows(kept) if f]
    assert faulty == [(2, "NOT_TEXT"), (3, "NOT_TEXT"), (4, "NOT_TEXT"), (5, "NO_TIMESTAMP")]
    assert b"\\xff" in kept.texts[1]
    assert kept.texts[2].endswith(b"\\x00")
    assert all(at is not None for at in kept.ats[:4])
    assert all(text.decode().isprintable() for text in kept.texts)


def test_long_lines(tmp_path):
    limits = LineLimits(block_bytes=1000, line_bytes=20_000)
    long = request(2, group="g" * 40_000)
    fits = request(4, group="g" * 19_000)
    exact = fits + b"x" * (20_000 - len(fits))
    lines = [request(1), long, request(3), fits, exact, exact + b"x", fetch(5) + b"y" * 50_000, request(6)]
    path = write(tmp_path / "a.log", lines)
    kept, count = read(path, limits=limits)
    assert count == len(lines)
    assert [(p, f) for p, _, _, f in rows(kept)] == [
        (1, ""), (2, "TOO_LONG"), (3, ""), (4, ""), (5, ""), (6, "TOO_LONG"), (7, "TOO_LONG"), (8, "")
    ]  # fmt: skip
    assert kept.texts[3:5] == [fits, exact]
    assert kept.texts[1] == long[:4096]
    r = reader(path, limits=limits)
    r.read(KeptLines())
    assert r.mark.offset == path.stat().st_size
    path.write_bytes(long)  # without an end
    assert [f for *_, f in rows(read(path, limits=limits)[0])] == ["TOO_LONG"]


def test_a_megabyte_is_a_line_in_any_script(tmp_path):
    line = request(1, group="Grüße-日本" * 75_000)
    kept, _ = read(write(tmp_path / "a.log", [fetch(0), line, request(2)]))
    assert kept.texts == [line, request(2)]


def test_empty_and_binary_files(tmp_path):
    empty = write(tmp_path / "a.log", [])
    assert read(empty) == (KeptLines(), 0)
    (tmp_path / "b.log").write_bytes(bytes(range(256)) * 40)
    kept, count = read(tmp_path / "b.log")
    assert count == 41
    assert len(kept) == 41
    assert set(kept.faults.values()) == {"NOT_TEXT"}


@given(
    lines=logs(),
    end=st.sampled_from([b"\n", b"\r\n"]),
    ended=st.booleans(),
    cuts=st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 10**7)), max_size=30),
    block=st.sampled_from([37, 300, 5000]),
    packed=st.booleans(),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_any_log_is_accounted_for_and_no_cut_matters(tmp_path_factory, lines, end, ended, cuts, block, packed, zone):
    data = end.join(lines) + (end if ended and lines else b"")
    assume(packed or not data.startswith(tuple(start for start, _ in UNREADABLE)))
    want_lines = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    path = tmp_path_factory.mktemp("log") / "a.log"
    path.write_bytes(gzip.compress(data) if packed else data)
    whole, count = read(path, zone=zone)
    assert count == len(want_lines)
    assert whole.positions == sorted(set(whole.positions))
    for position, at, text, fault in rows(whole):
        assert fault or (at is not None and text == unwrapped(want_lines[position - 1].removesuffix(b"\r")))
        assert len(text.decode()) <= 4096 or not fault

    kept, mark, total = KeptLines(), Mark(), 0
    for lines_at_once, fresh, until in [*cuts, (FOREVER, True, 1 << 60)]:
        if fresh or total == 0:
            r = reader(path, mark, zone, limits=LineLimits(block_bytes=block))
        total += r.read(kept, max_lines=lines_at_once, until_ms=START_MS + until)
        mark = r.mark
    assert rows(kept) == rows(whole)
    assert total == count
    assert mark.offset == len(data)
    assert r.peek() == (FOREVER, Jump.TRUE)


def test_peek_does_not_move(tmp_path):
    path = write(tmp_path / "a.log", [b"junk", request(YEARS), request(5), request(6)])
    r = reader(path)
    assert r.peek()[0] == START_MS + 5
    assert r.mark == Mark(requests=3, others=1)
    assert r.read(KeptLines()) == 4
    assert reader(write(tmp_path / "b.log", [b"junk"] * 3)).peek()[0] == NEVER
