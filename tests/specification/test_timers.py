"""Timers: by deadline, then in the order in which they were set."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.specification.timers import INITIAL_DELAY_KEY, JOIN_KEY, NEVER, SYNC_KEY, Timers


def drain(timers, now_ms):
    due = []
    while (timer := timers.pop_due(now_ms)) is not None:
        due.append((timer[1], timer[0][1]))
    return due


def test_nothing_is_due_before_its_time():
    timers = Timers()
    assert timers.pop_due(NEVER - 1) is None
    timers.set(("session", "a", 0), 10)
    assert timers.pop_due(9) is None
    assert timers.pop_due(10) == (("session", "a", 0), 10)
    assert timers.pop_due(10) is None


def test_equal_deadlines_fire_in_the_order_of_setting_and_setting_again_moves_to_the_end():
    timers = Timers()
    for name in "abc":
        timers.set(("session", name, 0), 10)
    timers.set(("session", "a", 0), 10)
    assert drain(timers, 10) == [(10, "b"), (10, "c"), (10, "a")]


def test_a_cancelled_timer_never_fires():
    timers = Timers({("session", "a", 0): 10, ("session", "b", 0): 11})
    timers.cancel(("session", "a", 0))
    timers.cancel(("session", "nobody", 0))
    assert drain(timers, 99) == [(11, "b")]
    timers.set(("session", "a", 0), 10)
    timers.clear()
    assert (timers.deadlines, timers.earliest) == ({}, NEVER)
    timers.set(("session", "b", 0), 12)
    assert drain(timers, 99) == [(12, "b")]


def test_what_is_stored_with_a_group_never_changes():
    # Keys are part of the stored form of a group, and times fit into a 64-bit column.
    assert (JOIN_KEY, INITIAL_DELAY_KEY, SYNC_KEY) == (("join", "", 0), ("initial_delay", "", 0), ("sync", "", 0))
    assert NEVER == 9_223_372_036_854_775_807


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50), st.booleans()), max_size=40), st.integers(0, 60))
def test_against_the_obvious_way(operations, now_ms):
    timers, obvious = Timers(), []
    for name, deadline, cancelled in operations:
        obvious = [entry for entry in obvious if entry[1] != name]
        if cancelled:
            timers.cancel(("session", name, 0))
        else:
            timers.set(("session", name, 0), deadline)
            obvious.append((deadline, name))
    expected = sorted((entry for entry in obvious if entry[0] <= now_ms), key=lambda entry: entry[0])
    assert drain(timers, now_ms) == expected
    assert timers.earliest <= min((entry[0] for entry in obvious if entry[0] > now_ms), default=NEVER)
