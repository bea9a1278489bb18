"""bench/list_scheduling.py: how long steps take on a number of cores."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from list_scheduling import CORES, DRIVER, PAUSE, Step, schedule, stages, tasks_only

SECONDS = st.integers(1, 40).map(lambda quarters: quarters / 4)
STEPS = st.lists(st.tuples(st.just(0.0) | SECONDS, st.lists(SECONDS, max_size=6)).map(lambda it: Step(it[0], tuple(it[1]))), max_size=4)
CHAINS = st.lists(STEPS, min_size=1, max_size=4).map(lambda chains: dict(zip(map(str, count()), chains, strict=False)))


@pytest.mark.parametrize(("cores", "seconds"), [(1, 5), (2, 3), (4, 2), (5, 1), (64, 1)])
def test_tasks_go_in_rounds(cores, seconds):
    assert schedule({"a": [Step(tasks=(1.0,) * 5)]}, cores).seconds == pytest.approx(seconds)


def test_a_slot_that_is_free_takes_the_next_task():
    assert schedule({"a": [Step(tasks=(4.0, 1.0, 1.0, 1.0, 1.0))]}, 2).seconds == pytest.approx(4)
    assert schedule({"a": [Step(tasks=(1.0, 1.0, 1.0, 1.0, 4.0))]}, 2).seconds == pytest.approx(6)


def test_chains_share_the_slots_and_first_come_are_first_served():
    chains = {"a": [Step(tasks=(2.0, 2.0), gives="a")], "b": [Step(tasks=(1.0, 1.0))], "c": [Step(tasks=(5.0,), needs="a")]}
    assert schedule(chains, 2).seconds == pytest.approx(8)
    assert schedule(chains, 3).seconds == pytest.approx(7)
    assert schedule(chains, 1).seconds == pytest.approx(11)


def test_the_next_stage_waits_for_the_last_task_of_the_one_before():
    assert schedule({"a": [Step(tasks=(3.0, 1.0)), Step(tasks=(1.0, 1.0))]}, 2).seconds == pytest.approx(4)


def test_the_driver_does_one_thing_at_a_time_and_tasks_run_beside_it():
    chains = {"a": [Step(serial=2.0)], "b": [Step(serial=2.0)], "c": [Step(tasks=(3.0,))]}
    found = schedule(chains, 64)
    assert found.seconds == pytest.approx(4)
    assert schedule(chains, 1).seconds == pytest.approx(7)


def test_the_start_of_spark_does_not_keep_the_driver_from_reading():
    start = Step(serial=4.0, cores=1.5, gives="Spark", name="start")
    chains = {"main": [start], "read": [Step(serial=3.0), Step(tasks=(1.0,), needs="Spark", name="read")]}
    assert schedule(chains, 4).seconds == pytest.approx(5)
    assert schedule(chains, 1).seconds == pytest.approx(4 * 1.5 + 3 + 1)


def test_a_query_looks_at_its_input_from_time_to_time():
    given = {"a": [Step(serial=2.6, gives="slice")], "b": [Step(tasks=(1.0,), needs="slice", every=1.0, name="parse")]}
    found = schedule(given, 2)
    assert found.seconds == pytest.approx(4)
    assert found.spent == pytest.approx({DRIVER: 2.6, PAUSE: 0.4, "parse": 1.0})
    late = {"a": given["a"], "b": [Step(tasks=(3.0,)), *given["b"]]}
    assert schedule(late, 2).seconds == pytest.approx(4), "what is there already is taken at once"


def test_what_bounds_it():
    found = schedule({"a": [Step(1.0, (2.0, 2.0, 3.0), name="track")]}, 2)
    assert found.spent == pytest.approx({DRIVER: 1.0, CORES: 2.0, "track": 3.0})


def test_what_the_jvm_does_beside_tasks_takes_cores_but_no_slots():
    assert schedule({"a": [Step(tasks=(1.0,) * 4)]}, 2, beside=0.25).seconds == pytest.approx(2.5)
    assert schedule({"a": [Step(tasks=(1.0,) * 2)]}, 4, beside=0.25).seconds == pytest.approx(1)


def test_a_step_that_waits_for_ever_is_a_mistake():
    with pytest.raises(ValueError, match="needs"):
        schedule({"a": [Step(tasks=(1.0,), needs="nothing")]}, 2)


@given(CHAINS, st.integers(1, 9))
def test_no_schedule_beats_its_bounds(chains, cores):
    work = [sum(step.serial + sum(step.tasks) for step in steps) for steps in chains.values()]
    least = max(sum(step.serial + max(step.tasks, default=0.0) for step in steps) for steps in chains.values())
    found = schedule(chains, cores)
    assert found.seconds >= max(least, sum(work) / cores) - 1e-6
    assert found.seconds <= sum(work) + 1e-6
    assert sum(found.spent.values()) == pytest.approx(found.seconds)
    assert schedule(chains, 1).seconds == pytest.approx(sum(work))


@given(CHAINS)
def test_without_the_driver_only_tasks_are_left(chains):
    tasks = sum(sum(step.tasks) for steps in chains.values() for step in steps)
    assert schedule(tasks_only(chains), 1).seconds == pytest.approx(tasks)
    alone = {name: schedule({name: stages(steps)}, 1).seconds for name, steps in chains.items()}
    assert sum(alone.values()) == pytest.approx(tasks)
