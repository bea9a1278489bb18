"""Starts the Python workers of a local Spark without the zip files that Spark puts on their path. Spark starts this module by its name.

The library in the zips is installed, too. From the zips a worker would compile it at each start, and for each task it would read their
directories anew: of the workers' time in a run of 1,500,000 lines that was a sixth.

What this module imports before the workers are forked, none of them imports again, nor looks through it for garbage after each task.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder


def without_zips(path: list[str]) -> list[str]:
    """The folders of a path, if Spark's library is installed in one of them; else the path."""
    folders = [entry for entry in path if not entry.endswith(".zip")]
    return folders if all(PathFinder.find_spec(name, folders) is not None for name in ("pyspark", "py4j")) else path


if __name__ == "__main__":
    sys.path[:] = without_zips(sys.path)
    import pandas as pd  # noqa: F401
    from pyspark.daemon import manager

    from jobs.parsing import group_records, heartbeat_runs, request_log  # noqa: F401
    from jobs.pipeline.tracking import shards  # noqa: F401

    gc.freeze()
    manager()  # type: ignore[no-untyped-call]
