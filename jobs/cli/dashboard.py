"""`rebalance dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.common import options


@click.command(
    epilog="""\b
Examples:
  rebalance dashboard --lakehouse lake/
  rebalance dashboard --lakehouse lake/ --port 0
  rebalance dashboard --lakehouse lake/ --host 0.0.0.0    # for everybody who can reach this machine
""",
)
@options.lakehouse()
@click.option(
    "--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. 0.0.0.0 serves everybody: there is no password."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_060, metavar="N", help="Port. 0: any free one.")
def dashboard(lakehouse: Path, *, host: str, port: int) -> int:
    """Show the tables in a browser, while they grow.

    Clusters at a glance, the timeline of each group, the waterfall of each rebalance. Reads the tables without Spark, writes nothing.
    """
    from jobs.dashboard.server import serve
    from jobs.lakehouse.folder import Lakehouse, check_ours

    Lakehouse(lakehouse)  # checks the path
    check_ours(lakehouse)
    serve(lakehouse, host, port, click.echo)
    return 0
