"""Brokers and clients in one file, clients nine hours ahead, shuffled by container: the tables of the plain recording, with their times."""

from __future__ import annotations

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from tests.acceptance.test_same_tables import rows
from tests.laws.kept import assert_laws_are_kept
from tests.logs.log_makers import write
from tests.logs.survey.mixing import shuffled
from tests.parsing.test_mixed_recordings import FEW, ZONE, boxes, compose

pytestmark = pytest.mark.slow


def tables(source, folder, **settings):
    assert at_once.process(source, folder, settings=Settings(timezone=ZONE, shards=8, **settings), most_lines=1 << 30)
    return folder


def test_a_mixed_recording_gives_the_tables_of_the_plain_one(tmp_path):
    for name, log in FEW.items():
        write(tmp_path / "plain/c" / name, [log], b"")
    plain = tables(tmp_path / "plain", tmp_path / "one")
    lines = {box: [compose(box) + line for line in lines] for box, lines in boxes({"broker": 0, "clients": 9}).items()}
    write(tmp_path / "mixed/c/host/out.txt", shuffled(lines, 9, 200))
    mixed = tables(tmp_path / "mixed", tmp_path / "two", slice_lines=6_000)
    assert_laws_are_kept(mixed, tmp_path / "mixed")
    assert rows(mixed, evidence=False) == rows(plain, evidence=False)
    assert sum(row["lines_read"] for row in table_rows(mixed / "input_lines")) == sum(map(len, lines.values()))
