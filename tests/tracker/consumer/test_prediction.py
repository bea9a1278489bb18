"""Answers to ConsumerGroupHeartbeat: brokers and Kafka's own coordinator give those of the specification. A changed one is found."""

import gzip
from collections import Counter
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker import codec
from coordinator_model.tracker.consumer import replay, undecided
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.consumer_view import ConsumerPrediction
from coordinator_model.view.settings import TrackerSettings
from jobs.parsing import batch
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from tests.effort import long
from tests.parsing.reading import read_lines
from tests.pipeline.tracking.packed_events import events_in
from tests.tracker.consumer.traced import answer_of, lines_of, newer_traces, trace, traces

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
OF_4_2 = TrackerSettings(kafka_version="4.2.0")
GROUPS = (b"search-ingest", b"telemetry-static", b"telemetry-v2")
"""The groups of the recording that follow the consumer protocol, the first after a migration."""


def compared(events: list[Event], settings: TrackerSettings = OF_4_2) -> tuple[dict[str, ConsumerPrediction], list[dict[str, Any]]]:
    """How the answers of groups were compared, and the differences that were reported."""
    last_ms = max(event.at_ms for event in events) + 100_000
    brokers = sorted({event.broker for event in events})
    ends = [Event(broker, "clock", "", 0, last_ms, last_ms, kind) for broker in brokers for kind in (kinds.CLOCK, kinds.END)]
    shard = Shard(settings)
    rows = shard.observe([*events, *ends])
    state = codec.decode_shard(shard.encode())
    groups = [state.groups, *(codec.unpack_groups(bucket.packed) for bucket in state.resting.values())]
    views = {group_id: codec.decode_view(group.view) for some in groups for group_id, group in some.items()}
    found = {group_id: view.consumer.prediction for group_id, view in views.items() if view.consumer is not None}
    return found, [row.values for row in rows if row.values.get("code") == "MODEL_DIVERGENCE"]


def told(name: str, *, logged: bool, instead: dict[int, Event] | None = None) -> list[Event]:
    """A trace as lines of a request log, and of a coordinator's log. `instead`: answers in the place of those to some of its steps."""
    case = trace(name)[0]
    ids, events = case.get("ids") or {}, []
    for number, step in enumerate(case["steps"]):
        if "expect" in step:
            events += lines_of(step) if logged else ()
        if "expect" in step and step["op"] == "heartbeat":
            events.append((instead or {}).get(number) or answer_of(step, case["topic_ids"]))
    named = []
    for event in events:
        asked, answered = (ids.get(member_id, member_id) for member_id in (event.member_id, event.answer_member_id))
        named += [event._replace(member_id=asked, answer_member_id=answered)] if event.group_id == "g" else ()
    return [
        event._replace(position=number, correlation_id=number if event.source == "request" else -1) for number, event in enumerate(named)
    ]


@cache
def recorded(folder: str) -> list[Event]:
    """What the logs of a recording's brokers say about groups of the consumer protocol."""
    found = []
    for path in sorted((RECORDINGS / folder).glob("broker-*/*.log.gz")):
        lines = [
            (number, line.decode())
            for number, line in enumerate(gzip.decompress(path.read_bytes()).splitlines(), 1)
            if any(group in line for group in GROUPS)
        ]
        rows = [
            ("c", path.parent.name, "line", path.name, number, _time(line), line, None, 1, None, None)
            for number, line in lines
            if line.startswith("[2")
        ]
        for events in batch.events(read_lines(rows), 0).to_batches() if rows else ():
            for packet in packets.packed(Spread(1, 1), [events], ""):
                found += events_in(packet.to_pandas())
    return found


def _time(line: str) -> datetime:
    return datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)


def test_answers_of_recorded_brokers_are_those_of_the_specification():
    """All but those of a minute in which a broker was killed, and those to a member that was shut out meanwhile."""
    assert not [event for event in recorded("kafka-3.9.1") if event.kind == kinds.CONSUMER_GROUP_HEARTBEAT]  # it has no such groups
    events = recorded("kafka-4.2.0")
    found, differences = compared(events)
    answers = sum(len(event.beats) or 1 for event in events if event.kind == kinds.CONSUMER_GROUP_HEARTBEAT)
    assert not differences
    assert answers == 856
    assert sum(p.compared for p in found.values()) >= 0.9 * answers, found


