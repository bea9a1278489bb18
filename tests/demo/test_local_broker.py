"""jobs/demo/local_broker.py: what it cannot start with. How it is stopped, killed and started again: tests/live/test_ship_outage.py."""

import pytest

from jobs.common.errors import UserError
from jobs.demo.local_broker import LocalBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]


def test_what_kafka_does_not_accept_is_told_in_its_own_words(tmp_path):
    with pytest.raises(UserError, match=r"storage of the broker cannot be formatted: .*log\.segment\.bytes"):
        LocalBroker(tmp_path / "b", settings={"log.segment.bytes": "nine"}).start()


def test_without_jars_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("REBALANCE_KAFKA_JARS", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"run `python -m jobs\.common\.jars kafka"):
        LocalBroker(tmp_path / "b").start()
