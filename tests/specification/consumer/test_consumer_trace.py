"""`rebalance trace` on consumer groups: its own format, with what is absent at its default."""

import io
import json

import pytest

from coordinator_model.specification.trace import run_lines, run_trace
from scripts.truth.trace_files import load_consumer_traces
from scripts.truth.traces import CONSUMER_FIELDS

JOIN = {"member": "$m1", "epoch": 0, "rebalance_timeout_ms": 60_000, "topics": ["a"], "owned": {}}


def trace_of(*steps, **fields):
    return {
        "format": "consumer-group-case/1",
        "name": "mine",
        "config": {},
        "topic_ids": {"a": [0, 1], "a#2": [0, 2]},
        "ids": {"$m1": "an-id"},
        "steps": [{"at_ms": at_ms, "op": op, "group": "g", "req": req} for at_ms, op, req in steps],
        **fields,
    }


def expects(*steps, **fields):
    return [step["expect"] for step in run_trace(trace_of(*steps, **fields))["steps"]]


def test_trace_answers_consumer_groups_too_and_keeps_the_rest():
    (recorded,) = [trace for trace in load_consumer_traces()["cases"] if trace["name"] == "lab/topic_recreated"]
    out = io.StringIO()
    run_lines([json.dumps(recorded), "\n"], out, "4.2.0", print)
    (line,) = out.getvalue().splitlines()
    answered = json.loads(line)
    for own, step in zip(answered.pop("steps"), recorded["steps"], strict=True):
        assert own.pop("expect") == {key: value for key, value in step["expect"].items() if key in CONSUMER_FIELDS}
        assert own == {key: value for key, value in step.items() if key != "expect"}
    assert answered == {key: value for key, value in recorded.items() if key != "steps"}


def test_rules_of_consumer_groups_are_known_from_4_2_on():
    with pytest.raises(ValueError, match=r"from Kafka 4\.2 on, not of 4\.1\.1"):
        run_lines([json.dumps(trace_of())], io.StringIO(), "4.1.1", print)


@pytest.mark.parametrize(
    ("kafka", "measured_on", "epoch", "newer"),
    [
        (None, None, 1, []),
        (None, "4.2.0", 1, []),
        (None, "4.3.1", 2, []),
        ("4.2.0", "4.3.1", 1, []),
        ("4.4.0", None, 2, []),
        (None, "4.4.1", 2, ["4.4.1"]),
        ("5.0.0", "4.2.0", 2, ["5.0.0"]),
    ],
)
def test_a_trace_is_answered_by_the_release_that_was_asked_for_else_by_its_own(kafka, measured_on, epoch, newer):
    line = json.dumps(trace_of((0, "heartbeat", JOIN), **({"measured_on": measured_on} if measured_on else {})))
    out, told = io.StringIO(), []
    run_lines([line, line], out, kafka, told.append)
    epochs = [json.loads(answered)["steps"][0]["expect"]["response"]["epoch"] for answered in out.getvalue().splitlines()]
    assert (epochs, told) == ([epoch, epoch], newer)


def test_a_topic_that_has_no_id_is_an_error():
    with pytest.raises(ValueError, match="topic_ids has no 'b'"):
        expects((0, "topics", {"create": {"b": 1}}))


def test_a_topic_that_is_not_there_does_not_grow():
    _, joined = expects((0, "topics", {"grow": {"a": 3}}), (0, "heartbeat", JOIN))
    assert joined["response"]["assignment"] == {}


def test_a_request_that_is_answered_later_has_no_response_in_its_step():
    join = {"member": "", "topics": ["a"], "api_version": 3}
    first, *_, later = expects(
        (0, "topics", {"create": {"a": 1}}), (0, "join", join), (1, "join", {**join, "member": ""}), (2, "heartbeat", JOIN)
    )
    assert "response" not in first
    assert later["response"]["error"] == "NONE"
    assert later["group_after"]["type"] == "consumer"


def test_settings_that_are_absent_have_kafkas_defaults():
    _, before, at = expects((0, "heartbeat", JOIN), (44_999, "advance", {}), (45_000, "advance", {}), config={"owned_groups": ["g"]})
    assert (before["group_after"]["state"], at["group_after"]["state"]) == ("Stable", "Empty")
    assert [record["rec"] for record in at["records_advance"]][-1] == "GroupMetadata"
