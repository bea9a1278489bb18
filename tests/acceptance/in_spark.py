"""The questions in Spark, for tests that compare its rows with DuckDB's."""

from __future__ import annotations

from pyspark.sql.functions import rand

from jobs.answers.spark_views import create_views


def with_views(spark, lakehouse):
    """A session beside the other one, with the tables and views of a lakehouse."""
    session = spark.newSession()
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")  # with it, Spark fails to plan a union of kept rows
    create_views(session, lakehouse, keep=_kept)
    return session


def _kept(rows):
    """The same rows in memory: a question would else read each table's log and files again, and find the rows of each view.

    In one partition: half of the tasks. In another order than DuckDB reads them in: rows that a question leaves without an order would
    stand in the same one.
    """
    return rows.coalesce(1).sortWithinPartitions(rand(1)).localCheckpoint()
