"""`rebalance replay`: runs the model again over the events of a lakehouse, into a new one, which may then take its place.

The events are copied in the order in which the model has to see them (jobs/lakehouse/event_copy.py), then track processes them, as in any
lakehouse. Both continue where they stopped, however the process ended, and read what the old pipeline added since. The old pipeline may
run all the time; it has to stop only for the swap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import duckdb

from jobs.common.errors import LakehouseError, UserError
from jobs.common.failures import failure
from jobs.common.interrupts import Interrupts
from jobs.common.settings import Settings
from jobs.common.stores import Place, place_of
from jobs.health.tally import Tally
from jobs.lakehouse import folder, locks, swap
from jobs.lakehouse.event_copy import EventCopy
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import TableReader, check_events
from jobs.lakehouse.tables import ensure_table
from jobs.pipeline.jvm import ensure_spark, started_spark
from jobs.pipeline.queries import work_off
from jobs.pipeline.run_progress import RunProgress, run_progress
from schemas.names import FINDINGS, GROUP_EVENTS, PIPELINE_HEALTH, REBALANCES
from schemas.tables import FOLDED_TABLES, PROVISIONAL_TABLES, TRACK_TABLES, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS: Final = 1

Show = Callable[[RunProgress], None]

_MADE: Final = frozenset({GROUP_EVENTS, *TRACK_TABLES, *PROVISIONAL_TABLES, *FOLDED_TABLES})
"""The tables that are made of events."""


@dataclass(frozen=True)
class ReplayResult:
    """What a replay made."""

    events: int
    rebalances: int
    findings: int
    without_events: int  # rebalances of the old lakehouse that are older than its events
    seconds: float
    before: Place | None = None  # where the old lakehouse is, after a swap
    signal: int | None = None  # the signal that ended the replay


def replay(
    old: Place,
    new: Place,
    *,
    settings: Settings,
    swap_them: bool = False,
    spark: SparkSession | None = None,
    show: Show = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> ReplayResult:
    """Makes the lakehouse `new` from the events of `old`, or continues to make it. Raises UserError and QueryFailedError."""
    result = partial(_result, time.monotonic())
    if swap_them and (before := swap.resume(old, new)) is not None:
        return result(old, before, before)
    check_events(old)
    if old.resolve() == new.resolve():
        raise UserError("--lakehouse must be another folder than --from")
    if spark is None:
        ensure_spark(new, warn)
    with ExitStack() as stack:
        source = Lakehouse(old)
        stack.enter_context(locks.held(source.maintain_lock, f"{old} is being maintained: wait for the end of that", shared=True))
        if swap_them:
            swap.check(old, new)
            busy = f"another process is working in the lakehouse {old}: stop it first"
            stack.enter_context(folder.working(source))
            stack.enter_context(locks.free_of_jvm(source.lock, busy))
        house = stack.enter_context(_opened(old, new, settings))
        interrupts = stack.enter_context(Interrupts())
        _copy_events(source, house, show, interrupts)
        if interrupts.signal is None:
            show(RunProgress("starting Spark"))
            with interrupts.excused(), started_spark(house, spark, once=True) as session:
                interrupts.install()
                _track(session, house, settings, show, interrupts)
        if interrupts.signal is not None:
            return result(new, old, signal=interrupts.signal)
        show(RunProgress("carrying over what is not made of events"))
        if not swap_them:
            swap.carry_tables(source, house, _MADE | {PIPELINE_HEALTH})  # the old pipeline may be at work, and removes files of that one
            return result(new, old)
        swap.carry_over(source, house, _MADE)
        before = swap.swap(old, new)
    return result(new if before == old else old, before, before)


@contextmanager
def _opened(old: Place, new: Place, settings: Settings) -> Iterator[Lakehouse]:
    """The new lakehouse, for this process alone, marked as being made of the old one."""
    marker = swap.Marker.read(Lakehouse(new))
    if marker is None and folder.present(new):
        raise UserError(f"{new} already holds another lakehouse: give a new folder")
    if marker is not None and place_of(marker.source) != old.resolve():
        raise UserError(f"{new} is made of the events of {marker.source}: give a new folder")
    with folder.opened(new, settings, replaying=True) as house:
        swap.Marker(str(old.resolve())).write(house)
        yield house


def _copy_events(old: Lakehouse, new: Lakehouse, show: Show, interrupts: Interrupts) -> None:
    table = ensure_table(new.folder, GROUP_EVENTS, schema_of(GROUP_EVENTS))
    for done, total in EventCopy(old.folder / GROUP_EVENTS, table, new.scratch / "_spill").run():
        show(RunProgress(f"copied {done:,} of {total:,} events"))
        if interrupts.signal is not None:
            return


def _track(session: SparkSession, house: Lakehouse, settings: Settings, show: Show, interrupts: Interrupts) -> None:
    from jobs.pipeline.tracking.track import start_track

    tally = Tally()
    query = start_track(session, house, settings, observer=tally.tracked)
    done = work_off(query)
    try:
        while interrupts.signal is None and not done.wait(_POLL_SECONDS):
            show(run_progress("tracking", tally))
        if query.exception() is not None:
            query.awaitTermination()  # raises it
    except Exception as error:
        raise failure("track", error, house.log) from error
    finally:
        query.stop()


def _result(started: float, made: Place, old: Place, before: Place | None = None, signal: int | None = None) -> ReplayResult:
    """`made`: the new lakehouse, where it is now. `old`: the old one."""
    lake = TableReader(made, (GROUP_EVENTS, REBALANCES, FINDINGS))
    counted = {name: int(lake.rows(f"SELECT count(*) n FROM {name}")[0]["n"]) for name in lake.tables}  # noqa: S608 - our own names
    oldest = lake.rows(f"SELECT min(occurred_at) oldest FROM {GROUP_EVENTS}")[0]["oldest"]  # noqa: S608
    lost = 0
    with suppress(duckdb.Error, LakehouseError):  # it may be what is damaged, and why there is a replay
        earlier = TableReader(old, (GROUP_EVENTS, REBALANCES))
        if oldest is not None and REBALANCES in earlier.tables:
            lost = int(earlier.rows(f"SELECT count(*) n FROM {REBALANCES} WHERE ended_at < ?", oldest)[0]["n"])  # noqa: S608
    return ReplayResult(
        events=counted[GROUP_EVENTS],
        rebalances=counted.get(REBALANCES, 0),
        findings=counted.get(FINDINGS, 0),
        without_events=lost,
        seconds=time.monotonic() - started,
        before=before,
        signal=signal,
    )
