"""The floors of the house: which room may import which. Draws them into docs/architecture.md as they are in the code.

A room is a folder of modules. It may import rooms on lower floors only: none beside it, none above. tests/house/test_floors.py checks
this; `make docs` draws the picture.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

PROJECT: Final = Path(__file__).resolve().parents[2]

FLOORS: Final = (
    ("jobs",),  # the three modules that spark-submit starts
    ("jobs.cli",),
    ("jobs.pipeline", "jobs.dashboard"),
    ("jobs.parsing", "jobs.alerts", "jobs.demo"),
    ("jobs.kafka", "jobs.answers", "jobs.health"),
    ("jobs.logs", "jobs.lakehouse", "jobs.laws", "jobs.generate"),
    ("jobs.common", "jobs.sentences"),
    ("coordinator_model.tracker",),
    ("coordinator_model.offsets",),
    ("coordinator_model.diagnosis",),
    ("coordinator_model.view", "coordinator_model.clients"),
    ("coordinator_model.specification",),
    ("coordinator_model",),  # events, states and errors: the words that all of the model shares
    ("schemas",),
)
"""From the top. A folder inside of a room, such as jobs/logs/clients, belongs to the room."""

APART: Final = (("coordinator_model", "schemas"),)
"""Rooms of the first package never import rooms of the second, although they are lower."""


class Import(NamedTuple):
    """One module names another in an import statement."""

    importer: str
    imported: str
    names: tuple[str, ...]


def room_of(module: str) -> str:
    """The room of a module, by their dotted names."""
    rooms = {room for floor in FLOORS for room in floor}
    parts = module.split(".")
    return next(room for size in (2, 1) if (room := ".".join(parts[:size])) in rooms)


def floor_of(room: str) -> int:
    """The floor of a room: 1 is the ground."""
    return next(len(FLOORS) - index for index, rooms in enumerate(FLOORS) if room in rooms)


def may_import(importer: str, imported: str) -> bool:
    """Whether modules of one room may import those of another, by the rooms' names."""
    if any(importer.startswith(above) and imported.startswith(below) for above, below in APART):
        return False
    return importer == imported or floor_of(imported) < floor_of(importer)


def modules(project: Path = PROJECT) -> dict[str, Path]:
    """The modules of all rooms, by their dotted names."""
    packages = sorted({room.split(".")[0] for floor in FLOORS for room in floor})
    files = sorted(path for package in packages for path in (project / package).rglob("*.py"))
    return {".".join(path.relative_to(project).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def imports(module: str, path: Path, known: dict[str, Path]) -> Iterator[Import]:
    """What a module imports from the rooms, inside of functions and for the type checker too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, ()) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = tuple(alias.name for alias in node.names)
            inside = [name for name in names if f"{node.module}.{name}" in known]
            yield from (Import(module, f"{node.module}.{name}", ()) for name in inside)
            if len(inside) < len(names):
                yield Import(module, node.module, tuple(name for name in names if name not in inside))


def all_imports(project: Path = PROJECT) -> list[Import]:
    """What all modules import from the rooms."""
    known = modules(project)
    return [found for module, path in known.items() for found in imports(module, path, known)]


def diagram(found: list[Import]) -> str:
    """The floors and the imports between rooms, as a Mermaid flowchart. Arrows that longer ways imply are left out."""
    arrows = {(a, b) for a, b in ((room_of(one.importer), room_of(one.imported)) for one in found) if a != b}
    lines = ["flowchart TD"]
    for floor in FLOORS:
        lines += [f'  {room.replace(".", "_")}["{room.replace(".", "/")}"]' for room in floor]
    for importer, ways in groupby(sorted(arrows), key=lambda arrow: arrow[0]):
        direct = {imported for _, imported in ways}
        implied = {below for room in direct for below in _reach(room, arrows)}
        lines += [f"  {importer.replace('.', '_')} --> {room.replace('.', '_')}" for room in sorted(direct - implied)]
    return "\n".join(lines) + "\n"


def _reach(room: str, arrows: set[tuple[str, str]]) -> set[str]:
    """The rooms below a room that it imports, directly or through others."""
    direct = {imported for importer, imported in arrows if importer == room}
    return direct.union(*(_reach(one, arrows) for one in direct))


def part() -> str:
    """The picture of today's imports."""
    return f"```mermaid\n{diagram(all_imports())}```\n"
