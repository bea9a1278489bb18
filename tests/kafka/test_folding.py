"""Heartbeats that a shipper folds: whatever a log holds and however it is cut, the tables are those of its lines."""

import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jobs.kafka.bundles import BundleError, Sender, checksum, decoded, encoded
from jobs.kafka.folding import Senders
from jobs.logs.heartbeats.beats import NO_INTERVAL, Group, Taken
from jobs.parsing import batch
from jobs.parsing.rows import PARSED
from jobs.pipeline.gate import Gate
from jobs.pipeline.ingest_topic import admit
from jobs.pipeline.topic_records import PLACE_BITS
from schemas.names import CLOCK, HEARTBEATS, LINE
from tests.kafka.shipments import AT_ONCE, Topic, ship
from tests.logs.log_makers import PROMPT, START_MS, consumer_heartbeat, coordinator, fetch, heartbeat, request, write
from tests.parsing.reading import read_lines

pytestmark = pytest.mark.slow

UUID = "1d7dc660-15e8-423d-b50f-6a8874da6bba"
PARTITIONS = 2
RAW = replace(AT_ONCE, fold=False)
TIMES = st.tuples(*[st.sampled_from([0.0, 0.05, 0.1, 1.234, 20.5, 100_000.0])] * 6)
LINES = st.one_of(
    st.builds(
        heartbeat,
        st.integers(0, 50),
        st.sampled_from("abc"),
        st.sampled_from(["0", "7", "8", "123456789", "2147483647"]),
        st.just(PROMPT) | TIMES,
        st.sampled_from([0, 27]),
        member_id=st.sampled_from([None, f"a-{UUID}", f"other-{UUID}", UUID, f"-{UUID}", f"a-{UUID.upper()}", ""]),
        connection=st.sampled_from(["10.0.0.1:9092-10.0.0.9:53676-0-2", "h:1-::1:0-7", "h:1-h:01-7", "odd", ""]),
        generation=st.sampled_from([3, 4, -1]),
    ),
    st.builds(
        consumer_heartbeat,
        st.integers(0, 50),
        st.sampled_from("abc"),
        st.sampled_from(["0", "7", "8"]),
        st.just(PROMPT) | TIMES,
        member_id=st.sampled_from(["WR0lBCwrTxSoqM5Yd3xUww", "PoXy/d3qQpOGkRtEOEpFtQ", UUID]),
        epoch=st.sampled_from([0, 3, 4]),
        answer_epoch=st.sampled_from([None, 4]),
        interval_ms=st.sampled_from([2_000, 5_000]),
    ),
    st.builds(request, st.integers(0, 50)),
    st.builds(fetch, st.integers(0, 50)),
    st.sampled_from([b"", b"\tat kafka.Server.run(Server.scala:1)", b"\xff\xfe"]),
)
DAMAGE = st.tuples(st.integers(0, 10**6), st.sampled_from([b"", b'"', b"0", b"\\", b"}", b"x"]))


def parsed(records):
    """Records of a topic, each with its place, as rows of PARSED: what the tasks of a micro-batch make of them."""
    rows = []
    for _, record in records:
        at = None if record.at_ms is None else record.at_ms * 1_000
        common = (record.cluster, record.broker, record.record, record.origin, record.position, at)
        text = {LINE: record.text, HEARTBEATS: record.crc, CLOCK: f"|{record.text}"}[record.record]
        bundle = record.value if record.record == HEARTBEATS else None
        rows.append((*common, text, record.fault, int(record.record != CLOCK), "t-0", bundle))
    return read_lines(rows, [place for place, _ in records]) if rows else PARSED.empty_table()


def placed(topic):
    """The records of a topic with their places, by partition."""
    partitions = [[] for _ in range(PARTITIONS)]
    for given_partition, key, record in topic.records:
        partition = given_partition if given_partition >= 0 else zlib.crc32(key) % PARTITIONS
        partitions[partition].append(((partition << PLACE_BITS) + len(partitions[partition]), record))
    return partitions


