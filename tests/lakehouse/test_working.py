"""Who may work in a lakehouse beside whom, on disk and in an object store."""

import threading
import time
from contextlib import ExitStack

import obstore
import pytest

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.common.stores import StorePath
from jobs.lakehouse import leases
from jobs.lakehouse.folder import QUERIES, Lakehouse, opened, working
from schemas.names import INGEST, INGEST_TOPIC, TRACK
from tests.lab.local_store import BUCKET

BUSY = "another process is working in the lakehouse"


@pytest.fixture
def in_store(store, store_prefix, monkeypatch):
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    return StorePath(BUCKET, store_prefix)


@pytest.fixture(params=["disk", "store"])
def folder(request, tmp_path, monkeypatch):
    if request.param == "disk":
        return tmp_path / "lake"
    monkeypatch.setattr(leases, "LEASE_SECONDS", 6.0)  # whoever is refused waits for a renewal, which is a third of it away
    return request.getfixturevalue("in_store")


def refused(folder, query=""):
    with pytest.raises(UserError, match=BUSY), opened(folder, Settings(), query=query):
        pass


def test_queries_run_side_by_side_each_of_them_once(folder):
    with ExitStack() as jobs:
        for query in QUERIES:
            jobs.enter_context(opened(folder, Settings(), query=query))
        refused(folder, TRACK)
        refused(folder, INGEST)
    with opened(folder, Settings(), query=TRACK):
        pass


def test_no_query_runs_beside_a_process_that_has_the_lakehouse_for_itself(folder):
    with opened(folder, Settings()):
        refused(folder, INGEST_TOPIC)
        refused(folder)
    with opened(folder, Settings(), query=INGEST_TOPIC):
        refused(folder)
        with opened(folder, Settings(), query=TRACK):  # what was refused holds nothing
            pass


def test_all_leases_of_a_killed_process_run_out_side_by_side(in_store, monkeypatch):
    house = Lakehouse(in_store)
    for place in house.locks:
        assert leases.Lease(place, 1.0).take()  # and nobody renews it
    waited, sleep, own = [], time.sleep, threading.get_ident()

    def slept(seconds):
        if threading.get_ident() == own:  # other threads of the tests' servers sleep, too
            waited.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", slept)
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    with working(house):
        assert 0 < sum(waited) <= 1.5  # one after the other: 4


def write_until_refused(place):
    while True:
        place.write_bytes(b"{}")


def test_who_has_lost_one_of_its_leases_writes_nothing(in_store, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    house = Lakehouse(in_store)
    with working(house):
        obstore.put(in_store.client(), house.query_locks[TRACK].key, b"{}")
        with pytest.raises(leases.LeaseLostError):
            write_until_refused(house.layout)
