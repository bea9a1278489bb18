"""group_events to the tables of rebalances, transitions, memberships and findings, as a Spark job: `spark-submit jobs/track.py --help`."""

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
    """Runs track, without ingest."""
    parser = argparse.ArgumentParser(prog="track.py", description="Follow the coordinators through group_events.")
    parser.add_argument("--lakehouse", type=Path, required=True, help="folder of the Delta tables")
    parser.add_argument("--events-from", type=Path, metavar="LAKEHOUSE", help="take group_events from another lakehouse")
    parser.add_argument("--checkpoint", type=Path, help="default: LAKEHOUSE/_checkpoints/track")
    parser.add_argument("--config", type=Path, help="TOML file of settings, as conf/pipeline.toml")
    parser.add_argument("--once", action="store_true", help="end when everything that is there has been tracked")
    options = parser.parse_args(arguments)

    from jobs.pipeline.alone import track  # takes a second: only for arguments that are right

    try:
        track(
            options.lakehouse,
            settings=load(options.config),
            once=options.once,
            checkpoint=options.checkpoint,
            events_from=options.events_from,
        )
    except UserError as error:
        parser.error(printable(str(error), 2_000))


if __name__ == "__main__":
    main()
