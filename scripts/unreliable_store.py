"""An object store for scripts/chaos.py: it is slow for a while, fails now and then, and goes away."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from jobs.common.stores import StorePath
from tests.lab.local_store import BUCKET, LocalStore
from tests.lab.store_proxy import StoreProxy

SLOW_SECONDS: Final = 0.2
FAIL_EVERY: Final = 20


class UnreliableStore:
    """A store behind a proxy."""

    def __init__(self, folder: Path) -> None:
        self.lakehouse = StorePath(BUCKET, "chaos")
        self._store = LocalStore(folder)
        self._proxy: StoreProxy | None = None
        self._back = 0.0

    def start(self) -> None:
        """Starts it. This process and those that it starts use it through the proxy."""
        self._store.start()
        self._proxy = StoreProxy(self._store.endpoint, fail_every=FAIL_EVERY)
        self._proxy.start()
        os.environ.update(self._store.environment(self._proxy.endpoint))

    def kill(self, seconds: float) -> None:
        """Kills it, for so long."""
        self._store.kill()
        self._back = time.monotonic() + seconds

    def restart(self) -> None:
        """Starts it again when it was away for long enough."""
        if not self._store.running and time.monotonic() >= self._back:
            self._store.start()

    def be(self, *, slow: bool) -> None:
        """Makes each request take longer, or not."""
        assert self._proxy is not None
        self._proxy.delay = SLOW_SECONDS if slow else 0.0

    def behave(self) -> None:
        """From now on no request fails."""
        assert self._proxy is not None
        self._back = 0.0
        self.restart()
        self._proxy.delay, self._proxy.fail_every = 0.0, 0

    def stop(self) -> None:
        """Ends it, and says what was asked of it."""
        if self._proxy is not None:
            print(f"requests: {', '.join(f'{kind} {count:,}' for kind, count in self._proxy.counts().items())}")
            self._proxy.stop()
        self._store.kill()
