"""Starts the Python workers of a local Spark with what they need already imported. Spark starts this module by its name.

What this module imports before the workers are forked, none of them imports again, nor looks through it for garbage after each task.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    import pandas as pd  # noqa: F401
    from pyspark.daemon import manager

    from jobs.pipeline import part_tasks  # noqa: F401
    from jobs.pipeline.tracking import shards  # noqa: F401

    # The rows of a task live until it ends and form no cycles: by default the collector goes through all of them again and again.
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)
    manager()  # type: ignore[no-untyped-call]
