"""jobs/lakehouse/leases.py: one process works in a lakehouse in a store, whatever happens to processes, to the store and to answers."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from jobs.common import store_clients, stores
from jobs.common.errors import UserError
from jobs.common.places import PROJECT
from jobs.lakehouse import leases, locks
from jobs.lakehouse.leases import Lease, LeaseLostError
from tests.lab.store_proxy import Fault, StoreProxy
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
SECONDS = 5.0  # a busy machine is slow to look
WRITES = ("mark", "new mark", "row", "deletion")


@contextlib.contextmanager
def holder(folder):
    """A process that holds the lease, has written and stands still."""
    command = [sys.executable, "-m", "tests.lakehouse.lease_holder", str(folder), str(SECONDS)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "written\n"
        os.waitpid(process.pid, os.WUNTRACED)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def proxy(store, on_store, monkeypatch):  # noqa: ARG001 - after it, which sets the environment
    with StoreProxy(store.endpoint) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        store_clients.forget()
        yield running


def objects(folder):
    """Everything below a place but the lease: names and contents."""
    found = {}
    for entry in folder.iterdir():
        if entry.is_listed():
            found[str(entry)] = entry.read_bytes()
        else:
            found |= objects(entry)
    return {name: content for name, content in found.items() if not name.endswith("/_lock")}


def test_of_several_one_gets_it_and_the_next_one_when_it_is_released(on_store):
    lock, won, together = on_store / "_lock", [], threading.Barrier(3)

    def want(lease):
        together.wait()
        if lease.take():
            lease.keep()
            won.append(lease)

    rivals = [threading.Thread(target=want, args=(Lease(lock, SECONDS),)) for _ in range(3)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert len(won) == 1
    assert locks.is_held(lock)
    with pytest.raises(UserError, match="busy"), leases.held([lock], "busy", SECONDS):
        pass
    won[0].check()
    won[0].release()
    assert not locks.is_held(lock)
    with leases.held([lock], "busy", 3_600.0):
        assert locks.is_held(lock)
    with leases.held([lock], "busy", SECONDS):  # at once: it was released
        pass


def test_it_runs_out_when_its_holder_was_killed(on_store):
    told = []
    with holder(on_store) as killed:
        killed.kill()
        killed.wait()
        assert locks.is_held(on_store / "_lock")
        lease = Lease(on_store / "_lock", SECONDS)
        assert lease.take(told.append)
        lease.check()
        assert [f"process {killed.pid} on " in line for line in told] == [True]
        lease.release()
    assert not locks.is_held(on_store / "_lock")


def test_readers_do_not_take_a_holder_that_was_killed_for_one_that_works(on_store):
    with holder(on_store) as killed:
        killed.kill()
    wait_until(lambda: locks.is_held(on_store / "_lock"), False)


def test_who_stood_still_while_another_took_it_writes_nothing_any_more(on_store):
    with holder(on_store) as still:
        with leases.held([on_store / "_lock"], "busy", SECONDS):
            before = objects(on_store)
            still.send_signal(signal.SIGCONT)
            said, _ = still.communicate()
            assert said.splitlines() == [f"{name}: refused" for name in WRITES]
            after = objects(on_store)
            assert locks.is_held(on_store / "_lock")  # it did not release what is another's
        assert {name for name in after if after[name] != before.get(name)} <= {name for name in after if name.endswith(".parquet")}
        assert before.keys() == {name for name in after if not name.endswith(".parquet")} | {n for n in before if n.endswith(".parquet")}


def test_who_stood_still_for_longer_than_it_lasts_goes_on_if_nobody_wanted_it(on_store):
    with holder(on_store) as still:
        time.sleep(SECONDS)  # the time is the subject
        still.send_signal(signal.SIGCONT)
        said, _ = still.communicate()
        assert said.splitlines() == [f"{name}: done" for name in WRITES]
    assert not locks.is_held(on_store / "_lock")


def renewals(proxy):
    return sum(one.method == "PUT" and one.path.endswith("_lock") for one in proxy.requests())


def test_lost_answers_lock_nobody_out(proxy, on_store):
    proxy.faults = (Fault.CUT_AFTER,)
    for proxy.fail_every in (2, 3):
        for _ in range(2):
            with leases.held([on_store / "_lock"], "busy", 0.6):
                enough = renewals(proxy) + 3
                wait_until(lambda: renewals(proxy) >= enough)  # noqa: B023 - called at once
                (on_store / "mark").touch()
    proxy.fail_every = 0
    assert {one.fault for one in proxy.requests()} == {None, Fault.CUT_AFTER}


def test_a_holder_outlives_a_store_that_is_away_for_longer_than_it_lasts(proxy, on_store):
    done = threading.Event()
    with leases.held([on_store / "_lock"], "busy", 0.5):
        proxy.faults, proxy.fail_every = (Fault.UNAVAILABLE,), 1
        refused = len(proxy.requests())
        time.sleep(0.5)  # the time is the subject

        def write():
            (on_store / "mark").write_bytes(b"late")
            done.set()

        threading.Thread(target=write, daemon=True).start()
        wait_until(lambda: len(proxy.requests()) >= refused + 3)
        assert not done.is_set()
        proxy.fail_every = 0
        done.wait()
        assert (on_store / "mark").read_bytes() == b"late"


def test_the_lock_of_a_lakehouse_that_was_copied_from_a_disk_is_free(on_store):
    (on_store / "_lock").touch()
    assert not locks.is_held(on_store / "_lock")
    with leases.held([on_store / "_lock"], "busy", SECONDS):
        assert locks.is_held(on_store / "_lock")


def test_an_object_that_was_deleted_is_a_lease_that_was_lost(on_store):
    with leases.held([on_store / "_lock"], "busy", 0.5):
        stores.remove_tree(on_store)

        def is_refused():
            try:
                (on_store / "mark").touch()
            except LeaseLostError:
                return True

        wait_until(is_refused)
