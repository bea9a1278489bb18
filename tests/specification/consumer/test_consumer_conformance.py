"""Every recorded trace of Kafka's own coordinator of consumer groups, step by step: answers, the group after each step, records."""

import json

import pytest

from scripts.truth.trace_files import load_consumer_traces
from scripts.truth.traces import CONSUMER_FIELDS, differences_of, episode_differences

TRACES = [
    ("cases", 121, 691),
    ("random-4.2.0", 110, 8_313),
    ("cases-4.3.1", 57, 528),
    ("random-4.3.1", 60, 4_440),
    ("cases-4.4.0", 57, 528),
    ("random-4.4.0", 120, 9_262),
    ("deletions-4.3.1", 1, 104),
    ("deletions-4.4.0", 2, 101),
]


@pytest.mark.parametrize(("name", "traces", "steps"), TRACES)
def test_every_step_of_consumer_groups_is_kafkas(name, traces, steps):
    recorded = load_consumer_traces()[name]
    assert [difference for trace in recorded for difference in differences_of(trace)] == []
    assert (len(recorded), sum(len(trace["steps"]) for trace in recorded)) == (traces, steps)


def test_no_file_of_traces_is_left_out():
    assert load_consumer_traces().keys() == {name for name, *_ in TRACES}


def test_the_rebalances_in_all_traces_are_those_that_were_measured():
    assert episode_differences() == []


def test_the_comparison_of_consumer_groups_bites():
    (recorded,) = [trace for trace in load_consumer_traces()["cases"] if trace["name"] == "lab/reload_while_unrevoked"]
    spoiled_fields = 0
    for index, step in enumerate(recorded["steps"]):
        for field in CONSUMER_FIELDS:
            if field in step["expect"]:
                spoiled = json.loads(json.dumps(recorded))
                spoiled["steps"][index]["expect"][field] = "spoiled"
                (difference,) = differences_of(spoiled)
                assert (difference.step, difference.field) == (index, field)
                spoiled_fields += 1
    assert spoiled_fields > 15
