"""`rebalance dashboard`."""

from __future__ import annotations

import os
from typing import Final

import click

from jobs.cli.output.terminal import warn
from jobs.common import options
from jobs.common.stores import Place

_NICENESS: Final = 10  # where a pipeline runs on the same machine, it comes first


@options.command(
    "rebalance dashboard --lakehouse lake/",
    "rebalance dashboard --lakehouse lake/ --port 0",
    "rebalance dashboard --lakehouse lake/ --host 0.0.0.0    # for everybody who can reach this machine",
)
@options.lakehouse("Folder that `rebalance run` writes. It need not exist yet.")
@click.option(
    "--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. 0.0.0.0 serves everybody: there is no password."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_060, metavar="N", help="Port. 0: any free one.")
def dashboard(lakehouse: Place, *, host: str, port: int) -> int:
    """Show the tables in a browser, while they grow.

    It shows all clusters at a glance, a timeline of each group and a waterfall of each rebalance. It reads the tables without Spark and
    writes nothing.
    """
    from jobs.dashboard.server import serve
    from jobs.lakehouse.folder import check_ours, is_lakehouse

    check_ours(lakehouse)
    if not is_lakehouse(lakehouse):
        warn(f"waiting for the lakehouse {lakehouse}: `rebalance run` makes it")
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    serve(lakehouse, host, port, click.echo)
    return 0
