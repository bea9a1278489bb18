"""The files of group_events as a stream: each micro-batch of ingest once, in order, whatever else happens to the table."""

from itertools import chain

import pytest

from jobs.lakehouse import opening
from jobs.lakehouse.added_files import LAST
from jobs.lakehouse.delta_files import data_files, rewrite
from jobs.pipeline.sources.events import EventReader
from jobs.pipeline.tracking.packets import rows_of
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS, INGEST, INGEST_TOPIC, REPLAY
from tests.lakehouse.rows import empty_lakehouse, line, write

APPS = (INGEST, INGEST_TOPIC, REPLAY)


@pytest.fixture
def lake(tmp_path):
    return empty_lakehouse(tmp_path / "lake")


def ingest(lake, *batches, app=INGEST):
    for batch in batches:
        write(lake, *(line(position=batch * 10 + number) for number in range(3)), batch=batch, app=app)


def reader(lake, files=100, tasks=2):
    return EventReader(lake / GROUP_EVENTS, Spread(4, 2), files, tasks)


def taken(source, lake, start, end):
    """The batches whose rows a micro-batch reads."""
    files = [path for share in source.partitions(start, end) for path in share.files]
    batches = chain.from_iterable(rows_of(lake / path) for path in files)
    return sorted({row["position"] // 10 for batch in batches for row in batch.to_pylist()})


def test_what_is_new_is_read_once(lake):
    source = reader(lake)
    assert source.latestOffset() == {}
    ingest(lake, 0, 1)
    first = source.latestOffset()
    assert first == {INGEST: [1, LAST]}
    assert taken(source, lake, {}, first) == [0, 1]
    assert source.latestOffset() == first
    ingest(lake, 2)
    assert taken(source, lake, first, source.latestOffset()) == [2]


def test_a_micro_batch_has_so_many_files_and_the_queries_keep_their_order(lake):
    ingest(lake, 0, 1, 2)
    ingest(lake, 5, 6, app=INGEST_TOPIC)
    source, at, steps = reader(lake, files=2), {}, []
    while (end := source.latestOffset()) != at:
        steps.append(taken(source, lake, at, end))
        at = end
    assert steps == [[0, 1], [2, 5], [6]]
    assert at == {INGEST: [2, LAST], INGEST_TOPIC: [6, LAST]}


def test_a_query_that_starts_again_goes_on_where_it_was(lake):
    ingest(lake, 0, 1, 2)
    source = reader(lake, files=1)
    assert source.partitions({INGEST: [1, LAST]}, {INGEST: [1, LAST]}) == []  # so Spark says where it is
    assert source.latestOffset() == {INGEST: [2, LAST]}
    again = reader(lake, files=1)
    assert taken(again, lake, {INGEST: [0, LAST]}, {INGEST: [1, LAST]}) == [1]  # a micro-batch that was killed
    assert again.latestOffset() == {INGEST: [2, LAST]}


def test_files_that_others_make_of_what_was_read_are_not_read(lake):
    ingest(lake, 0, 1, 2)
    source = reader(lake)
    at = source.latestOffset()
    assert taken(source, lake, {}, at) == [0, 1, 2]
    folder = lake / GROUP_EVENTS
    rewrite(folder, data_files(opening.opened(folder)), lake / "_spill", order="position")
    assert source.latestOffset() == at
    ingest(lake, 3)
    assert taken(source, lake, at, source.latestOffset()) == [3]


def test_tasks_share_the_files_evenly(lake):
    for batch in range(8):
        write(
            lake, *(line(group=f"g{batch}-{number}-{number * 7919}", position=number) for number in range(4_000)), batch=batch, app=INGEST
        )
    shares = reader(lake, tasks=4).partitions({}, {INGEST: [7, LAST]})
    assert [len(share.files) for share in shares] == [2, 2, 2, 2]
    assert sorted(path for share in shares for path in share.files) == sorted(
        str(lake / GROUP_EVENTS / file.path) for file in data_files(opening.opened(lake / GROUP_EVENTS))
    )
