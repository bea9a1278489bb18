"""`rebalance trace`: recorded requests in, the same objects with the model's own answers out."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

from jobs.cli import entry

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
