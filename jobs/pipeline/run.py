"""`rebalance run`: ingest and track together in one process, until the input ends or somebody stops it.

The spool is a thread that cuts logs into slices; ingest, ingest of a topic and track are streaming queries of one Spark, each with
its own checkpoint, which run at the same time. Each stage remembers by itself how far it is, so that a run may end at
any moment, kill -9 included, and the next one goes on exactly there.

With `once`, ingest and track cannot be told to end with what is there (Trigger.AvailableNow), since the spool is still
writing when they start: they run on, and are stopped when the spool has ended and first ingest, then track has nothing
left to do. Of a topic it is told: what it held at the start is read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.cli.progress import Progress
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.failures import root_cause
from jobs.common.interrupts import Interrupts
from jobs.common.java import check_java
from jobs.common.settings import Settings
from jobs.health.metrics_server import serving
from jobs.health.watch import Watch, watching
from jobs.kafka.offsets_capture import OffsetsCapture, OffsetsFrom
from jobs.lakehouse import reader
from jobs.lakehouse.folder import Lakehouse, check_layout, opened, remember_input
from jobs.logs.files import discover
from jobs.pipeline import topic_input
from jobs.pipeline.feeder import Feeder
from jobs.pipeline.jvm import jvm_end, started_spark
from jobs.pipeline.reached import Reached
from jobs.pipeline.stopping import Stopping
from jobs.pipeline.topic_input import TopicInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.health.batches import TrackedBatch

_POLL_SECONDS: Final = 0.2
_COMPLETE: Final = "complete"


@dataclass(frozen=True)
class Outcome:
    """What a run came to. The accounts are totals of the whole lakehouse, before and after."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    seconds: float
    late_events: int = 0
    signal: int | None = None  # that ended it

    @property
    def added(self) -> dict[str, int]:
        """The account of this run alone."""
        return {name: total - self.before[name] for name, total in self.after.items()}

    @property
    def nothing_new(self) -> bool:
        """Whether the input held nothing that was not known."""
        return not any(self.added.values())


