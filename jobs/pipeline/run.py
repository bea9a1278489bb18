"""`rebalance run`: ingest and track together in one process, until the input ends or a signal stops it.

The spool is a thread that cuts logs into slices. Ingest, ingest of a topic and track are streaming queries of one Spark, each with
its own checkpoint, and run at the same time. Each stage remembers how far it is, so a run may end at any moment, by kill -9 too, and
the next one continues exactly there.

With `once`, ingest and track cannot use Trigger.AvailableNow, which reads the input that exists at the start: the spool is still writing
then. They run until the spool has ended and first ingest, then track has no input left. Ingest of a topic uses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.alerts.sender import alerting
from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.common.settings import Settings
from jobs.common.stores import Place
from jobs.health.metrics import serving
from jobs.health.watch import Watch
from jobs.kafka.offsets_capture import OffsetsCapture, OffsetsFrom
from jobs.lakehouse import reader
from jobs.lakehouse.folder import check_input, opened, remember_input, removed_if_void, take_complete_mark
from jobs.pipeline import topic_input
from jobs.pipeline.feeder import check_source, feeding
from jobs.pipeline.jvm import ensure_spark, started_spark
from jobs.pipeline.run_progress import RunProgress, RunResult, result_of
from jobs.pipeline.topic_input import TopicInput, is_for_java_alone
from jobs.pipeline.topic_watch import TopicWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    source: Path | None,
    folder: Place,
    *,
    settings: Settings,
    once: bool,
    spark: SparkSession | None = None,
    offsets: OffsetsFrom | None = None,
    topic: TopicInput | None = None,
    metrics: tuple[str, int] | None = None,
    show: Callable[[RunProgress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> RunResult:
    """Processes the logs at `source` into the lakehouse at `folder`. Raises UserError and QueryFailedError.

    `spark`: a session to use, and to leave running. `offsets`: a cluster whose records are read as well, or alone. `topic`: a topic of log
    lines, as well or alone. `metrics`: host and port to serve metrics at. `show` gets the progress several times a second, `warn` a problem
    that does not end the run.
    """
    started = time.monotonic()
    show(RunProgress("looking at the input"))
    if source is not None:
        check_source(source, once=once)
        check_input(folder, source, warn)
    elif offsets is None and topic is None:
        raise UserError("nothing to read: give --input, --kafka or --offsets-from")
    if spark is None:
        ensure_spark(folder, warn)
    with (
        removed_if_void(folder),
        opened(folder, settings) as house,
        Interrupts() as interrupts,
        Watch(house, once=once, warn=warn, interrupted=interrupts.happened, groups=settings.metric_groups if metrics else 0) as watch,
        alerting(house, settings.alerts, warn) as alerts,
        serving(*metrics, watch, alerts) if metrics else nullcontext(),
        nullcontext() if once or topic is None or is_for_java_alone(topic) else TopicWatch(topic, warn) as topic_watch,
    ):
        before = reader.account(folder)
        complete = take_complete_mark(house)
        capture = OffsetsCapture(offsets, house.captured, interrupts.happened, once=once) if offsets is not None else None
        captured = capture.folder if capture is not None else None
        for place in (captured, source):
            if place is not None:
                remember_input(house, place)
        if topic_watch is not None:
            watch.away = topic_watch.away
            if not topic_watch.wait(interrupts.happened):
                return result_of(before, before, started, None, signal=interrupts.signal)
        if topic is not None:
            topic_input.check(topic, house)
        with (
            capture or nullcontext(),
            feeding(source or captured, house, settings, follow=not once, also=captured if source else None, tell=warn) as feeder,
        ):
            if complete and once and topic is None and feeder is not None and not feeder.has_input(interrupts.happened):
                house.complete.touch()
                return result_of(before, before, started, feeder)
            from jobs.pipeline.stages import Inputs, Stages  # a run without new input does not wait for its imports

            if once and topic is None and feeder is not None and not before["lines_read"] and feeder.is_vain(interrupts.happened):
                feeder.check(house.log)
                return result_of(before, before, started, feeder)
            share = feeder.share_read if once and feeder is not None else None
            show(RunProgress("starting Spark, reading" if share else "starting Spark", share=share))
            late = 0
            with interrupts.excused(), started_spark(house, spark, once=once) as session:
                interrupts.install()  # Spark has replaced our handler of Ctrl-C by its own
                inputs = Inputs(feeder, capture, topic, topic_watch)
                stages = Stages(session, house, settings, inputs, once=once, watch=watch)
                stages.work(show, warn, interrupts)
                late = stages.progress().late_events
        if once and interrupts.signal is None:
            house.complete.touch()
        return result_of(before, reader.account(folder), started, feeder, late_events=late, signal=interrupts.signal)