@pytest.mark.parametrize(("logged", "least"), [pytest.param(True, 0.6, id="both logs"), long(False, 0.55, id="request log")])
def test_answers_of_kafkas_coordinator_are_those_of_the_specification(one_in, logged, least):
    """Traces with topics that come and go, expressions, lost members and fail-overs. docs/consumer-protocol.md has the shares."""
    answers = agreed = 0
    why: Counter[str] = Counter()
    for name in traces(one_in):
        events = told(name, logged=logged)
        if not events:
            continue
        found, differences = compared(events)
        assert not differences, name
        answers += sum(event.kind == kinds.CONSUMER_GROUP_HEARTBEAT for event in events)
        for p in found.values():
            agreed += p.compared
            why.update(p.undecided)
    assert agreed >= least * answers, why
    assert agreed + why.total() >= 0.95 * answers  # the others are refusals of the request itself


@pytest.mark.parametrize(("logged", "least"), [long(True, 0.55, id="both logs"), pytest.param(False, 0.5, id="request log")])
@pytest.mark.parametrize("is_named", [True, long(False)], ids=["release named", "release not named"])
def test_nor_do_those_of_newer_releases_differ(one_in, logged, is_named, least):
    """Targets wait for the assignment interval, whose length no line shows."""
    answers = agreed = 0
    for name in newer_traces(one_in):
        events = told(name, logged=logged)
        if events:
            release = trace(name)[0]["measured_on"] if is_named else ""
            found, differences = compared(events, TrackerSettings(kafka_version=release))
            assert not differences, name
            answers += sum(event.kind == kinds.CONSUMER_GROUP_HEARTBEAT for event in events)
            agreed += sum(p.compared for p in found.values())
    assert agreed >= (least if logged or is_named else 0) * answers


def test_a_stretch_that_would_take_too_long_to_compute_is_not_compared(one_in, monkeypatch):
    events = next(events for name in traces(one_in) if len(events := told(name, logged=True)) > 50)
    (usual,) = compared(events)[0].values()
    monkeypatch.setattr(replay, "SHARES_AT_MOST", 0)
    found, differences = compared(events)
    (limited,) = found.values()
    assert not differences
    assert limited.compared < usual.compared
    assert limited.undecided.get(undecided.NOT_FOLLOWED, 0) > usual.undecided.get(undecided.NOT_FOLLOWED, 0)


def altered(answer: Event) -> dict[str, Event]:
    """The answer with another value in one place."""
    accepted = answer.error_code == Error.NONE
    other = {"error_code": 0, "answer_generation": answer.generation}
    if accepted:
        other = {"error_code": int(Error.FENCED_MEMBER_EPOCH), "answer_generation": 0}
    changes = {"error": answer._replace(**other)}
    if accepted:
        changes["epoch"] = answer._replace(answer_generation=answer.answer_generation - 1)
        changes["interval"] = answer._replace(heartbeat_interval_ms=0 if answer.heartbeat_interval_ms else 5_000)
    if accepted and answer.generation == 0:
        changes["assignment"] = answer._replace(assignments=())
    return changes


def test_an_answer_with_another_value_is_found(one_in):
    """In a calm trace that agrees throughout, each field of every second answer. What else could explain it is not reported."""
    name = "random/77"
    case = traces(one_in)[name][0]
    answers, found = Counter[str](), Counter[str]()
    for number, step in list(enumerate(case["steps"]))[::2]:
        if step["op"] != "heartbeat" or "expect" not in step:
            continue
        for what, answer in altered(answer_of(step, case["topic_ids"])).items():
            answers[what] += 1
            differences = compared(told(name, logged=True, instead={number: answer}))[1]
            found[what] += bool(differences)
            assert all(row["code"] == "MODEL_DIVERGENCE" for row in differences)
    assert {what for what in answers if found[what] > answers[what] / 2} == {"error", "epoch", "interval", "assignment"}, (answers, found)


def test_both_answers_are_in_the_finding(one_in):
    name = "random/77"
    case = traces(one_in)[name][0]
    number, step = next((n, step) for n, step in enumerate(case["steps"]) if step["op"] == "heartbeat" and step["req"]["epoch"] > 0)
    answer = answer_of(step, case["topic_ids"])
    ((finding),) = compared(told(name, logged=True, instead={number: answer._replace(error_code=110, answer_generation=0)}))[1]
    assert "CONSUMER_GROUP_HEARTBEAT with FENCED_MEMBER_EPOCH; by the rules of Kafka 4.2.0 " in finding["message"]
    assert f"(epoch {answer.answer_generation}" in finding["message"]
