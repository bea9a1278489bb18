"""Rebalances that are not in `rebalances` yet: those that have not ended, and those that have, while later lines may correct them.

A rebalance that has lasted 5 s, or has not ended when the input does, has a row with the outcome OPEN, which says whom it waits for, and
another one when that changes, or when it exceeds its limit. A row with the outcome ENDED takes these back. The view `rebalances_open`
(sql/views) shows what is open, and for how long by the end of the logs.

Of a rebalance that has ended a row is written at its end, and another one when what it waits for changes. It names a cause and a culprit only if the lines so
far decide them: until then the cause is UNKNOWN. Its final row follows in `rebalances`. The view `rebalances_now` (sql/views) shows the
newest row of each rebalance. Which rows stand here depends on how the lines came in micro-batches; `rebalance maintain` deletes those that
a newer or the final row replaces.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, StringType, StructType

from schemas import rebalances
from schemas.columns import column, int32, int64, text

SCHEMA: Final = StructType(
    [
        # First, so that the columns after it stay those of `rebalances`, also where that gets new ones: the view needs the same order.
        text("waits_for", "What it waits for, separated by commas (docs/tables.md lists it).", nullable=False),
        column(
            "awaited",
            "OPEN: the member ids that the group waits for, or may wait for: those that have not rejoined as far as lines show, the leader "
            "whose assignment is missing, or those that have not reached the epoch.",
            ArrayType(StringType(), containsNull=False),
        ),
        int32("awaited_unnamed", "OPEN: how many more members it may wait for, which no line names."),
        int64("limit_ms", "OPEN: the longest rebalance timeout of its members; null if no request shows it."),
        text("broker", "OPEN: the coordinator. Its newest line says until when the rebalance is known to be open."),
        text(
            "alarm", "RAISED in the first row that says that it has exceeded its limit, CLEARED in the row ENDED of such a one; else null."
        ),
        *rebalances.SCHEMA,
    ]
)
