"""A topic of log lines to group_events, as a Spark job: `spark-submit jobs/ingest_topic.py --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts jobs/ on the path, while the imports below start from the project's folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from jobs.common.errors import UserError
from jobs.common.settings import load
from jobs.common.text import printable


def main(arguments: list[str] | None = None) -> None:
    """Runs ingest of a topic, without track."""
    parser = argparse.ArgumentParser(prog="ingest_topic.py", description="Turn the log lines of a Kafka topic into group_events.")
    parser.add_argument("--kafka", metavar="HOST:PORT", required=True, help="cluster with the topic, where `rebalance ship` writes it")
    parser.add_argument("--topic", default="group-protocol-logs", help="that topic (default: %(default)s)")
    parser.add_argument("--lakehouse", type=Path, required=True, help="folder of the Delta tables")
    parser.add_argument("--starting", choices=["earliest", "latest"], default="earliest", help="where to begin in a new topic")
    parser.add_argument("--max-offsets", type=int, metavar="N", help="records per micro-batch (default: slice_lines)")
    parser.add_argument("--kafka-config", type=Path, help="settings of the client that reads the topic, as of `rebalance ship --config`")
    parser.add_argument("--accept-loss", action="store_true", help="go on although the topic dropped records before they were read")
    parser.add_argument("--config", type=Path, help="TOML file of settings, as conf/pipeline.toml")
    parser.add_argument("--once", action="store_true", help="end when what the topic holds now has been worked through")
    options = parser.parse_args(arguments)

    from jobs.pipeline.alone import ingest_topic  # takes a second: only for arguments that are right
    from jobs.pipeline.topic_input import TopicInput

    chosen = TopicInput(options.kafka, options.topic, options.starting, options.kafka_config, options.max_offsets, options.accept_loss)
    try:
        ingest_topic(chosen, options.lakehouse, settings=load(options.config), once=options.once)
    except UserError as error:
        parser.error(printable(str(error), 2_000))


if __name__ == "__main__":
    main()
