"""The tables of docs/claims.md: every claim, whether it is true, and the tests and traces that prove it.

The claims are in tests/specification/claims/claims.toml, in words of this project. A holder names its claims: a test by the marker
`claims`, a transcript by a line `# claims: A01 B02`, a recorded trace by its field `claims`. A claim without a holder, and a
holder of an unknown claim, are errors.
"""

from __future__ import annotations

import ast
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT: Final = Path(__file__).resolve().parents[2]
CLAIMS: Final = PROJECT / "tests" / "specification" / "claims" / "claims.toml"

VERDICTS: Final = {
    "right": "true in the releases named",
    "imprecise": "true, except for what the column `more` adds",
    "some releases": "true in the releases named, and not in the others",
    "wrong": "not true, or only in releases that its article does not mention",
    "unsaid": "left out by its article, although it matters",
    "by release": "a reaction of the client that changed between releases",
}

ARTICLES: Final = {
    "A": "The heartbeat thread, and heartbeats at the broker",
    "B": "The start of a consumer (0.10.0)",
    "C": "Rebalances, and the states of a group",
    "D": "JoinGroup and DelayedJoin (0.10.0)",
    "K": "How clients react, release by release",
}


class Claim(NamedTuple):
    """One row of claims.toml."""

    claim: str
    verdict: str
    releases: str
    truth: str = ""


class Holder(NamedTuple):
    """A test, a transcript or a trace that holds a claim."""

    claim: str
    file: str
    name: str


def read_claims(path: Path = CLAIMS) -> dict[str, Claim]:
    """The claims by id."""
    return {name: Claim(**row) for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def find_holders(project: Path = PROJECT) -> list[Holder]:
    """All tests, transcripts and traces that hold a claim."""
    tests = project / "tests"
    readers = {"test_*.py": _tests, "transcripts/*.txt": _transcripts, "traces/cases*.jsonl.gz": _traces}
    return [holder for pattern, read in readers.items() for path in sorted(tests.rglob(pattern)) for holder in read(path)]


def _tests(path: Path) -> Iterator[Holder]:
    """The tests of a module that have the marker. ValueError for a marker that is not on a test."""
    text = path.read_text(encoding="utf-8")
    if "pytest.mark.claims" not in text:
        return
    nodes = list(ast.walk(ast.parse(text)))
    markers = {node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.claims"}
    for test in nodes:
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
            for marker in markers.intersection(test.decorator_list):
                markers.remove(marker)
                for argument in marker.args:
                    yield Holder(str(ast.literal_eval(argument)), path.stem, test.name)
    if markers:
        raise ValueError(f"{path.name}: a marker `claims` that is not on a test")


def _transcripts(path: Path) -> Iterator[Holder]:
    """A transcript with a line `# claims: ...`."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# claims:"):
            for claim in line.partition(":")[2].split():
                yield Holder(claim, "transcripts", path.stem)


def _traces(path: Path) -> Iterator[Holder]:
    """The recorded traces that have the field `claims`."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            trace = json.loads(line)
            for claim in trace.get("claims", ()):
                yield Holder(claim, *trace["name"].split("/", 1))


def faults(claims: dict[str, Claim], holders: list[Holder]) -> list[str]:
    """Claims without a holder or with an unknown verdict, and holders of unknown claims."""
    with_holder = {holder.claim for holder in holders}
    return [
        *(f"{name}: nothing holds it" for name in claims if name not in with_holder),
        *(f"{holder.claim}: no such claim, but {holder.name} holds it" for holder in holders if holder.claim not in claims),
        *(f"{name}: no such verdict: {claim.verdict}" for name, claim in claims.items() if claim.verdict not in VERDICTS),
    ]


def part(path: Path = CLAIMS, project: Path = PROJECT) -> str:
    """How many claims are how true, and the claims by article. ValueError: a claim or a holder is wrong."""
    claims, holders = read_claims(path), find_holders(project)
    if messages := faults(claims, holders):
        raise ValueError("\n".join(messages))
    counts = Counter(claim.verdict for claim in claims.values())
    lines = ["| verdict | claims | meaning |", "|---|---|---|"]
    lines += [f"| {verdict} | {counts[verdict]} | {meaning} |" for verdict, meaning in VERDICTS.items()]
    for letter, title in ARTICLES.items():
        lines += ["", f"## {letter}: {title}", "", "| id | claim | verdict | releases | more | held by |", "|---|---|---|---|---|---|"]
        for name, claim in claims.items():
            if name.startswith(letter):
                words = [text.replace("|", "\\|") for text in (name, claim.claim, claim.verdict, claim.releases, claim.truth)]
                lines.append(f"| {' | '.join(words)} | {_holders_cell(name, holders)} |")
    return "\n".join(lines) + "\n"


def _holders_cell(name: str, holders: list[Holder]) -> str:
    """The holders of a claim, a line for each file."""
    files: dict[str, dict[str, None]] = {}
    for holder in holders:
        if holder.claim == name:
            files.setdefault(holder.file, {})[holder.name] = None
    return "<br>".join(f"{file}: {', '.join(f'`{name}`' for name in names)}" for file, names in files.items())
