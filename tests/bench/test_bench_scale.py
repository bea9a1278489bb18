"""bench/bench_scale.py: it reads Spark's event log of a real run, and computes from it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.bench_scale import busy, figures

PROJECT = Path(__file__).parents[2]

KINDS = ("read", "ingest", "track")


def test_a_stage_takes_as_long_as_all_cores_or_as_its_longest_task():
    spans = [(1.0, 3.0), (1.0, 2.0), (2.0, 3.0), (3.0, 5.0)]
    assert busy(spans) == 4.0
    tasks = {"ingest": [spans], "track": [[(5.0, 6.0)], [(8.0, 9.0)]]}
    one, two, many = (figures(tasks, 12.0, cores) for cores in (1, 2, 64))
    assert (one["tasks"], one["bounded_by"], one["seconds"]) == (8.0, "cores", 14.0)
    assert (two["tasks"], two["bounded_by"], two["seconds"]) == (4.0, "cores", 10.0)
    assert (many["tasks"], many["bounded_by"], many["real"]) == (2.0, "ingest", None)


@pytest.mark.spark
@pytest.mark.long
def test_a_run_that_is_planned_for_more_cores_is_read_from_its_event_log(tmp_path):
    options = ("--size", "S", "--lines", "20000", "--cores", "3", "--folder", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "bench.bench_scale", *options], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    it = json.loads((tmp_path / "bench-scale.json").read_text())["cores"]["3"]
    assert set(it["count"]) <= set(KINDS)
    assert it["count"]["ingest"] > 0
    assert it["count"]["track"] > 2, "it was planned for three cores"
    assert sum(it["task_seconds"].values()) / 3 <= it["tasks"] < sum(it["task_seconds"].values()), "its cores work side by side"
    assert it["tasks"] + it["between"] == pytest.approx(it["seconds"])
    assert "20,000 lines of S" in done.stdout
