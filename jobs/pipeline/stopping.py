"""Ends streaming queries between two micro-batches: the one that is being written is finished, the next one is not begun.

`StreamingQuery.stop` breaks off whatever runs. That loses nothing, for the batch is run again, but costs its work and leaves files
that nobody refers to. So each query's writer asks first; a batch that is refused there has its number already, and is the first of
the next run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

FINISH_SECONDS: Final = 60.0
"""How long a batch may take to be finished before it is broken off."""
_POLL_SECONDS: Final = 0.05

WriteBatch = Callable[["DataFrame", int], None]


class StoppingError(Exception):
    """The query was asked to end before this batch."""


class Stopping:
    """The wish that a set of queries ends."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def guard(self, write: WriteBatch) -> WriteBatch:
        """A foreachBatch function that begins nothing once the wish is there."""

        def write_unless_stopping(batch: DataFrame, batch_id: int) -> None:
            if self._asked.is_set():
                raise StoppingError
            write(batch, batch_id)

        return write_unless_stopping

    def end(self, queries: Iterable[StreamingQuery]) -> None:
        """Ends them: each once its batch is finished, at the latest after FINISH_SECONDS."""
        self._asked.set()
        until = time.monotonic() + FINISH_SECONDS
        for query in queries:
            try:
                while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
                    time.sleep(_POLL_SECONDS)
                query.stop()
            except Exception:  # noqa: BLE001, PERF203, S112 - what cannot be stopped has already ended
                continue
