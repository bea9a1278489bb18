"""The rows that a live pipeline adds to a table."""

from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from jobs.lakehouse.delta_files import data_files
from jobs.lakehouse.reader import table_rows


class NewRows:
    """The rows that were added to a table since the last look. The table may not exist yet; its files must not be compacted meanwhile."""

    def __init__(self, lakehouse: Path, table: str) -> None:
        self._folder = lakehouse / table
        self._files: set[str] = set()

    def take(self) -> list[dict[str, Any]]:
        """New rows, each once."""
        if not DeltaTable.is_deltatable(str(self._folder)):
            return []
        files = {file.path for file in data_files(DeltaTable(str(self._folder)))}
        new = files - self._files
        self._files = files
        return table_rows(self._folder, files=sorted(new)) if new else []
