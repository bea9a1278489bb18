"""What is told of the recordings, beside what was done to their clients."""

import json

import pytest

from jobs.lakehouse.reader import TableReader
from tests.made_once import DATA

pytestmark = pytest.mark.slow


def actions(recording, action):
    """The lines of truth.jsonl about one kind of action."""
    lines = map(json.loads, (DATA / "recordings" / recording / "truth.jsonl").read_text().splitlines())
    return [line for line in lines if line["action"] == action]


def test_a_client_did_not_poll_for_as_long_as_it_was_stalled(recorded_lakehouse):
    """Only librdkafka's own words, `exceeded by N ms`, tell how long before them the limit had passed."""
    reader = TableReader(recorded_lakehouse("recordings/kafka-4.2.0"), ("findings",))
    rows = reader.rows("SELECT client_id, details, epoch_ms(occurred_at) AS at_ms FROM findings WHERE code = 'POLL_TIMEOUT'")
    told = [(row["client_id"], row["at_ms"], json.loads(row["details"]).get("poll_gap_ms")) for row in rows]
    done = [(one["client_id"], one["ts_ms"], one["stall_ms"]) for one in actions("kafka-4.2.0", "stall")]
    beside = {
        (client, stall_ms): gap_ms
        for client, at_ms, gap_ms in told
        for who, began_ms, stall_ms in done
        if who == client and 0 <= at_ms - began_ms < stall_ms
    }
    assert len(beside) >= 7
    assert {key: abs(gap_ms - key[1]) < 150 for key, gap_ms in beside.items()} == dict.fromkeys(beside, True)
