"""What a hand-over cost, told once more from what recorded consumers and producers noted."""

import gzip
import json
from pathlib import Path

import pytest

from tests.lab.hand_overs import Processed, Produced, after_actions, hand_overs

SCENES = sorted((Path(__file__).parents[1] / "data" / "offset-scenes").iterdir())


def lines(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("scenes", SCENES, ids=lambda scenes: scenes.name)
def test_a_recording_is_told_as_it_was(scenes):
    processed = [Processed(**line) for line in lines(scenes / "processed.jsonl.gz")]
    produced = [Produced(**line) for line in lines(scenes / "produced.jsonl.gz")]
    actions = {line["group"]: line["actions"] for line in lines(scenes / "groups.jsonl")}
    told = list(after_actions(hand_overs(processed, produced), actions))
    assert told == lines(scenes / "truth.jsonl")
    for kind in ("zombie", "reread", "skipped"):
        assert len({bool(line[kind]) for line in told}) == 2, kind
    assert any(line["old_client"] == line["new_client"] and line["old_run"] < line["new_run"] for line in told)  # started again
    assert any((line["old_client"], line["old_run"]) == (line["new_client"], line["new_run"]) for line in told)  # silent, or went back


def test_an_offset_without_a_record_is_not_skipped():
    """As those of the markers of transactions."""
    written = [Produced(offset, "g", 0, offset) for offset in range(20) if offset != 10]
    read = [Processed(100 + offset, "g", "a" if offset < 10 else "b", 1, 0, offset) for offset in range(20) if offset != 10]
    (over,) = hand_overs(read, written)
    assert (over.resumed_offset, over.skipped) == (11, 0)
