"""Change the specification in one place after the other, and see whether its tests notice: `make mutants`.

cosmic-ray finds and makes the changes (operators.py says which). Each is tried in a copy of the project, so that no
changed file is ever in the checkout, however this ends. A process that has loaded pytest and the recorded traces forks
for each mutant, runs tests/model until the first failure (the tests that found other mutants of the function go first)
and exits: a third of a second where starting anew would take three. Tests on random scripts are left out: what only they find might not be
found next time.

Ends with 1 if a mutant survives that docs/mutants.md does not explain, or if it explains one that does not survive.
"""

from __future__ import annotations

import argparse
import ast
import collections
import ctypes
import difflib
import gc
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from cosmic_ray import plugins
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from scripts.mutants.operators import install

PROJECT: Final = Path(__file__).resolve().parents[2]
WORK: Final = PROJECT / ".work" / "mutants"
RUN: Final = WORK / str(os.getpid())
SPECIMEN: Final = RUN / "specimen"
"""The project as it was at the start: whoever works on it meanwhile changes nothing here."""
EXPLAINED: Final = Path("docs/mutants.md")
MODEL: Final = Path("coordinator_model")
FOLDERS: Final = (MODEL, MODEL / "specification", MODEL / "specification" / "handlers")
MODULES: Final = (
    "transitions",
    "states",
    "errors",
    "heartbeat",
    "sync",
    "join",
    "leave",
    "commit",
    "delete",
    "rebalance",
    "sessions",
    "expiry",
    "timers",
    "group_state",
    "group",
    "member",
    "coordinator",
    "loading",
    "partition",
    "map_order",
    "requests",
    "config",
    "releases",
)
COPIED: Final = (
    "coordinator_model",
    "docs",
    "scripts",
    "tests/conftest.py",
    "tests/specification",
    "tests/clients",
    "tests/data/traces",
    "tests/data/codec",
    "pyproject.toml",
)
TESTS: Final = (
    ("tests/specification", "tests/clients", "--ignore-glob=*/test_claims*"),
    (
        *(f"tests/specification/test_claims_{name}.py" for name in ("coordinator", "group", "join", "rebalance", "sessions")),
        "tests/clients/test_claims_client.py",
    ),
)
"""The second set is for what the first lets live: to read it takes longer than most mutants do."""
TIMEOUT_S: Final = 30
MEMORY: Final = 4 << 30
NOT_FROM_THE_COPY: Final = 77


def path_of(module: str) -> Path:
    """The file of a module, relative to the project."""
    return next(path for folder in FOLDERS if (PROJECT / (path := folder / f"{module}.py")).is_file())


class Mutant(NamedTuple):
    """One change: what docs/mutants.md has to say to mean it."""

    module: str
    definition: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.module}:{self.line}: {self.definition}"]
        return "\n".join([*lines, *(f"  - {line}" for line in self.removed), *(f"  + {line}" for line in self.added)])


class Explanation(NamedTuple):
    """A mutant that docs/mutants.md shows to be equivalent. `X.ANY` stands for every member of X."""

    module: str
    definition: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def means(self, mutant: Mutant) -> bool:
        """Whether this is about `mutant`."""
        if (self.module, self.definition, self.removed) != (mutant.module, mutant.definition, mutant.removed):
            return False
        pattern = re.escape("\n".join(self.added)).replace(r"\.ANY", r"\.\w+")
        return re.fullmatch(pattern, "\n".join(mutant.added)) is not None


