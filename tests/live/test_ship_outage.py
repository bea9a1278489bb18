"""`rebalance ship` while its broker is away: it waits, and nothing is lost."""

import os
import time

import pytest

from tests.live.shipping import LogWriter, ShipProcess, check_ticks, distinct, numbers, read_back
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AWAY_SECONDS = float(os.environ.get("REBALANCE_AWAY_SECONDS", "0"))  # at least; the shipper complains after 5 s


def test_a_broker_that_is_killed_stopped_and_away_for_a_while(broker, tmp_path):
    broker.create_topic("away", 2)
    try:
        ship_while_it_is_away(broker, tmp_path)
    finally:
        if not broker.running:
            broker.start()


def ship_while_it_is_away(broker, tmp_path):
    # A shipper on a busy machine has to catch up with all that is written while it waits.
    with LogWriter(tmp_path / "logs", rotate_every=2.0, most_rotations=20, pause=0.2) as writer:
        with ShipProcess(broker.bootstrap, "away", tmp_path) as shipper:
            wait_until(shipper.shipped)
            broker.kill()
            killed_at = time.monotonic()
            wait_until(lambda: complaints(shipper) == 1 and time.monotonic() - killed_at >= AWAY_SECONDS)
            before = shipper.shipped()
            broker.start()
            wait_until(shipper.shipped, lambda lines: lines > before)
            broker.stop()
            assert not broker.running
            wait_until(lambda: complaints(shipper), 2)
            output = shipper.end()  # with lines that nobody acknowledged
            assert "waiting, nothing is lost" in output
            assert "the next start sends it again" in output
        with ShipProcess(broker.bootstrap, "away", tmp_path) as shipper:
            broker.start()
            before = shipper.shipped()
            wait_until(shipper.shipped, lambda lines: lines > before)
            writer.stop()
            wait_until(shipper.shipped, writer.written)
            shipper.end()
    records = read_back(broker.bootstrap, "away")
    assert numbers(distinct(records)) == list(range(writer.written))
    check_ticks(records)
    requests = (broker.logs / "kafka-request.log").read_text()
    assert "(kafka.request.logger)" in requests
    assert '"requestApiKeyName":"METADATA"' not in requests


def complaints(shipper):
    return shipper.output().count("acknowledges nothing")
