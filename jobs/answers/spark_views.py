"""Creates the views of sql/ in a Spark session, so that the named questions run there.

from jobs.answers import ask, questions
from jobs.answers.spark_views import create_views

create_views(spark, "lake")
question = questions.load("why")
now = spark.sql("SELECT max(ended_at) FROM rebalances").head()[0]
spark.sql(question.text, args=ask.values(question, {"group": "payments"}, now)).show()
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.answers import questions
from schemas.names import READABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_views(spark: SparkSession, lakehouse: str | Path, *, keep: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> None:
    """Makes temporary views: one for each table of the lakehouse, one for each file of sql/views.

    `keep`: what becomes of the rows of each before others are made of them, such as `DataFrame.cache` where many questions will be asked.
    """
    for table in READABLE:
        keep(spark.read.format("delta").load(f"{lakehouse}/{table}")).createOrReplaceTempView(table)
    for name, text in questions.views().items():
        # This keeps the plan. CREATE VIEW keeps the text, which each query would analyse again.
        keep(spark.sql(text)).createOrReplaceTempView(name)
