"""Where things are in a picture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.report_page.axis import Axis, covering

times = st.integers(0, 4_000_000_000_000)


@given(times, times, times, times)
def test_what_is_drawn_lies_within_the_picture(a, b, c, d):
    axis = Axis(min(a, b), max(a, b))
    span = axis.span(min(c, d), max(c, d), "came", "")
    assert span is None or (0 <= span.x <= 100 and 0 <= span.width <= 100 and span.x + span.width <= 100.001)
    assert all(0 <= tick.x <= 100 for tick in axis.ticks())
    assert len(axis.ticks()) <= 12


@pytest.mark.parametrize(
    ("length_ms", "labels"),
    [
        (5_000, ["00:00:00", "00:00:01"]),
        (480_000, ["00:00", "00:01"]),
        (86_400_000, ["01-01 00:00", "01-01 03:00"]),
        (30 * 86_400_000, ["1970-01-01", "1970-01-08"]),
    ],
)
def test_ticks_are_at_round_times(length_ms, labels):
    assert [tick.label for tick in Axis(0, length_ms).ticks()][:2] == labels


@given(times, times, times, times)
def test_an_incident_is_shown_with_room_inside_of_the_whole_time(a, b, c, d):
    whole = Axis(min(a, b), max(a, b))
    first, last = (min(max(time, whole.first_ms), whole.last_ms) for time in (min(c, d), max(c, d)))
    axis = covering(first, last, whole)
    assert axis.first_ms <= first <= last <= axis.last_ms
