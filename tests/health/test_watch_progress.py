"""Which progress of a query is that of a finished micro-batch. The objects are PySpark's own, of what a real run reported."""

import json
from types import SimpleNamespace

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from jobs.health.watch import finished_progress

ID = "ec9d4ddb-8695-445f-9240-9e06d4716352"


def progress(batch_id, *, executed=True):
    spent = {"latestOffset": 3, "triggerExecution": 3} | ({"addBatch": 1_117, "triggerExecution": 1_253} if executed else {})
    return StreamingQueryProgress.fromJson(
        {
            "id": ID, "runId": ID, "name": "track", "timestamp": "2026-11-21T17:27:38.000Z", "batchId": batch_id, "batchDuration": 3,
            "numInputRows": 0, "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0, "durationMs": spent, "eventTime": {},
            "stateOperators": [], "sources": [], "sink": {"description": "ForeachBatchSink", "numOutputRows": -1}, "observedMetrics": {},
        }
    )  # fmt: skip


def seen(after, *reported):
    query = SimpleNamespace(lastProgress=reported[-1] if reported else None, recentProgress=list(reported))
    return [one["batchId"] for one in finished_progress(query, after)]


IDLE = progress(3, executed=False)
"""An idle query reports under the number of the micro-batch to come."""


@pytest.mark.parametrize(
    ("after", "reported", "found"),
    [
        (-1, [], []),
        (-1, [progress(0)], [0]),
        (-1, [progress(56), progress(57)], [56, 57]),  # continued
        (0, [progress(0)], []),
        (0, [progress(0), progress(1)], [1]),
        (0, [progress(0), progress(1), progress(2)], [1, 2]),  # one was missed
        (2, [progress(2), IDLE], []),
        (1, [progress(1), progress(2), IDLE], [2]),
        (2, [progress(2), IDLE, IDLE, progress(3)], [3]),
        (2, [progress(2), IDLE, progress(3), progress(4)], [3, 4]),
    ],
)
def test_every_micro_batch_is_seen_once_and_no_idle_look_is_taken_for_one(after, reported, found):
    assert seen(after, *reported) == found


def test_what_is_read_is_the_json_that_spark_made():
    assert json.loads(progress(3).json)["durationMs"]["addBatch"] == 1_117
