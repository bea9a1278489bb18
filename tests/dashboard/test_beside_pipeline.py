"""The dashboard beside the pipeline: whichever of them is killed, the other goes on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jobs.dashboard.pages import PAGES
from jobs.demo.children import RebalanceCommand
from jobs.lakehouse.reader import table_rows
from tests.dashboard.serving import Served
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LOG = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2" / "server.log.gz"


def until(found, *commands):
    """Waits for a state while these commands run; returns it."""

    def looked():
        for command in commands:
            assert command.running, command.last_line()
        return found()

    return wait_until(looked)


def dashboard(lakehouse, log):
    """A dashboard in a process of its own, and its address."""
    command = RebalanceCommand("dashboard", "--lakehouse", str(lakehouse), "--port", "0", log=log)
    line = until(lambda: next((line for line in log.read_text().splitlines() if "http://" in line), None), command)
    return command, Served("http://127.0.0.1:" + line.partition("localhost:")[2].partition("/")[0])


def test_whichever_is_killed_the_other_goes_on(tmp_path):
    lines = gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)
    cut = [number for number, line in enumerate(lines) if b"Stabilized group" in line][8]
    lakehouse, source = tmp_path / "lake", tmp_path / "logs" / "c" / "broker-2" / "server.log"
    source.parent.mkdir(parents=True)
    source.write_bytes(b"".join(lines[:cut]))

    def in_tables():
        return len(table_rows(lakehouse / "rebalances")) if (lakehouse / "rebalances" / "_delta_log").exists() else 0

    def shown(served):
        return len(served.ask("rebalances", limit=100_000)) if in_tables() else 0

    place = ["--input", str(tmp_path / "logs"), "--lakehouse", str(lakehouse), "--timezone", "America/New_York"]
    with RebalanceCommand("run", *place, log=tmp_path / "run.txt") as run:
        looking, served = dashboard(lakehouse, tmp_path / "first.txt")
        with looking:
            before = until(lambda: shown(served), run, looking)
        assert not looking.running  # killed while the pipeline writes
        with source.open("ab") as file:
            file.writelines(lines[cut:])
        until(lambda: in_tables() > before, run)
        looking, served = dashboard(lakehouse, tmp_path / "second.txt")
        with looking:
            until(lambda: shown(served) > before, run, looking)
            run.kill()
            assert shown(served) == in_tables()
            assert {page.path: served.get(page.path)[0] for page in PAGES} == {page.path: 200 for page in PAGES}
            assert looking.running
