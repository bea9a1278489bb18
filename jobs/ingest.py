"""Log files to group_events, as a Spark job: `spark-submit jobs/ingest.py --help`."""

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
    """Runs the spool and ingest, without track."""
    parser = argparse.ArgumentParser(prog="ingest.py", description="Turn broker logs into group_events.")
    parser.add_argument("--input", type=Path, required=True, help="folder <cluster>/<broker>/*.log[.gz], or any file or folder of logs")
    parser.add_argument("--lakehouse", type=Path, required=True, help="folder of the Delta tables")
    parser.add_argument("--timezone", action="append", default=[], metavar="ZONE", help="of the timestamps; or CLUSTER=ZONE; repeatable")
    parser.add_argument("--config", type=Path, help="TOML file of settings, as conf/pipeline.toml")
    parser.add_argument("--once", action="store_true", help="end when the input has been worked through")
    options = parser.parse_args(arguments)

    from jobs.pipeline.alone import ingest_files  # takes a second: only for arguments that are right

    try:
        settings = load(options.config, timezones=options.timezone)
        ingest_files(options.input, options.lakehouse, settings=settings, once=options.once)
    except UserError as error:
        parser.error(printable(str(error), 2_000))


if __name__ == "__main__":
    main()
