"""A mutant as a difference, and the mutants that make none (tests/specification/equivalent_mutants.toml)."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

CONSUMER: Final = "consumer"
"""The folder of the specification of consumer groups. Some of its modules have the names of modules for classic groups."""


def module_label(path: Path) -> str:
    """What a module is called in equivalent_mutants.toml: sync.py, consumer/heartbeat.py."""
    return f"{CONSUMER}/{path.name}" if CONSUMER in path.parts else path.name


class Mutant(NamedTuple):
    """One change of one module."""

    module: str
    definition: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @classmethod
    def between(cls, source: str, mutated: str, module: str, definition: str, line: int) -> Mutant:
        """The change that makes `mutated` of `source`."""
        lines = list(difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0, lineterm=""))[2:]
        return cls(module, definition, line, *_sides(lines))

    def __str__(self) -> str:
        lines = [f"{self.module}:{self.line}: {self.definition}"]
        return "\n".join([*lines, *(f"  - {line}" for line in self.removed), *(f"  + {line}" for line in self.added)])


class Explanation(NamedTuple):
    """A mutant that makes no difference. `X.ANY` stands for every member of X."""

    module: str
    definition: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def means(self, mutant: Mutant) -> bool:
        """Whether this explains `mutant`."""
        if (self.module, self.definition, self.removed) != (mutant.module, mutant.definition, mutant.removed):
            return False
        pattern = re.escape("\n".join(self.added)).replace(r"\.ANY", r"\.\w+")
        return re.fullmatch(pattern, "\n".join(mutant.added)) is not None

    def __str__(self) -> str:
        return str(Mutant(self.module, self.definition, 0, self.removed, self.added))


def explanations(text: str) -> list[Explanation]:
    """All explanations of equivalent_mutants.toml: one for each line and what takes its place."""
    return [
        Explanation(*entry["where"].split(", "), (line,), (instead,))
        for entry in msgspec.toml.decode(text)["equivalent"]
        for line, *mutants in entry["mutants"]
        for instead in mutants
    ]


def _sides(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines that a difference removes, and those that it adds."""
    removed, added = (tuple(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return removed, added
