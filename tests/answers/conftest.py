"""What the tests of the answers share."""

import pytest

from tests.lakehouse.rows import empty_lakehouse


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path)
