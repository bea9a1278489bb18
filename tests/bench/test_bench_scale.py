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
    options = ("--size", "S", "--lines", "20000", "--cores", "3", "--slots", "1", "--starts", "1", "--folder", str(tmp_path))
    done = subprocess.run([sys.executable, "bench/bench_scale.py", *options], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    it = json.loads((tmp_path / "bench-scale.json").read_text())["cores"]["3"]
    assert it["count"]["parse"] > 0
    assert it["count"]["track"] > 1, "it was planned for more cores than there were slots"
    assert max(it["largest"].values()) <= it["tasks"] < sum(it["cost"][kind] for kind in KINDS), "its cores work side by side"
    assert it["tasks"] < it["seconds"] == pytest.approx(sum(it["spent"].values()), rel=0.05)
    assert "20,000 lines of S" in done.stdout
