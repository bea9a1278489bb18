"""Creates the views of sql/ in a Spark session, so that the named questions run there.

from jobs.answers import ask, questions
from jobs.answers.spark_views import create_views

question = questions.load("why")
create_views(spark, "lake", question.text)
now = spark.sql("SELECT max(ended_at) FROM rebalances").head()[0]
spark.sql(question.text, args=ask.values(question, {"group": "payments"}, now)).show()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.answers import questions
from schemas.names import READABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_views(spark: SparkSession, lakehouse: str | Path, text: str | None = None) -> None:
    """Makes temporary views: one for each table of the lakehouse, one for each file of sql/views.

    `text`: only those that it names, and those that they are made of; to make all takes Spark seconds.
    """
    views = questions.views()
    text = " ".join([*READABLE, *views]) if text is None else text
    named = questions.views_of(text, views)
    for table in sorted(questions.tables_of(" ".join([text, *(views[name] for name in named)]), READABLE)):
        spark.read.format("delta").load(f"{lakehouse}/{table}").createOrReplaceTempView(table)
    for name in named:
        # This keeps the plan. CREATE VIEW keeps the text, which each query would analyse again.
        spark.sql(views[name]).createOrReplaceTempView(name)
