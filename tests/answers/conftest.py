"""What the tests of the answers share."""

import io
import json

import pytest
from rich.console import Console

from jobs.answers import report
from jobs.cli.output.report_text import LIMIT, render
from tests.lakehouse.rows import empty_lakehouse, line, write


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path)


@pytest.fixture
def told(lakehouse):
    """Writes rows; returns the entries as programs get them, and the first part of the report as people do."""

    def tell(*rows, limit=LIMIT):
        groups = {row["group_id"] for row in rows if row["group_id"]}
        write(lakehouse, *(line(group) for group in sorted(groups)), line(at=900_000), *rows)
        read = report.read_report(lakehouse)
        out = io.StringIO()
        render(read, Console(file=out, width=80, color_system=None), limit=limit)
        shown = out.getvalue()
        return json.loads(report.to_json(read))["attention"], shown[: shown.index("\nGroups (")]

    return tell
