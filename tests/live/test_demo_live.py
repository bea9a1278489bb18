"""`rebalance demo-live`, with one of its groups."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from jobs.demo_live import run_demo_live

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

PROJECT = Path(__file__).parents[2]
DEMO = "import sys; from pathlib import Path; from rich.console import Console; from jobs.demo_live import run_demo_live; \
sys.exit(run_demo_live(Console(), folder=Path(sys.argv[1])))"


def test_what_is_done_is_told_and_accounted_for(tmp_path):
    said = io.StringIO()
    assert run_demo_live(Console(file=said, width=120), folder=tmp_path / "demo", seconds=240, groups=["checkout"]) == 0
    text = said.getvalue()
    told = re.findall(r"^\S+  . checkout +(\w+) +(\S+) +\S+ m?s +(\d) -> (\d) members$", text, re.MULTILINE)
    assert told == [
        ("MEMBER_JOINED", "checkout-1", "0", "1"),
        ("MEMBER_JOINED", "checkout-2", "1", "2"),
        ("MEMBER_LEFT", "checkout-2", "2", "1"),
        ("MEMBER_LEFT", "checkout-1", "1", "0"),
    ]
    shipped, read, rebalances, findings = re.search(
        r"^([\d,]+) lines shipped, ([\d,]+) read; (\d+) rebal\w+, (\d+) findings", text, re.MULTILINE
    ).groups()
    assert shipped == read != "0"
    assert (rebalances, findings) == ("4", "0")
    assert "\x1b" not in text  # plain where nobody looks


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running(tmp_path, number):
    mark = f"REBALANCE_TEST={tmp_path}"
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, str(tmp_path / "demo")],
        cwd=PROJECT,
        env={**os.environ, "REBALANCE_TEST": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(demo.stdout)
        while "billing-2 joins" not in next(lines):
            pass
        assert len(running(mark)) > 6  # broker, shipper, pipeline, consumers, a JVM
        demo.send_signal(number)
        rest, _ = demo.communicate(timeout=120)
        until = time.monotonic() + 30
        while running(mark):
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        demo.kill()
    if number == signal.SIGINT:
        assert demo.returncode == 0
        assert rest.endswith("Stopped; nothing is left running.\n")


def running(mark):
    """Processes that have this in their environment, by what they were started as."""
    return [told[1] for process in Path("/proc").glob("[0-9]*") if mark.encode() in (told := environment(process))[0]]


def environment(process):
    """And the command line; nothing of what has ended meanwhile."""
    try:
        return (process / "environ").read_bytes().split(b"\0"), (process / "cmdline").read_bytes()
    except OSError:
        return [], b""
