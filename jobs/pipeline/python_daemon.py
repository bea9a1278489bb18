"""Starts the Python workers of a local Spark without the archives that Spark puts on their path. Spark starts this module by its name.

These are zips of its library, which is installed, too, and a JAR. From the zips a worker would compile the library at each start, and for
each task it would read the directories of all archives anew: that was three quarters of the workers' time in a run that follows its input.

What this module imports before the workers are forked, none of them imports again, nor looks through it for garbage after each task.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder


def without_archives(path: list[str]) -> list[str]:
    """The folders of a path, if Spark's library is installed in one of them; else the path."""
    folders = [entry for entry in path if not entry.endswith((".zip", ".jar"))]
    return folders if all(PathFinder.find_spec(name, folders) is not None for name in ("pyspark", "py4j")) else path


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()  # it has the archives, too, and is read anew for each task
    import pandas as pd  # noqa: F401
    from pyspark.daemon import manager

    from jobs.pipeline import part_tasks  # noqa: F401
    from jobs.pipeline.tracking import shards  # noqa: F401

    # The rows of a task live until it ends and form no cycles: by default the collector goes through all of them again and again.
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)
    manager()  # type: ignore[no-untyped-call]
