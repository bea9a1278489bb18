"""Creates the views of sql/ in a Spark session, so that the named questions run there.

from jobs.answers import ask, questions
from jobs.answers.spark_views import create_views

question = questions.load("why")
create_views(spark, "lake", question.text)
now = spark.sql("SELECT max(ended_at) FROM rebalances").head()[0]
spark.sql(question.text, args=ask.values(question, {"group": "payments"}, now)).show()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.answers import questions
from schemas.names import READABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_views(
    spark: SparkSession, lakehouse: str | Path, text: str | None = None, *, keep: Callable[[DataFrame], DataFrame] = lambda rows: rows
) -> None:
    """Makes temporary views: one for each table of the lakehouse, one for each file of sql/views.

    `text`: only those that it names, and those that they are made of; to make all takes Spark seconds. `keep`: what becomes of the rows of
    each before others are made of them, such as `DataFrame.cache` where many questions will be asked.
    """
    views = questions.views()
    text = " ".join([*READABLE, *views]) if text is None else text
    named = {name: views[name] for name in questions.views_of(text, views)}
    for table in sorted(questions.tables_of(" ".join([text, *named.values()]), READABLE)):
        keep(spark.read.format("delta").load(f"{lakehouse}/{table}")).createOrReplaceTempView(table)
    views_over_tables(spark, named, keep)


def views_over_tables(spark: SparkSession, views: Mapping[str, str], keep: Callable[[DataFrame], DataFrame]) -> None:
    """Makes temporary views by name of their texts, in an order in which each is made of those before and of tables that Spark knows."""
    for name, made_of in views.items():
        # This keeps the plan. CREATE VIEW keeps the text, which each query would analyse again.
        keep(spark.sql(made_of)).createOrReplaceTempView(name)
