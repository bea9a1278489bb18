"""What is made once in a run of the tests, by the process that asks first: lakehouses of recordings, and packages. Nobody writes to it."""

import fcntl
import os
from pathlib import Path

DATA = Path(__file__).parent / "data"
ZONES = {"recordings/kafka-3.9.1": "America/New_York"}
"""Of the brokers of a recording; UTC where none is named."""


def made_once(base, name, make):
    """The folder `name` that all processes share, after `make(folder)`. `base`: the folder for temporary files of this process."""
    of_all = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = of_all / "made-once" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make(folder)
            (folder / "made").touch()
    return folder


def lakehouse_of(name, base):
    """The lakehouse of the folder `name` of tests/data."""
    from jobs.common.settings import Settings  # other tests load none of this
    from jobs.pipeline import at_once

    def make(folder):
        settings = Settings(timezone=ZONES.get(name, "UTC"), shards=8)
        assert at_once.process(DATA / name, folder / "lake", settings=settings, most_lines=1 << 30)

    return made_once(base, name, make) / "lake"


def packages_in(base):
    """The wheel, its sources as a zip, and the archive for executors."""
    from scripts.build import package

    folder = made_once(base, "packages", package.main)
    return [next(folder.glob(pattern)) for pattern in ("*.whl", "*.zip", "*.tar.gz")]
