"""Every recorded trace of Kafka's own coordinator, step by step: answers, their times, the group after each step.

The cases named gc39/* and gmm42/* follow Kafka's own tests: GroupCoordinatorTest (3.9.1), GroupMetadataManagerTest
(4.2.0).
"""

import io
import json
from collections import Counter

import pytest

from coordinator_model.specification.effects import LeaderChanged, MemberRemoved, StaticMemberReplaced, Transition
from coordinator_model.specification.trace import TraceRun, run_lines, run_trace
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from scripts.truth.trace_files import load_consumer_traces, load_traces
from scripts.truth.traces import differences_of, main, matches


def own_release():
    return [recorded for release, recorded in load_traces() if release == recorded["measured_on"]]


def of_release(release):
    return [recorded for measured_on, recorded in load_traces() if measured_on == release]


@pytest.mark.parametrize(
    ("release", "traces", "steps"), [("0.10.0.1", 182, 6_098), ("0.10.2.2", 182, 5_943), ("3.9.1", 428, 10_123), ("4.2.0", 387, 13_405)]
)
def test_every_step_is_kafkas(release, traces, steps):
    recorded = of_release(release)
    assert [difference for each in recorded for difference in differences_of(each, release)] == []
    assert (len(recorded), sum(len(each["steps"]) for each in recorded)) == (traces, steps)


def test_the_comparison_bites():
    (recorded,) = [each for each in of_release("4.2.0") if each["name"] == "scripted/unload_while_completing"]
    for index, step in enumerate(recorded["steps"]):
        for what in ("response", "group_after"):
            for field in step["expect"].get(what) or {}:
                spoiled = json.loads(json.dumps(recorded))
                spoiled["steps"][index]["expect"][what][field] = "spoiled"
                (difference,) = differences_of(spoiled, "4.2.0")
                assert (difference.step, difference.field) == (index, what)
    assert not matches({"any_of": [["$m1"], ["$m2"]]}, ["$m3"])
    assert matches({"any_of": [["$m1"], ["$m2"]]}, ["$m2"])


# The timeline: transitions, reasons, removals and their order.


def own_timeline(run):
    symbol = run.symbols.member
    for _, effect in run.effects:
        at_ms = effect.at_ms
        if isinstance(effect, Transition):
            if effect.to_state is State.PREPARING_REBALANCE:
                yield at_ms, "rebalance", effect.trigger.value
            # The Java coordinator removes a group without a change of its state.
            if effect.trigger not in (Trigger.DELETED, Trigger.OFFSETS_EXPIRED) or run.kafka != "4.2.0":
                yield at_ms, "state", effect.from_state.value, effect.to_state.value, effect.generation
        elif isinstance(effect, MemberRemoved):
            yield at_ms, "removed", symbol(effect.member_id), "pending" if effect.pending else "member"
        elif isinstance(effect, LeaderChanged):
            yield at_ms, "leader_changed", symbol(effect.old_leader), symbol(effect.leader)
        elif isinstance(effect, StaticMemberReplaced):
            old, new = symbol(effect.old_member_id), symbol(effect.member_id)
            yield at_ms, "static_replaced", effect.instance_id, old, new


RECORDED_FIELDS = {
    "rebalance": ("reason",),
    "state": ("from", "to", "generation"),
    "removed": ("member", "was"),
    "leader_changed": ("old_leader", "leader"),
    "static_replaced": ("instance", "old_member", "new_member"),
}


def recorded_timeline(recorded):
    for event in recorded["timeline"]:
        if event["ev"] in RECORDED_FIELDS:
            yield (event["at_ms"], event["ev"], *(event[field] for field in RECORDED_FIELDS[event["ev"]]))


@pytest.mark.parametrize("release", ["0.10.0.1", "0.10.2.2", "3.9.1", "4.2.0"])
def test_the_timeline_is_kafkas(release):
    compared = 0
    for recorded in own_release():
        if recorded["measured_on"] != release or recorded.get("timeline_stability", "exact") != "exact":
            continue
        run = TraceRun(recorded)
        run.run()
        own, kafkas = list(own_timeline(run)), list(recorded_timeline(recorded))
        if any(step["op"] == "unload" for step in recorded["steps"]):
            # Scala: what is left of an unloaded group still drops its members one day, where nobody sees it.
            assert Counter(own) <= Counter(kafkas), recorded["name"]
            left_over = Counter(kafkas) - Counter(own)
            assert {event[1] for event in left_over} <= {"removed", "leader_changed", "state"}, recorded["name"]
            assert all(event[2] == "Dead" for event in left_over if event[1] == "state"), recorded["name"]
        else:
            assert own == kafkas, recorded["name"]
        compared += 1
    assert compared > 40


# The command.


def test_trace_replaces_expect_and_keeps_the_rest():
    recorded = next(each for each in own_release() if each["name"] == "scripted/unload_stable")
    lines = json.dumps(recorded) + "\n\n"
    out = io.StringIO()
    run_lines(io.StringIO(lines), out, None, print)
    (line,) = out.getvalue().splitlines()
    answered = json.loads(line)
    assert {key: value for key, value in answered.items() if key != "steps"} == {
        key: value for key, value in recorded.items() if key != "steps"
    }
    for own, step in zip(answered["steps"], recorded["steps"], strict=True):
        assert {key: value for key, value in own.items() if key != "expect"} == {
            key: value for key, value in step.items() if key != "expect"
        }
        assert matches(step["expect"], own["expect"])


def test_trace_follows_another_release_when_told():
    recorded = next(each for each in own_release() if each["name"] == "scripted/sync_in_stable_and_session")
    out = io.StringIO()
    run_lines([json.dumps(recorded)], out, "3.9.1", print)
    answered = json.loads(out.getvalue())
    assert answered["measured_on"] == "4.2.0"  # where the input was recorded
    assert answered["steps"][5]["expect"]["group_after"]["state"] == "Stable"  # 4.2.0: Empty
    assert run_trace(recorded)["steps"][5]["expect"]["group_after"]["state"] == "Empty"


@pytest.mark.parametrize("line", ['{"steps": []}', '{"measured_on": "4.2.0"}', '{"measured_on": 4.2}', "{"])
def test_trace_names_a_line_that_it_cannot_follow(line):
    with pytest.raises(ValueError, match=r"^line 2: "):
        run_lines(["\n", line], io.StringIO(), None, print)


def test_the_script_prints_a_table_and_fails_on_a_difference(capsys):
    recorded = json.loads(json.dumps(load_traces()[0][1]))
    of_consumers = json.loads(json.dumps(load_consumer_traces()["cases"][0]))
    kinds = {"classic 0.10.2.2": [("0.10.2.2", recorded)], "consumer cases": [(None, of_consumers)]}
    assert main(["--show", "1"], kinds) == 0
    for spoiled, field, number in ((recorded, "generation", 77), (of_consumers, "group_epoch", 78)):
        before = spoiled["steps"][1]["expect"]["group_after"].get(field)
        spoiled["steps"][1]["expect"]["group_after"][field] = number
        assert main(["--show", "1"], kinds) == 1
        assert str(number) in capsys.readouterr().out
        spoiled["steps"][1]["expect"]["group_after"][field] = before
