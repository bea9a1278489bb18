"""Creates the views of sql/ in a Spark session, so that the named questions run there.

from jobs.answers import ask, questions
from jobs.answers.spark_views import create_views

create_views(spark, "lake")
question = questions.load("why")
now = spark.sql("SELECT max(ended_at) FROM rebalances").head()[0]
spark.sql(question.text, args=ask.values(question, {"group": "payments"}, now)).show()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from jobs.answers import questions
from jobs.lakehouse.former_names import PRESENT
from schemas.names import READABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_views(spark: SparkSession, lakehouse: str | Path) -> None:
    """Makes temporary views: one for each table of the lakehouse, one for each file of sql/views."""
    for table in READABLE:
        if table in questions.STAND_INS and not DeltaTable.is_deltatable(f"{lakehouse}/{table}"):
            rows = spark.sql(questions.STAND_INS[table])
        else:
            rows = spark.read.format("delta").load(f"{lakehouse}/{table}")
        rows.withColumnsRenamed(PRESENT).createOrReplaceTempView(table)
    for name, text in questions.views().items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {text}")
