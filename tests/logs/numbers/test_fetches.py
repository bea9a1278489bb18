"""FETCH and LIST_OFFSETS as numbers: what is taken of a line, and that a log says the same however it is read."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.offsets.reads import NOT_TOLD, OUT_OF_RANGE
from jobs.logs.fetches.lines import WIDTH, LogFetches, Sender, decoded, json_in
from jobs.logs.fetches.rows import Fetches, fetch_rows
from jobs.logs.heartbeats.beat_numbers import BeatNumbers
from jobs.logs.mark import KeptLines
from tests.logs.log_makers import stamp, write
from tests.logs.reading import reader

RECORDING = Path(__file__).parents[2] / "data" / "offset-scenes" / "kafka-4.4.0" / "broker-1" / "kafka-request.log.gz"
ADDRESS = "10.0.0.1:9092-10.0.0.7:4000-1"


def asked(partition, offset):
    return {"partition": partition, "currentLeaderEpoch": 0, "fetchOffset": offset, "logStartOffset": -1, "partitionMaxBytes": 1048576}


def told(partition, end, error=0):
    return {"partitionIndex": partition, "errorCode": error, "highWatermark": end, "lastStableOffset": end, "abortedTransactions": None}


def line(topics, response, *, client="app-1", version=12, ms=0, api="FETCH", connection=ADDRESS, **fields):
    """A line as the broker writes it; `fields` are further ones of the request."""
    header = {"requestApiKey": 1, "requestApiVersion": version, "correlationId": 7, "clientId": client, "requestApiKeyName": api}
    software = {"softwareName": "apache-kafka-java", "softwareVersion": "3.9.1"}
    whole = {
        "requestHeader": header, "request": {**fields, "topics": topics, "forgottenTopicsData": []},
        "response": {"throttleTimeMs": 0, "errorCode": 0, "responses": response}, "connection": connection,
        "totalTimeMs": 502.1, "clientInformation": software,
    }  # fmt: skip
    text = json.dumps(whole, separators=(",", ":"))
    return f"{stamp(ms)} DEBUG Completed request:{text} (kafka.request.logger)".encode()


def request(text):
    return json_in(text, 0, len(text))


def taken(*lines):
    """Per line that is taken: connection's number, partition, position, end."""
    own = LogFetches()
    assert [own.take_fetch(request(text), number, 1_000) for number, text in enumerate(lines, 1)] == [True] * len(lines)
    cells = [own.cells[start : start + WIDTH].tolist() for start in range(0, len(own.cells), WIDTH)]
    return [(connection, own.partitions[place], position, end) for connection, place, _, position, end, *_ in cells], own


def test_positions_and_ends():
    cells, own = taken(
        line([{"topic": "t", "partitions": [asked(0, 5), asked(1, 8)]}], [{"topic": "t", "partitions": [told(0, 9), told(1, 8)]}]),
        line([{"topicId": "id", "partitions": [asked(0, 9)]}], [{"topicId": "id", "partitions": []}], version=17, connection="other"),
    )
    assert cells == [(0, "t-0", 5, 9), (0, "t-1", 8, 8), (1, "id-0", 9, NOT_TOLD)]
    assert own.senders == [Sender("FETCH", address, "app-1", "apache-kafka-java 3.9.1") for address in (ADDRESS, "other")]


def test_an_answer_may_tell_the_end_of_a_partition_that_was_asked_for_before():
    cells, _ = taken(line([], [{"topicId": "id", "partitions": [told(3, 70)]}]))
    assert cells == [(0, "id-3", NOT_TOLD, 70)]


def test_a_position_that_is_none_of_the_log():
    cells, _ = taken(line([{"topic": "t", "partitions": [asked(0, 5)]}], [{"topic": "t", "partitions": [told(0, -1, error=1)]}]))
    assert cells == [(0, "t-0", 5, OUT_OF_RANGE)]


