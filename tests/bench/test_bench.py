"""bench/bench.py: it makes its input, measures whole process trees, and tells on what."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
CONTENDER = "DuckDB, parse only"  # needs no JVM

pytestmark = pytest.mark.slow


def test_a_contender_is_measured_over_generated_lines(tmp_path):
    options = ("--size", "S", "--lines", "6000", "--runs", "2", "--only", CONTENDER, "--folder", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "bench.bench", *options], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "bench.json").read_text())
    assert report["input"]["lines"] == 6_000
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["duckdb"]
    figures = report["contenders"][CONTENDER]
    assert len(figures["seconds_of_runs"]) == 2
    assert figures["start_core_seconds"] > 0
    assert figures["peak_mb"] > 10
    assert "6,000 lines" in done.stdout
    assert CONTENDER in done.stdout


MEASURE = """
import sys
from pathlib import Path
from bench.measured import run
print(run([sys.executable, "-c", sys.argv[1]], Path("."), Path(sys.argv[2])).core_seconds)
"""


def measured(program, folder):
    command = [sys.executable, "-c", MEASURE, program, str(folder / "log")]  # a process of its own: it waits for all its children
    return subprocess.run(command, cwd=PROJECT, check=False, capture_output=True, text=True)


def test_a_contender_that_fails_ends_the_bench_with_its_last_words(tmp_path):
    done = measured("import sys; print('no such table'); sys.exit(3)", tmp_path)
    assert done.returncode == 1
    assert "exit code 3" in done.stderr
    assert "no such table" in done.stderr


ORPHAN = "import subprocess, sys; subprocess.Popen"  # as Spark's Python workers, which outlive their parents
NOT_WAITED_FOR = "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); subprocess.call"  # as by Spark's daemon


@pytest.mark.parametrize("parent", [ORPHAN, NOT_WAITED_FOR])
def test_the_processor_time_of_a_process_counts_whose_parent_does_not_wait_for_it(tmp_path, parent):
    burn = "import time\nwhile time.process_time() < 1: pass"  # half of it may pass between two samples where much else runs
    assert 0.5 < float(measured(f"{parent}([sys.executable, '-c', {burn!r}])", tmp_path).stdout) < 3


@pytest.mark.long
def test_the_state_is_measured():
    """It takes the form of packets from the tests, so a new form of theirs breaks it."""
    options = ("--groups", "50", "--idle", "50", "--sample", "1", "--large", "100")
    done = subprocess.run([sys.executable, "-m", "bench.bench_state", *options], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "100 members" in done.stdout
