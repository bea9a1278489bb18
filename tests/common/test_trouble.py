"""Which sentences tell of trouble, in Python and in DuckDB."""

import duckdb
import pytest

from jobs.common.trouble import NO_ERROR, WORDS, tells_of_trouble


@pytest.mark.parametrize(
    ("sentence", "tells"),
    [
        ("Discovered group coordinator FindCoordinatorResponseData(throttleTimeMs=0, errorCode=0, errorMessage='', nodeId=1)", False),
        ("Finished OffsetFetchResponseData(errorCode=0, topics=[], errorMessage='NONE')", False),
        ("joined with error: none", False),
        ("Received response (errors=null) of 3 partitions.", False),
        ("FindCoordinatorResponseData(throttleTimeMs=0, errorCode=15, errorMessage='')", True),
        ("FindCoordinatorResponseData(errorCode=0): the request failed", True),
        ("errorCode=01", True),
        ("Error: something broke", True),
        ("The coordinator said error=NONEXISTENT", True),
        ("ClosedChannelException", True),
    ],
)
def test_a_response_without_an_error_tells_of_none(sentence, tells):
    assert tells_of_trouble(sentence) is tells
    asked = duckdb.execute("SELECT regexp_matches(regexp_replace(?, ?, ' ', 'g'), ?)", [sentence, NO_ERROR, WORDS]).fetchone()
    assert asked == (tells,)
