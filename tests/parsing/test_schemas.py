"""The names of the tables are written once, and rows are made without PySpark."""

import subprocess
import sys
from pathlib import Path

from coordinator_model.view import rows
from schemas import names
from schemas.tables import HEALTH_TABLES, TABLES, TRACK_TABLES


def test_every_table_has_a_schema_under_its_name():
    assert tuple(TABLES) == names.TABLES
    assert list(HEALTH_TABLES) == [names.PIPELINE_HEALTH]


def test_the_model_writes_the_tables_of_track():
    of_rebalances = [rows.GROUP_TRANSITIONS, rows.REBALANCES, rows.REBALANCE_ROUNDS, rows.REBALANCE_OFFSETS]
    assert list(TRACK_TABLES) == [*of_rebalances, rows.MEMBER_SESSIONS, rows.FINDINGS]


def test_what_starts_no_spark_imports_none():
    program = "import sys, jobs.answers.report, jobs.pipeline.at_once; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)
