"""Starts streaming queries, and ends them between two micro-batches.

`StreamingQuery.stop` aborts a micro-batch in the middle. Nothing is lost, since the next run repeats the batch, but the work is wasted and
files stay behind that no table refers to. So the writer of each query first checks whether the queries are about to end. Spark has
numbered a refused batch already: the next run begins with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.common.side_by_side import side_by_side
from jobs.common.stores import Place, check_guards
from jobs.lakehouse import opening, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_AT_ONCE_MS: Final = 250
FINISH_SECONDS: Final = 60.0
"""How long a micro-batch may take to finish before it is aborted."""
_POLL_SECONDS: Final = 0.05
_LOST: Final = ("Python worker failed to connect back", "java.io.EOFException", "Broken pipe", "Connection reset")
_CUT: Final = ("Incomplete log file", "No content to map due to end-of-input")
"""What Spark says of a file of its checkpoint of which a store's answer was cut."""

WriteBatch = Callable[["DataFrame", int], None]


class QueryEndingError(Exception):
    """The query was asked to end before this micro-batch."""


def may_go_on(error: BaseException) -> bool:
    """Whether a query may end otherwise the next time.

    The Python process ended, or did not start in time, that plans its micro-batches (Spark gives it 10 s), or a store's answer was cut.
    Nothing is lost: the query goes on where it was when it is started again.
    """
    cause: Any = error
    while cause is not None:  # Spark's own text has the message of its cause, which may have none, but not its class
        text = str(cause)
        if any(sign in text for sign in (*_LOST, *_CUT)):
            return True
        cause = getattr(cause, "_cause", None)
    return False


def looking_at_once(settings: Settings) -> Settings:
    """Settings of a run that ends with its input: it has nothing to wait for."""
    return replace(settings, interval_ms=_AT_ONCE_MS)


def finish(query: StreamingQuery) -> None:
    """Ends a query when it has processed the input that exists now. Raises its error."""
    query.processAllAvailable()
    query.stop()


def work_off(query: StreamingQuery) -> threading.Event:
    """Says when a query has processed the input that exists now, or has failed. The query goes on."""
    done = threading.Event()

    def wait() -> None:
        with suppress(Exception):  # who asks the query gets it
            query.processAllAvailable()
        done.set()

    threading.Thread(target=wait, name="work-off", daemon=True).start()
    return done


class QueryEnd:
    """Ends a set of queries: each finishes the micro-batch that it writes, and begins no other."""

    def __init__(self) -> None:
        self._requested = threading.Event()

    def guard(self, write: WriteBatch, place: Place) -> WriteBatch:
        """A foreachBatch function that refuses every micro-batch once the queries are to end, or others may write to a place."""

        def write_unless_ending(batch: DataFrame, batch_id: int) -> None:
            if self._requested.is_set():
                raise QueryEndingError
            write(batch, batch_id)
            check_guards(place)  # before Spark notes that the batch is done: it may have had no row to write

        return write_unless_ending

    def end(self, queries: Iterable[StreamingQuery]) -> None:
        """Ends the queries: each when its micro-batch is finished, at the latest after FINISH_SECONDS."""
        self._requested.set()
        until = time.monotonic() + FINISH_SECONDS
        for query in queries:
            try:
                while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
                    time.sleep(_POLL_SECONDS)
                query.stop()
            except Exception:  # noqa: BLE001, PERF203, S112 - a query that cannot be stopped has already ended
                continue


def ensure_tables(lakehouse: Place, schemas: Mapping[str, pa.Schema], checkpoint: Place, app_id: str) -> None:
    """Makes the tables that a query writes. UserError: they were written with another checkpoint.

    The checkpoint numbers the micro-batches. A table would take the first ones of a new checkpoint for batches that it already has.
    """
    has_checkpoint = (checkpoint / "offsets").is_dir()

    def ensure(name: str) -> None:
        path = tables.ensure_table(lakehouse, name, schemas[name])
        if not has_checkpoint and opening.opened(path).transaction_version(app_id) is not None:
            raise UserError(f"{lakehouse} was written with another checkpoint than {checkpoint}: keep or delete both")

    side_by_side(ensure, schemas)


def start_query(
    name: str,
    rows: DataFrame,
    write: WriteBatch,
    checkpoint: Place,
    interval_ms: int,
    *,
    once: bool = False,
    ending: QueryEnd | None = None,
) -> StreamingQuery:
    """Starts a query. `once`: it ends when it has processed the input that exists now, which only Spark's own sources support.

    `interval_ms`: time between two looks at the input.
    """
    trigger = {"availableNow": True} if once else {"processingTime": f"{interval_ms} milliseconds"}
    return (
        rows.writeStream.queryName(name)
        .foreachBatch((ending or QueryEnd()).guard(write, checkpoint))
        .option("checkpointLocation", tables.for_spark(checkpoint))
        .trigger(**trigger)
        .start()
    )
