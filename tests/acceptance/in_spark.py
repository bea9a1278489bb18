"""The questions in Spark, for tests that compare its rows with DuckDB's."""

import random

from deltalake import DeltaTable

from jobs.answers import questions
from schemas.names import READABLE


def with_views(spark, lakehouse):
    """A session beside the other one, with the tables and views of a lakehouse.

    All rows are in memory: a question would else read each table's log and files again, and find the rows of each view. The tables are not
    read by Spark, which takes two seconds for each; tests/pipeline/test_provisional_rows.py has the views of tables that it reads.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")  # with it, Spark fails to plan a union of kept rows
    for table in READABLE:
        session.createDataFrame(_shuffled(DeltaTable(lakehouse / table).to_pyarrow_table())).createOrReplaceTempView(table)
    for name, text in questions.views().items():
        session.sql(text).coalesce(1).localCheckpoint().createOrReplaceTempView(name)
    return session


def _shuffled(table):
    """In another order than DuckDB reads the rows in: those that a question leaves without an order would stand in the same one."""
    return table.take(random.Random(1).sample(range(table.num_rows), table.num_rows))
