"""`rebalance demo`: the main job on a bundled recording of a real cluster, from a fresh start."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from jobs.common.errors import UserError
from jobs.common.places import PROJECT

if TYPE_CHECKING:
    from rich.console import Console

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1"
FOLDER: Final = PROJECT / ".demo"
_TIMEZONE: Final = "America/New_York"  # of the brokers in the recording
_SHOWN: Final = 4  # rebalances of each group: the costliest ones, so that all of it can be read


def run_demo(console: Console, *, recording: Path = RECORDING, folder: Path = FOLDER) -> int:
    """Runs the job and shows the report; returns the exit code."""
    from jobs.answers.report import read_report
    from jobs.cli.entry import run_and_tell
    from jobs.cli.report_text import render
    from jobs.common.settings import load

    if not recording.is_dir():
        raise UserError(f"the recording is not there: {recording} (the demo runs from a checkout of the project)")

    def line(text: str = "") -> None:
        console.print(Text(text), soft_wrap=True)

    lakehouse = folder / "lakehouse"
    if lakehouse.exists():
        shutil.rmtree(lakehouse)
    line(f"Logs of a real Kafka 3.9.1 cluster, 2 brokers: {_shown(recording)}")
    if code := run_and_tell(recording, lakehouse, load(timezones=[_TIMEZONE]), once=True, short_run=True):
        return code
    line()
    render(read_report(lakehouse), console, rebalances_per_group=_SHOWN)
    line()
    line(f"Everything about one group:  rebalance report --lakehouse {_shown(lakehouse)} --group fraud-check")
    line(f"Why did it rebalance:        rebalance ask why --lakehouse {_shown(lakehouse)} --group fraud-check")
    line("Your own logs:               rebalance run --input LOGS --lakehouse LAKE --once --timezone ZONE")
    line("How to capture them:         conf/capture")
    return 0


def _shown(path: Path) -> str:
    """A path as the user would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
