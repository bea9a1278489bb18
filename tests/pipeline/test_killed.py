"""A pipeline and a dashboard beside it: whatever of them is killed, the rest goes on, says what happened, and no table is another one."""

import contextlib
import gzip
import os
import signal

import psutil
import pytest
from chispa.rows_comparer import assert_basic_rows_equality

from jobs.common.exit_codes import FAILED
from jobs.common.settings import Settings
from jobs.dashboard.pages import PAGES
from jobs.demo.children import RebalanceCommand
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from tests.dashboard.serving import Served, serving
from tests.frames import rows_of
from tests.pipeline.test_run import RECORDING, SHARDS, ZONE, commits, run, verdict
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTS = 3
# Track takes one small slice at a time: after its first rebalance there is much left to be killed in.
SETTINGS = f'[pipeline]\ntimezone = "{ZONE}"\nshards = {SHARDS}\nslice_lines = 300\ntrack_files = 1\n'


class Place:
    """A log that grows, its lakehouse, and what works on it."""

    def __init__(self, folder):
        self.folder, self.logs, self.lakehouse = folder, folder / "logs", folder / "lake"
        self._lines = gzip.decompress((RECORDING / "broker-2" / "kafka-request.log.gz").read_bytes()).splitlines(keepends=True)
        self._log = self.logs / "c" / "broker-2" / "kafka-request.log"
        self._log.parent.mkdir(parents=True)
        self._started = 0
        (folder / "pipeline.toml").write_text(SETTINGS)

    def write(self, part):
        with self._log.open("ab") as file:
            file.writelines(self._lines[len(self._lines) * part // PARTS : len(self._lines) * (part + 1) // PARTS])

    def command(self, name, *more):
        self._started += 1
        return RebalanceCommand(name, "--lakehouse", str(self.lakehouse), *more, log=self.folder / f"{self._started}-{name}.txt")

    def pipeline(self):
        return self.command("run", "--input", str(self.logs), "--config", str(self.folder / "pipeline.toml"))

    def dashboard(self):
        """In a process of its own, and its address."""
        command = self.command("dashboard", "--port", "0")
        line = until(lambda: next((line for line in command.log.read_text().splitlines() if "http://" in line), None), command)
        return command, Served("http://127.0.0.1:" + line.partition("localhost:")[2].partition("/")[0])

    def rebalances(self):
        """How many are in the tables."""
        return len(table_rows(self.lakehouse / "rebalances")) if (self.lakehouse / "rebalances" / "_delta_log").exists() else 0

    def shown(self, served):
        """How many the dashboard shows."""
        return len(served.ask("rebalances", limit=100_000)) if self.rebalances() else 0


def until(look, *commands):
    """Waits for a state while these commands run; returns it."""

    def looked():
        assert all(command.running for command in commands), [command.last_line() for command in commands]
        return look()

    return wait_until(looked)


def jvm_of(command):
    """The JVM that runs Spark for a command, as a process. Spark's other processes come and go."""
    for child in psutil.Process(command.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                return child
    raise AssertionError("no JVM of Spark")


def test_whatever_is_killed_the_rest_goes_on(spark, tmp_path):
    place = Place(tmp_path)
    place.write(0)
    with place.pipeline() as pipeline:
        looking, served = place.dashboard()
        with looking:
            before = until(lambda: place.shown(served), pipeline, looking)
        looking, served = place.dashboard()
        with looking:
            place.write(1)
            until(lambda: place.rebalances() > before, pipeline, looking)  # though a dashboard was killed
            os.killpg(pipeline.process.pid, signal.SIGKILL)  # Python and the JVM at once, as a power cut does
            pipeline.kill()
            with serving(place.lakehouse) as other:
                assert served.ask("rebalances") == other.ask("rebalances")
            assert {page.path: served.get(page.path)[0] for page in PAGES} == {page.path: 200 for page in PAGES}
            assert looking.running
    (problem,) = verdict(place.lakehouse)
    assert problem.startswith(f"NOT_RUNNING: not running: process {pipeline.process.pid} was last seen ")

    place.write(2)
    run(spark, place.logs, place.lakehouse)
    at_once.process(place.logs, tmp_path / "reference", settings=Settings(timezone=ZONE, shards=SHARDS), most_lines=1 << 30)
    assert_basic_rows_equality(rows_of(place.lakehouse), rows_of(tmp_path / "reference"))


@pytest.mark.long
def test_a_jvm_that_is_killed_is_named(tmp_path):
    place = Place(tmp_path)
    for part in range(PARTS):
        place.write(part)
    with place.pipeline() as pipeline:
        until(lambda: commits(place.lakehouse / "group_events"), pipeline)
        jvm_of(pipeline).kill()
        wait_until(lambda: pipeline.running, False)
        assert pipeline.stop() == FAILED
    said = pipeline.log.read_text()
    assert "Traceback" not in said
    assert pipeline.last_line().startswith("rebalance: Spark failed: its JVM was killed, perhaps because memory ran out; the next run ")
    (problem,) = verdict(place.lakehouse)
    assert problem.startswith("FAILED: not running: Spark failed: its JVM was killed")