def test_an_error_of_a_partition_tells_no_end():
    cells, _ = taken(line([{"topic": "t", "partitions": [asked(0, 5)]}], [{"topic": "t", "partitions": [told(0, -1, error=6)]}]))
    assert cells == [(0, "t-0", 5, NOT_TOLD)]


@pytest.mark.parametrize(
    ("answer", "shows"),
    [
        (told(0, 9), False),
        (told(0, 9) | {"lastStableOffset": 8}, True),
        (told(0, 9) | {"lastStableOffset": -1}, False),
        (told(0, 9) | {"abortedTransactions": []}, False),
        (told(0, 9) | {"abortedTransactions": [{"producerId": 1000, "firstOffset": 5}]}, True),
    ],
)
def test_a_transaction_that_is_open_or_was_aborted_is_seen(answer, shows):
    """isolation.level=read_uncommitted has a last stable offset of -1."""
    _, own = taken(line([{"topic": "t", "partitions": [asked(0, 5)]}], [{"topic": "t", "partitions": [answer]}]))
    assert own.cells[6] == shows


GOOD = line([{"topic": "t", "partitions": [asked(0, 5)]}], [{"topic": "t", "partitions": [told(0, 9)]}])


@pytest.mark.parametrize(
    "text",
    [
        line([], []),
        line([{"topic": "t", "partitions": [asked(0, 5)]}], [], replicaId=2),
        line([{"topic": "t", "partitions": [asked(0, 5)]}], [], replicaState={"replicaId": 2, "replicaEpoch": 1}),
        line([{"topic": "t", "partitions": [asked(0, -5)]}], []),
        line([{"topic": "t", "partitions": [asked(0, 1 << 80)]}], []),
        line([{"topic": "t", "partitions": [asked(-1, 5)]}], []),
        GOOD.replace(b'"fetchOffset":5', b'"fetchOffset":"5"'),
        GOOD.replace(b'"topics":[', b'"topics":['[:-1]),
        GOOD[:-40],
        GOOD[:200] + GOOD,
        b"",
    ],
)
def test_what_tells_nothing_is_left_out(text):
    own = LogFetches()
    assert not own.take_fetch(request(text), 1, 1_000)
    assert not own


@given(st.data())
def test_no_damage_of_a_line_raises(data):
    begin = data.draw(st.integers(0, len(GOOD)))
    damaged = GOOD[:begin] + data.draw(st.binary(max_size=9)) + GOOD[data.draw(st.integers(begin, len(GOOD))) :]
    LogFetches().take_fetch(request(damaged), 1, 1_000)


LISTED = {
    (0, -1): 10,  # the end
    (1, -2): 3,  # the first offset
    (2, 1_795_851_509_722): 4,  # the first one since then
    (3, -1): -1,  # not known
}


def listing(isolation=0, replica=-1):
    """A line as librdkafka 2.16 and a broker of 4.2.0 make it."""
    asked_for = [{"partitionIndex": partition, "currentLeaderEpoch": 0, "timestamp": at} for partition, at in LISTED]
    answers = [
        {"partitionIndex": partition, "errorCode": 0, "timestamp": -1, "offset": offset, "leaderEpoch": 0}
        for (partition, _), offset in LISTED.items()
    ]
    answer = {"throttleTimeMs": 0, "topics": [{"name": "t", "partitions": [*answers, {"partitionIndex": 9, "errorCode": 6, "offset": -1}]}]}
    text = line([{"name": "t", "partitions": asked_for}], [], api="LIST_OFFSETS", version=7, isolationLevel=isolation, replicaId=replica)
    return text.replace(b'"response":{"throttleTimeMs":0,"errorCode":0,"responses":[]}', b'"response":' + json.dumps(answer).encode())


def test_list_offsets_tells_ends():
    own = LogFetches()
    assert own.take_ends(request(listing()), 4, 1_000)
    cell = [0, 0, 1_000, NOT_TOLD, 10, 4, False, 1_000, NOT_TOLD]
    assert (own.cells.tolist(), own.partitions, own.lines) == (cell, ["t-0"], {"LIST_OFFSETS": 1})
    assert own.senders[0].api == "LIST_OFFSETS"


