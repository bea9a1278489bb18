"""Runs one query in one process, as spark-submit starts it; the other queries of the lakehouse may run elsewhere.

Without `once`, a query follows its input until the process is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.common.errors import UserError
from jobs.common.failures import root_cause
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout, remember_input, take_complete_mark
from jobs.pipeline import topic_input
from jobs.pipeline.executors import check_executors
from jobs.pipeline.feeder import check_source, feeding
from jobs.pipeline.ingest import start_ingest
from jobs.pipeline.ingest_topic import start_ingest_topic
from jobs.pipeline.parts import tasks_as_workers
from jobs.pipeline.queries import AT_ONCE_MS
from jobs.pipeline.session import spark_session
from jobs.pipeline.topic_input import TopicInput
from jobs.pipeline.tracking.track import start_track

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingest_files(source: Path, folder: Path, *, settings: Settings, once: bool, spark: SparkSession | None = None) -> None:
    """Reads log files into group_events. `spark`: a session that runs already."""
    check_source(source, once=once)
    house = _house_of_ingest(folder, settings)
    remember_input(house, source)
    with feeding(source, house, settings, follow=not once) as feeder:
        assert feeder is not None
        spark = spark or spark_session("rebalance-ingest")
        check_executors(spark, [folder])
        feeder.share_with(tasks_as_workers(spark))
        query = start_ingest(
            spark,
            spool_slices=feeder.slices_folder,
            spool_parts=feeder.parts_folder,
            lakehouse=folder,
            checkpoint=house.ingest_checkpoint,
            interval_ms=AT_ONCE_MS if once else settings.interval_ms,
        )
        while not feeder.ended.wait(0.2):
            if query.exception() is not None:
                break
        if feeder.error is not None:
            raise UserError(f"reading the input failed: {root_cause(feeder.error)}")
        query.processAllAvailable()
        query.stop()


def ingest_topic(chosen: TopicInput, folder: Path, *, settings: Settings, once: bool) -> None:
    """Reads a topic of log lines into group_events."""
    house = _house_of_ingest(folder, settings)
    topic_input.check(chosen, house)
    spark = spark_session("rebalance-ingest-topic")
    check_executors(spark, [folder])
    query = start_ingest_topic(
        spark,
        chosen,
        most_lines=settings.slice_lines,
        lakehouse=folder,
        checkpoint=house.topic_checkpoint,
        once=once,
        interval_ms=settings.interval_ms,
    )
    query.awaitTermination()


def track(folder: Path, *, settings: Settings, once: bool, events_from: Path | None = None) -> None:
    """Tracks group_events. `events_from`: the lakehouse that has them, if it is another one."""
    house = Lakehouse(folder)
    check_layout(house, settings)
    checkpoint = house.track_checkpoint
    spark = spark_session("rebalance-track")
    check_executors(spark, [path for path in (folder, checkpoint, events_from) if path is not None])
    query = start_track(spark, lakehouse=folder, checkpoint=checkpoint, settings=settings, once=once, events_from=events_from)
    query.awaitTermination()


def _house_of_ingest(folder: Path, settings: Settings) -> Lakehouse:
    house = Lakehouse(folder)
    check_layout(house, settings)
    take_complete_mark(house)  # track has not seen yet what is added here
    return house
