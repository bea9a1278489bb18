"""Files that are there as a whole or not at all, whenever the process ends."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file, or replaces it."""
    draft = path.with_suffix(".new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
