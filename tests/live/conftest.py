"""One real broker for all tests of this folder. Its JARs are resolved by the first run that needs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.demo.local_broker import LocalBroker
from scripts.build import resolve_jars


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """The JARs, resolved unless they are there."""
    assert resolve_jars.main(["kafka"]) == 0


@pytest.fixture(scope="session")
def broker(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:  # noqa: ARG001
    """A broker whose groups wait no 3 s for their first members."""
    settings = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000"}
    with LocalBroker(tmp_path_factory.mktemp("broker"), settings=settings) as running:
        yield running
