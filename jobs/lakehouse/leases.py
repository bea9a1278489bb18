"""The lock of a lakehouse in an object store: a lease, which its holder renews and which runs out when it ends.

The object names the holder. It is made and replaced by conditional writes alone, so of several that want it one gets it. Nobody's clock is
compared with another's: who waits for a lease sees that its object has not changed for longer than a lease lasts. The holder counts from
before its last renewal. Once that is nearly as long ago it renews the lease before it writes anything: after a pause, or while the store
was away, however long, it finds out whether another process took the lease.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final
from uuid import uuid4

from jobs.common import store_clients
from jobs.common.errors import UserError
from jobs.common.stores import StorePath, asked, guarded

LEASE_SECONDS: Final = 30.0
_RENEWALS: Final = 3  # within a lease
_MARGIN: Final = 0.8  # of a lease, after which its holder writes nothing before it has renewed it: others wait for all of it
_LOOK_SECONDS: Final = 1.0


class LeaseLostError(UserError):
    """Another process works in the lakehouse now."""


def _boottime() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """One lease of this process."""

    def __init__(self, place: StorePath, seconds: float | None = None) -> None:
        self._place = place
        self._seconds = seconds or LEASE_SECONDS
        self._id = uuid4().hex
        self._tag: str | None = None
        self._seen: str | None = None  # the tag that another process gave it
        self._since = 0.0  # when that was seen first
        self._until = 0.0
        self._lost = False
        self._end = threading.Event()
        self._lock = threading.Lock()

    def look(self) -> None:
        """Sees who holds the lease, so that the time in which it runs out begins now, not with `take`."""
        self._seen, self._since = read(self._place)[1], _boottime()

    def take(self, tell: Callable[[str], None] = lambda _: None) -> bool:
        """Takes the lease, if it is free or runs out; waits for that. False: its holder renews it."""
        told = False
        while not self._write(None):
            entry, tag = read(self._place)
            if tag is None:
                continue
            has_run_out = tag == self._seen and _boottime() - self._since > float(str(entry.get("seconds", self._seconds)))
            if entry.get("free") or has_run_out:
                if self._write(tag):
                    return True
                continue
            if tag != self._seen:
                if self._seen is not None:
                    return False
                self._seen, self._since = tag, _boottime()
            if not told:
                tell(f"waiting up to {self._seconds:.0f} s for {entry.get('holder', 'another process')}, which may have ended")
                told = True
            time.sleep(min(_LOOK_SECONDS, self._seconds / 4))
        return True

    def try_conditions(self) -> None:
        """UserError: the store writes what it has to refuse, so that nothing here keeps two processes apart."""
        if self._put({"free": True}, None) is not None:
            raise UserError(
                f"{self._place.parent}: this store ignores If-None-Match, by which processes keep out of each other's way (docs/stores.md)"
            )

    def keep(self) -> None:
        """Renews the lease until `release`, in a thread."""
        threading.Thread(target=self._renew_again_and_again, name="lease", daemon=True).start()

    def check(self) -> None:
        """LeaseLostError: another process took the lease. While the store is away this waits for it, as a write does."""
        if not self._lost and _boottime() <= self._until:
            return
        with self._lock:
            if not self._lost and _boottime() > self._until:
                self._renew()
        if self._lost:
            raise LeaseLostError(f"another process works in {self._place.parent} by now, since this one stood still; start it again")

    def release(self) -> None:
        """Lets others have it at once."""
        self._end.set()
        with self._lock, suppress(Exception):
            if not self._lost and self._tag is not None:
                self._put({"free": True}, self._tag)

    def _renew_again_and_again(self) -> None:
        pause = self._seconds / _RENEWALS
        while not self._end.wait(pause) and not self._lost:
            with self._lock:
                if self._end.is_set():
                    return
                try:
                    self._renew()
                    pause = self._seconds / _RENEWALS
                except Exception:  # noqa: BLE001 - the store is away: it may come back before another process takes the lease
                    pause = min(_LOOK_SECONDS, pause)

    def _renew(self) -> None:
        """Renews the lease, however old it is, unless another process took it."""
        self._lost = not self._write(self._tag)

    def _write(self, tag: str | None) -> bool:
        """Writes the object in the place of that with a tag, or a new one. False: there is another one."""
        while True:
            began = _boottime()
            holder = f"process {os.getpid()} on {socket.gethostname()}"
            entry = {"id": self._id, "holder": holder, "seconds": self._seconds, "at": time.time()}
            written = self._put(entry, tag)
            if written is None:
                found, tag = read(self._place)
                if found.get("id") != self._id:
                    return False
                if found != entry:
                    continue  # it was written by an earlier request, whose answer was lost
                written = tag
            self._tag, self._until = written, began + _MARGIN * self._seconds
            return True

    def _put(self, entry: dict[str, object], tag: str | None) -> str | None:
        """The tag of the new object; None: the object is another one than that of the tag, or there is one already."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode = "create" if tag is None else {"e_tag": tag}

        def put() -> str | None:
            with suppress(AlreadyExistsError, PreconditionError, FileNotFoundError):
                return self._place.client().put(self._place.key, json.dumps(entry).encode(), mode=mode)["e_tag"]  # type: ignore[arg-type]
            return None

        return asked(self._place, put)


def read(place: StorePath) -> tuple[dict[str, object], str | None]:
    """What a lease says, and the tag of its object; None: there is none."""

    def get() -> tuple[bytes, str | None]:
        found = place.client().get(place.key)
        return bytes(found.bytes()), found.meta["e_tag"]

    with suppress(FileNotFoundError):
        entry, tag = asked(place, get)
        return json.loads(entry or b'{"free": true}'), tag  # empty: copied with a lakehouse from a disk
    return {}, None


@contextmanager
def held(places: Sequence[StorePath], busy: str, seconds: float | None = None) -> Iterator[None]:
    """Holds leases. UserError with the text `busy`: another process holds one. Writes below their folder fail once one is lost."""
    store_clients.be_patient()
    leases = [Lease(place, seconds) for place in places]
    for lease in leases[1:]:
        lease.look()  # those of a process that was killed run out side by side
    with ExitStack() as stack:
        for place, lease in zip(places, leases, strict=True):
            if not lease.take():
                raise UserError(busy)
            stack.callback(lease.release)
            if lease is leases[0]:
                lease.try_conditions()
            lease.keep()
            stack.enter_context(guarded(place.parent, lease.check))
        yield


def is_held(place: StorePath) -> bool:
    """Whether a process holds the lease, as far as its date tells."""
    entry, tag = read(place)
    if tag is None or entry.get("free"):
        return False
    return time.time() - float(str(entry.get("at", 0))) < 2 * float(str(entry.get("seconds", LEASE_SECONDS)))
