"""Changes the specification in one place after the other and runs its tests against each change: `make mutants`.

cosmic-ray finds the changes, makes them and runs the tests, in a copy of the project for each job, so that edits meanwhile have no effect.
operators.py says what is changed. Tests on random scripts are left out: what they find today they may miss tomorrow. The session of each
module stays: `cr-report --show-output --show-diff .work/mutants/sync.py.sqlite` tells each trial.

Ends with 1 if a mutant survives that equivalent_mutants.toml does not explain, or if it explains one that does not survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from cosmic_ray.work_item import MutationSpec, WorkerOutcome, WorkResult

from scripts.mutants import operators

if TYPE_CHECKING:
    from cosmic_ray.work_db import WorkDB

PROJECT: Final = Path(__file__).resolve().parents[2]
WORK: Final = PROJECT / ".work" / "mutants"
EXPLAINED: Final = PROJECT / "tests" / "specification" / "equivalent_mutants.toml"
CONSUMER: Final = "consumer"
"""The folder of the specification of consumer groups. Some of its modules have the names of modules for classic groups."""
NOT_MUTATED: Final = frozenset({"__init__", "codec", "effects", "events", "trace", "trace_json", "trace_run"})
COPIED: Final = ("coordinator_model", "docs", "scripts", "tests/specification", "tests/clients", "tests/data/codec", "tests/data/traces",
                 "tests/data/traces-consumer", "tests/conftest.py", "pyproject.toml")  # fmt: skip
TESTS: Final = {
    CONSUMER: "tests/specification/consumer",
    "specification": "tests/specification/test_*.py tests/clients/test_client*.py tests/clients/test_simulation.py "
    "tests/specification/claims tests/clients/test_claims_client.py tests/specification/consumer",
}
"""What is run for a mutant of each part, the quickest first."""
PYTEST: Final = f"{sys.executable} -m pytest -x -q -m 'not hypothesis' -p no:anyio -p no:xdist -p no:cov"
TRIAL: Final = "ulimit -v 4194304; ulimit -t {seconds}; {pytest} --lf --lfnf=none {tests} || test $? = 5 && {pytest} {tests}"
"""The tests that killed mutants before, which needs no others to be read; then all. A mutant may go round for ever, or fill the memory."""
BASE_SECONDS: Final = 30


class Mutant(NamedTuple):
    """A change of one module: the lines that go, and those that come. `where`: module and function."""

    where: str
    removed: str
    added: str

    @classmethod
    def of(cls, mutation: MutationSpec, diff: str) -> Mutant:
        """What cosmic-ray tells of it."""
        lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
        removed, added = ("\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
        return cls(f"{label(mutation.module_path)}, {mutation.definition_name or 'module'}", removed, added)

    def __str__(self) -> str:
        sides = [*(f"  - {line}" for line in self.removed.splitlines()), *(f"  + {line}" for line in self.added.splitlines())]
        return "\n".join([self.where, *sides])


def explained() -> list[Mutant]:
    """The mutants of equivalent_mutants.toml, which make no difference."""
    entries = msgspec.toml.decode(EXPLAINED.read_bytes())["equivalent"]
    return [Mutant(entry["where"], line, instead) for entry in entries for line, *others in entry["mutants"] for instead in others]


def label(path: Path) -> str:
    """What a module is called in equivalent_mutants.toml: sync.py, consumer/heartbeat.py."""
    return f"{CONSUMER}/{path.name}" if CONSUMER in path.parts else path.name


def modules() -> dict[str, Path]:
    """The modules that are mutated, by name, each with its path in the project."""
    model = PROJECT / "coordinator_model"
    paths = [*sorted(model.glob("*.py")), *sorted((model / "specification").rglob("*.py"))]
    return {label(path).removesuffix(".py"): path.relative_to(PROJECT) for path in paths if path.stem not in NOT_MUTATED}


def without_effect(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a change can make no difference: annotations are never evaluated, and the only decorators with arguments are caches."""
    parts: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts += [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "decorator_list", ())]
    return [((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)) for part in parts if part is not None]


