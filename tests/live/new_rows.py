"""The rows that a live pipeline adds to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.lakehouse.growth import GrowingTable
from jobs.lakehouse.reader import table_rows


class NewRows:
    """The rows that were added to a table since the last look. The table may not exist yet; its files must not be compacted meanwhile."""

    def __init__(self, lakehouse: Path, table: str) -> None:
        self._folder = lakehouse / table
        self._table = GrowingTable(self._folder)

    def take(self) -> list[dict[str, Any]]:
        """New rows, each once."""
        growth = self._table.look()
        return [] if growth is None else table_rows(self._folder, files=growth.files)
