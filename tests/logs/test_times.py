"""Local timestamps to UTC, the repeated and the missing hour included."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.times import NEVER, LocalTimes, looks_like_time


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


@pytest.mark.parametrize("line", [b"[2026-11-21 06:09:19,456] INFO", b"[2026-11-21T06:09:19.456] INFO"])
def test_forms(line):
    assert LocalTimes("UTC").read(line, NEVER) == ms("2026-11-21 06:09:19") + 456
    assert LocalTimes("America/New_York").read(line, NEVER) == ms("2026-11-21 11:09:19") + 456


@pytest.mark.parametrize(
    "line",
    [
        b"[2026-13-21 06:09:19,456]",
        b"[2026-11-31 06:09:19,456]",
        b"[2026-11-21 24:09:19,456]",
        b"[2026-11-21 06:60:19,456]",
        b"[2026-11-21 06:09:60,456]",
        b"[0000-11-21 06:09:19,456]",
    ],
)
def test_impossible(line):
    times = LocalTimes("Europe/Berlin")
    assert times.read(line, NEVER) is None
    assert looks_like_time(line)


@pytest.mark.parametrize("line", [b"", b"[", b"[2026-11-21 06:09:19,45", b"2026-11-21 06:09:19,456 INFO", b"\tat x"])
def test_no_timestamp(line):
    assert LocalTimes("UTC").read(line, NEVER) is None
    assert not looks_like_time(line)


@pytest.mark.parametrize(
    ("zone", "start", "hour"),
    [
        ("America/New_York", "2026-11-01 05:00:00", "2026-11-01 01"),  # 01:00 EDT, then 01:00 EST at 06:00 UTC
        ("Europe/Berlin", "2026-10-25 00:00:00", "2026-10-25 02"),
        ("Australia/Lord_Howe", "2026-04-04 14:30:00", "2026-04-05 01"),  # goes back half an hour
    ],
)
def test_repeated_hour(zone, start, hour):
    """Two hours of UTC, a line every minute: local time goes over the same hour twice, UTC only forward."""
    from zoneinfo import ZoneInfo

    times, newest = LocalTimes(zone), ms(start) - 60_000
    repeated = 0
    for minute in range(180):
        at = ms(start) + minute * 60_000
        local = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
        repeated += local.fold
        line = local.strftime("[%Y-%m-%d %H:%M:%S,007]").encode()
        newest = times.read(line, newest)
        assert newest == at + 7
    assert repeated
    assert times.read(f"[{hour}:45:00,000]".encode(), NEVER) < newest


def test_missing_hour():
    times = LocalTimes("America/New_York")  # 02:00 EST is 03:00 EDT on 2026-03-08, 07:00 UTC
    near = ms("2026-03-08 06:59:59")
    assert abs(times.read(b"[2026-03-08 02:00:01,000]", near) - near) <= 3_600_000
    assert times.read(b"[2026-03-08 03:00:00,000]", near) == ms("2026-03-08 07:00:00")


FROM, TO = datetime(1970, 1, 2), datetime(2200, 1, 1)  # noqa: DTZ001 - as in a log


@given(st.datetimes(FROM, TO), st.sampled_from(["UTC", "Asia/Kolkata", "Europe/Berlin"]))
def test_any_time_against_the_library(at, zone):
    from zoneinfo import ZoneInfo

    at = at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=timezone.utc)
    line = at.astimezone(ZoneInfo(zone)).strftime("[%Y-%m-%d %H:%M:%S,%f").encode()[:-3] + b"] INFO x"
    want = (at - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000
    assert LocalTimes(zone).read(line, round(want)) == round(want)
