"""What the tests of the dashboard share."""

from __future__ import annotations

import pytest

from tests.dashboard.browsing import browsing
from tests.dashboard.serving import serving
from tests.lakehouse.rows import empty_lakehouse


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of this process."""
    with browsing() as found:
        yield found


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path / "lake")


@pytest.fixture
def served(lakehouse):
    with serving(lakehouse) as found:
        yield found
