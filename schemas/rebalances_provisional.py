"""Rebalances that have ended and are not in `rebalances` yet, because later lines may correct them.

A row is written when the rebalance ends, and another one when what it waits for changes. It names a cause and a culprit only if the lines so
far decide them: until then the cause is UNKNOWN. Its final row follows in `rebalances`. The view `rebalances_now` (sql/views) shows the
newest row of each rebalance. Which rows stand here depends on how the lines came in micro-batches; `rebalance maintain` deletes those that
a newer or the final row replaces.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StringType, StructType

from schemas import rebalances
from schemas.columns import column

SCHEMA: Final = StructType(
    [
        # First, so that the columns after it stay those of `rebalances`, also where that gets new ones: the view needs the same order.
        column(
            "waits_for",
            StringType(),
            "What it waits for, separated by commas (docs/tables.md lists it).",
            nullable=False,
        ),
        *rebalances.SCHEMA,
    ]
)
