"""A recording as people copy it, or as other layouts write it: the tables of the plain one, times included."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from tests.logs.envelopes.wrapping import COPIES, PATTERNS
from tests.parsing.test_mixed_recordings import FEW, ZONE

pytestmark = pytest.mark.slow

TABLES = ("rebalances", "group_transitions", "member_sessions", "findings")
WRAPS = {name: COPIES[name] for name in ("k9s", "Docker Desktop", "grep -n", "quote")} | {
    name: PATTERNS[name] for name in ("Confluent for Kubernetes", "bars", "ttcc")
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The rows of each form, as a multiset; lines have other places, so evidence and ids are left out."""
    folder = tmp_path_factory.mktemp("wrapped")
    for form, wrap in {"plain": None, **WRAPS}.items():
        for name, log in FEW.items():
            path = folder / "input" / form / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Clients write patterns of their own: a layout of brokers is not theirs.
            wrapped = wrap is not None and (form in COPIES or not name.startswith("clients"))
            lines = log.split(b"\n")[:-1]
            path.write_bytes(b"".join((wrap(line) if wrapped and line[:1] == b"[" else line) + b"\n" for line in lines))
    settings = Settings(timezone=ZONE, shards=8)
    assert at_once.process(folder / "input", folder / "lake", settings=settings, most_lines=1 << 30)
    found = {form: Counter() for form in ("plain", *WRAPS)}
    for table in TABLES:
        for row in table_rows(folder / "lake" / table):
            cluster = row.pop("cluster")
            del row["batch_id"], row["evidence"]
            found[cluster][json.dumps([table, row], sort_keys=True, default=str)] += 1
    return found


def test_the_recording_has_rows(tables):
    assert tables["plain"].total() > 200


@pytest.mark.parametrize("form", WRAPS)
def test_the_tables_are_those_of_the_plain_recording(tables, form):
    assert tables[form] - tables["plain"] == tables["plain"] - tables[form] == Counter()
