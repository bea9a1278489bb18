"""`rebalance demo-live`, with some of its groups."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from rich.console import Console

from jobs.demo.live import run_demo_live
from jobs.lakehouse.reader import table_rows
from tests.demo.processes import running_with
from tests.laws.kept import assert_laws_are_kept
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

PROJECT = Path(__file__).parents[2]
DEMO = "import sys; from pathlib import Path; from rich.console import Console; from jobs.demo.live import run_demo_live; \
sys.exit(run_demo_live(Console(), folder=Path(sys.argv[1])))"
TOLD = {
    "checkout": [
        ("STARTUP", "checkout-1", "0 -> 1"),
        ("MEMBER_JOINED", "checkout-2", "1 -> 2"),
        ("MEMBER_LEFT", "checkout-2", "2 -> 1"),
        ("MEMBER_LEFT", "checkout-1", "1 -> 0"),
    ],
    "billing": [("STARTUP", "billing-1", "0 -> 1"), ("MEMBER_JOINED", "billing-2", "1 -> 2"), ("SESSION_TIMEOUT", "billing-2", "2 -> 1")],
    "returns": [("STARTUP", "returns-1", "0 -> 1"), ("MEMBER_JOINED", "returns-2", "1 -> 2"), ("METADATA_CHANGED", "-", "2 -> 2")],
}
"""Groups of the demo: one is left, one loses a consumer of Java that is killed, and one has the consumer protocol and a growing topic."""


class Visitor(io.StringIO):
    """Opens the dashboard when it reads at the end where it is, then presses Ctrl-C."""

    def write(self, text):
        if address := re.search(r"^In a browser: +(\S+) ", text, re.MULTILINE):
            with urllib.request.urlopen(f"{address[1]}api/rows/rebalances?cluster=demo&group=checkout", timeout=PATIENCE_SECONDS) as answer:
                self.rebalances = len(json.load(answer)["rows"])
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_what_is_done_is_told_and_accounted_for(tmp_path):
    said = Visitor()
    console = Console(file=said, width=120)
    assert run_demo_live(console, folder=tmp_path / "demo", seconds=3_000, groups=TOLD, rebalances=10, keep=True) == 0
    text = said.getvalue()
    assert said.rebalances == 4
    assert re.search(r"^From the end of a rebalance to its first row: [\d.]+ s \(median\), [\d.]+ s at most\.$", text, re.MULTILINE)
    told = re.findall(r"^\S+  . (\w+) +([\w-]+) +(\S+) +\S+ m?s +members (\d -> \d)", text, re.MULTILINE)
    assert {group: [tuple(row[1:]) for row in told if row[0] == group and row[1] != "UNKNOWN"] for group in TOLD} == TOLD
    shipped, read, rebalances, findings = re.search(
        r"^([\d,]+) lines shipped, ([\d,]+) read; (\d+) rebal\w+, (\d+) findings", text, re.MULTILINE
    ).groups()
    assert shipped == read != "0"
    assert rebalances == "11"  # with that of the group that joins first
    assert "\x1b" not in text  # plain where nobody looks
    lakehouse = next(tmp_path.glob("**/rebalances/_delta_log")).parents[1]
    codes = [row["code"] for row in table_rows(lakehouse / "findings")]
    assert len(codes) == int(findings)
    # A near miss is found where something else runs: on a busy machine a heartbeat comes late.
    assert [code for code in codes if code != "HEARTBEAT_NEAR_MISS"] == ["SESSION_TIMEOUT"]
    assert_laws_are_kept(lakehouse)


@pytest.mark.long
def test_ctrl_c_ends_everything_that_was_started(tmp_path):
    mark = {"REBALANCE_TEST": str(tmp_path)}
    command = [sys.executable, "-c", DEMO, str(tmp_path / "demo")]
    demo = subprocess.Popen(command, cwd=PROJECT, env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True)
    try:
        while "Spark starts" not in demo.stdout.readline():
            assert demo.poll() is None
        wait_until(lambda: len(running_with(mark)) >= 4)  # itself, broker, shipper, pipeline
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=PATIENCE_SECONDS)
        assert demo.returncode == 0
        assert rest.endswith("Stopped; nothing is left running.\n")
        wait_until(lambda: not running_with(mark))
    finally:
        demo.kill()
