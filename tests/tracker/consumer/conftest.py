"""How many of the random traces of Kafka's own coordinator a test looks at."""

import pytest

from tests.effort import long


@pytest.fixture(scope="session", params=[4, long(1)])
def one_in(request: pytest.FixtureRequest) -> int:
    """One in so many of them; `make test-long` takes all."""
    return request.param
