"""The model is pure: it imports the standard library and the codecs' library, and no clock, chance or I/O."""

import ast
import sys
from pathlib import Path

import pytest

import coordinator_model

FOLDER = Path(coordinator_model.__file__).parent
BANNED = {"argparse", "datetime", "io", "logging", "os", "pathlib", "random", "secrets", "socket", "sys", "threading", "time", "uuid"}
PURE = (set(sys.stdlib_module_names) - BANNED) | {"coordinator_model"}
CODECS = {"msgspec"}  # in the codecs, and where records are the stored form
STORED = {"view", "offsets"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_module_imports_only_what_is_pure(path):
    assert set(imports(path)) <= (PURE | CODECS if path.name == "codec.py" or path.parent.name in STORED else PURE)


def test_the_guard_bites(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("import random\nfrom os.path import join\n", encoding="utf-8")
    assert set(imports(module)) == {"random", "os"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("specification/**/*.py")), ids=lambda path: path.name)
def test_modules_and_functions_stay_small(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, node.name
