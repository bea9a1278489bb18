"""A run that follows a topic into a lakehouse in an object store: live, maintained, looked at, killed, and gone on with."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psutil
import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import account
from jobs.pipeline import at_once
from tests.dashboard.serving import serving
from tests.laws.kept import assert_laws_are_kept
from tests.live.shipping import PROJECT, wait_until
from tests.live.test_topic import ZONE, make_topic, ship, tables, without_fetch

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("s3_jars")]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2"
AT_ONCE = Policy(grace=timedelta(0))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def lines():
    """Those of a log, and ten minutes later one more: a topic does not say that it ends. A shipper sends no FETCH."""
    found = without_fetch(gzip.decompress((RECORDING / "kafka-request.log.gz").read_bytes())).splitlines(keepends=True)
    later = datetime.strptime(found[-1][1:20].decode(), "%Y-%m-%d %H:%M:%S") + timedelta(minutes=10)  # noqa: DTZ007 - local, as logged
    return [*found, f"[{later:%Y-%m-%d %H:%M:%S},000] INFO Still here (kafka.server.KafkaServer)\n".encode()]


class Pipeline:
    """`rebalance run --kafka` and its processes."""

    def __init__(self, bootstrap, topic, lake, *more):
        command = ["run", "--kafka", bootstrap, "--topic", topic, "--lakehouse", str(lake), "--max-offsets", "300", *more]
        self._process = subprocess.Popen([sys.executable, "-m", "jobs.cli", *command], cwd=PROJECT, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills all of it at once, as a power cut does."""
        for process in [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]:
            process.kill()
        self._process.wait()

    def end(self):
        return self._process.wait(240)


def test_a_run_that_is_killed_goes_on_where_it_was(broker, on_store, lines, tmp_path):
    topic, lake, log = make_topic(broker, "on-a-store"), on_store / "lake", tmp_path / "logs" / "one" / "broker-2" / "kafka-request.log"
    log.parent.mkdir(parents=True)

    def write(part):
        with log.open("ab") as file:
            file.writelines(lines[len(lines) * part // 3 : len(lines) * (part + 1) // 3])
        ship(broker, log.parent, "one", "broker-2", topic, tmp_path / "state.json")

    write(0)
    with Pipeline(broker.bootstrap, topic, lake):
        wait_until(lambda: account(lake)["rebalances"] > 0)
        with serving(lake) as served:
            seen = len(served.ask("rebalances"))
            assert seen
            write(1)
            list(maintain(lake, AT_ONCE, now=NOW))
            wait_until(lambda: len(served.ask("rebalances")) > seen)
    write(2)
    assert Pipeline(broker.bootstrap, topic, lake, "--once").end() == 0

    expected = tmp_path / "expected"
    at_once.process(tmp_path / "logs", expected, settings=Settings(timezone=ZONE), most_lines=1 << 30)
    assert account(lake)["events"] == account(expected)["events"]
    assert tables(lake, "one") == tables(expected, "one")
    assert_laws_are_kept(lake)
