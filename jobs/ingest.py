"""Log files to group_events, as a Spark job: `spark-submit jobs/ingest.py --help`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts jobs/ on the path, while the imports below start from the project's folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from collections.abc import Sequence

import click

from jobs.common import options
from jobs.common.settings import load
from jobs.common.stores import Place


@options.spark_job
@click.option(
    "--input",
    "source",
    type=options.PATH,
    metavar="PATH",
    required=True,
    help="Folder <cluster>/<broker>/*.log[.gz], or any folder or single log file.",
)
@options.lakehouse("Folder of the Delta tables.")
@options.timezones
@options.settings
@options.once("Stop at the end of the input.")
def main(source: Path, lakehouse: Place, *, timezones: Sequence[str], config: Path | None, once: bool) -> None:
    """Turn broker logs into group_events."""
    from jobs.pipeline.alone import ingest_files  # takes a second: only for arguments that are right

    ingest_files(source, lakehouse, settings=load(config, timezones=timezones), once=once)


if __name__ == "__main__":
    main()
