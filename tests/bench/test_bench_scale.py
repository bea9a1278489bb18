"""bench/bench_scale.py: it traces real runs of Spark and computes from them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
KINDS = ("read", "parse", "track")


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_is_planned_for_more_cores_is_traced(tmp_path):
    options = ("--size", "S", "--lines", "20000", "--cores", "1,3", "--slots", "1", "--starts", "1", "--folder", str(tmp_path))
    done = subprocess.run([sys.executable, "bench/bench_scale.py", *options], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "bench-scale.json").read_text())
    one, three = report["cores"]["1"], report["cores"]["3"]
    assert one["count"]["parse"] > 0
    assert 0 < one["count"]["track"] < three["count"]["track"], "it was planned for more cores than there were slots"
    assert sum(one["cost"][kind] for kind in KINDS) == pytest.approx(one["tasks"], rel=1e-3), "a single core does one task after the other"
    for of_one in (one, three):
        assert of_one["seconds"] > of_one["tasks"] >= max(of_one["largest"].values())
        assert sum(of_one["spent"].values()) == pytest.approx(of_one["seconds"], rel=0.05)
    assert "20,000 lines of S" in done.stdout
