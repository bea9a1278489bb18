"""The times at which a group is looked at again."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.tracker.quiet.looks import again_ms

DUE_MS = 1_800_000_000_123


def of_a_wait(until_ms: int) -> list[int]:
    """All looks of a wait, from when it was due."""
    times = [DUE_MS]
    while times[-1] < DUE_MS + until_ms:
        times.append(again_ms(DUE_MS, times[-1]))
    return times


def test_a_wait_of_a_minute_is_looked_at_every_second_and_one_of_a_month_about_a_thousand_times() -> None:
    assert {later - one for one, later in pairwise(of_a_wait(60_000))} == {1_024}
    assert 500 < len(of_a_wait(30 * 24 * 3_600_000)) < 1_500


@given(st.integers(0, 1 << 32))
def test_who_comes_in_between_goes_on_with_the_same_looks(waited_ms: int) -> None:
    look = again_ms(DUE_MS, DUE_MS + waited_ms)
    before = [at_ms for at_ms in of_a_wait(waited_ms) if at_ms <= DUE_MS + waited_ms][-1]
    assert before <= DUE_MS + waited_ms < look == again_ms(DUE_MS, before)
