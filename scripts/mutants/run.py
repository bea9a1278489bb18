"""Changes the specification in one place after the other and runs its tests against each change: `make mutants`.

cosmic-ray finds and makes the changes; operators.py says which. trial.py tries each of them. All of it happens in a copy of the
project, so that edits meanwhile have no effect. Tests on random scripts are left out: what they find today they may miss tomorrow.

Ends with 1 if a mutant survives that equivalent_mutants.toml does not explain, or if it explains one that does not survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from scripts.mutants import operators
from scripts.mutants.explained import CONSUMER, Explanation, Mutant, explanations, module_label
from scripts.mutants.trial import mutate, try_mutant
from scripts.truth.trace_files import load_consumer_traces, load_traces

if TYPE_CHECKING:
    from cosmic_ray.work_db import WorkDB

PROJECT: Final = Path(__file__).resolve().parents[2]
WORK: Final = PROJECT / ".work" / "mutants"
EXPLAINED: Final = Path("tests/specification/equivalent_mutants.toml")
MODEL: Final = Path("coordinator_model")
SPECIFICATION: Final = MODEL / "specification"
FOLDERS: Final = (
    MODEL,
    SPECIFICATION,
    SPECIFICATION / "handlers",
    *(SPECIFICATION / CONSUMER / name for name in ("", "assignors", "handlers", "traces")),
)
NOT_MUTATED: Final = frozenset({"__init__", "codec", "effects", "events", "trace", "trace_json"})
COPIED: Final = (
    "coordinator_model",
    "docs",
    "scripts",
    "tests/conftest.py",
    "tests/specification",
    "tests/clients",
    "tests/data/traces",
    "tests/data/traces-consumer",
    "tests/data/codec",
    "pyproject.toml",
)


class Trial(NamedTuple):
    """The result of one mutant. `killer` is the test that failed, "" if the mutant survived."""

    item: WorkItem
    mutant: Mutant
    killer: str

    @property
    def operator(self) -> str:
        """The operator's name."""
        return str(self.item.mutations[0].operator_name).partition("/")[2]


def modules() -> dict[str, Path]:
    """The modules that are mutated, by name, each with its path in the project."""
    paths = (path for folder in FOLDERS for path in sorted((PROJECT / folder).glob("*.py")) if path.stem not in NOT_MUTATED)
    return {module_label(path.relative_to(PROJECT)).removesuffix(".py"): path.relative_to(PROJECT) for path in paths}


def copy_project(target: Path) -> None:
    """Copy what the tests need, and import everything from there from now on."""
    for name in COPIED:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name)
    os.chdir(target)
    sys.path[:] = [str(target), *(path for path in sys.path if path and Path(path) != PROJECT)]


def without_effect(path: Path) -> list[operators.Span]:
    """Where a change can make no difference: annotations are never evaluated, and the only decorators with arguments are caches."""
    parts: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts += [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "decorator_list", ())]
    return [((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)) for part in parts if part is not None]


def find_mutants(paths: Sequence[Path], db: WorkDB) -> list[WorkItem]:
    """Fill a session of cosmic-ray; the mutants that can make a difference, in the order of the code."""
    operators.install(MODEL)
    from cosmic_ray.commands.init import init  # brings SQLAlchemy, which takes a second

    init(paths, db, {})
    ignored = {path: without_effect(path) for path in paths}

    def has_effect(mutation: MutationSpec) -> bool:
        spans = ignored[mutation.module_path]
        return not any(start <= mutation.start_pos and mutation.end_pos <= end for start, end in spans)

    items = [item for item in db.work_items if has_effect(item.mutations[0])]
    return sorted(items, key=lambda item: (paths.index(item.mutations[0].module_path), item.mutations[0].start_pos))


def run_trials(items: Iterable[WorkItem | None], jobs: int) -> Iterator[tuple[WorkItem | None, Mutant | None, str]]:
    """Try every mutant, `jobs` at a time; as (item, mutant, killer). An item that is None stands for the code without a change."""
    context = get_context("fork")
    killers: dict[tuple[str, str], list[str]] = defaultdict(list)
    waiting = iter(items)
    running: dict[connection.Connection, tuple[WorkItem | None, BaseProcess]] = {}
    while True:
        for item in islice(waiting, jobs - len(running)):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=try_mutant, args=(item and item.mutations[0], killers[place_of(item)], sending), daemon=True)
            process.start()
            sending.close()
            running[receiving] = item, process
        if not running:
            return
        for receiving in connection.wait(running):
            item, process = running.pop(receiving)
            try:
                mutant, killer = receiving.recv()
            except EOFError:  # the process ended at one of its limits
                mutant, killer = mutate(item.mutations[0])[1] if item else None, "too much time or memory"
            process.join()
            receiving.close()
            if killer:
                recent = killers[place_of(item)]
                recent[:] = [killer, *(other for other in recent if other != killer)][:20]
            yield item, mutant, killer


