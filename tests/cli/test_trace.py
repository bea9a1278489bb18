"""`rebalance trace`: recorded requests in, the same objects with the model's own answers out."""

import gzip
import io
import json
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.common.exit_codes import UNUSABLE

TRACES = Path(__file__).parents[1] / "data" / "traces"


def test_the_model_answers_what_kafka_answered(monkeypatch, capsys):
    with gzip.open(TRACES / "random-4.2.0.jsonl.gz", "rt", encoding="utf-8") as file:
        recorded = [json.loads(next(file)) for _ in range(3)]
    asked = [{**trace, "steps": [{**step, "expect": None} for step in trace["steps"]]} for trace in recorded]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(json.dumps(trace) + "\n" for trace in asked)))
    assert entry.main(["trace"]) == 0
    answered = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [trace["name"] if "name" in trace else trace["seed"] for trace in answered] == [
        trace["name"] if "name" in trace else trace["seed"] for trace in recorded
    ]
    for mine, theirs in zip(answered, recorded, strict=True):
        for step, expected in zip(mine["steps"], theirs["steps"], strict=True):
            assert step["expect"]["group_after"]["state"] == expected["expect"]["group_after"]["state"]
            assert step["expect"]["group_after"]["generation"] == expected["expect"]["group_after"]["generation"]


def test_consumer_groups_are_answered_too(monkeypatch, capsys):
    with gzip.open(TRACES.parent / "traces-consumer" / "cases.jsonl.gz", "rt", encoding="utf-8") as file:
        recorded = json.loads(next(file))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(recorded)))
    assert entry.main(["trace"]) == 0
    for step, expected in zip(json.loads(capsys.readouterr().out)["steps"], recorded["steps"], strict=True):
        assert step["expect"]["group_after"] == expected["expect"]["group_after"]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(recorded)))
    assert entry.main(["trace", "--episodes"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"][0]["rounds"][0]["cause"] == "join"


@pytest.mark.parametrize(
    ("kafka", "code", "said"),
    [
        ("3.9.1", 2, "the rules of consumer groups are known from Kafka 4.2 on, not of 3.9.1"),
        ("4.4.0", 0, ""),
        ("9.9.9", 0, "rebalance: The rules of Kafka 9.9.9 are not known yet: its traces are answered by those of 4.4.0.\n"),
        ("3.12.0", 2, "not a Kafka release: '3.12.0'"),
        ("newest", 2, "not a Kafka release: 'newest'"),
    ],
)
def test_a_release_that_was_asked_for_is_followed_or_refused(monkeypatch, capsys, kafka, code, said):
    with gzip.open(TRACES.parent / "traces-consumer" / "cases.jsonl.gz", "rt", encoding="utf-8") as file:
        recorded = next(file)
    monkeypatch.setattr("sys.stdin", io.StringIO(recorded * 2))
    assert entry.main(["trace", "--kafka", kafka]) == code
    captured = capsys.readouterr()
    assert (said in captured.err) if code else (captured.err == said)
    assert len(captured.out.splitlines()) == (0 if code else 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"name": "x", "config": {}, "steps": []}', 'it does not say its release: "measured_on", or --kafka'),
        ('{"measured_on": "4.2.0", "config": {}, "steps": []}', "a name is missing or unknown: 'owned_groups'"),
        ('{"measured_on": "4.2.0"}', "a name is missing or unknown: 'config'"),
        ('{"measured_on": 4.2, "config": {}}', "a value has another form than in the format: "),
        ('{"format": "consumer-group-case/1"}', "a name is missing or unknown: 'topic_ids'"),
        ("[]", "a value has another form than in the format: "),
        ('{"measured_on"', "Expecting ':' delimiter"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(monkeypatch, capsys, line, said):
    with gzip.open(TRACES / "cases.jsonl.gz", "rt", encoding="utf-8") as file:
        good = next(file)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{good}\n{line}\n"))
    assert entry.main(["trace"]) == UNUSABLE
    captured = capsys.readouterr()
    assert captured.err.startswith(f"rebalance: This is not a trace that the specification can follow: line 3: {said}")
    assert len(captured.err.splitlines()) == len(captured.out.splitlines()) == 1


def test_the_release_may_be_given_instead(monkeypatch, capsys):
    with gzip.open(TRACES / "cases.jsonl.gz", "rt", encoding="utf-8") as file:
        trace = json.loads(next(file))
    release = trace.pop("measured_on")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(trace)))
    assert entry.main(["trace", "--kafka", release]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
