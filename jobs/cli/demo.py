"""`rebalance demo` and `rebalance demo-live`: the pipeline on a bundled recording, and on a real Kafka as things happen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import click

from jobs.cli.output.terminal import stdout, warn, write
from jobs.common.errors import UserError
from jobs.common.places import data_folder, kept_folder

RECORDING: Final = data_folder("tests/data/recordings/kafka-3.9.1", "README.md")
_TIMEZONE: Final = "America/New_York"  # of the brokers in the recording


@click.command()
def demo() -> int:
    """Run the pipeline on a bundled recording of a real cluster.

    Two brokers, 17 consumer groups and 230 seconds of incidents: expired sessions, slow pollers, rolling restarts.
    """
    from jobs.answers.report import read_report
    from jobs.cli.output.report_text import LIMIT, render
    from jobs.cli.run import run_and_account
    from jobs.common.settings import load

    if not RECORDING.is_dir():
        raise UserError(f"there is no recording at {RECORDING} (part of the checkout, and of the wheel)")
    console = stdout()
    lakehouse = kept_folder("demo") / "lakehouse"
    if lakehouse.exists():
        shutil.rmtree(lakehouse)
    write(console, f"Logs of a real Kafka 3.9.1 cluster, 2 brokers: {_shown(RECORDING)}")
    if code := run_and_account(RECORDING, lakehouse, load(timezones=[_TIMEZONE]), once=True):
        return code
    write(console)
    render(read_report(lakehouse, limit=LIMIT), console)
    for line in (
        "",
        f"Everything about one group:  rebalance report --lakehouse {_shown(lakehouse)} --group fraud-check",
        f"Why did it rebalance:        rebalance ask why --lakehouse {_shown(lakehouse)} --group fraud-check",
        "Your own logs:               rebalance explain LOGS --timezone ZONE",
        f"How to capture them:         {_shown(data_folder('conf/capture', 'log4j2.yaml'))}",
    ):
        write(console, line)
    return 0


@click.command("demo-live")
@click.option("--keep", is_flag=True, help="Keep the dashboard up at the end, until Ctrl-C.")
def demo_live(*, keep: bool) -> int:
    """Run a real Kafka, disturb its consumers, show rebalances.

    The consumers stall, die and fence each other. It takes two minutes. The first time it downloads Kafka. It writes only in the checkout,
    or in the user's cache.
    """
    from jobs.common.jars import ensure_broker_jars, ensure_spark_jars
    from jobs.demo.live import run_demo_live

    ensure_spark_jars(warn)
    ensure_broker_jars(warn)
    return run_demo_live(stdout(), folder=kept_folder("demo-live"), keep=keep)


def _shown(path: Path) -> str:
    """A path as the user would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
