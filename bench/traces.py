"""Reads what traced.py wrote about a run: its steps, for list_scheduling.py."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import traced
from list_scheduling import Step

from schemas import names

MAIN, SPOOL, INGEST, TRACK = "MainThread", "spool", "ingest", "track"
"""The chains of steps: three threads of the driver beside its main one."""
START: Final = "start"
_NAMES: Final = {SPOOL: "read", INGEST: "parse", TRACK: "track"}
_LOOKS: Final = {INGEST: 0.25, TRACK: 0.25}
"""Seconds between two looks of a query at its input."""
_ROOM: Final = 4
"""Slices that wait for ingest when the reading of logs waits for it."""
_WORKERS: Final = "workers"
_STARTS: Final = ("spark runs", f"{INGEST} runs", f"{TRACK} runs")

Rows = Sequence[Mapping[str, Any]]


class Trace(NamedTuple):
    """What a traced run took, in seconds of processor time."""

    chains: dict[str, list[Step]]
    starts: tuple[float, ...]
    """Of Spark, of ingest and of track, without the reading of logs."""
    start_walls: tuple[float, ...]
    workers: float
    """The daemon of the workers, before the first one."""
    end: float
    """After the last micro-batch."""
    end_wall: float
    python: float
    """The driver's Python, as a whole."""
    jvm: float
    """The JVM, outside of tasks."""
    core_seconds: float

    def tasks(self, chain: str) -> list[float]:
        """The tasks of a chain."""
        return [task for step in self.chains[chain] for task in step.tasks]

    @property
    def serial(self) -> float:
        """What the driver does between tasks."""
        return sum(step.serial for steps in self.chains.values() for step in steps)

    @property
    def beside(self) -> float:
        """What is taken beside a second of a task, by compilers, collectors and the like."""
        tasks = sum(sum(self.tasks(chain)) for chain in self.chains)
        return max(0.0, self.core_seconds - sum(self.starts) - self.workers - self.end - self.serial - tasks) / tasks

    def with_start(self, walls: Sequence[float]) -> dict[str, list[Step]]:
        """The chains with the starts, which take so long where nothing else runs."""
        given = zip(self.starts, walls, _STARTS, strict=True)
        starts = [Step(wall, gives=gives, name=START, cores=max(1.0, spent / wall)) for spent, wall, gives in given]
        workers = Step(self.workers, needs=_STARTS[0], gives=_WORKERS, name=START, cores=1.0)
        return {MAIN: starts, "daemon": [workers], **self.chains}


class _Jobs:
    """The jobs of Spark, by what asked for them, in the order in which they came."""

    def __init__(self, events: Rows, workers: Mapping[int, float], queries: Mapping[str, str]) -> None:
        self.own = {}
        """Processor seconds of the JVM, by task."""
        tasks = defaultdict(list)
        for event in events:
            if event["Event"] == "SparkListenerTaskEnd":
                number, of_one = event["Task Info"]["Task ID"], event["Task Metrics"]
                tasks[event["Stage ID"]].append(number)
                self.own[number] = (of_one["Executor CPU Time"] + of_one["Executor Deserialize CPU Time"]) / 1e9
        self._left = defaultdict[str, list[tuple[float, list[tuple[float, ...]]]]](list)
        for event in events:
            if event["Event"] == "SparkListenerJobStart":
                stages = [sorted(tasks[stage]) for stage in sorted(event["Stage IDs"]) if tasks[stage]]
                costs = [tuple(self.own[task] + workers.get(task, 0.0) for task in stage) for stage in stages]
                self._left[_chain(event["Properties"], queries)].append((event["Submission Time"] / 1e3, costs))

    def until(self, chain: str, at: float) -> list[tuple[float, ...]]:
        """The tasks of each stage up to a moment that were not asked for before."""
        jobs = self._left[chain]
        taken = [job for job in jobs if job[0] <= at]
        del jobs[: len(taken)]
        return [stage for _, stages in taken for stage in stages]


def _chain(said: Mapping[str, str], queries: Mapping[str, str]) -> str:
    """Delta looks at a new table in threads that say of which query they are, but not of which micro-batch."""
    if "streaming.sql.batchId" in said:
        return queries[said["sql.streaming.queryId"]]
    return MAIN if "spark.sql.execution.id" in said else SPOOL


