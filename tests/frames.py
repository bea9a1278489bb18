"""What tests of Spark give to chispa: what is expected of a frame, and the rows of tables."""

from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from jobs.lakehouse.reader import table_rows
from schemas.tables import TRACK_TABLES


def expected(found, rows, columns=None):
    """These rows, of the types of the frame that was found: under its names of columns, or under others."""
    fields = zip(columns or found.columns, found.schema, strict=True)
    schema = StructType([StructField(name, field.dataType, field.nullable, field.metadata) for name, field in fields])
    return found.sparkSession.createDataFrame(list(rows), schema)


def rows_of(lakehouse, tables=tuple(TRACK_TABLES)):
    """All rows of some tables, without their batch, in one order: doubled rows stay doubled.

    Read without Spark, which takes some seconds for what this reader does at once.
    """
    found = [Row(table=name, **{**row, "batch_id": None}) for name in tables for row in table_rows(lakehouse / name)]
    return sorted(found, key=repr)
