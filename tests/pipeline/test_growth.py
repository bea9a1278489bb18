"""Logs that grow between one `run --once` and the next, as from cron: the tables are those of one run over the whole logs."""

import gzip
import json
import random
import re
from bisect import bisect
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import run as pipeline
from schemas.names import QUARANTINE
from schemas.tables import TRACK_TABLES
from tests.effort import every

pytestmark = pytest.mark.spark

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
ZONES = {"kafka-4.2.0": "UTC", "kafka-3.9.1": "America/New_York"}
RUNS = 4
_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}")


class GrowingLogs:
    """The brokers' logs of a recording, written up to a time."""

    def __init__(self, recording, folder):
        self._folder = folder
        self._logs = {}
        for path in sorted((RECORDINGS / recording).glob("broker-*/*.gz")):
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            times = accumulate((found[0] if (found := _TIME.search(line)) else b"" for line in lines), max)
            self._logs[Path("c", path.parent.name, path.stem)] = list(times), lines

    def times(self):
        return sorted({time for times, _ in self._logs.values() for time in times})

    def grow(self, until, half=0.0):
        """`half`: of the next line of each log stands there, too."""
        for name, (times, lines) in self._logs.items():
            end = bisect(times, until)
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(lines[:end]) + b"".join(line[: int(half * len(line))] for line in lines[end : end + 1]))


def tables(lakehouse):
    """The rows of the final tables, without the micro-batch that wrote them, and the lines in quarantine."""
    return {
        name: Counter(json.dumps({k: v for k, v in row.items() if k != "batch_id"}, default=str) for row in table_rows(lakehouse / name))
        for name in (*TRACK_TABLES, QUARANTINE)
    }


@pytest.fixture(scope="module")
def whole(spark, tmp_path_factory):
    """The tables of one run over a recording, each made once."""
    known = {}

    def made(recording):
        if recording not in known:
            folder = tmp_path_factory.mktemp("whole")
            GrowingLogs(recording, folder / "logs").grow(b"9999")
            run(spark, folder, recording)
            known[recording] = tables(folder / "lake")
        return known[recording]

    return made


def run(spark, folder, recording):
    settings = Settings(timezone=ZONES[recording], shards=4)
    pipeline.run(folder / "logs", folder / "lake", settings=settings, once=True, spark=spark, show=lambda _: None)


@pytest.mark.parametrize("seed", every(20, range(20)))
def test_runs_over_logs_that_grow_make_the_tables_of_one_run(spark, whole, tmp_path, seed):
    recording = list(ZONES)[seed % len(ZONES)]
    plan, logs = random.Random(seed), GrowingLogs(recording, tmp_path / "logs")
    stops = sorted(plan.sample(logs.times(), RUNS - 1))
    for stop in stops:
        logs.grow(stop, half=plan.choice([0.0, 0.3, 0.7, 0.99]))
        run(spark, tmp_path, recording)
    logs.grow(b"9999")
    run(spark, tmp_path, recording)
    grown, at_once = tables(tmp_path / "lake"), whole(recording)
    assert {name: (at_once[name] - grown[name], grown[name] - at_once[name]) for name in grown if grown[name] != at_once[name]} == {}
