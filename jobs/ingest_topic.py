"""A topic of log lines to group_events, as a Spark job: `spark-submit jobs/ingest_topic.py --help`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts jobs/ on the path; what is imported below is named from the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from jobs.common.text import printable
from jobs.pipeline import topic as topics


def main(arguments: list[str] | None = None) -> None:
    """Entry of spark-submit: ingest of a topic, without track."""
    parser = argparse.ArgumentParser(prog="ingest_topic.py", description="Turn the log lines of a Kafka topic into group_events.")
    parser.add_argument("--kafka", metavar="HOST:PORT", required=True, help="cluster with the topic, where `rebalance ship` writes it")
    parser.add_argument("--topic", default="group-protocol-logs", help="that topic (default: %(default)s)")
    parser.add_argument("--lakehouse", type=Path, required=True, help="folder of the Delta tables")
    parser.add_argument(
        "--starting", choices=[topics.EARLIEST, topics.LATEST], default=topics.EARLIEST, help="where to begin in a new topic"
    )
    parser.add_argument("--max-offsets", type=int, metavar="N", help="records per micro-batch (default: slice_lines)")
    parser.add_argument("--kafka-config", type=Path, help="settings of the client that reads the topic, as of `rebalance ship --config`")
    parser.add_argument("--accept-loss", action="store_true", help="go on although the topic dropped records before they were read")
    parser.add_argument("--config", type=Path, help="TOML file of settings, as conf/pipeline.toml")
    parser.add_argument("--once", action="store_true", help="end when what the topic holds now has been worked through")
    given = parser.parse_args(arguments)

    from jobs.common.errors import UserError
    from jobs.common.settings import load
    from jobs.pipeline import run
    from jobs.pipeline.session import spark_session  # after the arguments are known to be right
    from jobs.pipeline.topic_input import TopicInput

    wanted = TopicInput(given.kafka, given.topic, given.starting, given.kafka_config, given.max_offsets, given.accept_loss)
    try:
        session = partial(spark_session, "rebalance-ingest-topic")
        run.ingest_topic_alone(wanted, given.lakehouse, settings=load(given.config), once=given.once, session=session)
    except UserError as error:
        parser.error(printable(str(error), 2_000))


if __name__ == "__main__":
    main()