def admitted(topic, batches=1):
    """The rows of PARSED that the gate lets through, each partition cut into so many batches; what names a record aside."""
    gate, rows = Gate(), []
    for number in range(batches):
        records = [record for part in placed(topic) for record in part[len(part) * number // batches : len(part) * (number + 1) // batches]]
        table = parsed(records)
        admission = admit(gate, batch.line_summaries(table), PARTITIONS)
        rows.append(table.filter(pc.and_(admission.admitted(table), pc.not_equal(table["verdict"], CLOCK))))
    return sorted(pa.concat_tables(rows).drop_columns(["place"]).to_pylist(), key=repr)


@given(
    lines=st.lists(LINES, max_size=40),
    damage=st.lists(DAMAGE, max_size=3),
    slice_lines=st.sampled_from([1, 7, 1_000]),
    stops=st.lists(st.integers(1, 30), max_size=3),
    raw=st.lists(st.booleans(), min_size=4, max_size=4),
    batches=st.integers(1, 4),
)
def test_any_log_gives_the_rows_of_its_lines(lines, damage, slice_lines, stops, raw, batches):
    """Cut anywhere, stopped before the state was written, sent again, partly as lines; read in any batches."""
    text = b"\n".join(lines)
    for place, instead in damage:
        at = place % (len(text) + 1)
        text = text[:at] + instead + text[at + 1 :]
    with tempfile.TemporaryDirectory() as name:
        for folder in ("raw", "folded"):
            write(Path(name) / folder / "in/kafka-request.log", text.split(b"\n"))
        plain, folded = Topic(PARTITIONS), Topic(PARTITIONS)
        plain.max_bytes = folded.max_bytes = 100_000
        ship(Path(name) / "raw", plain, settings=RAW)
        for stop, as_lines in zip([*stops, None], raw, strict=False):
            folded.killed_at = None if stop is None else folded.sent + stop
            ship(Path(name) / "folded", folded, settings=replace(RAW if as_lines else AT_ONCE, slice_lines=slice_lines))
    assert not plain.bundles()
    assert admitted(folded, batches) == admitted(plain)


def heartbeats(count, members=10):
    """Lines of a log: some members, one beat after the other."""
    return [
        heartbeat(number, f"c-{number % members}", str(number + 1), member_id=f"c-{number % members}-{number % members:08d}{UUID[8:]}")
        for number in range(count)
    ]


def test_a_heartbeat_of_many_members_takes_a_twentieth_of_its_line(tmp_path):
    lines = heartbeats(4_000, members=4_000)
    write(tmp_path / "in/kafka-request.log", lines)
    topic = Topic(1)
    topic.max_bytes = 1_000_000
    assert ship(tmp_path, topic).delivered == 4_000
    (bundle,) = topic.bundles()
    assert len(pa.compress(bundle.value, "zstd", asbytes=True)) * 20 < sum(map(len, lines))


def test_a_bundle_is_no_larger_than_a_record_and_clocks_count_its_lines(tmp_path):
    write(tmp_path / "in/kafka-request.log", [*heartbeats(500, members=100), coordinator(500)])
    topic = Topic()
    topic.max_bytes = 5_000
    ship(tmp_path, topic)
    assert len(topic.bundles()) > 4
    assert max(len(bundle.value) for bundle in topic.bundles()) <= 5_000
    assert sum(bundle.lines for bundle in topic.bundles()) == 500
    assert topic.clocks()[-1][1].lines == 501


def test_only_so_many_members_are_remembered():
    taken, senders = Taken([], [], [], [], []), Senders(most=3)
    take = senders.taker(taken)
    for number, line in enumerate(heartbeats(40, members=7)):
        assert take(line, number, START_MS)
    assert taken.numbers == [b"%d" % (number + 1) for number in range(40)]
    for name in ("_known", "_groups", "_texts"):
        assert len(vars(senders)[name]) <= 3


NUMBERS = st.integers(0, (1 << 31) - 1)
SENDERS = st.tuples(
    st.builds(
        Group,
        st.text(max_size=3),
        st.integers(-1, 9),
        st.integers(0, 4),
        st.integers(-1, 99),
        st.just("java 4.2.0"),
        st.sampled_from([-1, 5_000]),
    ),
    st.sampled_from([UUID, f"a-{UUID}", "", "a", "é-" + UUID]),
    st.sampled_from([None, "", "a"]),
    st.sampled_from([None, "", "a"]),
    st.sampled_from(["h:1-h:65535-0-7", "h:1-h:2-3", "a\nb:1-3", "x", "", "h:99999999999-1"]),
)
BEATS = st.lists(st.tuples(SENDERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20)


@given(BEATS, st.integers(1, 1 << 52))
def test_a_bundle_is_read_as_it_was_written(beats, first):
    positions = range(first, first + len(beats))
    ranks = {}
    made = [Sender(*fields, rank=ranks.setdefault(fields[0], len(ranks))) for fields, *_ in beats]
    value = encoded(made, positions, *zip(*(beat[1:] for beat in beats), strict=True))
    found = decoded(value, str(checksum(value)))
    groups = [group for group, count in zip(found.groups, found.members, strict=True) for _ in range(count)]
    members = list(zip(groups, found.member_ids, found.client_ids, found.instance_ids, found.connections, strict=True))
    senders = [member for member, count in zip(members, found.beats, strict=True) for _ in range(count)]
    rows = zip(found.positions, senders, found.ats, found.correlation_ids, found.durations, strict=True)
    assert sorted(rows) == [(position, *beat) for position, beat in zip(positions, beats, strict=True)]


@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
def test_a_damaged_bundle_is_refused(place, flip, signed):
    sender = Sender(Group("g", 1, 4, 0, "java 4.2.0", NO_INTERVAL), f"a-{UUID}", "a", None, "h:1-h:2-0-7", rank=0)
    value = bytearray(encoded([sender, sender], [7, 9], [START_MS, START_MS + 1], [1, 2], [3, 4]))
    crc = checksum(bytes(value))
    value[place % len(value)] ^= flip
    if signed:  # by somebody who writes other things to the topic
        try:
            assert len(decoded(bytes(value), str(checksum(bytes(value))))) == 2
        except BundleError:
            return
    with pytest.raises(BundleError):
        decoded(bytes(value), str(crc))


@pytest.mark.parametrize("value", [b"", b"\x90", b"\xc1", b"no bundle", b"\x93\x01\x02\x03"])
def test_what_is_no_bundle_goes_to_quarantine(value):
    row = ("c", "b", HEARTBEATS, "o.log", 5, None, str(checksum(value)), None, 1, "topic-3", value)
    (kept,) = batch.quarantined(read_lines([row], [(3 << PLACE_BITS) + 9]), 1).to_pylist()
    assert (kept["cluster"], kept["broker"], kept["origin"], kept["position"], kept["source"]) == ("", "", "topic-3", 9, "unknown")
    assert kept["reason"].startswith("NOT_SHIPPED: no heartbeats: ")
