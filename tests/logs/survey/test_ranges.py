"""A file whose times several processes look at holds the same logs as one that is looked at in order."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.bytes import Fingerprint, open_log
from jobs.logs.files import head_of
from jobs.logs.survey.block_times import WHOLE, blocks_of
from jobs.logs.survey.section_search import SectionSearch, blocks_within, ordered_times_of, ranges_of
from jobs.logs.workers import Workers
from tests.logs.any_log import logs
from tests.logs.log_makers import coordinator, request, write
from tests.logs.spooling import run

RANGE = 2_000


def lines_of(path):
    log = open_log(path)
    yield from blocks_of(log)
    log.close()


def in_order(path, zone="UTC"):
    search = SectionSearch(zone)
    for offset, block in lines_of(path):
        search.take(offset, block)
    return search.end()


def in_ranges(path, zone="UTC"):
    """The logs in a file, and whether each range was in order."""
    search, ordered = SectionSearch(zone), []
    for one in ranges_of(path, Fingerprint.of(head_of(path)), -1, RANGE, own_times=True):
        ordered.append(search.take_ordered(ordered_times_of(one)))
        if ordered[-1]:
            continue
        for offset, block in blocks_within(one):
            search.take(offset, block)
    return search.end(), ordered


@given(st.lists(logs(), min_size=1, max_size=3), st.sampled_from(["UTC", "America/New_York"]))
def test_any_log_has_the_same_sections(tmp_path_factory, parts, zone):
    path = write(tmp_path_factory.mktemp("log") / "server.log", [coordinator(0), *(line for part in parts for line in part)])
    assert in_ranges(path, zone)[0] == in_order(path, zone)


def test_a_log_in_order_needs_no_look_at_its_lines(tmp_path):
    path = write(tmp_path / "server.log", [coordinator(second * 1_000) for second in range(300)])
    found, ordered = in_ranges(path)
    assert found == in_order(path) == WHOLE
    assert len(ordered) > 10
    assert all(ordered)


def test_a_second_log_is_found_behind_a_range_in_order(tmp_path):
    one = [coordinator(second * 1_000) for second in range(200)]
    path = write(tmp_path / "all.log", [*one, *one])
    found, ordered = in_ranges(path)
    assert found == in_order(path)
    assert [section.line for section in found] == [0, 200]
    assert ordered.count(False) == 1


def test_workers_survey_what_is_behind_the_signs(tmp_path):
    """A file with the requests of two brokers, one after the other: found by workers that see it, and without those that do not."""
    lines = [request(second * 1_000) for second in range(1_500)]
    write(tmp_path / "in/b1/kafka-request.log", [*lines, *lines])
    asked = []

    def work(function, pieces):
        asked.append((function, len(pieces)))
        return [function(piece) for piece in pieces]

    settings = {"survey_bytes": 20_000, "stretch_bytes": RANGE}
    alone, _ = run(tmp_path / "in", tmp_path / "alone", **settings)
    shared, _ = run(tmp_path / "in", tmp_path / "shared", workers=Workers(2, work), **settings)
    blind, _ = run(tmp_path / "in", tmp_path / "blind", workers=Workers(2, lambda _, pieces: [None] * len(pieces)), **settings)
    assert shared.lines() == alone.lines() == blind.lines()
    assert [function for function, _ in asked] == [ordered_times_of]
    assert asked[0][1] > 10