def test_list_offsets_with_read_committed_tells_the_last_stable_offset():
    """Where a transaction is open, it is before the end."""
    own = LogFetches()
    assert own.take_ends(request(listing(isolation=1)), 4, 1_000)
    assert own.cells.tolist() == [0, 0, 1_000, NOT_TOLD, NOT_TOLD, 4, False, 1_000, 10]


def test_markers_tell_which_partitions_have_transactions():
    """A line of Kafka 4.2.0; another partition was not written."""
    marker = {"producerId": 0, "topics": [{"name": "audit", "partitions": [{"partitionIndex": n, "errorCode": n * 6} for n in (0, 1)]}]}
    text = line([], [], api="WRITE_TXN_MARKERS").replace(
        b'{"throttleTimeMs":0,"errorCode":0,"responses":[]}', json.dumps({"markers": [marker]}).encode()
    )
    own = LogFetches()
    assert own.take_markers(request(text), 4, 1_000)
    cell = [0, 0, 1_000, NOT_TOLD, NOT_TOLD, 4, True, 1_000, NOT_TOLD]
    assert (own.cells.tolist(), own.partitions, own.lines) == (cell, ["audit-0"], {"WRITE_TXN_MARKERS": 1})
    assert not own.take_markers(request(text)[:-40], 5, 1_000)


@pytest.mark.parametrize("text", [listing(replica=2), listing()[:-40]])
def test_what_tells_no_end_is_left_out(text):
    own = LogFetches()
    assert not own.take_ends(request(text), 1, 1_000)
    assert not own


def test_answers_to_metadata_name_topics():
    own = LogFetches()
    named = [{"errorCode": 0, "name": "t", "topicId": "id"}, {"errorCode": 3, "name": "u", "topicId": "x"}, {"errorCode": 0, "name": "old"}]
    text = line([], []).replace(b'"responses":[]', b'"topics":' + json.dumps(named).encode())
    own.learn(request(text), 4, 1_000)
    own.learn(request(text), 5, 2_000)
    assert own.topics == {"id": ("t", 1_000, 4)}


def numbers(path, sizes, *, blocks):
    """All numbers of a log that is read so many lines at a time, once it has become numbers, by the names of what they are about."""
    found, log = [], reader(path)
    for size in sizes:
        fetches = Fetches()
        kept = KeptLines(beats=BeatNumbers(), fetches=fetches)
        if not blocks:
            kept.beats.block_of = None
        while (count := log.read(kept, max_lines=size, fold=True)) and size > 1_000_000:
            assert count
        for row in fetch_rows(fetches.of(log), "c", "b", "o", shares=3):
            for one in row:
                fetched = decoded(one["repeated"])
                cells = memoryview(fetched.cells).cast("q").tolist()
                for start in range(0, len(cells), WIDTH):
                    connection, partition, *rest = cells[start : start + WIDTH]
                    found.append((*fetched.senders[connection], fetched.partitions[partition], *rest))
    return sorted(found)


def test_a_log_says_the_same_however_it_is_read(tmp_path):
    path = tmp_path / "kafka-request.log"
    path.write_bytes(gzip.decompress(RECORDING.read_bytes()))
    whole = numbers(path, [1 << 60], blocks=True)
    assert len(whole) > 2_000
    assert numbers(path, [1 << 60], blocks=False) == whole
    assert numbers(path, [700] * 40, blocks=True) == whole


def test_each_line_is_counted_once(tmp_path):
    other = line([], [], api="PRODUCE")
    path = write(tmp_path / "kafka-request.log", [GOOD, other, GOOD, line([], []), GOOD[:-40]])
    fetches = Fetches()
    kept, log = KeptLines(beats=BeatNumbers(), fetches=fetches), reader(path)
    assert log.read(kept, fold=True) == 5
    (own,) = fetch_rows(fetches.of(log), "c", "b", "o")
    assert (kept.folded, [row["lines"] for row in own]) == (2, [2])
