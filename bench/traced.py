"""Runs `rebalance` planned for a number of cores in fewer slots, and writes down what its driver and its tasks take. See bench_scale.py.

    python bench/traced.py FOLDER CORES SLOTS run --input DIR --lakehouse DIR --once

FOLDER gets Spark's event log, `driver.jsonl` and `tasks.jsonl`. Spark starts this module again, as the daemon of the Python workers.

A line of driver.jsonl is a moment at which a thread of the driver begins or ends to wait, with the processor time that it took so far. What
Spark does for a query between two calls runs in a thread of the JVM, whose processor time the kernel tells.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "REBALANCE_TRACE"
DRIVER, TASKS = "driver.jsonl", "tasks.jsonl"
DAEMON: Final = -1
"""Stands for a task: the daemon itself, up to the first worker."""
SPARK, STARTED, BATCH, BATCH_END, JOBS_END, SLICE = "spark", "started", "batch", "batch end", "jobs end", "slice"
"""Spark runs. A query runs. A query calls Python with a micro-batch. That has returned. So have tasks. A slice waits for ingest."""
_STREAM_THREAD: Final = "stream executio"  # as much of the name as the kernel keeps
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Journal:
    """Writes moments."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / DRIVER).open("w", buffering=1, encoding="utf-8")
        self._lock = threading.Lock()
        self._own = threading.local()
        self._threads: dict[str, int] = {}
        """The thread of the JVM of each query, by its id."""

    def tell(self, what: str, **more: Any) -> None:
        """Writes a moment of this thread."""
        chain = getattr(self._own, "query", "") or threading.current_thread().name
        seconds = time.thread_time() + self._jvm_thread_seconds(chain)
        row = {"at": time.time(), "what": what, "chain": chain, "seconds": seconds, "python": time.process_time(), "jvm": _jvm_seconds()}
        with self._lock:
            self._file.write(json.dumps(row | more) + "\n")

    def query_started(self, name: str, query_id: str) -> None:
        """Its thread is the one that was not there before."""
        threads = set()
        for task in Path(f"/proc/{_jvm()}/task").iterdir():
            with suppress(OSError):  # it has ended
                if (task / "comm").read_text().startswith(_STREAM_THREAD):
                    threads.add(int(task.name))
        self._threads[query_id] = (threads - set(self._threads.values())).pop()
        self.tell(STARTED, name=name, id=query_id)

    def works_for(self, query_id: str) -> None:
        """This thread does what a query asks for."""
        self._own.query = query_id

    def _jvm_thread_seconds(self, query_id: str) -> float:
        thread = self._threads.get(query_id)
        return int(Path(f"/proc/{_jvm()}/task/{thread}/schedstat").read_text().split()[0]) / 1e9 if thread else 0.0


def _jvm() -> int | None:
    from pyspark import SparkContext

    return SparkContext._gateway.proc.pid if SparkContext._gateway is not None else None  # noqa: SLF001 - nothing else knows it


def _jvm_seconds() -> float:
    if (pid := _jvm()) is None:
        return 0.0
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


def run(folder: Path, cores: int, slots: int, words: list[str]) -> None:
    """Runs a command of `rebalance`."""
    os.environ[FOLDER] = str(folder)
    journal = Journal(folder)
    journal.tell("begin")
    _plan(folder, cores, slots)
    _watch(journal)
    sys.argv = ["rebalance", *words]
    try:
        runpy.run_module("jobs.cli", run_name="__main__")
    finally:
        journal.tell("end")


def _plan(folder: Path, cores: int, slots: int) -> None:
    """Lets the pipeline's settings say so many cores."""
    from jobs.pipeline import session

    settings = session.local_defaults
    session._cores = lambda: cores  # noqa: SLF001 - the only place that counts them

    @wraps(settings)
    def planned(**options: bool) -> dict[str, str]:
        return settings(**options) | {
            "spark.master": f"local[{slots}, 3]",
            "spark.default.parallelism": str(cores),
            "spark.python.daemon.module": "traced",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": folder.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }

    session.local_defaults = planned


def _watch(journal: Journal) -> None:
    """Tells the journal where the driver waits."""
    from pyspark import RDD
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.utils import ForeachBatchFunction

    from jobs.logs.slice_files import SliceFiles
    from jobs.pipeline.feeder import Feeder

    def told(owner: type, name: str, after: Callable[..., None]) -> None:
        method = getattr(owner, name)

        @wraps(method)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            result = method(*arguments, **options)
            after(result)
            return result

        setattr(owner, name, wrapped)

    told(Feeder, "share_with", lambda _: journal.tell(SPARK))
    told(RDD, "collect", lambda _: journal.tell(JOBS_END))
    told(DataFrame, "toArrow", lambda _: journal.tell(JOBS_END))
    told(SliceFiles, "publish", lambda _: journal.tell(SLICE))
    told(DataStreamWriter, "start", lambda query: journal.query_started(query.name, query.id))
    call = ForeachBatchFunction.call

    @wraps(call)
    def batch(self: ForeachBatchFunction, frame: Any, batch_id: int) -> None:
        journal.works_for(self.session.sparkContext.getLocalProperty("sql.streaming.queryId") or "")
        journal.tell(BATCH, batch=batch_id)
        call(self, frame, batch_id)
        journal.tell(BATCH_END, batch=batch_id)

    ForeachBatchFunction.call = batch  # type: ignore[method-assign]


def daemon() -> None:
    """The daemon of Python workers, which write down what each task takes."""
    from jobs.pipeline.python_daemon import without_archives

    sys.path[:] = without_archives(sys.path)
    from pyspark import TaskContext
    from pyspark import daemon as spark

    work, manage = spark.worker_main, spark.manager
    leave = TaskContext._setTaskContext  # noqa: SLF001 - the last moment at which a worker knows its task
    target = os.open(Path(os.environ[FOLDER]) / TASKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    task, before = -1, 0.0  # a worker counts from its birth

    def left(context: TaskContext | None) -> None:
        nonlocal task
        if (left := TaskContext.get()) is not None:
            task = left.taskAttemptId()
        leave(context)

    def counted(infile: Any, outfile: Any) -> None:
        nonlocal before
        work(infile, outfile)
        now = time.process_time()
        os.write(target, (json.dumps({"task": task, "seconds": now - before, "worker": os.getpid()}) + "\n").encode())
        before = now

    def begun() -> None:
        os.write(target, (json.dumps({"task": DAEMON, "seconds": time.process_time(), "worker": os.getpid()}) + "\n").encode())
        manage()

    TaskContext._setTaskContext = left  # noqa: SLF001
    spark.worker_main, spark.manager = counted, begun
    runpy.run_module("jobs.pipeline.python_daemon", run_name="__main__")


if __name__ == "__main__":
    if FOLDER in os.environ:
        daemon()
    else:
        run(Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
