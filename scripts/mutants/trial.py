"""Runs the tests against one mutant, in a process that is forked for it from one that has loaded pytest and the recorded traces.

The mutant is in memory: an import finder puts its code in the place of the module. No file is changed.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import hypothesis  # noqa: F401 - loaded once, before the processes fork
import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec

from scripts.mutants.explained import CONSUMER, Mutant, module_label

TESTS: Final = (
    ("tests/specification", "tests/clients", "--ignore-glob=*/test_claims*", "--ignore=tests/specification/consumer"),
    (
        "tests/specification/consumer",
        *(f"tests/specification/claims/test_claims_{name}.py" for name in ("coordinator", "group", "join", "rebalance", "sessions")),
        "tests/clients/test_claims_client.py",
    ),
)
"""The second set is for the survivors of the first: collecting it takes longer than most trials."""
CONSUMER_TESTS: Final = (("tests/specification/consumer",),)
OPTIONS: Final = (
    "-x",
    "-q",
    "-m",
    "not hypothesis",
    *(f"-pno:{name}" for name in ("anyio", "cacheprovider", "cov", "xdist", "unraisableexception")),
)
CPU_SECONDS: Final = 30
MEMORY_BYTES: Final = 4 << 30


def try_mutant(mutation: MutationSpec | None, killers: Sequence[str], results: Connection) -> None:
    """The main function of the forked process: sends the mutant and the test that failed, "" if none did. None: changes nothing."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.dont_write_bytecode = False  # to read the tests takes longer than most trials, so the first trial leaves their byte code behind
    gc.disable()  # it would touch, and so copy, all memory that this process shares with its parent
    gc.freeze()  # tests/conftest.py collects garbage all the same: looking at the traces took longer than most trials
    mutant = None
    if mutation is not None:
        code, mutant = mutate(mutation)
        try:
            compile(code, mutant.module, "exec")
        except SyntaxError:
            results.send((None, ""))
            return
        sys.meta_path.insert(0, _MutantFinder(".".join(mutation.module_path.with_suffix("").parts), code))
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(silence, descriptor)
    in_consumer = mutation is not None and CONSUMER in mutation.module_path.parts
    for tests in CONSUMER_TESTS if in_consumer else TESTS:
        code = pytest.main([*tests, *OPTIONS], plugins=[_TrialPlugin(mutant, killers, results)])
        if code:
            results.send((mutant, f"pytest ended with {code}"))
            return
    results.send((mutant, ""))


def mutate(mutation: MutationSpec) -> tuple[str, Mutant]:
    """The code of the module with its one change, and the change."""
    source = mutation.module_path.read_text(encoding="utf-8")
    code = mutate_code(source, get_operator(mutation.operator_name)(**mutation.operator_args), mutation.occurrence)
    definition = mutation.definition_name or "module"
    return code, Mutant.between(source, code, module_label(mutation.module_path), definition, mutation.start_pos[0])


class _MutantFinder(MetaPathFinder, InspectLoader):
    """Imports the mutated code as the module called `name`."""

    def __init__(self, name: str, code: str) -> None:
        self.name = name
        self.code = code

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        return spec_from_loader(fullname, self) if fullname == self.name else None

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return self.code


class _TrialPlugin:
    """Puts the tests first that killed other mutants of the same function, and ends the process when one fails."""

    def __init__(self, mutant: Mutant | None, killers: Sequence[str], results: Connection) -> None:
        self.mutant = mutant
        self.rank = {name: rank - len(killers) for rank, name in enumerate(killers)}
        self.results = results

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        slow = ("test_simulation", "test_conformance", "test_consumer_codec", "test_consumer_conformance")
        items.sort(key=lambda item: (self.rank.get(item.nodeid, 0), Path(item.path).stem in slow))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._killed(report.nodeid)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self._killed(item.nodeid)

    def _killed(self, test: str) -> None:
        """To report how the test failed would take pytest longer than the test took."""
        self.results.send((self.mutant, test))
        os._exit(1)
