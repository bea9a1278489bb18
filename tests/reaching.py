"""How tests reach an object store."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from jobs.common import store_clients


@contextmanager
def reached(store):
    """Lets this process reach a store as it reaches any: by its environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment().items():
            patch.setenv(name, value)
        patch.setenv(store_clients.PATIENCE, "")
        patch.delenv(store_clients.PATIENCE)  # who works in a lakehouse sets it: afterwards it is as it was before
        store_clients.forget()
        yield
    store_clients.forget()
