"""`rebalance ship` while its broker is away: it waits, and nothing is lost."""

from __future__ import annotations

import os
import time

import pytest

from jobs.demo.local_broker import LocalBroker, free_port
from tests.live.shipping import LogWriter, ShipProcess, check_ticks, distinct, numbers, read_back, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

AWAY_SECONDS = float(os.environ.get("REBALANCE_AWAY_SECONDS", "0"))  # at least; the shipper complains after 5 s
SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
}  # a killed broker starts again when its session is over


def test_a_broker_that_is_away_for_a_while(tmp_path):
    broker = LocalBroker(tmp_path / "broker", port=free_port(), settings=SETTINGS)
    try:
        broker.start()
        broker.create_topic("away", 2)
        with LogWriter(tmp_path / "logs", rotate_every=2.0, pause=0.005) as writer:
            with ShipProcess(broker.bootstrap, "away", tmp_path) as shipper:
                wait_until(shipper.shipped)
                broker.kill()
                killed_at = time.monotonic()
                wait_until(lambda: complaints(shipper) == 1 and time.monotonic() - killed_at >= AWAY_SECONDS)
                before = shipper.shipped()
                broker.start()
                wait_until(lambda: shipper.shipped() > before)
                broker.stop()
                wait_until(lambda: complaints(shipper) == 2)
                output = shipper.end()  # with lines that nobody acknowledged
                assert "waiting, nothing is lost" in output
                assert "the next start sends it again" in output
            with ShipProcess(broker.bootstrap, "away", tmp_path) as shipper:
                broker.start()
                before = shipper.shipped()
                wait_until(lambda: shipper.shipped() > before)
                writer.stop()
                wait_until(lambda: shipper.shipped() == writer.written)
                shipper.end()
        records = read_back(broker.bootstrap, "away")
        assert numbers(distinct(records)) == list(range(writer.written))
        check_ticks(records)
    finally:
        broker.stop()


def complaints(shipper):
    return shipper.output().count("acknowledges nothing")
