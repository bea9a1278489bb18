"""`rebalance replay`: runs the model again over the events of a lakehouse, into a new one, which may then take its place.

The events are copied in the order in which the model has to see them (jobs/lakehouse/event_copy.py), then track works them off, as in any
lakehouse. Each goes on where it was, however the process ended, and takes up what the old pipeline added since. It may be working
all the time; only for the swap it has to stand still.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from jobs.cli.progress import Progress
from jobs.common.errors import LakehouseError, QueryFailedError, UserError
from jobs.common.failures import root_cause
from jobs.common.interrupts import Interrupts
from jobs.common.java import check_java
from jobs.common.settings import Settings
from jobs.lakehouse import folder, locks, swap
from jobs.lakehouse.event_copy import EventCopy
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import TableReader
from jobs.pipeline.jvm import started_spark
from jobs.pipeline.reached import Reached
from schemas.names import GROUP_EVENTS, REBALANCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.health.batches import TrackedBatch

_POLL_SECONDS: Final = 1


@dataclass(frozen=True)
class Outcome:
    """What a replay came to."""

    events: int
    rebalances: int
    findings: int
    without_events: int  # rebalances of the old lakehouse that are older than its events
    seconds: float
    before: Path | None = None  # where the old lakehouse is, after a swap
    signal: int | None = None  # that ended it


def replay(
    old: Path,
    new: Path,
    *,
    settings: Settings,
    progress: Progress,
    swap_them: bool = False,
    spark: SparkSession | None = None,
    short_run: bool = False,
) -> Outcome:
    """Makes the lakehouse `new` of the events of `old`, as far as it is not made yet. UserError, QueryFailedError: see there."""
    if swap_them and (before := swap.resume(old, new)) is not None:
        return _outcome(old, before, progress, before)
    if not DeltaTable.is_deltatable(str(old / GROUP_EVENTS)):
        raise LakehouseError(f"no lakehouse at {old}: no table {GROUP_EVENTS} in it")
    if old.resolve() == new.resolve():
        raise UserError("--lakehouse must be another folder than --from")
    if spark is None:
        check_java()
    with ExitStack() as stack:
        source = Lakehouse(old)
        stack.enter_context(locks.held(source.maintain_lock, f"{old} is being maintained: wait for the end of that", shared=True))
        if swap_them:
            swap.check(old, new)
            busy = f"another process is working in the lakehouse {old}: stop it first"
            stack.enter_context(locks.held(source.lock, busy))
            stack.enter_context(locks.free_of_jvm(source.lock, busy))
        house = stack.enter_context(_opened(old, new, settings))
        interrupts = stack.enter_context(Interrupts())
        _copy_events(source, house, progress, interrupts)
        if interrupts.signal is None:
            progress.show(Reached("starting Spark"))
            with started_spark(house, spark, short_run=short_run) as session:
                interrupts.install()
                _track(session, house, settings, progress, interrupts)
        if interrupts.signal is not None or not swap_them:
            return _outcome(new, old, progress, signal=interrupts.signal)
        from schemas.tables import TRACK_TABLES

        progress.show(Reached("carrying over what is not made of events"))
        swap.carry_over(source, house, {GROUP_EVENTS, *TRACK_TABLES})
        before = swap.swap(old, new)
    return _outcome(old, before, progress, before)


@contextmanager
def _opened(old: Path, new: Path, settings: Settings) -> Iterator[Lakehouse]:
    """The new lakehouse, for this process alone, marked as one that is being made of the old one."""
    marker = swap.Marker.read(Lakehouse(new))
    if marker is None and any(new.glob("*/_delta_log")):
        raise UserError(f"{new} is a lakehouse of its own: give a new folder")
    if marker is not None and Path(marker.source) != old.resolve():
        raise UserError(f"{new} is made of the events of {marker.source}: give a new folder")
    with folder.opened(new, settings, replaying=True) as house:
        swap.Marker(str(old.resolve())).write(house)
        yield house


def _copy_events(old: Lakehouse, new: Lakehouse, progress: Progress, interrupts: Interrupts) -> None:
    from jobs.lakehouse.tables import ensure_table
    from schemas import group_events

    table = ensure_table(new.folder, GROUP_EVENTS, group_events.SCHEMA)
    for copied in EventCopy(old.folder / GROUP_EVENTS, table, new.scratch / "_spill").run():
        progress.show(Reached(f"copied {copied.done:,} of {copied.total:,} events"))
        if interrupts.signal is not None:
            return


def _track(session: SparkSession, house: Lakehouse, settings: Settings, progress: Progress, interrupts: Interrupts) -> None:
    from jobs.pipeline.track import start_track

    reached = Reached("tracking")

    def observe(batch: TrackedBatch) -> None:
        nonlocal reached
        at = max((summary["at_ms"] for summary in batch.summaries.values()), default=reached.event_ms)
        groups = sum(summary["groups"] for summary in batch.summaries.values())
        rebalances = reached.rebalances + batch.rows["rebalances"]
        reached = replace(reached, tracked=reached.tracked + 1, event_ms=at, groups=max(groups, reached.groups), rebalances=rebalances)

    checkpoint = house.track_checkpoint
    query = start_track(session, lakehouse=house.folder, checkpoint=checkpoint, settings=settings, once=True, observer=observe)
    try:
        while interrupts.signal is None and not query.awaitTermination(_POLL_SECONDS):
            progress.show(reached)
    except Exception as error:
        if interrupts.signal is None:
            raise QueryFailedError("track", root_cause(error), house.log) from error
    finally:
        query.stop()


def _outcome(made: Path, old: Path, progress: Progress, before: Path | None = None, signal: int | None = None) -> Outcome:
    """`made`: the new lakehouse, where it is now. `old`: the old one."""
    lake = TableReader(made, (GROUP_EVENTS, REBALANCES, "findings"))
    counted = {name: int(lake.rows(f"SELECT count(*) n FROM {name}")[0]["n"]) for name in lake.tables}  # noqa: S608 - names of ours
    oldest = lake.rows(f'SELECT min("at") oldest FROM {GROUP_EVENTS}')[0]["oldest"]  # noqa: S608
    lost = 0
    earlier = TableReader(old, (GROUP_EVENTS, REBALANCES))
    if oldest is not None and "rebalances" in earlier.tables:
        lost = int(earlier.rows("SELECT count(*) n FROM rebalances WHERE ended_at < ?", oldest)[0]["n"])
    return Outcome(counted[GROUP_EVENTS], counted.get(REBALANCES, 0), counted.get("findings", 0), lost, progress.seconds, before, signal)