def place_of(item: WorkItem | None) -> tuple[str, str]:
    """The module and the function that are changed."""
    return (module_label(item.mutations[0].module_path), item.mutations[0].definition_name) if item else ("", "")


def run(names: Sequence[str], jobs: int, folder: Path) -> int:
    """Try every mutant of the modules called `names`, in a copy of the project in `folder`."""
    start = time.monotonic()
    paths = [modules()[name] for name in names]
    copy_project(folder)
    load_traces()  # once for all processes
    load_consumer_traces()
    from cosmic_ray.work_db import use_db

    with use_db(folder / "session.sqlite") as db:
        items = find_mutants(paths, db)
        for _, _, killer in run_trials([None], 1):  # this also leaves the byte code of everything behind
            if killer:
                sys.exit(f"the tests fail without any change: {killer}")
        print(f"{len(items)} mutants of {len(names)} modules, {jobs} at a time", flush=True)
        explained = explanations(EXPLAINED.read_text(encoding="utf-8"))
        trials = []
        for item, mutant, killer in run_trials(items, jobs):
            if mutant is None:
                db.set_result(item.job_id, WorkResult(WorkerOutcome.NO_TEST))
                continue
            outcome = TestOutcome.KILLED if killer else TestOutcome.SURVIVED
            db.set_result(item.job_id, WorkResult(WorkerOutcome.NORMAL, killer, outcome, str(mutant)))
            trials.append(Trial(item, mutant, killer))
            if not killer and not any(explanation.means(mutant) for explanation in explained):
                print(f"\nsurvived: {mutant}", flush=True)
            show_progress(trials, len(items), time.monotonic() - start)
    return report(trials, [explanation for explanation in explained if explanation.module.removesuffix(".py") in names], start)


def show_progress(trials: Sequence[Trial], total: int, seconds: float) -> None:
    """Where the run is: one line that changes on a terminal, a line for every 500 mutants elsewhere."""
    left = seconds / len(trials) * (total - len(trials)) / 60
    line = f"{len(trials)}/{total}: {sum(not trial.killer for trial in trials)} not killed; {left:.0f} min left"
    if sys.stdout.isatty():
        print(f"\r{line}\033[K", end="", flush=True)
    elif len(trials) % 500 == 0:
        print(line, flush=True)


def report(trials: Sequence[Trial], explained: Sequence[Explanation], start: float) -> int:
    """Print the results; 1 if a survivor is not explained, or an explained mutant did not survive."""
    alive = [trial.mutant for trial in trials if not trial.killer]
    unexplained = sorted(mutant for mutant in alive if not any(explanation.means(mutant) for explanation in explained))
    stale = [explanation for explanation in explained if not any(map(explanation.means, alive))]
    total, killed = (Counter(trial.operator for trial in some) for some in (trials, [trial for trial in trials if trial.killer]))
    print("\n\nkilled / mutants", *(f"  {name:<42} {killed[name]:>5} / {total[name]}" for name in sorted(total)), sep="\n")
    killers = Counter(trial.killer.partition("[")[0] for trial in trials if trial.killer)
    print("\nmost kills", *(f"  {count:>5} {test}" for test, count in killers.most_common(10)), sep="\n")
    for explanation in stale:
        print(f"\nexplained in {EXPLAINED}, but no survivor: {explanation}")
    for mutant in unexplained:
        print(f"\nsurvived: {mutant}")
    print(
        f"\nkilled {killed.total()}/{len(trials)}; {len(alive) - len(unexplained)} equivalent ({EXPLAINED}),"
        f" {len(unexplained)} survived; {(time.monotonic() - start) / 60:.1f} min, session in {WORK.relative_to(PROJECT)}/session.sqlite"
    )
    return 1 if unexplained or stale else 0


def main() -> int:
    """The command."""
    known = modules()
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(known)}; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    names = [name.removesuffix(".py") for name in options.modules] or list(known)
    unknown = sorted(set(names) - known.keys())
    if unknown:
        parser.error(f"no module of the specification: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    WORK.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=WORK) as name:
        try:
            return run(names, options.jobs, Path(name))
        finally:
            os.chdir(PROJECT)
            if (session := Path(name) / "session.sqlite").exists():
                shutil.move(session, WORK / "session.sqlite")


if __name__ == "__main__":
    sys.exit(main())
