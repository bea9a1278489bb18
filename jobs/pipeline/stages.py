"""The stages of `rebalance run`: the feeder and the streaming queries, and how they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.failures import failure, root_cause
from jobs.common.interrupts import Interrupts
from jobs.common.settings import Settings
from jobs.health.watch import Watch
from jobs.kafka.offsets_capture import OffsetsCapture
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline import topic_input
from jobs.pipeline.feeder import Feeder
from jobs.pipeline.ingest import start_ingest, tasks_as_workers
from jobs.pipeline.ingest_topic import start_ingest_topic
from jobs.pipeline.jvm import jvm_end
from jobs.pipeline.queries import QueryEnd, looking_at_once, may_go_on
from jobs.pipeline.run_progress import RunProgress, run_progress
from jobs.pipeline.topic_input import TopicInput
from jobs.pipeline.topic_watch import TopicWatch
from jobs.pipeline.tracking.track import start_track

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


TOPIC: Final = "ingest-topic"
"""Name of the query that reads a topic."""
_POLL_SECONDS: Final = 0.2
_MOST_RESTARTS: Final = 20  # of a run: more are no accident


@dataclass(frozen=True)
class Inputs:
    """What a run reads: each may be missing, not all."""

    feeder: Feeder | None = None
    capture: OffsetsCapture | None = None
    topic: TopicInput | None = None
    topic_watch: TopicWatch | None = None  # of a run that follows the topic, which outlives the absence of its cluster


class Stages:
    """The queries of one run. Queries whose feeder or topic is missing are not started."""

    def __init__(self, spark: SparkSession, house: Lakehouse, settings: Settings, inputs: Inputs, *, once: bool, watch: Watch) -> None:
        self._spark = spark
        self._house = house
        self._once = once
        self._watch = watch
        self._settings = looking_at_once(settings) if once else settings
        self._feeder = inputs.feeder
        self._capture = inputs.capture
        self._topic_watch = inputs.topic_watch
        self._outages = 0  # of the topic's cluster, up to the start of the query that reads the topic
        self._worked_off = threading.Event()
        self._notes: list[str] = []
        self._ending = QueryEnd()
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._restarts = 0
        self._has_failed = False
        self.queries: dict[str, StreamingQuery] = {}
        try:
            self._start(inputs.topic)
            watch.follow(spark, self.queries, self._feeder.unread_bytes if self._feeder is not None else lambda: None)
        except BaseException as error:
            self._stop()
            if isinstance(error, Exception) and not isinstance(error, UserError) and (end := jvm_end(spark)):
                raise QueryFailedError("Spark", end, house.log) from error
            raise

    def _start(self, topic: TopicInput | None) -> None:
        what, watch, ending = (self._spark, self._house, self._settings), self._watch, self._ending
        if self._feeder is not None:
            self._feeder.share_with(tasks_as_workers(self._spark))
            self._starts["ingest"] = partial(start_ingest, *what, observer=watch.ingested("ingest"), ending=ending)
        if topic is not None:
            observer = watch.ingested(TOPIC)
            self._starts[TOPIC] = partial(start_ingest_topic, *what, topic, once=self._once, observer=observer, ending=ending)
        self._starts["track"] = partial(start_track, *what, observer=watch.tracked, ending=ending, tell=self._notes.append)
        for name in self._starts:  # one by one: `_stop` ends those that have started when the next one cannot
            self.queries[name] = self._begun(name)

    def work(self, show: Callable[[RunProgress], None], warn: Callable[[str], None], interrupts: Interrupts) -> None:
        """Waits until the input is processed, a signal comes, or a stage fails. `show` and `warn` are those of `run`."""
        threading.Thread(target=self._work_off, name="work-off", daemon=True).start()
        for note in self._notes:
            warn(note)
        try:
            while interrupts.signal is None and not self._worked_off.wait(_POLL_SECONDS):
                self._check()
                self._tell_notes(warn)
                show(self.progress())
            self._tell_notes(warn)
            if interrupts.signal is None:
                self._check()
                if self._feeder is not None:
                    self._feeder.tidy()
        except (QueryFailedError, UserError):
            raise
        except Exception as error:
            raise QueryFailedError("Spark", jvm_end(self._spark) or root_cause(error), self._house.log) from error
        finally:
            self._stop()
            self._watch.leave()

    def _work_off(self) -> None:
        """Waits for one stage after the other. `_check` reports a stage that fails meanwhile."""
        if self._feeder is not None:
            self._feeder.ended.wait()
        if not self._once:
            return
        for name in self._starts:
            while not self._is_worked_off(name, self.queries[name]):
                if self._has_failed:
                    return
                time.sleep(_POLL_SECONDS)
        self._worked_off.set()

    def _is_worked_off(self, name: str, query: StreamingQuery) -> bool:
        """Waits for a query. False: it has ended too early, and perhaps another one takes its place."""
        try:
            if name == TOPIC:
                query.awaitTermination()
            else:
                query.processAllAvailable()
        except Exception:  # noqa: BLE001
            return False
        return True

    def _tell_notes(self, warn: Callable[[str], None]) -> None:
        for note in self._feeder.take_notes() if self._feeder is not None else ():
            warn(note)

    def _check(self) -> None:
        if self._feeder is not None:
            self._feeder.check(self._house.log)
        if self._capture is not None and self._capture.error is not None:
            raise failure("reading __consumer_offsets", self._capture.error, self._house.log)
        for name, query in self.queries.items():
            error = query.exception()
            if error is not None and not (name == TOPIC and self._outlives_outage()) and not self._starts_again(name, error):
                self._has_failed = True
                raise failure(name, error, self._house.log, topic_input.loss(error)) from error

    def _begun(self, name: str) -> StreamingQuery:
        """Starts a query, and tries it again where that may help."""
        try:
            return self._starts[name]()
        except Exception as error:
            if not self._may_go_on(error):
                raise
        return self._begun(name)

    def _may_go_on(self, error: BaseException) -> bool:
        self._restarts += 1
        return self._restarts <= _MOST_RESTARTS and may_go_on(error)

    def _starts_again(self, name: str, error: BaseException) -> bool:
        """Starts a query again that may go on."""
        if not self._may_go_on(error):
            return False
        self.queries[name] = self._begun(name)
        self._watch.replaced(name, self.queries[name])
        return True

    def _outlives_outage(self) -> bool:
        """Whether the query of the topic may have ended because the cluster was away. Then it begins again as soon as that answers."""
        watch = self._topic_watch
        if watch is None or watch.outages == self._outages:
            return False
        if watch.away() is None:
            self._outages = watch.outages
            self.queries[TOPIC] = self._starts[TOPIC]()
            self._watch.replaced(TOPIC, self.queries[TOPIC])
        return True

    def progress(self) -> RunProgress:
        """How far the stages are."""
        tally, share = self._watch.tally, None
        batches, lines = tally.batches[TOPIC], tally.lines[TOPIC]
        stage = "tracking" if self._once else "following"
        if (feeder := self._feeder) is not None:
            batches, lines = batches + feeder.slices, lines + feeder.lines
            if self._once:
                share = feeder.share_read
            if self._once and not feeder.ended.is_set():
                stage = "reading"
        return run_progress(stage, tally, lines=lines, share=share, slices=batches)

    def _stop(self) -> None:
        self._ending.end(self.queries.values())
