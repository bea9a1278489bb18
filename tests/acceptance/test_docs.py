"""What docs/ and `ask --help` show is what the recording gives: examples, pictures, SQL, and sums that were worked out by hand."""

import io
import re

import numpy as np
import pytest
from chispa import assert_df_equality
from PIL import Image

from jobs.answers import questions
from jobs.common.places import PROJECT
from jobs.health.batch_health import BatchHealth
from jobs.health.health_table import HealthTable
from jobs.lakehouse.reader import TableReader
from schemas.names import PIPELINE_HEALTH
from scripts.docs import questions as page
from scripts.docs import screenshots
from tests.dashboard.browsing import CHROMIUM
from tests.effort import every
from tests.frames import expected
from tests.lakehouse.rows import empty_lakehouse

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("name", every(8, questions.names()))
def test_the_example_of_a_question_is_true(lakehouse, name):
    assert questions.example_file(name).read_text(encoding="utf-8") == page.example(name, lakehouse), "run `make docs`"


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: the pictures of the docs are not compared")
def test_the_pictures_show_the_pages_of_today(lakehouse):
    for name, image in screenshots.take(lakehouse).items():
        stored = (screenshots.TARGET / f"{name}.png").read_bytes()
        assert len(stored) < screenshots.MOST_BYTES
        ours, theirs = (np.asarray(Image.open(io.BytesIO(data)).convert("L").resize((48, 32)), float) for data in (image, stored))
        assert abs(ours - theirs).mean() < 5, f"{name}: run `make screenshots`"  # of 255; not all machines draw letters alike


NOW = 1_795_000_000_000
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
SNIPPETS = [
    (path.name, statement)
    for path in PAGES
    for block in re.findall(r"^```sql\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for statement in block.split(";")
    if statement.strip()
]


def with_health(folder):
    """A lakehouse with what a micro-batch of a running pipeline wrote about itself."""
    table = HealthTable(empty_lakehouse(folder))
    table.add(BatchHealth(occurred_at=NOW, query="ingest", run_id="r", batch_id=7, duration_ms=2_000, input_rows=5))
    table.flush(NOW, at_once=True)
    return folder


@pytest.mark.parametrize("statement", [text for _, text in SNIPPETS], ids=[f"{n} {path}" for n, (path, _) in enumerate(SNIPPETS)])
def test_sql_of_the_pages_runs_in_duckdb_and_spark(in_spark, many_inputs, tmp_path, statement):
    """`delta_scan` is DuckDB's own reader of Delta, an extension that it downloads; the tables stand here under their names."""
    text = re.sub(r"delta_scan\('LAKE/(\w+)'\)", r"\1", statement)
    is_of_health = PIPELINE_HEALTH in text
    reader = TableReader(with_health(tmp_path) if is_of_health else many_inputs)
    if is_of_health:
        reader.add_view(PIPELINE_HEALTH)
        in_spark.read.format("delta").load(str(tmp_path / PIPELINE_HEALTH)).createOrReplaceTempView(PIPELINE_HEALTH)
    ours = reader.rows(text)
    assert ours
    theirs = in_spark.sql(text)
    assert_df_equality(theirs, expected(theirs, [tuple(row.values()) for row in ours]), ignore_row_order=True)


# docs/cost.md has three rebalances by hand: they are those of the tables.

COST = (PROJECT / "docs" / "cost.md").read_text(encoding="utf-8")
SUM = re.compile(r"(\d+)(?: partitions[a-z ]*)? \u00d7 \(([\d ]+) \u2212 ([\d ]+)\) = ([\d,]+)")
DIFFERENCE = re.compile(r"orders-\d: ([\d ]+) \u2212 ([\d ]+) = ([\d,]+)")


def number(text):
    return int(re.sub(r"[ ,\u00a0]", "", text))


@pytest.mark.parametrize("section", COST.split("\n## ")[1:4], ids=["eager", "cooperative", "static"])
def test_the_costs_that_were_worked_out_by_hand_are_those_of_the_tables(lakehouse, section):
    group, generation = re.search(r"\(([\w-]+), generation (\d+)\)", section).groups()
    query = "SELECT *, epoch_ms(started_at) s, epoch_ms(ended_at) e FROM rebalances WHERE group_id = ? AND generation = ?"
    (row,) = TableReader(lakehouse).rows(query, group, int(generation))
    terms = [(int(m[1]), number(m[2]), number(m[3]), number(m[4])) for m in SUM.finditer(section)]
    terms += [(1, number(m[1]), number(m[2]), number(m[3])) for m in DIFFERENCE.finditer(section)]
    assert all(count * (until - since) == product for count, until, since, product in terms)
    total = number(re.search(r"\*\*([\d,]+)\*\*", section)[1])
    assert total == sum(product for *_, product in terms) == row["unavailable_partition_ms"]
    assert int(re.search(r"(\d) (?:of \d partitions )?moved", section)[1]) == row["partitions_moved"]
    ends = [row["s"] % 1_000_000, row["e"] % 1_000_000]
    table = [number(time) for time in re.findall(r"\| (\d{3} \d{3}) \|", section)]
    assert [table[0], table[-1]] == ends
    assert {time for _, until, since, _ in terms for time in (until, since)} <= set(table)
    query = "SELECT epoch_ms(e.occurred_at) % 1000000 a, epoch_ms(e.received_at) % 1000000 r FROM group_events e WHERE e.group_id = ?"
    logged = {time for event in TableReader(lakehouse).rows(query, group) for time in event.values()}
    assert set(table) <= logged
