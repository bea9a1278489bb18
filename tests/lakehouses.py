"""Lakehouses of the recordings in tests/data: each is made once in a run of the tests, by the process that asks first."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

DATA = Path(__file__).parent / "data"
ZONES = {"recordings/kafka-3.9.1": "America/New_York"}
"""Of the brokers of a recording; UTC where none is named."""


def lakehouse_of(name, base):
    """The lakehouse of the folder `name` of tests/data. Nobody writes to it. `base`: the folder for temporary files of this process."""
    from jobs.common.settings import Settings  # other tests load none of this
    from jobs.pipeline import at_once

    of_all = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = of_all / "lakehouses" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            settings = Settings(timezone=ZONES.get(name, "UTC"), shards=8)
            assert at_once.process(DATA / name, folder / "lake", settings=settings, most_lines=1 << 30)
            (folder / "made").touch()
    return folder / "lake"
