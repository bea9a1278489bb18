"""A topic of log lines to group_events, as a Spark job: `spark-submit jobs/ingest_topic.py --help`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts jobs/ on the path, while the imports below start from the project's folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from typing import Any

from jobs.common import options
from jobs.common.settings import load
from jobs.common.stores import Place


@options.spark_job
@options.topic_input(required=True)
@options.lakehouse("Folder of the Delta tables.")
@options.settings
@options.once("Stop at the end of what the topic holds now.")
def main(kafka: str, lakehouse: Place, *, kafka_config: Path | None, config: Path | None, once: bool, **topic_options: Any) -> None:
    """Turn the log lines of a Kafka topic into group_events."""
    from jobs.pipeline.alone import ingest_topic  # takes a second: only for arguments that are right
    from jobs.pipeline.topic_input import TopicInput

    ingest_topic(TopicInput(kafka, config=kafka_config, **topic_options), lakehouse, settings=load(config), once=once)


if __name__ == "__main__":
    main()