def run(
    source: Path | None,
    folder: Path,
    *,
    settings: Settings,
    once: bool,
    progress: Progress,
    spark: SparkSession | None = None,
    short_run: bool = False,
    offsets: OffsetsFrom | None = None,
    topic: TopicInput | None = None,
    metrics: tuple[str, int] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Works through the logs at `source` into the lakehouse at `folder`. UserError, QueryFailedError: see there.

    `spark`: a session to use, and to leave running. `short_run`: for an input of seconds (session.py). `offsets`: a cluster whose
    records are read too, or alone. `topic`: a topic of log lines, too or alone. `metrics`: host and port at which Prometheus finds them.
    `tell`: is called with what the run goes on in spite of.
    """
    if source is not None:
        _check_source(source, once=once)
    elif offsets is None and topic is None:
        raise UserError("nothing to read: give --input, --kafka or --offsets-from")
    if spark is None:
        check_java()
    with (
        opened(folder, settings) as house,
        Interrupts() as interrupts,
        watching(house, once=once, tell=tell, interrupted=lambda: interrupts.signal is not None) as watch,
        serving(*metrics, watch.metrics) if metrics else nullcontext(),
    ):
        before = reader.account(folder)
        complete = _take_mark(house)
        capture = OffsetsCapture(offsets, house.captured) if offsets is not None else None
        if capture is not None:
            remember_input(house, capture.folder)
        if source is not None:
            remember_input(house, source)
        if topic is not None:
            topic_input.check(topic, house)
        with (
            _capturing(capture, interrupts, once=once) as captured,
            _feeding(source or captured, house, settings, follow=not once, also=captured if source else None) as feeder,
        ):
            if complete and once and topic is None and feeder is not None and not _anything_new(feeder, interrupts):
                _leave_mark(house)
                return Outcome(before, before, progress.seconds)
            progress.show(Reached("starting Spark"))
            with started_spark(house, spark, short_run=short_run) as session:
                interrupts.install()  # Spark has put its own handler of Ctrl-C in the place of ours
                stages = _Stages(session, house, settings, feeder, once=once, watch=watch, capture=capture, topic=topic)
                stages.work(progress, interrupts)
                late = stages.reached().late_events
        if once and interrupts.signal is None:
            _leave_mark(house)
        return Outcome(before, reader.account(folder), progress.seconds, late, interrupts.signal)


def ingest_alone(source: Path, folder: Path, *, settings: Settings, once: bool, session: Callable[[], SparkSession]) -> None:
    """The spool and ingest without track, which may run elsewhere: `spark-submit jobs/ingest.py`. Follows until it is killed."""
    from jobs.pipeline.executors import check_executors
    from jobs.pipeline.ingest import IngestError, start_ingest

    _check_source(source, once=once)
    house = Lakehouse(folder)
    check_layout(house, settings)
    _take_mark(house)  # what is added here is not tracked yet
    remember_input(house, source)
    with _feeding(source, house, settings, follow=not once) as feeder:
        assert feeder is not None
        spark = session()
        check_executors(spark, [folder])
        try:
            query = start_ingest(spark, spool_slices=feeder.slices_folder, lakehouse=folder, checkpoint=house.ingest_checkpoint, once=False)
        except IngestError as error:
            raise UserError(str(error)) from None
        while not feeder.ended.wait(_POLL_SECONDS):
            if query.exception() is not None:
                break
        if feeder.error is not None:
            raise UserError(f"reading the input failed: {root_cause(feeder.error)}")
        query.processAllAvailable()
        query.stop()


def ingest_topic_alone(wanted: TopicInput, folder: Path, *, settings: Settings, once: bool, session: Callable[[], SparkSession]) -> None:
    """Ingest of a topic without track: `spark-submit jobs/ingest_topic.py`. Follows until it is killed."""
    from jobs.pipeline.executors import check_executors
    from jobs.pipeline.ingest import IngestError
    from jobs.pipeline.ingest_topic import start_ingest_topic

    house = Lakehouse(folder)
    check_layout(house, settings)
    _take_mark(house)  # what is added here is not tracked yet
    topic_input.check(wanted, house)
    spark = session()
    check_executors(spark, [folder])
    topic = topic_input.topic_of(wanted, settings.slice_lines)
    try:
        query = start_ingest_topic(spark, topic, lakehouse=folder, checkpoint=house.topic_checkpoint, once=once)
    except IngestError as error:
        raise UserError(str(error)) from None
    query.awaitTermination()


def _check_source(source: Path, *, once: bool) -> None:
    try:
        files = discover(source)
    except FileNotFoundError:
        raise UserError(f"no such file or folder: {source}") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror}") from None
    if once and not files:
        raise UserError(f"no log files (*.log, *.log.gz) in {source}")


def _take_mark(house: Lakehouse) -> bool:
    """Whether the last run worked everything off. Only the end of a run may say so again."""
    mark = house.layout.with_name(_COMPLETE)
    complete = mark.exists()
    mark.unlink(missing_ok=True)
    return complete


def _leave_mark(house: Lakehouse) -> None:
    house.layout.with_name(_COMPLETE).touch()


@contextmanager
def _capturing(capture: OffsetsCapture | None, interrupts: Interrupts, *, once: bool) -> Iterator[Path | None]:
    """The folder of what is read from a cluster, if anything is: up to now, or for as long as this lasts."""
    if capture is None:
        yield None
        return
    if once:
        capture.fetch(lambda: interrupts.signal is not None)
    else:
        capture.start()
    try:
        yield capture.folder
    finally:
        capture.stop()


@contextmanager
def _feeding(
    source: Path | None, house: Lakehouse, settings: Settings, *, follow: bool, also: Path | None = None
) -> Iterator[Feeder | None]:
    """The spool at work, if there are logs."""
    if source is None:
        yield None
        return
    try:
        feeder = Feeder(source, house.spool, settings, follow=follow, also=also)
    except (OSError, ValueError) as error:  # a spool that another version wrote
        raise UserError(str(error)) from None
    feeder.start()
    try:
        yield feeder
    finally:
        feeder.stop()


def _anything_new(feeder: Feeder, interrupts: Interrupts) -> bool:
    """Whether the spool finds something, or fails, before it ends."""
    while not feeder.finished and not feeder.slices and interrupts.signal is None:
        time.sleep(0.01)
    return feeder.slices > 0 or feeder.error is not None


class _Stages:
    """The queries and the thread that waits for their end."""

    def __init__(
        self,
        spark: SparkSession,
        house: Lakehouse,
        settings: Settings,
        feeder: Feeder | None,
        *,
        once: bool,
        watch: Watch,
        capture: OffsetsCapture | None = None,
        topic: TopicInput | None = None,
    ) -> None:
        from jobs.pipeline.ingest import IngestError, start_ingest
        from jobs.pipeline.ingest_topic import start_ingest_topic
        from jobs.pipeline.track import start_track

        self._spark = spark
        self._feeder = feeder
        self._capture = capture
        self._once = once
        self._watch = watch
        self._house = house
        self._tracked = 0
        self._rebalances = 0
        self._summaries: dict[tuple[str, int], Mapping[str, int]] = {}
        self._of_topic = [0, 0]  # batches, lines
        self._worked_off = threading.Event()
        self._stopping = Stopping()
        self.queries: dict[str, StreamingQuery] = {}
        try:
            if feeder is not None:
                self.queries["ingest"] = start_ingest(
                    spark,
                    spool_slices=feeder.slices_folder,
                    lakehouse=house.folder,
                    checkpoint=house.ingest_checkpoint,
                    once=False,
                    observer=watch.ingested("ingest"),
                    stopping=self._stopping,
                )
            if topic is not None:
                self.queries["ingest-topic"] = start_ingest_topic(
                    spark,
                    topic_input.topic_of(topic, settings.slice_lines),
                    lakehouse=house.folder,
                    checkpoint=house.topic_checkpoint,
                    once=once,
                    observer=self._observe_topic,
                    accounted=watch.ingested("ingest-topic"),
                    stopping=self._stopping,
                )
            self.queries["track"] = start_track(
                spark,
                lakehouse=house.folder,
                checkpoint=house.track_checkpoint,
                settings=settings,
                once=False,
                observer=self._observe,
                stopping=self._stopping,
            )
        except IngestError as error:
            self._stop()
            raise UserError(str(error)) from None
        except BaseException:
            self._stop()
            raise
        watch.follow(spark, self.queries, self._unread)

    def work(self, progress: Progress, interrupts: Interrupts) -> None:
        """Until everything is worked off, somebody stops it, or a stage fails."""
        threading.Thread(target=self._work_off, name="work-off", daemon=True).start()
        try:
            while interrupts.signal is None and not self._worked_off.wait(_POLL_SECONDS):
                self._check()
                progress.show(self.reached())
            if interrupts.signal is None:
                self._check()
        except QueryFailedError:
            raise
        except Exception as error:
            if interrupts.signal is None:  # a JVM that got the same signal may already be gone
                raise QueryFailedError("Spark", jvm_end(self._spark) or root_cause(error), self._house.log) from error
        finally:
            self._stop()
            self._watch.leave()

    def _unread(self) -> int | None:
        newest = self._feeder.newest if self._feeder is not None else None
        return newest.bytes_total - newest.bytes_read if newest else None

    def _work_off(self) -> None:
        """Waits for one stage after the other. What fails here, `_check` finds where it failed."""
        if self._feeder is not None:
            self._feeder.ended.wait()
        if not self._once:
            return
        try:
            for name, query in self.queries.items():
                if name == "ingest-topic":
                    query.awaitTermination()
                else:
                    query.processAllAvailable()
        except Exception:  # noqa: BLE001
            return
        self._worked_off.set()

    def _check(self) -> None:
        if self._feeder is not None and self._feeder.error is not None:
            raise QueryFailedError("reading the input", root_cause(self._feeder.error), self._house.log)
        if self._capture is not None and self._capture.error is not None:
            raise QueryFailedError("reading __consumer_offsets", root_cause(self._capture.error), self._house.log)
        for name, query in self.queries.items():
            if (error := query.exception()) is not None:
                raise QueryFailedError(name, topic_input.loss(error) or root_cause(error), self._house.log) from error

    def _observe(self, batch: TrackedBatch) -> None:
        self._watch.tracked(batch)
        self._tracked += 1
        self._rebalances += batch.rows["rebalances"]
        self._summaries = {**self._summaries, **batch.summaries}  # never changed: another thread reads it

    def _observe_topic(self, lines: int) -> None:
        self._of_topic = [self._of_topic[0] + 1, self._of_topic[1] + lines]

    def reached(self) -> Reached:
        """How far all stages are."""
        feeder = self._feeder
        newest = feeder.newest if feeder is not None else None
        summaries = self._summaries.values()
        batches, lines = self._of_topic
        if feeder is not None:
            batches, lines = batches + feeder.slices, lines + feeder.lines
        stage = "following" if not self._once else "reading" if feeder is not None and not feeder.finished else "tracking"
        return Reached(
            stage,
            lines=lines,
            share=newest.bytes_read / max(newest.bytes_total, 1) if newest and self._once else None,
            slices=batches,
            tracked=self._tracked,
            event_ms=max((summary["at_ms"] for summary in summaries), default=None),
            groups=sum(summary["groups"] for summary in summaries),
            rebalances=self._rebalances,
            late_events=sum(summary["late_events"] for summary in summaries),
        )

    def _stop(self) -> None:
        self._stopping.end(self.queries.values())
