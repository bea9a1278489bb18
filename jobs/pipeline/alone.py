"""Runs one query in one process, as spark-submit starts it; the other queries of the lakehouse may run elsewhere.

Without `once`, a query follows its input until the process is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.common.errors import UserError
from jobs.common.failures import root_cause
from jobs.common.options import LINE_CHARS
from jobs.common.settings import Settings
from jobs.common.stores import Place, is_store
from jobs.common.text import printable
from jobs.lakehouse import reader
from jobs.lakehouse.folder import opened, remember_input, take_complete_mark
from jobs.pipeline import topic_input
from jobs.pipeline.executors import check_executors
from jobs.pipeline.feeder import check_source, feeding
from jobs.pipeline.ingest import start_ingest, tasks_as_workers
from jobs.pipeline.ingest_topic import start_ingest_topic
from jobs.pipeline.queries import finish, looking_at_once
from jobs.pipeline.session import spark_session
from jobs.pipeline.topic_input import TopicInput
from jobs.pipeline.tracking.track import start_track
from schemas.names import INGEST, INGEST_TOPIC, TRACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingest_files(source: Path, folder: Place, *, settings: Settings, once: bool, spark: SparkSession | None = None) -> None:
    """Reads log files into group_events. `spark`: a session that runs already."""
    check_source(source, once=once)
    with opened(folder, settings, query=INGEST) as house, _told(f"reading {source} into {folder}", folder, once=once):
        take_complete_mark(house)  # track has not seen yet what is added here
        remember_input(house, source)
        with feeding(source, house, settings, follow=not once) as feeder:
            assert feeder is not None
            spark = spark or spark_session("rebalance-ingest", s3=is_store(folder))
            check_executors(spark, [folder])
            feeder.share_with(tasks_as_workers(spark))
            query = start_ingest(spark, house, looking_at_once(settings) if once else settings)
            while not feeder.ended.wait(0.2):
                if query.exception() is not None:
                    break
            if feeder.error is not None:
                raise UserError(f"reading the input failed: {root_cause(feeder.error)}")
            finish(query)
            for line in feeder.troubles.summary():
                _say(line)
            if not feeder.understood:
                _say(f"nothing in {source} was understood: `rebalance inspect {source}` shows what its lines are")


def ingest_topic(chosen: TopicInput, folder: Place, *, settings: Settings, once: bool) -> None:
    """Reads a topic of log lines into group_events."""
    with opened(folder, settings, query=INGEST_TOPIC) as house, _told(f"reading topic {chosen.topic} into {folder}", folder, once=once):
        take_complete_mark(house)
        topic_input.check(chosen, house)
        spark = spark_session("rebalance-ingest-topic", s3=is_store(folder))
        check_executors(spark, [folder])
        start_ingest_topic(spark, house, settings, chosen, once=once).awaitTermination()


def track(folder: Place, *, settings: Settings, once: bool, events_from: Place | None = None) -> None:
    """Tracks group_events. `events_from`: the lakehouse that has them, if it is another one."""
    with (
        opened(folder, settings, query=TRACK) as house,
        _told(f"tracking the events of {events_from or folder} into {folder}", folder, once=once),
    ):
        spark = spark_session("rebalance-track", s3=is_store(folder))
        check_executors(spark, [path for path in (folder, house.track_checkpoint, events_from) if path is not None])
        query = start_track(spark, house, settings, events_from=events_from, tell=_say)
        if once:
            finish(query)
        else:
            query.awaitTermination()


@contextmanager
def _told(doing: str, folder: Place, *, once: bool) -> Iterator[None]:
    """Says on standard output what the job does, and what became of it."""
    before = reader.account(folder)
    _say(f"{doing}{'' if once else ', until it is stopped'}")
    yield
    added = {name: total - before[name] for name, total in reader.account(folder).items()}
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in added.items() if count)
    _say(f"done {doing}: {counts or 'nothing new'}")


def _say(text: str) -> None:
    click.echo(f"rebalance: {printable(text, LINE_CHARS)}")