def explanations(text: str) -> list[Explanation]:
    """What docs/mutants.md explains: under a heading with module and function, a difference for each mutant."""
    found = []
    for module, definition, section in re.findall(r"^### (\w+\.py), `(\w+)`\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL):
        for block in re.findall(r"^```diff\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            removed = tuple(line[1:].strip() for line in block.splitlines() if line.startswith("-"))
            added = tuple(line[1:].strip() for line in block.splitlines() if line.startswith("+"))
            found.append(Explanation(module, definition, removed, added))
    return found


# The mutants.


def describe(item: WorkItem, mutated: str) -> Mutant:
    """The mutant as a difference."""
    (mutation,) = item.mutations
    source = (SPECIMEN / mutation.module_path).read_text(encoding="utf-8")
    removed, added = [], []
    for line in difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0, lineterm=""):
        if line[0] == "-" and not line.startswith("---"):
            removed.append(line[1:].strip())
        elif line[0] == "+" and not line.startswith("+++"):
            added.append(line[1:].strip())
    definition = mutation.definition_name or "module"
    return Mutant(mutation.module_path.name, definition, mutation.start_pos[0], tuple(removed), tuple(added))


def mutated_code(item: WorkItem) -> str | None:
    """The module with its one change; None if that is no Python."""
    (mutation,) = item.mutations
    operator = plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    code = mutate_code((SPECIMEN / mutation.module_path).read_text(encoding="utf-8"), operator, mutation.occurrence)
    assert code is not None, mutation
    try:
        compile(code, mutation.module_path.name, "exec")
    except SyntaxError:
        return None
    return str(code)


# A worker and its copy of the project.


class _Worker:
    """Tries mutants in a copy of the project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(SPECIMEN, folder)
        self.killers: dict[str, list[str]] = collections.defaultdict(list)
        self.traces = self._load()

    def _load(self) -> list[Any]:
        """What every test run needs and no mutant changes."""
        import hypothesis  # noqa: F401
        import pytest  # noqa: F401

        self._enter()
        from scripts.truth.traces import load_traces

        traces = list(load_traces())
        for name in [name for name in sys.modules if name.split(".")[0] in ("coordinator_model", "scripts")]:
            del sys.modules[name]
        return traces

    def _enter(self) -> None:
        """From here on the project is the copy."""
        os.chdir(self.folder)
        sys.path[:] = [str(self.folder), *(path for path in sys.path if path and Path(path) not in (PROJECT, self.folder))]
        for name in [name for name in sys.modules if name.split(".")[0] == "scripts"]:
            del sys.modules[name]

    def unmutated(self) -> tuple[int, str]:
        """A run without a change; it also leaves the byte code of everything behind."""
        return self._test("", write_bytecode=True)

    def check(self, item: WorkItem, code: str) -> tuple[int, str]:
        """The exit code of the tests against a mutant, and the test that failed."""
        (mutation,) = item.mutations
        path = self.folder / mutation.module_path
        original, stat = path.read_bytes(), path.stat()
        try:
            path.write_text(code, encoding="utf-8")
            # Byte code is known by the time and size of its source: this time is no one else's.
            os.utime(path, (stat.st_atime, stat.st_mtime + 10))
            return self._test(f"{mutation.module_path.name} {mutation.definition_name}", write_bytecode=False)
        finally:
            path.write_bytes(original)
            os.utime(path, (stat.st_atime, stat.st_mtime))

    def _test(self, place: str, *, write_bytecode: bool) -> tuple[int, str]:
        for tests in TESTS:
            code, killer = self._fork(tests, self.killers[place], write_bytecode=write_bytecode)
            if code:
                if killer:
                    self.killers[place] = [killer, *(other for other in self.killers[place] if other != killer)][:20]
                return code, killer or ("timeout" if code == -signal.SIGALRM else f"exit code {code}")
        return 0, ""

    def _fork(self, tests: tuple[str, ...], killers: list[str], *, write_bytecode: bool) -> tuple[int, str]:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                self._run_pytest(tests, killers, writing, write_bytecode=write_bytecode)
            finally:
                os._exit(NOT_FROM_THE_COPY)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            killer = pipe.readline().strip()
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), killer

    def _run_pytest(self, tests: tuple[str, ...], killers: list[str], writing: int, *, write_bytecode: bool) -> None:
        import resource

        import pytest

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silence, descriptor)
        sys.dont_write_bytecode = not write_bytecode
        gc.disable()  # it would touch, and so copy, all that this process shares with its parent
        self._enter()
        plugin = _Plugin(killers, writing, self.traces, self.folder)
        disabled = ("-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:unraisableexception")
        arguments = [*tests, "-x", "-q", *disabled, "-m", "not hypothesis"]
        os._exit(int(pytest.main(arguments, plugins=[plugin])))


class _Plugin:
    """Puts the killers first, lends the recorded traces, and tells which test failed."""

    def __init__(self, killers: list[str], writing: int, traces: list[Any], folder: Path) -> None:
        self.rank = {name: rank - len(killers) for rank, name in enumerate(killers)}
        self.writing = writing
        self.traces = traces
        self.folder = folder

    def pytest_sessionstart(self) -> None:
        try:
            import coordinator_model
            from scripts.truth import traces
        except Exception:  # noqa: BLE001  the mutant cannot be imported: so will say every test
            return
        if not Path(coordinator_model.__file__).is_relative_to(self.folder):
            os._exit(NOT_FROM_THE_COPY)
        traces.load_traces = lambda: iter(self.traces)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        slow = ("test_simulation", "test_conformance")
        items.sort(key=lambda item: (self.rank.get(item.nodeid, 0), any(name in item.nodeid for name in slow)))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._killed(report.nodeid)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        import pytest

        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self._killed(item.nodeid)

    def _killed(self, test: str) -> None:
        """That is all there is to know: how it failed would take pytest longer to say than the test took."""
        os.write(self.writing, f"{test}\n".encode())
        os._exit(1)


@lru_cache(maxsize=1)
def _worker() -> _Worker:
    return _Worker(RUN / f"copy-{os.getpid()}")


def _end_with(parent: int) -> None:
    """A worker ends when the run does, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            sys.exit(1)


def _unmutated() -> tuple[int, str]:
    return _worker().unmutated()


def _check(item: WorkItem) -> tuple[str, Mutant | None, int, str]:
    worker = _worker()
    code = mutated_code(item)
    if code is None:
        return item.job_id, None, 0, "no Python"
    mutant = describe(item, code)
    return item.job_id, mutant, *worker.check(item, code)


# The whole.


class Tally:
    """What became of the mutants."""

    def __init__(self, db: WorkDB, explained: list[Explanation]) -> None:
        self.db = db
        self.explained = explained
        self.used: set[Explanation] = set()
        self.killed: collections.Counter[str] = collections.Counter()
        self.total: collections.Counter[str] = collections.Counter()
        self.equivalent = 0
        self.survivors: list[Mutant] = []
        self.killers: collections.Counter[str] = collections.Counter()

    def add(self, operator: str, job_id: str, mutant: Mutant | None, code: int, killer: str) -> None:
        """One mutant was tried."""
        if code == NOT_FROM_THE_COPY:
            sys.exit(f"the tests did not run in the copy of the project: {mutant}")
        outcome = TestOutcome.KILLED if code else TestOutcome.SURVIVED
        if mutant is None:
            self.db.set_result(job_id, WorkResult(WorkerOutcome.NO_TEST))
            return
        self.db.set_result(job_id, WorkResult(WorkerOutcome.NORMAL, killer, outcome, str(mutant)))
        self.total[operator] += 1
        if code:
            self.killed[operator] += 1
            self.killers[killer.partition("[")[0]] += 1
            return
        meant = [explanation for explanation in self.explained if explanation.means(mutant)]
        self.used.update(meant)
        if meant:
            self.equivalent += 1
        else:
            self.survivors.append(mutant)
            print(f"\nsurvived: {mutant}", flush=True)

    def stale(self, modules: Iterable[str]) -> list[Explanation]:
        """What is explained and did not survive."""
        return [explanation for explanation in self.explained if explanation.module in modules and explanation not in self.used]

    def table(self) -> Iterator[str]:
        """Killed of total by operator."""
        for operator in sorted(self.total):
            yield f"  {operator.partition('/')[2]:<42} {self.killed[operator]:>5} / {self.total[operator]}"


def progress(tally: Tally, total: int, start: float) -> str:
    """Where the run is, in one line."""
    done = tally.total.total()
    left = (time.monotonic() - start) / max(done, 1) * (total - done) / 60
    killed, survived = tally.killed.total(), len(tally.survivors)
    return f"{done}/{total}: {killed} killed, {tally.equivalent} equivalent, {survived} survived; {left:.0f} min left"


def without_effect(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a change can make no difference: annotations are never evaluated, and the only decorators with arguments are caches."""
    parts: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts += [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "decorator_list", ())]
    found = [part for part in parts if part is not None]
    return [((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)) for part in found]


def remove_left_overs() -> None:
    """What runs that were killed have left behind."""
    for folder in WORK.glob("[0-9]*"):
        if not _is_running(int(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def find_mutants(modules: Sequence[str]) -> WorkDB:
    """A new session of cosmic-ray with every mutant of `modules`."""
    remove_left_overs()
    for name in COPIED:
        target = SPECIMEN / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(PROJECT / name, target)
    os.chdir(SPECIMEN)
    install(MODEL)
    with use_db(RUN / "session.sqlite") as db:
        init([path_of(module) for module in modules], db, {})
        return db


def wanted(items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """The mutants that can make a difference."""
    spans: dict[Path, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    for item in items:
        (mutation,) = item.mutations
        for start, end in spans.setdefault(mutation.module_path, without_effect(mutation.module_path)):
            if start <= mutation.start_pos and mutation.end_pos <= end:
                break
        else:
            yield item


def run(modules: Sequence[str], jobs: int) -> int:
    """Try every mutant of `modules`."""
    start = time.monotonic()
    db = find_mutants(modules)
    items = sorted(wanted(db.work_items), key=lambda item: (modules.index(item.mutations[0].module_path.stem), item.mutations[0].start_pos))
    operators = {item.job_id: item.mutations[0].operator_name for item in items}
    tally = Tally(db, explanations(EXPLAINED.read_text(encoding="utf-8")))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("fork"), initializer=_end_with, initargs=(os.getpid(),))
    try:
        for future in [pool.submit(_unmutated) for _ in range(jobs)]:
            code, test = future.result()
            if code:
                sys.exit(f"the tests fail without any change: {test}")
        print(f"{len(items)} mutants of {len(modules)} modules, {jobs} at a time", flush=True)
        said = time.monotonic()
        for future in as_completed([pool.submit(_check, item) for item in items]):
            job_id, mutant, code, killer = future.result()
            tally.add(operators[job_id], job_id, mutant, code, killer)
            if sys.stdout.isatty():
                print(f"\r{progress(tally, len(items), start)}\033[K", end="", flush=True)
            elif time.monotonic() - said > 60:
                said = time.monotonic()
                print(progress(tally, len(items), start), flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return report(tally, [f"{module}.py" for module in modules], time.monotonic() - start)


def report(tally: Tally, modules: Sequence[str], seconds: float) -> int:
    """Print what came out; 1 if somebody has to look."""
    print("\n\nkilled / mutants")
    print("\n".join(tally.table()))
    print("\nmost kills")
    for test, count in tally.killers.most_common(10):
        print(f"  {count:>5} {test}")
    stale = tally.stale(modules)
    for explanation in stale:
        print(f"\nexplained in docs/mutants.md, but no survivor: {Mutant(*explanation[:2], 0, *explanation[2:])}")
    for mutant in sorted(tally.survivors):
        print(f"\nsurvived: {mutant}")
    killed, total = tally.killed.total(), tally.total.total()
    print(
        f"\nkilled {killed}/{total}; {tally.equivalent} equivalent (docs/mutants.md), {len(tally.survivors)} survived;"
        f" {seconds / 60:.1f} min, session in {WORK.relative_to(PROJECT)}/session.sqlite"
    )
    return 1 if tally.survivors or stale else 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(MODULES)}; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    modules = [module.removesuffix(".py") for module in options.modules] or list(MODULES)
    unknown = sorted(set(modules) - set(MODULES))
    if unknown:
        parser.error(f"no module of the specification: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return run(modules, options.jobs)
    finally:
        if (RUN / "session.sqlite").exists():
            shutil.move(RUN / "session.sqlite", WORK / "session.sqlite")
        shutil.rmtree(RUN, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