def read_trace(folder: Path, ended: float, core_seconds: float, clock: Callable[[float], float]) -> Trace:
    """The trace in a folder. `ended`: when the process had gone; `core_seconds`: of it and its children; `clock`: of undisturbed.py."""
    moments = _rows(folder / traced.DRIVER)
    events = _rows(next(folder.glob("local-*")))
    workers: dict[int, float] = defaultdict(float)
    for row in _rows(folder / traced.TASKS):
        workers[row["task"]] += row["seconds"]
    names = {row["id"]: row["name"] for row in moments if row["what"] == traced.STARTED}
    started = [moments[0], *(row for row in moments if row["what"] in {traced.SPARK, traced.STARTED})]
    jobs = _Jobs(events, workers, names)
    needs, planning = _inputs(events), _planning(events)
    chains = {}
    for chain in (SPOOL, INGEST, TRACK):
        mine = [row for row in moments if names.get(row["chain"], row["chain"]) == chain]
        chains[chain] = list(_steps(chain, mine, jobs, needs, planning))
    last, final = [row for row in moments if row["what"] == traced.BATCH_END][-1], moments[-1]
    return Trace(
        chains,
        starts=tuple(row["seconds"] + row["jvm"] - before["seconds"] - before["jvm"] for before, row in pairwise(started)),
        start_walls=tuple(clock(row["at"]) - clock(before["at"]) for before, row in pairwise(started)),
        workers=workers[traced.DAEMON],
        end=final["python"] + final["jvm"] - last["python"] - last["jvm"],
        end_wall=clock(ended) - clock(last["at"]),
        python=final["python"],
        jvm=final["jvm"] - sum(jobs.own.values()),
        core_seconds=core_seconds,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _inputs(events: Rows) -> dict[tuple[str, int], str]:
    """The last input of each micro-batch, as what gives it: of ingest a slice, of track a batch of ingest. Some batches have none."""
    found = {}
    for event in events:
        progress = event.get("progress", {})
        end = json.loads(progress["sources"][0]["endOffset"] or "{}") if progress else {}
        batch, _ = end.get(names.INGEST, (0, 0))
        given = {INGEST: f"slice-{end.get('slice')}" if end.get("slice") else "", TRACK: f"{INGEST}-{batch}" if batch else ""}
        if progress:
            found[progress["name"], progress["batchId"]] = given[progress["name"]]
    return found


def _planning(events: Rows) -> dict[tuple[str, int], float]:
    """Seconds for which a query planned a micro-batch, and wrote its marks. What its thread took beyond was to look for input in vain."""
    found = {}
    for event in events:
        if "durationMs" in (progress := event.get("progress", {})):
            of_one = progress["durationMs"]
            found[progress["name"], progress["batchId"]] = (of_one["triggerExecution"] - of_one.get("addBatch", 0)) / 1e3
    return found


def _steps(
    chain: str, moments: Rows, jobs: _Jobs, needs: Mapping[tuple[str, int], str], planning: Mapping[tuple[str, int], float]
) -> Iterator[Step]:
    """The steps of a chain: one for each moment, and one for each stage of the jobs since the moment before."""
    if chain in _LOOKS:
        yield Step(needs=f"{chain} runs")
    slices, before, waits, every = 0, 0.0, "", 0.0
    for moment in moments:
        what, serial, before = moment["what"], max(0.0, moment["seconds"] - before), moment["seconds"]
        stages, gives = jobs.until(chain, moment["at"]), ""
        if what == traced.BATCH:
            waits = needs.get((chain, moment["batch"]), "")
            serial, every = min(serial, planning.get((chain, moment["batch"]), serial)), _LOOKS[chain]
        elif what == traced.BATCH_END:
            gives = f"{chain}-{moment['batch']}"
        elif what == traced.SLICE:
            slices += 1
            gives = f"slice-{slices}"
        elif chain == SPOOL and not waits and stages:
            yield Step(serial)  # the driver looks at new logs while Spark starts
            serial, waits = 0.0, _WORKERS
        for number, tasks in enumerate(stages or [()], 1):
            is_first, is_last = number == 1, number >= len(stages)
            yield Step(serial * is_first, tasks, waits * is_first, gives * is_last, every * is_first, _NAMES[chain])
        waits, every = "", 0.0
        if what == traced.SLICE and slices > _ROOM:
            waits, every = f"{INGEST}-{slices - _ROOM}", 0.1
