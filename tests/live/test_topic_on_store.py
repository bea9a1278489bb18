"""A run that follows a topic into a lakehouse in an object store: live, maintained, looked at, killed, and gone on with."""

import gzip
import os
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from jobs.common.settings import Settings
from jobs.demo.children import RebalanceCommand
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import account
from jobs.pipeline import at_once
from jobs.pipeline.topic_input import TopicInput
from tests.dashboard.serving import serving
from tests.laws.kept import assert_laws_are_kept
from tests.live.test_topic import SHARDS, ZONE, make_topic, run, ship, tables, without_fetch
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2"
AT_ONCE = Policy(grace=timedelta(0))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def lines():
    """Those of a log, and ten minutes later one more: a topic does not say that it ends. A shipper sends no FETCH."""
    found = without_fetch(gzip.decompress((RECORDING / "kafka-request.log.gz").read_bytes())).splitlines(keepends=True)
    later = datetime.strptime(found[-1][1:20].decode(), "%Y-%m-%d %H:%M:%S") + timedelta(minutes=10)  # noqa: DTZ007 - local, as logged
    return [*found, f"[{later:%Y-%m-%d %H:%M:%S},000] INFO Still here (kafka.server.KafkaServer)\n".encode()]


def test_a_run_that_is_killed_goes_on_where_it_was(spark, checkpoints_in_store, broker, on_store, lines, tmp_path):
    topic, lake, log = make_topic(broker, "on-a-store"), on_store / "lake", tmp_path / "logs" / "one" / "broker-2" / "kafka-request.log"
    log.parent.mkdir(parents=True)

    def write(part):
        with log.open("ab") as file:
            file.writelines(lines[len(lines) * part // 3 : len(lines) * (part + 1) // 3])
        ship(broker, log.parent, "one", "broker-2", topic, tmp_path / "state.json")

    write(0)
    (tmp_path / "pipeline.toml").write_text(f"[pipeline]\nshards = {SHARDS}\n")
    source = ["--kafka", broker.bootstrap, "--topic", topic, "--max-offsets", "300", "--config", str(tmp_path / "pipeline.toml")]
    with RebalanceCommand("run", "--lakehouse", str(lake), *source, log=tmp_path / "run.txt") as pipeline:

        def rebalances():
            assert pipeline.running, pipeline.last_line()
            return account(lake)["rebalances"]

        wait_until(rebalances)
        with serving(lake) as served:
            seen = len(served.ask("rebalances"))
            assert seen
            write(1)
            list(maintain(lake, AT_ONCE, now=NOW))
            wait_until(lambda: len(served.ask("rebalances")), lambda number: number > seen)
        os.killpg(pipeline.process.pid, signal.SIGKILL)  # Python and the JVM at once, as a power cut does
    write(2)
    with checkpoints_in_store():
        run(spark, lake, topic=TopicInput(broker.bootstrap, topic, max_offsets=300))

    expected = tmp_path / "expected"
    at_once.process(tmp_path / "logs", expected, settings=Settings(timezone=ZONE, shards=SHARDS), most_lines=1 << 30)
    assert account(lake)["events"] == account(expected)["events"]
    assert tables(lake, "one") == tables(expected, "one")
    assert_laws_are_kept(lake)