def begin(db: WorkDB, path: Path) -> None:
    """Fills a session with the mutants of a module; those without effect are skipped."""
    from cosmic_ray.commands.init import init  # brings SQLAlchemy, which takes a second

    init([path], db, {})
    ignored = without_effect(path)
    for item in db.work_items:
        (mutation,) = item.mutations
        if any(start <= mutation.start_pos and mutation.end_pos <= end for start, end in ignored):
            db.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED))


def enter_copy(folder: Path) -> None:
    """Lets this process work in a copy of the project."""
    copy = folder / str(os.getpid())
    for name in COPIED:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, copy / name)
    os.chdir(copy)


@cache
def trial_of(part: str) -> tuple[str, int]:
    """The command that tries a mutant of a part, and the seconds of a processor that it may take. SystemExit: it fails without a mutant."""
    tests, before = TESTS[part], os.times().children_user
    done = subprocess.run(["sh", "-c", f"{PYTEST} {tests}"], check=False, stdout=subprocess.PIPE, text=True)  # this compiles all files
    if done.returncode:
        raise SystemExit(f"the tests fail without any change: {done.stdout[-2_000:]}")
    seconds = BASE_SECONDS + 3 * round(os.times().children_user - before)
    return shlex.join(["sh", "-c", TRIAL.format(seconds=seconds, pytest=PYTEST, tests=tests)]), seconds


def try_module(path: Path) -> list[tuple[Mutant, bool]]:
    """Tries all mutants of a module; each with whether it survived."""
    from cosmic_ray.commands.execute import execute
    from cosmic_ray.config import ConfigDict
    from cosmic_ray.work_db import use_db

    operators.install()
    command, seconds = trial_of(CONSUMER if CONSUMER in path.parts else "specification")
    Path(".pytest_cache/v/cache/lastfailed").unlink(missing_ok=True)
    with use_db(WORK / f"{label(path).replace('/', '-')}.sqlite") as db:
        begin(db, path)
        execute(db, ConfigDict({"test-command": command, "timeout": 20.0 * seconds, "distributor": {"name": "local"}}))
        tried = [(item.mutations[0], result) for item, result in db.completed_work_items if result.worker_outcome != WorkerOutcome.SKIPPED]
    return [(Mutant.of(mutation, result.diff), not result.is_killed) for mutation, result in tried]


def run(names: Sequence[str], jobs: int) -> int:
    """Tries the mutants of the modules called `names`; 1 if a survivor is not explained, or an explained mutant did not survive."""
    known = explained()
    total, alive = 0, list[Mutant]()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(dir=WORK) as folder,
        ProcessPoolExecutor(jobs, initializer=enter_copy, initargs=(Path(folder),)) as pool,
    ):
        tries = {pool.submit(try_module, modules()[name]): name for name in names}
        for tried in as_completed(tries):
            survivors = [mutant for mutant, survived in tried.result() if survived]
            total, alive = total + len(tried.result()), alive + survivors
            print(f"{tries[tried]}: {len(survivors)} of {len(tried.result())} mutants survived", flush=True)
            print(*(f"\nsurvived: {mutant}\n" for mutant in survivors if mutant not in known), sep="", end="", flush=True)
    unexplained = [mutant for mutant in alive if mutant not in known]
    stale = [mutant for mutant in known if mutant not in alive and mutant.where.partition(".py,")[0] in names]
    print(*(f"\nexplained in {EXPLAINED.name}, but no survivor: {mutant}" for mutant in stale), sep="")
    print(
        f"\nkilled {total - len(alive)} of {total} mutants; {len(alive) - len(unexplained)} make no difference ({EXPLAINED.name}), "
        f"{len(unexplained)} survived; {(time.monotonic() - began) / 60:.1f} min"
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
    if unknown := sorted(set(names) - known.keys()):
        parser.error(f"no module of the specification: {', '.join(unknown)}")
    WORK.mkdir(parents=True, exist_ok=True)
    return run(names, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
