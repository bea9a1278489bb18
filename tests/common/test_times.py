"""Durations as they are typed."""

from datetime import timedelta

import pytest

from jobs.common.errors import UserError
from jobs.common.times import parse_span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("1.5s", timedelta(milliseconds=1_500)),
        (" 2m ", timedelta(minutes=2)),
        ("24h", timedelta(days=1)),
        ("90d", timedelta(days=90)),
        ("26w", timedelta(weeks=26)),
    ],
)
def test_durations(text: str, span: timedelta) -> None:
    assert parse_span(text, name="--keep") == span


@pytest.mark.parametrize("text", ["", "s", "5", "-1s", "1.s", "1 s", "1e3s", "5y"])
def test_texts_that_are_no_duration(text: str) -> None:
    with pytest.raises(UserError, match=r"--keep .*not a duration"):
        parse_span(text, name="--keep")
