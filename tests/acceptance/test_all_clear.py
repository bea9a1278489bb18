"""No all-clear over a line that tells of trouble: random cuts of all recordings and of all small inputs."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.report import Report, Scope, read_overview
from jobs.common.settings import Settings
from jobs.pipeline import at_once
from tests.effort import long

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
SEED = 37

TROUBLE = re.compile(r"(?i)\b(?:error|fatal|failed|expired|fenced|timed out)\b")
ABOUT_GROUPS = re.compile(r"coordinator\.group\.|coordinator\.Group|\[GroupCoordinator |\bgroupId=|rdkafka#|[Gg]roup '|consumergroup/")
NO_TROUBLE = re.compile(r"Removed \d+ expired offsets|rebalance failed due to|Fencing broker|unloaded or deleted|Size of assignment epochs")
"""Names of fields, housekeeping, what moves no group, what an upgrade leaves; and the failed join of each rebalance, which is told."""


class Cut(NamedTuple):
    """Some lines of a log, one after the other."""

    place: str  # file in the folder of its cluster
    lines: list[str]

    @property
    def troubles(self) -> list[str]:
        """Its lines that tell of trouble of a group."""
        return [line for line in self.lines if _found(line) and TROUBLE.search(line) and not NO_TROUBLE.search(line)]


def _logs() -> list[Path]:
    kinds = {"recordings", "staged", "old", "clients", "faults"}
    return [path for kind in sorted(kinds) for path in sorted((DATA / kind).rglob("*")) if re.search(r"\.(log|txt)(\.gz)?$", path.name)]


@cache
def _lines(path: Path, *, of_groups: bool) -> tuple[list[str], list[int]]:
    """The lines of a log, or those about groups alone, and the places of those that tell of trouble."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [line for line in text.decode("utf-8", "replace").splitlines(keepends=True) if not of_groups or _found(line)]
    return lines, [number for number, line in enumerate(lines) if Cut("", [line]).troubles]


def _found(line: str) -> bool:
    return "Completed request:" not in line and ABOUT_GROUPS.search(line) is not None


def _cuts(number: int) -> Iterator[Cut]:
    """So many cuts that hold a line about trouble and some lines around it, as people copy them or find them with `grep -i group`."""
    chance, logs = random.Random(SEED), _logs()
    while number:
        path, of_groups = chance.choice(logs), chance.choice([False, True])
        lines, troubles = _lines(path, of_groups=of_groups)
        if troubles:
            middle = chance.choice(troubles)
            before, after = (chance.choice([0, 1, 3, 20, 60, 200]) for _ in range(2))
            place = "clients/app.log" if "clients" in path.parts else "broker-1/server.log"
            yield Cut(place, lines[max(middle - before, 0) : middle + after + 1])
            number -= 1


@pytest.fixture(scope="module", params=[30, long(600)])
def told(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[tuple[Cut, Report]]:
    folder = tmp_path_factory.mktemp("cuts")
    cuts = {f"cut-{number:04}": cut for number, cut in enumerate(_cuts(request.param))}
    for name, cut in cuts.items():
        path = folder / "input" / name / cut.place
        path.parent.mkdir(parents=True)
        path.write_text("".join(cut.lines))
    assert at_once.process(folder / "input", folder / "lake", settings=Settings(), most_lines=1 << 30)
    reader = QuestionReader(folder / "lake", keeps=True)
    return [(cut, read_overview(reader, Scope(cluster=name))) for name, cut in cuts.items()]


def test_cuts_tell_of_trouble(told):
    """The cuts are those that the next test is about."""
    assert len({line for cut, _ in told for line in cut.troubles}) > len(told) / 4


def test_nothing_is_well_where_a_line_tells_of_trouble(told):
    false = []
    for cut, overview in told:
        if not overview.attention and overview.judgement.all_clear:
            false.append(("all clear", cut.troubles[0]))
        for _, group in overview.judgement.healthy:
            false += [(group, line) for line in cut.troubles if re.search(rf"[^\w.-]{re.escape(group)}(?![\w-])", line)]
    assert not false, f"{len(false)} of {len(told)}: {false[:5]}"
