"""The model is pure: it imports the standard library and the codec's library, and no clock, chance or I/O."""

import ast
import sys
from pathlib import Path

import pytest

import coordinator_model

FOLDER = Path(coordinator_model.__file__).parent
BANNED = {"logging", "random", "uuid", "time", "datetime", "os", "io", "pathlib", "socket", "threading", "secrets"}
COMMAND_ONLY = {"argparse", "json", "sys"}  # trace.py has the command's main


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_module_imports_only_what_is_pure(path):
    allowed = (set(sys.stdlib_module_names) - BANNED - COMMAND_ONLY) | {"coordinator_model"}
    if path.name == "codec.py":
        allowed |= {"msgpack"}
    if path == FOLDER / "specification" / "trace.py":
        allowed |= COMMAND_ONLY
    if not {"tracker", "view", "diagnosis"} & set(path.parts):
        assert set(imports(path)) <= allowed
    else:
        assert not set(imports(path)) & (BANNED | {"pyspark", "pandas"})


def test_the_guard_bites(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("import random\nfrom os.path import join\n", encoding="utf-8")
    assert set(imports(module)) == {"random", "os"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("specification/**/*.py")), ids=lambda path: path.name)
def test_modules_and_functions_stay_small(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 420
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name not in ("_decode_1", "of"):  # lists of fields
            assert node.end_lineno - node.lineno < 60, node.name
