"""What people paste of a recording, in any cut, order and wrapping: no name, rebalance or all-clear that the whole does not have."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_model.events import NAMELESS_GROUP
from coordinator_model.view.members import client_in
from jobs.answers.report import read_overview
from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.logs.times import LocalTimes
from jobs.pipeline import at_once
from tests.logs.envelopes.shapes import SHAPES
from tests.logs.envelopes.wrapping import COLLECTORS, CONTAINERS, COPIES
from tests.logs.survey.mixing import logs_of
from tests.made_once import DATA, ZONES

pytestmark = pytest.mark.slow

RECORDINGS = ("recordings/kafka-3.9.1", "recordings/kafka-4.2.0")
NAMES = ("group_id", "client_id", "member_id", "instance_id")
COLUMNS = (*NAMES, "answer_member_id", "members", "generation", "answer_generation")
TELLS = re.compile(
    rb"poll timeout|maximum poll interval|has failed, removing|heartbeat expiration|session (?:expired|timed out)| (?:is |been )?fenced"
)
REFUSES = re.compile(rb'"errorCode":(?:22|25|27|79|82)\b|poll timeout')
ABOUT_GROUPS = re.compile(rb"(?i)group")
WRAPPINGS = {**CONTAINERS, **COLLECTORS, **COPIES}
HEADER = re.compile(rb"(?m)^\[\d{4}-[\d-]+ [\d:,]+\] ")


class Whole(NamedTuple):
    """What all lines of a recording tell."""

    logs: dict[str, list[bytes]]
    telling: tuple[list[tuple[str, int]], ...]  # lines about a member that was lost, those of requests last
    names: dict[str, set[tuple[str, str]]]  # by column: group, name
    generations: set[tuple[str, int]]


@pytest.fixture(scope="module")
def whole(recorded_lakehouse: Callable[[str], Path]) -> Callable[[str], Whole]:
    @cache
    def read(name: str) -> Whole:
        logs = {place: text.split(b"\n")[:-1] for place, text in logs_of(DATA / name).items()}
        telling: tuple[list[tuple[str, int]], ...] = ([], [])
        for place, lines in logs.items():
            told = REFUSES if (is_request := "request" in place) else TELLS
            telling[is_request].extend((place, at) for at, line in enumerate(lines) if told.search(line))
        events = table_rows(recorded_lakehouse(name) / "group_events", COLUMNS)
        names = {column: {(row["group_id"], row[column]) for row in events} for column in NAMES}
        members = {(row["group_id"], one["member_id"], "") for row in events for one in row["members"] or ()}
        members |= {(row["group_id"], row[column], row["instance_id"]) for row in events for column in ("member_id", "answer_member_id")}
        names["member_id"] |= {(group, member) for group, member, _ in members}
        names["client_id"] |= {(group, client_in(member or "", instance or "")) for group, member, instance in members}
        rebalances = table_rows(recorded_lakehouse(name) / "rebalances", ("group_id", "generation"))
        generations = {(row["group_id"], row["generation"]) for row in (*events, *rebalances)}
        generations |= {(row["group_id"], row["answer_generation"]) for row in events}
        return Whole(logs, telling, names, generations)

    return read


class Excerpt(NamedTuple):
    """How a text is made of a recording."""

    recording: str
    parts: list[tuple[float, int, int, bool]]  # which line stands amid it, how many before and behind it, whether by `grep -i group`
    order: int  # of lines: 0 as they were, 1 the newest first, others by chance
    missing: int  # of so many lines one is lost; 0: none
    cut: tuple[int, int]  # bytes that are lost before the first line and behind the last
    wrapping: str

    def text(self, whole: Whole) -> tuple[bytes, list[bytes]]:
        """The text, and the lines that are whole in it."""
        lines = [line for part in self.parts for line in self._part(whole, *part)]
        lines = [line for at, line in enumerate(lines) if not self.missing or (at + 1) % self.missing]
        if self.order > 1:
            random.Random(self.order).shuffle(lines)
        lines = lines[:: -1 if self.order == 1 else 1]
        first, last = self.cut
        kept = lines[bool(first) : len(lines) - bool(last)]
        if not lines:
            return b"", []
        lines[0], lines[-1] = lines[0][first:], lines[-1][: len(lines[-1]) - last]
        if self.wrapping in SHAPES:
            local = LocalTimes("UTC")
            return SHAPES[self.wrapping]([(local.read(line, 0) or 0, line.decode("utf-8", "replace")) for line in lines]), kept
        if self.wrapping in WRAPPINGS:
            return b"\n".join(map(WRAPPINGS[self.wrapping], lines)), kept
        text = b"\n".join(lines) + b"\n"
        if self.wrapping == "no times":
            return HEADER.sub(b"", text), kept
        if self.wrapping.isdecimal():
            width = int(self.wrapping)
            text = b"\n".join(line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)) + b"\n"
        return text, kept

    def _part(self, whole: Whole, place: float, before: int, after: int, of_groups: bool) -> list[bytes]:  # noqa: FBT001 - of a tuple
        telling = whole.telling[int(place)]
        log, middle = telling[int(place % 1 * len(telling))]
        lines = whole.logs[log][max(middle - before, 0) : middle + after + 1]
        return [line for line in lines if not of_groups or ABOUT_GROUPS.search(line)]


FEW = st.sampled_from([0, 0, 1, 3, 20, 60])
EXCERPTS = st.builds(
    Excerpt,
    recording=st.sampled_from(RECORDINGS),
    parts=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True) | st.floats(0, 2, exclude_max=True), FEW, FEW, st.booleans()), min_size=1, max_size=4
    ),
    order=st.sampled_from([0, 0, 0, 1, 2, 3]),
    missing=st.sampled_from([0, 0, 0, 2, 3, 10]),
    cut=st.tuples(st.sampled_from([0, 0, 7, 30, 90]), st.sampled_from([0, 0, 1, 20, 60])),
    wrapping=st.sampled_from(["", "", "no times", "80", "120", "200", *WRAPPINGS, *SHAPES]),
)


CASES = 12 if settings.default.max_examples < 100 else 400
"""Each takes a second."""


def false_of(excerpt: Excerpt, whole: Whole) -> list[tuple[str, object]]:
    text, lines = excerpt.text(whole)
    false: list[tuple[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "paste.log").write_bytes(text)
        own = Settings(timezone=ZONES.get(excerpt.recording, "UTC"), shards=1, half_lines=True, client_group=NAMELESS_GROUP)
        result = at_once.process(folder / "paste.log", folder / "lake", settings=own, most_lines=1 << 30)
        if result is None or not result.understood:
            return false
        tables = {name: table_rows(folder / "lake" / name) for name in ("group_events", "rebalances", "findings")}
        for row in (row for rows in tables.values() for row in rows if row["group_id"] != NAMELESS_GROUP):
            said = {column: (row["group_id"], row[column]) for column in NAMES if row.get(column)}
            false += [(column, name) for column, name in said.items() if name not in whole.names[column]]
        rebalances = [(row["group_id"], row["generation"]) for row in tables["rebalances"] if row["generation"] is not None]
        false += [("rebalance", one) for one in rebalances if one not in whole.generations]
        overview = read_overview(folder / "lake")
        telling = [line for line in lines if TELLS.search(line)]
        if telling and not overview.attention and overview.judgement.all_clear:
            false.append(("all clear", telling[0]))
        for _, group in overview.judgement.healthy if all(gap.groups for gap in overview.judgement.gaps) else ():
            false += [("healthy", (group, line)) for line in telling if re.search(rb"[^\w.-]%s(?![\w-])" % re.escape(group.encode()), line)]
    return false


@settings(max_examples=CASES)
@given(excerpt=EXCERPTS)
@example(Excerpt("recordings/kafka-3.9.1", [(1.5456914109540831, 60, 0, False)], 0, 0, (7, 0), "Elastic's integration of Kafka"))
def test_an_excerpt_tells_nothing_that_the_whole_does_not_have(whole, excerpt):
    assert false_of(excerpt, whole(excerpt.recording)) == []
