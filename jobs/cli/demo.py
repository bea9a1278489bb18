"""`rebalance demo` and `rebalance demo-live`: the pipeline on a bundled recording, and on a real Kafka as things happen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import click

from jobs.cli.output.terminal import stdout, write
from jobs.common.errors import UserError
from jobs.common.places import PROJECT

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1"
FOLDER: Final = PROJECT / ".demo"
_TIMEZONE: Final = "America/New_York"  # of the brokers in the recording
_SHOWN: Final = 4  # rebalances of each group: the costliest, so that the report stays readable


@click.command()
def demo() -> int:
    """Run the pipeline on a bundled recording of a real cluster.

    Two brokers, 16 consumer groups and 230 seconds of incidents: expired sessions, slow pollers, rolling restarts.
    """
    from jobs.answers.report import read_report
    from jobs.cli.output.report_text import render
    from jobs.cli.run import run_and_account
    from jobs.common.settings import load

    if not RECORDING.is_dir():
        raise UserError(f"there is no recording at {RECORDING} (the demo runs from a checkout of the project)")
    console = stdout()
    lakehouse = FOLDER / "lakehouse"
    if lakehouse.exists():
        shutil.rmtree(lakehouse)
    write(console, f"Logs of a real Kafka 3.9.1 cluster, 2 brokers: {_shown(RECORDING)}")
    if code := run_and_account(RECORDING, lakehouse, load(timezones=[_TIMEZONE]), once=True, short_run=True):
        return code
    write(console)
    render(read_report(lakehouse), console, rebalances_per_group=_SHOWN)
    for line in (
        "",
        f"Everything about one group:  rebalance report --lakehouse {_shown(lakehouse)} --group fraud-check",
        f"Why did it rebalance:        rebalance ask why --lakehouse {_shown(lakehouse)} --group fraud-check",
        "Your own logs:               rebalance run --input LOGS --lakehouse LAKE --once --timezone ZONE",
        "How to capture them:         conf/capture",
    ):
        write(console, line)
    return 0


@click.command("demo-live")
def demo_live() -> int:
    """Run a real Kafka, disturb its consumers, show rebalances.

    The consumers stall, die and fence each other. Takes two minutes and writes only in the project's folder. Needs `make
    .jars-kafka/resolved.txt`.
    """
    from jobs.demo.live import run_demo_live

    return run_demo_live(stdout())


def _shown(path: Path) -> str:
    """A path as the user would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
