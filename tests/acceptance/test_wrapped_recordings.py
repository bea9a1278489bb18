"""A recording as people copy it, or as other layouts write it: the tables of the plain one, times included."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from tests.effort import every
from tests.logs.envelopes.wrapping import COPIES, PATTERNS
from tests.parsing.test_mixed_recordings import FEW, ZONE

pytestmark = pytest.mark.slow

TABLES = ("rebalances", "group_transitions", "member_sessions", "findings")
WRAPS = {name: COPIES[name] for name in ("k9s", "Docker Desktop", "grep -n", "quote")} | {
    name: PATTERNS[name] for name in ("Confluent for Kubernetes", "bars", "ttcc")
}


def tables(folder, form=""):
    """The rows of a form, as a multiset; lines have other places, so evidence and ids are left out."""
    wrap = WRAPS.get(form)
    for name, log in FEW.items():
        path = folder / "input" / "cluster" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Clients write patterns of their own: a layout of brokers is not theirs.
        wrapped = wrap is not None and (form in COPIES or not name.startswith("clients"))
        lines = log.split(b"\n")[:-1]
        path.write_bytes(b"".join((wrap(line) if wrapped and line[:1] == b"[" else line) + b"\n" for line in lines))
    settings = Settings(timezone=ZONE, shards=8)
    assert at_once.process(folder / "input", folder / "lake", settings=settings, most_lines=1 << 30)
    found = Counter()
    for table in TABLES:
        for row in table_rows(folder / "lake" / table):
            del row["batch_id"], row["evidence"]
            found[json.dumps([table, row], sort_keys=True, default=str)] += 1
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    found = tables(tmp_path_factory.mktemp("plain"))
    assert found.total() > 200
    return found


@pytest.mark.parametrize("form", every(4, WRAPS))
def test_the_tables_are_those_of_the_plain_recording(plain, tmp_path, form):
    found = tables(tmp_path, form)
    assert found - plain == plain - found == Counter()
