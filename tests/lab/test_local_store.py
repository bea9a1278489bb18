"""The object store of tests keeps what it answered, and its proxy makes it slow and unreliable as it is told."""

import os
import threading
from contextlib import suppress

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from obstore.exceptions import BaseError

from tests.lab.local_store import BUCKET, LocalStore
from tests.lab.store_proxy import Fault, StoreProxy
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
ROW = pa.table({"name": ["a"]})


@pytest.fixture
def proxy(store):
    with StoreProxy(store.endpoint) as running:
        yield running


def test_a_store_that_was_killed_has_all_that_it_answered(tmp_path):
    with LocalStore(tmp_path) as store, StoreProxy(store.endpoint) as proxy:
        objects = store.client("kept", proxy.endpoint)
        answered, told = [], []

        def write():
            try:
                while True:
                    objects.put(str(len(answered)), os.urandom(100_000))
                    answered.append(len(answered))
            except Exception as error:  # noqa: BLE001 - whatever a client tells of a store that is gone
                told.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        wait_until(lambda: len(answered) >= 50 or told)
        assert not told
        store.kill()
        writer.join()
        assert proxy.requests()[-1].status == 0  # its connection ended, as one to the store would
        endpoint = store.endpoint
        store.start()
        assert store.endpoint == endpoint

        def size(number):  # it takes objects before it has found those that it holds
            with suppress(BaseError):
                return len(objects.get(str(number)).bytes())

        assert [wait_until(lambda number=number: size(number)) for number in answered] == [100_000] * len(answered)


def test_the_proxy_passes_on_requests_and_counts_them(store, store_prefix, proxy):
    objects = store.client(store_prefix, proxy.endpoint)
    objects.put("a/b", b"text")
    assert bytes(objects.get("a/b").bytes()) == b"text"
    assert objects.head("a/b")["size"] == 4
    assert [one["path"] for one in objects.list("a").collect()] == ["a/b"]
    objects.delete("a/b")
    assert proxy.counts() == {"GET": 1, "HEAD": 1, "LIST": 1, "POST": 1, "PUT": 1}
    folder = f"/{BUCKET}/{store_prefix}/a/b"
    assert [one.path for one in proxy.requests() if one.kind in {"GET", "HEAD", "PUT"}] == [folder] * 3


@pytest.mark.parametrize(("fault", "is_there"), [(Fault.UNAVAILABLE, False), (Fault.CUT_BEFORE, False), (Fault.CUT_AFTER, True)])
def test_every_third_request_fails(store, store_prefix, proxy, fault, is_there):
    proxy.fail_every, proxy.faults = 3, (fault,)
    objects = store.client(store_prefix, proxy.endpoint)
    for number in range(2):
        objects.put(str(number), b"")
    with pytest.raises(Exception, match=r"error sending request|Server returned non-2xx status code: 503|SlowDown"):
        objects.put("2", b"")
    assert ("2" in {one["path"] for one in store.client(store_prefix).list().collect()}) == is_there
    assert [one.fault for one in proxy.requests()] == [None, None, fault]


def test_two_writers_lose_no_commit_though_every_fifth_request_fails(store, store_prefix, proxy):
    proxy.fail_every, proxy.faults = 5, (Fault.UNAVAILABLE, Fault.CUT_BEFORE)
    uri, options = f"s3://{BUCKET}/{store_prefix}/table", store.environment(proxy.endpoint)
    write_deltalake(uri, ROW, storage_options=options)

    def append(writer):
        for number in range(3):
            done = CommitProperties(app_transactions=[Transaction(writer, number)])
            write_deltalake(uri, ROW, mode="append", storage_options=options, commit_properties=done)

    writers = [threading.Thread(target=append, args=(name,)) for name in ("first", "second")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    table = DeltaTable(uri, storage_options=options)
    assert (table.version(), len(table.file_uris())) == (6, 7)
    assert [table.transaction_version(name) for name in ("first", "second")] == [2, 2]
