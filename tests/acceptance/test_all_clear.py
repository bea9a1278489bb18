"""No all-clear over a line that tells of trouble: random cuts of all recordings and of all small inputs."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.report import Overview, Scope, read_overview
from jobs.common.settings import Settings
from jobs.pipeline import at_once
from tests.effort import long

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
SEED = 37

TROUBLE = re.compile(r"(?i)\b(?:error|fatal|failed|expired|fenced|timed out)\b")
ABOUT_GROUPS = re.compile(r"coordinator\.group\.|coordinator\.Group|\[GroupCoordinator |\bgroupId=|rdkafka#|[Gg]roup '|consumergroup/")
NO_TROUBLE = re.compile(r"Removed \d+ expired offsets|rebalance failed due to|Fencing broker|unloaded or deleted")
"""Names of fields in requests, housekeeping, what moves no group; and the failed join that each rebalance has, which is told."""


class Cut(NamedTuple):
    """Some lines of a log, one after the other."""

    place: str  # file in the folder of its cluster
    lines: list[str]

    @property
    def troubles(self) -> list[str]:
        """Its lines that tell of trouble of a group."""
        return [line for line in self.lines if _found(line) and TROUBLE.search(line) and not NO_TROUBLE.search(line)]


def _logs() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(DATA.rglob("*")):
        kind = path.relative_to(DATA).parts[0]
        if kind in {"recordings", "staged", "old", "clients", "faults"} and re.search(r"\.(log|txt)(\.gz)?$", path.name):
            text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            place = "clients/app.log" if "clients" in path.parts else "broker-1/server.log"
            yield place, text.decode("utf-8", "replace").splitlines(keepends=True)


def _found(line: str) -> bool:
    return "Completed request:" not in line and ABOUT_GROUPS.search(line) is not None


def _cuts(number: int) -> Iterator[Cut]:
    """So many cuts that hold a line about trouble and some lines around it, as people copy them or find them with `grep -i group`."""
    chance = random.Random(SEED)
    logs = [(place, some) for place, lines in _logs() for some in (lines, [line for line in lines if _found(line)])]
    found = [(*log, [number for number, line in enumerate(log[1]) if Cut("", [line]).troubles]) for log in logs]
    troubled = [log for log in found if log[2]]
    for _ in range(number):
        place, lines, troubles = chance.choice(troubled)
        middle = chance.choice(troubles)
        before, after = (chance.choice([0, 1, 3, 20, 60, 200]) for _ in range(2))
        yield Cut(place, lines[max(middle - before, 0) : middle + after + 1])


@pytest.fixture(scope="module", params=[30, long(600)])
def told(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[tuple[Cut, Overview]]:
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
