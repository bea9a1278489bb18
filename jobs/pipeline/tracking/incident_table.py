"""Keeps the table `incidents` up to date: it follows from the rows of all groups, so it is written anew when they may have changed it.

The rows depend on the other tables alone. So a process that was killed before it wrote them writes them when it starts again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from coordinator_model.diagnosis.incidents import SPAN_MS
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.incidents.rows import incidents
from jobs.common.stores import Place, check_guards
from jobs.common.times import epoch_ms
from jobs.lakehouse import opening
from schemas import names
from schemas.tables import arrow_schema_of

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of a micro-batch by table, as the tracker gives them: times in epoch milliseconds."""

_SCHEMA: Final = arrow_schema_of(names.INCIDENTS)


class IncidentTable:
    """The table of a lakehouse. One process writes it: that which tracks."""

    def __init__(self, lakehouse: Place) -> None:
        self._lakehouse = lakehouse
        self._path = lakehouse / names.INCIDENTS
        self._until_ms: dict[str, int] = {}  # by cluster: rebalances that start until then may belong to an incident

    def refresh(self) -> None:
        """Writes the table, if its rows are others by now."""
        found = incidents(reader := QuestionReader(self._lakehouse))
        for row in found:
            self._until_ms[row["cluster"]] = max(self._until_ms.get(row["cluster"], 0), epoch_ms(row["last_at"]) + SPAN_MS)
        if found != reader.found("SELECT * FROM incidents", {}):
            check_guards(self._path)
            write_deltalake(opening.opened(self._path), pa.Table.from_pylist(found, schema=_SCHEMA), mode="overwrite")

    def take(self, rows: Rows, *, brokers: bool) -> None:
        """Takes what a micro-batch added to the other tables. `brokers`: it had lines about brokers that come and go."""
        moved = any(row["code"] == COORDINATOR_MOVED.code for row in rows[names.FINDINGS])
        billed = any(row["started_at"] <= self._until_ms.get(row["cluster"], -1) for row in rows[names.REBALANCES])
        if moved or billed or brokers:
            self.refresh()
