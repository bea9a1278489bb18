"""group_events to the tables of rebalances, transitions, memberships and findings, as a Spark job: `spark-submit jobs/track.py --help`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts jobs/ on the path, while the imports below start from the project's folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import click

from jobs.common import options
from jobs.common.settings import load
from jobs.common.stores import Place


@options.spark_job
@options.lakehouse("Folder of the Delta tables.")
@click.option("--events-from", type=options.PLACE, metavar="LAKEHOUSE", help="Read group_events of another lakehouse.")
@options.settings
@options.once("Stop at the end of group_events.")
def main(lakehouse: Place, *, events_from: Place | None, config: Path | None, once: bool) -> None:
    """Follow the coordinators through group_events."""
    from jobs.pipeline.alone import track  # takes a second: only for arguments that are right

    track(lakehouse, settings=load(config), once=once, events_from=events_from)


if __name__ == "__main__":
    main()
