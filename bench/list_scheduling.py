"""Computes how long a run takes on a number of cores, from what its steps take of one.

Chains of steps run side by side: the reading of logs, the queries. A step of a chain follows the one before, and what it needs of others.
Its work in the driver comes first, then its tasks, each in a slot. There is a slot for each core, and tasks get slots in the order in which
they come, as Spark does it. The driver does one thing at a time: Python has one lock for all its threads. If all together want more than
there are cores, everything slows down alike.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CORES, DRIVER, PAUSE = "cores", "driver", "pause"
_NEVER: Final = math.inf
_LEAST: Final = 1e-9


class Step(NamedTuple):
    """Work in the driver, then tasks. `every`: how often the driver looks whether there is what it needs. `name`: of its tasks."""

    serial: float = 0.0
    tasks: tuple[float, ...] = ()
    needs: str = ""
    gives: str = ""
    every: float = 0.0
    name: str = ""
    cores: float = 0.0
    """That the work outside of tasks takes at once, if it is not the driver's Python: the start of the JVM."""


class Schedule(NamedTuple):
    """How long it takes, and what bounds it for how long: all cores are busy, or the last tasks of a step, the driver, a pause."""

    seconds: float
    spent: Counter[str]


@dataclass
class _Chain:
    steps: Sequence[Step]
    number: int = 0
    free: float = 0.0  # since when it may begin its step
    serial: float = _NEVER  # left of the step's; _NEVER: it has not begun
    tasks: int = 0

    @property
    def step(self) -> Step | None:
        return self.steps[self.number] if self.number < len(self.steps) else None


@dataclass
class _Run:
    cores: int
    beside: float
    chains: list[_Chain]
    now: float = 0.0
    given: dict[str, float] = field(default_factory=lambda: {"": 0.0})
    queue: deque[tuple[float, _Chain]] = field(default_factory=deque)
    running: list[tuple[float, _Chain]] = field(default_factory=list)
    spent: Counter[str] = field(default_factory=Counter)

    def begin(self) -> float:
        """Begins what can begin; returns when something else can, at the earliest."""
        while any(self._begin(chain) for chain in self.chains):
            pass
        while self.queue and len(self.running) < self.cores:
            self.running.append(self.queue.popleft())
        waiting = [self._start(chain) for chain in self.chains if chain.step is not None and chain.serial == _NEVER]
        return min(waiting, default=_NEVER)

    def _start(self, chain: _Chain) -> float:
        """When the next step of a chain can begin."""
        step = _step(chain)
        late = max(0.0, self.given.get(step.needs, _NEVER) - chain.free)
        return chain.free + (math.ceil(late / step.every - _LEAST) * step.every if step.every and late < _NEVER else late)

    def _begin(self, chain: _Chain) -> bool:
        """Begins a step, or leaves it, if that is possible now."""
        if (step := chain.step) is None:
            return False
        if chain.serial == _NEVER:
            if self._start(chain) > self.now + _LEAST:
                return False
            chain.serial, chain.tasks = step.serial, len(step.tasks)
            if not step.serial:
                self.queue.extend((task, chain) for task in step.tasks)
        if chain.serial > 0 or chain.tasks:
            return False
        chain.number, chain.serial, chain.free = chain.number + 1, _NEVER, self.now
        if step.gives:
            self.given[step.gives] = self.now
        return True

    def advance(self, until: float) -> None:
        """Works up to the next end of something, or `until`."""
        serial = [chain for chain in self.chains if 0 < chain.serial < _NEVER]
        own = [chain for chain in serial if _step(chain).cores]
        wanted = len(self.running) * (1 + self.beside) + (len(serial) > len(own)) + sum(_step(chain).cores for chain in own)
        pace = min(1.0, self.cores / wanted) if wanted else 1.0
        turn = pace / max(1, len(serial) - len(own))
        ends = [left / pace for left, _ in self.running]
        ends += [chain.serial / (pace if chain in own else turn) for chain in serial]
        passed = min([*ends, until - self.now])
        if passed == _NEVER:
            raise ValueError("a step needs what no step gives")
        self.spent[self._bound(serial)] += passed
        self.now += passed
        for chain in serial:
            chain.serial = max(0.0, chain.serial - passed * (pace if chain in own else turn))
            if chain.serial < _LEAST:
                chain.serial = 0.0
                self.queue.extend((task, chain) for task in _step(chain).tasks)
        left = [(left - passed * pace, chain) for left, chain in self.running]
        for seconds, chain in left:
            chain.tasks -= seconds < _LEAST
        self.running = [(seconds, chain) for seconds, chain in left if seconds >= _LEAST]

    def _bound(self, serial: Sequence[_Chain]) -> str:
        if len(self.running) == self.cores:
            return CORES
        if self.running:
            return _step(max(self.running, key=lambda one: one[0])[1]).name
        if serial:
            return next((_step(chain).name for chain in serial if _step(chain).cores), DRIVER)
        return PAUSE


def _step(chain: _Chain) -> Step:
    assert chain.step is not None
    return chain.step


def schedule(chains: Mapping[str, Sequence[Step]], cores: int, beside: float = 0.0) -> Schedule:
    """`beside`: of another core, what the JVM takes beside each task."""
    run = _Run(cores, beside, [_Chain(steps) for steps in chains.values()])
    until = run.begin()
    while any(chain.step is not None for chain in run.chains):
        run.advance(until)
        until = run.begin()
    return Schedule(run.now, run.spent)


def tasks_only(chains: Mapping[str, Sequence[Step]]) -> dict[str, list[Step]]:
    """The same chains if the driver took no time."""
    return {name: [step._replace(serial=0.0, every=0.0) for step in steps] for name, steps in chains.items()}


def stages(steps: Sequence[Step]) -> list[Step]:
    """The tasks of a chain alone."""
    return [Step(tasks=step.tasks, name=step.name) for step in steps]
