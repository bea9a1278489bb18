"""A file of which blocks in order are taken as a whole holds the same logs as one whose every line is looked at."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.survey import block_times
from jobs.logs.survey.section_search import SectionSearch
from jobs.logs.survey.sections import WHOLE
from tests.logs.any_log import logs
from tests.logs.log_makers import coordinator


class Closely(SectionSearch):
    """Looks at every line."""

    def _take_ordered(self, _block):
        return False


class Counting(SectionSearch):
    """Counts the blocks whose lines it looks at."""

    looked = 0

    def _look_closely(self, offset, block):
        self.looked += 1
        super()._look_closely(offset, block)


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_times, "_BLOCK_BYTES", 2_000)
        yield


def taken(search, lines):
    for offset, block in block_times.blocks_of(BytesIO(b"".join(line + b"\n" for line in lines))):
        search.take(offset, block)
    return search


@given(st.lists(logs(), min_size=1, max_size=3), st.sampled_from(["UTC", "America/New_York"]))
def test_any_log_has_the_same_sections(parts, zone):
    lines = [coordinator(0), *(line for part in parts for line in part)]
    assert taken(SectionSearch(zone), lines).end() == taken(Closely(zone), lines).end()


def test_a_log_in_order_needs_no_look_at_its_lines():
    search = taken(Counting("UTC"), [coordinator(second * 1_000) for second in range(300)])
    assert search.end() == WHOLE
    assert search.looked == 0


def test_a_second_log_is_found_behind_blocks_in_order():
    one = [coordinator(second * 1_000) for second in range(200)]
    search = taken(Counting("UTC"), [*one, *one])
    assert [section.line for section in search.end()] == [0, 200]
    assert search.looked == 1
