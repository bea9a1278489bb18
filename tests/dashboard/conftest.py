"""What the tests of the dashboard share."""

from contextlib import ExitStack

import pytest

from tests.dashboard import browsing
from tests.dashboard.serving import serving
from tests.lakehouse.rows import empty_lakehouse


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of this process."""
    with browsing.browsing() as found:
        yield found


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path / "lake")


@pytest.fixture(scope="module")
def serve():
    """Serves lakehouses until the tests of a file end: a page that is still open complains of a server that is gone."""
    with ExitStack() as stack:
        yield lambda lakehouse: stack.enter_context(serving(lakehouse))


@pytest.fixture(scope="module")
def recorded(serve, recorded_lakehouse):
    """A dashboard of the recording of 3.9.1."""
    return serve(recorded_lakehouse("recordings/kafka-3.9.1"))


@pytest.fixture
def reader(browser, serve):  # noqa: ARG001 - its servers outlive the pages
    """Opens tabs at an address, each of which is closed at the end: what went wrong in it is an error."""
    readers = []

    def new(url, **context):
        readers.append(browsing.Reader(browser, url, **context))
        return readers[-1]

    yield new
    for each in readers:
        each.close()


@pytest.fixture
def served(serve, lakehouse):
    return serve(lakehouse)


@pytest.fixture(scope="module")
def shown(serve, told):
    """A dashboard of the lakehouse `told` that a file fills once, and that nobody writes to."""
    return serve(told)
