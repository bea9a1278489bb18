"""Runs docs/tour.ipynb on a lakehouse of the bundled recording, and keeps its outputs in it.

    python -m scripts.docs.tour [--lakehouse DIR]

Without a lakehouse of the recording, one is made first (half a minute, and Java).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from jobs.common.places import PROJECT
from scripts.docs.recorded import chosen_lakehouse

TARGET: Final = PROJECT / "docs" / "tour.ipynb"
_CELL_SECONDS: Final = 600  # a busy machine may take that long to start Spark


def read() -> NotebookNode:
    """The notebook as it is stored."""
    return nbformat.read(TARGET, as_version=4)


def executed(lakehouse: Path) -> NotebookNode:
    """The notebook with the outputs of a new run. CellExecutionError: a cell failed."""
    notebook = read()
    place = {"metadata": {"path": str(PROJECT)}}
    no_ports = Config(AsyncKernelManager={"transport": "ipc"})
    patient = {"timeout": _CELL_SECONDS, "startup_timeout": _CELL_SECONDS}
    client = NotebookClient(notebook, kernel_name="python3", record_timing=False, resources=place, config=no_ports, **patient)
    with patch.dict(os.environ, REBALANCE_LAKEHOUSE=str(lakehouse)):
        client.execute()
    notebook.metadata = read().metadata  # the kernel adds which Python it is
    for cell in notebook.cells:
        if cell.cell_type == "code":  # what Spark says on stderr when it starts depends on the machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def main() -> int:
    """Writes the file."""
    with chosen_lakehouse(__doc__) as lakehouse:
        nbformat.write(executed(lakehouse), TARGET)
    print(f"wrote {TARGET.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
