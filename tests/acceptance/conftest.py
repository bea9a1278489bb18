"""The lakehouse of the recording that the pages of docs/ show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def lakehouse(recorded_lakehouse: Callable[[str], Path]) -> Path:
    """Its folder. Nothing writes to it."""
    return recorded_lakehouse("recordings/kafka-4.2.0")
