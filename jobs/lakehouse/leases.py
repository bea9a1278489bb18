"""The lock of a lakehouse in an object store: a lease, which its holder renews and which runs out when it ends.

The object names the holder. It is made and replaced by conditional writes alone, so of several that want it one gets it. Nobody's clock is
compared with another's: who waits for a lease sees that its object has not changed for longer than a lease lasts. The holder counts from
before its last renewal, and writes nothing once that is as long ago: after a pause, however long, it finds that out before it writes.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from jobs.common.errors import UserError
from jobs.common.stores import StorePath, guarded

LEASE_SECONDS: Final = 30.0
_RENEWALS: Final = 3  # within a lease
_MARGIN: Final = 0.8  # of a lease, after which its holder stops writing: others wait for all of it
_LOOK_SECONDS: Final = 1.0


class LeaseLostError(UserError):
    """Another process works in the lakehouse now, or may begin to."""


def _boottime() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """One lease of this process."""

    def __init__(self, place: StorePath, seconds: float = LEASE_SECONDS) -> None:
        self._place = place
        self._seconds = seconds
        self._id = uuid4().hex
        self._tag: str | None = None
        self._until = 0.0
        self._lost = False
        self._end = threading.Event()
        self._lock = threading.Lock()

    def take(self, tell: Callable[[str], None] = lambda _: None) -> bool:
        """Takes the lease, if it is free or runs out; waits for that. False: its holder renews it."""
        seen, since, told = None, 0.0, False
        while True:
            if self._write(None):
                return True
            entry, tag = self._read()
            if entry.get("id") == self._id:  # the answer to our own request was lost
                self._tag = tag
                return True
            if tag is None or entry.get("free"):
                if tag is not None and self._write(tag):
                    return True
                continue
            if tag != seen:
                if seen is not None:
                    return False
                seen, since = tag, _boottime()
            elif _boottime() - since > float(str(entry.get("seconds", self._seconds))):
                return self._write(tag)
            if not told:
                tell(f"waiting up to {self._seconds:.0f} s for {entry.get('holder', 'another process')}, which may have ended")
                told = True
            time.sleep(min(_LOOK_SECONDS, self._seconds / 4))

    def keep(self) -> None:
        """Renews the lease until `release`, in a thread."""
        threading.Thread(target=self._renew_again_and_again, name="lease", daemon=True).start()

    def check(self) -> None:
        """LeaseLostError: others may hold the lease by now."""
        if self._lost or _boottime() > self._until:
            raise LeaseLostError(f"this process has lost its lease of {self._place.parent}, perhaps because it stood still; start it again")

    def release(self) -> None:
        """Lets others have it at once."""
        self._end.set()
        with self._lock, suppress(Exception):
            if not self._lost and self._tag is not None:
                self._put({"free": True}, self._tag)

    def _renew_again_and_again(self) -> None:
        while not self._end.wait(self._seconds / _RENEWALS):
            with self._lock:
                if self._end.is_set():
                    return
                try:
                    renewed = self._write(self._tag)
                    if not renewed:
                        entry, tag = self._read()
                        self._tag = tag
                        renewed = entry.get("id") == self._id and _boottime() <= self._until and self._write(tag)
                except Exception:  # noqa: BLE001, S112 - the store is away: until the lease runs out it may come back
                    continue
                if not renewed:
                    self._lost = True
                    return

    def _write(self, tag: str | None) -> bool:
        began = _boottime()
        entry = {"id": self._id, "holder": f"process {os.getpid()} on {socket.gethostname()}", "seconds": self._seconds, "at": time.time()}
        written = self._put(entry, tag)
        if written is None:
            return False
        self._tag, self._until = written, began + _MARGIN * self._seconds
        return True

    def _put(self, entry: dict[str, object], tag: str | None) -> str | None:
        """The tag of the new object; None: the object is another one than that of the tag, or there is one already."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            mode = "create" if tag is None else {"e_tag": tag}
            return obstore.put(self._place.client(), self._place.key, json.dumps(entry).encode(), mode=mode)["e_tag"]  # type: ignore[arg-type]
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return None

    def _read(self) -> tuple[dict[str, object], str | None]:
        return read(self._place)


def read(place: StorePath) -> tuple[dict[str, object], str | None]:
    """What a lease says, and the tag of its object; None: there is none."""
    import obstore

    try:
        found = obstore.get(place.client(), place.key)
        return json.loads(bytes(found.bytes())), found.meta["e_tag"]
    except FileNotFoundError:
        return {}, None


@contextmanager
def held(place: StorePath, busy: str, seconds: float = LEASE_SECONDS) -> Iterator[None]:
    """Holds a lease. UserError with the text `busy`: another process holds it. Writes below its folder fail once it is lost."""
    lease = Lease(place, seconds)
    if not lease.take():
        raise UserError(busy)
    lease.keep()
    try:
        with guarded(place.parent, lease.check):
            yield
    finally:
        lease.release()


def is_held(place: StorePath) -> bool:
    """Whether a process holds the lease, as far as its date tells."""
    entry, tag = read(place)
    if tag is None or entry.get("free"):
        return False
    return time.time() - float(str(entry.get("at", 0))) < 2 * float(str(entry.get("seconds", LEASE_SECONDS)))
