"""Blocks of lines that are looked at all at once: what a log says is what it says when it is read line by line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.blocks import block_of
from jobs.logs.bytes import open_log
from jobs.logs.heartbeats.beat_numbers import BeatNumbers
from jobs.logs.lines import LineLimits
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import NEVER, LocalTimes
from tests.logs.log_makers import PROMPT, START_MS, consumer_heartbeat, coordinator, fetch, heartbeat, other, request, write

UTC = LocalTimes("UTC")
LINE_BY_LINE = None


class Counted(BeatNumbers):
    """Counts the lines that were taken out of blocks."""

    def __init__(self):
        super().__init__()
        self.at_once = 0

    def take_block(self, log, block, ats, first_position):
        others = super().take_block(log, block, ats, first_position)
        self.at_once += len(ats) - len(others)
        return others


def read(path, *, at_once, zone="UTC", block_bytes=256 << 10, **options):
    """What one read says about a log: kept lines, their repetitions, the mark, seconds. Then the number of lines taken at once."""
    beats = Counted()
    if not at_once:
        beats.block_of = LINE_BY_LINE
    reader = LogReader(lambda: open_log(path), LocalTimes(zone), limits=LineLimits(block_bytes))
    kept = KeptLines(beats=beats)
    reader.read(kept, fold=True, **options)
    seconds = reader.take_seconds()
    reader.close()
    said = kept, kept.beats.by_row(kept.positions).to_pylist(), kept.beats.count, kept.beats.firsts, kept.beats.names, reader.mark, seconds
    return said, beats.at_once


def same(path, **options):
    """Asserts that both ways say the same; returns how many lines were taken at once."""
    by_line, none = read(path, at_once=False, **options)
    by_block, taken = read(path, at_once=True, **options)
    assert by_line == by_block
    assert none == 0
    return taken


def test_heartbeats_of_known_members_are_taken_at_once(tmp_path):
    lines = [heartbeat(ms, member, number=str(ms + 1)) for ms in range(0, 100_000, 1_000) for member in "abc"]
    path = write(tmp_path / "kafka-request.log", lines)
    assert same(path) == 0  # a log's first block says how its time begins
    assert same(path, block_bytes=4_000) > 200


def test_what_stands_between_heartbeats_is_kept(tmp_path):
    """The verdict on a line without a time depends on the lines before it, heartbeats among them."""
    lines = []
    for ms in range(0, 40_000, 1_000):
        lines += [heartbeat(ms), other(ms + 1), b"java.io.IOException: no", b"\tat a.B(C.scala:1)", heartbeat(ms + 2), b"a cut lin", b""]
    assert same(write(tmp_path / "kafka-request.log", lines), block_bytes=3_000) > 50


@pytest.mark.parametrize("until", [0, 7_777, 20_000, 39_002])
def test_reading_ends_at_a_time_within_a_block(tmp_path, until):
    path = write(tmp_path / "kafka-request.log", [heartbeat(ms) for ms in range(0, 40_000, 500)])
    same(path, block_bytes=6_000, until_ms=START_MS + until)
    same(path, block_bytes=6_000, max_lines=until // 500)


def test_a_time_in_the_hour_that_a_change_of_clocks_repeats_takes_a_closer_look(tmp_path):
    lines = [heartbeat(ms) for ms in range(0, 60_000, 1_000)]
    for hour in (b"2026-10-25 01", b"2026-10-25 02", b"2026-10-25 02", b"2026-10-25 03"):
        lines += [heartbeat(ms).replace(b"2026-11-21 06", hour) for ms in range(0, 3_600_000, 60_000)]
    same(write(tmp_path / "kafka-request.log", lines[60:]), block_bytes=6_000, zone="Europe/Berlin")
    same(write(tmp_path / "other.log", lines), block_bytes=6_000, zone="Europe/Berlin")


def test_times_of_lines():
    lines = [
        heartbeat(1_234),
        heartbeat(61_000),
        b"",
        b"\tat a.B",
        heartbeat(0).replace(b"06:00:00", b"06:00:60"),
        heartbeat(0).replace(b"2026-11-21", b"2026-02-30"),
        heartbeat(0).replace(b"2026-11-21 06", b"2026-11-21T06"),
        b"[2026-11-21 06:00:00,007] ",
        b"[2026-11-21 06:00:00,007]",
    ]
    block = block_of(b"\n".join(lines))
    assert block.lines() == lines
    assert [block.line(n) for n in range(len(block))] == lines
    assert block.times(UTC).tolist() == [START_MS + 1_234, START_MS + 61_000, *[NEVER] * 5, START_MS + 7, NEVER]
    assert list(block.foreign()) == [lines[3], lines[6], lines[8]]


@pytest.mark.parametrize("byte", [b"\r", b"\x00", b"\x7f", b"\xff", b"\x1b"])
def test_a_block_is_clean_text(byte):
    assert block_of(heartbeat(0) + byte) is None
    assert len(block_of("zwölf\n\t".encode())) == 2


_NUMBERS = st.sampled_from(["0", "7", "07", "12,", "123456789", "1234567890", "-1", "x", ""])
_TIMES = st.tuples(
    *[st.sampled_from(["0.0", "0.4", "1.234", "1.2345", "00.1", "1", "123456789.5", "1234567890.5", "", "0.1x", "1.0E7"])] * 6
)
_BEATS = st.builds(
    heartbeat, st.integers(0, 200_000), st.sampled_from("abc"), st.sampled_from(["7", "12345"]) | _NUMBERS,
    st.just(PROMPT) | _TIMES, st.sampled_from([0, 0, 0, 27]),
)  # fmt: skip
_LINES = st.one_of(
    _BEATS,
    _BEATS,
    st.builds(consumer_heartbeat, st.integers(0, 200_000), st.sampled_from("ab"), _NUMBERS),
    st.builds(request, st.integers(0, 200_000)),
    st.builds(fetch, st.integers(0, 200_000)),
    st.builds(coordinator, st.integers(0, 200_000)),
    st.builds(other, st.integers(0, 200_000)),
    st.sampled_from([b"", b"\tat kafka.Server.run(Server.scala:1)", b"[2026-11-21 06:00:61,000] x", b"[2026-11-21T06:00:01,000] x"]),
)


@given(st.lists(_LINES, min_size=8, max_size=60), st.sampled_from([2_000, 5_000, 20_000]), st.data())
def test_any_log_says_the_same(tmp_path_factory, lines, block_bytes, data):
    """Ordered or not, with numbers that Java does not write, and with bytes lost or changed."""
    if data.draw(st.booleans()):
        lines.sort(key=lambda line: line[:25])
    for _ in range(data.draw(st.integers(0, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        if lines[index]:
            place = data.draw(st.integers(0, len(lines[index]) - 1))
            lines[index] = (
                lines[index][:place] + data.draw(st.sampled_from([b"", b"0", b",", b"}", b".", b"\xff"])) + lines[index][place + 1 :]
            )
    path = write(tmp_path_factory.mktemp("log") / "kafka-request.log", [heartbeat(0), heartbeat(1, "b"), *lines, *lines])
    same(path, block_bytes=block_bytes)


_DURATIONS = re.compile(rb'(?<="totalTimeMs":).*(?=,"securityProtocol")')


@given(st.integers(0, 130), st.sampled_from([b"", *(bytes([byte]) for byte in b'0123456789.,:"x')]), st.booleans())
def test_damaged_durations_are_seen(tmp_path_factory, place, byte, inserted):
    good = heartbeat(2_000)
    times = _DURATIONS.search(good)[0]
    damaged = times[:place] + byte + times[place + (not inserted) :]
    lines = [heartbeat(0), *[heartbeat(1_000)] * 3, good.replace(times, damaged), heartbeat(3_000)]
    same(write(tmp_path_factory.mktemp("log") / "kafka-request.log", lines), block_bytes=1_500)
