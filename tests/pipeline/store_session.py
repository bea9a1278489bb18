"""A process with a session of Spark that works on an object store, for tests: a process has one session, which other tests share.

It reads lines of JSON, each a command with its arguments, and answers each by a line. What else it writes is no answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from jobs.common.places import PROJECT
from jobs.common.settings import Settings
from jobs.common.stores import place_of

_ANSWER = "answer: "


class StoreSession:
    """The process, as tests see it."""

    def __init__(self, process):
        self._process = process

    def run(self, source, lakehouse, **settings):
        """`rebalance run --once`; returns what it added."""
        return self._ask("run", str(source), str(lakehouse), settings)

    def replay(self, old, new, *, swap=False, **settings):
        """`rebalance replay`; returns how many events there were."""
        return self._ask("replay", str(old), str(new), settings, swap)

    def _ask(self, *command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                return json.loads(line.removeprefix(_ANSWER))
        raise AssertionError("the process with the session ended")


@contextmanager
def store_session(environment):
    """A session for as long as this lasts. `environment`: where the store is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.store_session"],
        cwd=PROJECT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield StoreSession(process)
    finally:
        process.stdin.close()
        process.wait(60)


def main():
    from jobs.pipeline.replay import replay
    from jobs.pipeline.run import run
    from jobs.pipeline.session import spark_session

    tasks = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    spark = spark_session("tests on a store", conf=tasks, s3=True)
    for line in sys.stdin:
        command, source, target, settings, *more = json.loads(line)
        if command == "run":
            outcome = run(Path(source), place_of(target), settings=Settings(**settings), once=True, spark=spark).added
        else:
            outcome = replay(place_of(source), place_of(target), settings=Settings(**settings), spark=spark, swap_them=more[0]).events
        sys.stdout.write(f"{_ANSWER}{json.dumps(outcome)}\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
