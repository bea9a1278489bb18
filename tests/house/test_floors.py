"""The house: imports run downstairs only, in no circle, through public names, and rooms stay small."""

import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from scripts.docs import floors
from scripts.docs.floors import PROJECT, Import, all_imports, may_import, modules, room_of
from tests.house.test_house import tracked_files

all_imports_once = cache(all_imports)
MOST_MODULES = 20  # of a folder
MOST_LINES = 400  # of a module


def python_files():
    """All modules of the project, those of tests, scripts and bench too."""
    return [path for path in tracked_files() if path.suffix == ".py"]


def test_every_room_has_a_floor():
    assert {room_of(module) for module in modules()} == {room for floor in floors.FLOORS for room in floor}


def test_a_room_imports_only_rooms_on_lower_floors():
    assert [found for found in all_imports_once() if not may_import(room_of(found.importer), room_of(found.imported))] == []


def test_the_wheel_imports_nothing_that_it_does_not_have():
    outside = re.compile(r"^ *(from|import) (tests|scripts|bench)\b", re.MULTILINE)
    assert [module for module, path in modules().items() if outside.search(path.read_text(encoding="utf-8"))] == []


def test_no_module_imports_itself_through_others():
    graph: dict[str, set[str]] = {}
    for found in all_imports_once():
        if not found.importer.startswith(f"{found.imported}."):  # a package is there before what is in it
            graph.setdefault(found.importer, set()).add(found.imported)
    TopologicalSorter(graph).prepare()


def test_modules_take_only_public_names_from_others():
    assert [found for found in all_imports_once() if any(name.startswith("_") for name in found.names)] == []


def test_folders_stay_small():
    sizes = Counter(path.parent for path in python_files() if path.name != "__init__.py")
    assert {str(folder.relative_to(PROJECT)): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_modules_stay_small():
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {str(path.relative_to(PROJECT)): size for path, size in sizes.items() if size > MOST_LINES} == {}


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("jobs.cli", "jobs.pipeline", True),
        ("jobs.pipeline", "jobs.cli", False),
        ("jobs.health", "jobs.answers", False),
        ("jobs.common", "coordinator_model", True),
        ("coordinator_model.view", "jobs.common", False),
        ("coordinator_model.tracker", "schemas", False),
    ],
)
def test_which_room_may_import_which(importer, imported, allowed):
    assert may_import(importer, imported) is allowed


def test_every_kind_of_import_is_seen(tmp_path):
    folder = tmp_path / "jobs" / "common"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(
        "import jobs.common.b\nif X:\n    from jobs.common import b\n\ndef f():\n    from jobs.common.b import c, _d\n"
    )
    (folder / "b.py").write_text("")
    (folder / "__init__.py").write_text("")
    b = "jobs.common.b"
    assert all_imports(tmp_path) == [
        Import("jobs.common.a", b, ()),
        Import("jobs.common.a", b, ()),
        Import("jobs.common.a", b, ("c", "_d")),
    ]


def test_a_circle_is_found():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
