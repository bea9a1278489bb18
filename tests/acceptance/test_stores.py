"""What the tables of a recording are does not depend on the log store that handed out its lines, nor on the way out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.logs.times import LocalTimes
from jobs.pipeline import at_once
from tests.effort import long
from tests.logs.envelopes.shapes import COORDINATORS, OWN, SHAPES
from tests.logs.survey.mixing import logs_of
from tests.made_once import DATA

pytestmark = pytest.mark.slow

RECORDING = DATA / "recordings" / "kafka-4.2.0"
TABLES = ("group_transitions", "rebalances", "member_sessions", "findings", "incidents")
OF_PLACES = frozenset({"batch_id", "evidence", "details", "id", "origin"})
"""Columns that name files and lines."""
FIRST_MS: Final = 1_795_241_520_000  # 2026-11-21 06:12:00 UTC
WHILE_MS: Final = 40_000


@cache
def lines_of(until_ms: int, *, coordinators: bool) -> dict[str, list[tuple[int, str]]]:
    """The lines of each log of a broker with their times. `until_ms`: those from FIRST_MS to then, 0: all."""
    local, found = LocalTimes("UTC"), {}
    for name, text in logs_of(RECORDING).items():
        lines, ms = [], 0
        for line in text.decode().split("\n")[:-1]:
            ms = local.read(line.encode(), ms) or ms
            own = OWN.fullmatch(line)
            is_one = not until_ms or FIRST_MS <= ms < until_ms
            if is_one and (not coordinators or (own and (own[5] or "").startswith("GroupCoordinator"))):
                lines.append((ms, line))
        if name.startswith("broker") and lines:
            found[name] = lines
    return found


def tables(folder: Path, logs: dict[str, bytes]) -> Counter[str]:
    for name, data in logs.items():
        (path := folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert at_once.process(folder / "in", folder / "lake", settings=Settings(shards=1), most_lines=1 << 30)
    rows = ((table, row) for table in TABLES for row in table_rows(folder / "lake" / table))
    return Counter(
        json.dumps([table, {name: value for name, value in row.items() if name not in OF_PLACES}], sort_keys=True, default=str)
        for table, row in rows
    )


@pytest.fixture(scope="module")
def of_plain_logs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, bool], Counter[str]]:
    @cache
    def made(until_ms: int, coordinators: bool) -> Counter[str]:  # noqa: FBT001 - of a cache
        logs = lines_of(until_ms, coordinators=coordinators)
        text = {name: "".join(line + "\n" for _, line in lines).encode() for name, lines in logs.items()}
        return tables(tmp_path_factory.mktemp("plain"), text)

    return made


# Huawei's objects lack the partition of __consumer_offsets, which alone tells later on whose member a fencing line is about.
WHOLE = (shape for shape in (*SHAPES, *COORDINATORS) if not shape.startswith("Huawei"))


@pytest.mark.parametrize(
    ("shape", "until_ms"), [*((shape, FIRST_MS + WHILE_MS) for shape in (*SHAPES, *COORDINATORS)), *(long(shape, 0) for shape in WHOLE)]
)
def test_a_store_changes_no_table(shape, until_ms, of_plain_logs, tmp_path):
    of_coordinators = shape in COORDINATORS
    make = (SHAPES | COORDINATORS)[shape]
    exported = {name.replace(".log", ".json"): make(lines) for name, lines in lines_of(until_ms, coordinators=of_coordinators).items()}
    plain = of_plain_logs(until_ms, of_coordinators)
    assert sum(plain.values()) > 50
    assert tables(tmp_path, exported) == plain
