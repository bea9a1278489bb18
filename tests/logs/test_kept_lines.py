"""Which lines of a log are kept, which are skipped, and which have a fault."""

import gzip
import json
from pathlib import Path

import pytest
from msgspec.structs import asdict

from jobs.logs import faults
from jobs.logs.mark import KeptLines, Mark
from tests.logs.log_makers import START_MS, api_versions, coordinator, fetch, other, request, stamp, write
from tests.logs.reading import judged, read, reader, rows

DATA = Path(__file__).parents[1] / "data"
UPGRADE = DATA / "api-versions" / "kafka-4.2.0-to-4.4.0.log.gz"
"""The request log of a broker in combined mode that ran 4.2.0, then 4.4.0. Its listener for controllers took another port then."""
OTHER = "10.0.0.2:9092"


APIS = [
    "JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "OFFSET_FETCH", "DELETE_GROUPS",
    "FIND_COORDINATOR",
]  # fmt: skip


@pytest.mark.parametrize("api", APIS)
def test_group_requests_are_kept(tmp_path, api):
    line = request(1, api)
    kept, count = read(write(tmp_path / "a.log", [line]))
    assert (rows(kept), count) == ([(1, START_MS + 1, line, "")], 1)


def test_other_requests_are_skipped(tmp_path):
    at_info = request(5).replace(b"] DEBUG ", b"] INFO [data-plane-kafka-request-handler-3] ")
    lines = [fetch(1), request(2, "METADATA", 3), request(3, "SHARE_NEWS_2", 199), request(4), at_info]
    assert judged(tmp_path, lines) == [(4, ""), (5, "")]


def test_damaged_requests_are_kept(tmp_path):
    good = request(1)
    lines = [
        good,
        good.replace(b'"requestApiKeyName":"HEARTBEAT"', b'"requestApiKeyN:"HEARTBEAT"'),
        good.replace(b"HEARTBEAT", b"HEARTbEAT"),
        good.replace(b"HEARTBEAT", b"HEARTBEAU"),  # a name, but its number is that of HEARTBEAT
        good[:150],
        fetch(1)[:190] + good,  # a line cut, and the next written behind it
        good.replace(b"Completed", b"Cmpleted"),
        good[:40],
        good[:33],
        good[26:],
        b"junk",
        b"",
        good,
    ]
    assert judged(tmp_path, lines) == [
        (1, ""), (2, ""), (3, faults.BAD_API_NAME), (4, faults.BAD_API_NAME), (5, ""), (6, ""), (7, faults.NOT_A_REQUEST),
        (8, faults.NOT_A_REQUEST), (9, faults.NOT_A_REQUEST), (10, faults.NO_TIMESTAMP), (11, faults.NO_TIMESTAMP),
        (13, ""),
    ]  # fmt: skip


def test_first_line_of_a_request_log_is_judged_by_those_that_follow(tmp_path):
    assert judged(tmp_path, [b"half of a line", *[fetch(i) for i in range(9)]]) == [(1, faults.NO_TIMESTAMP)]


def test_text_form_before_kafka_2_8(tmp_path):
    old = "{} DEBUG Completed request:RequestHeader(apiKey={}, apiVersion=3) -- {{group_id=g}} (kafka.request.logger)"
    lines = [old.format(stamp(i), api).encode() for i, api in enumerate(["JOIN_GROUP", "FETCH", "LEAVE_GROUP"])]
    assert judged(tmp_path, lines) == [(1, ""), (3, "")]


def test_server_log(tmp_path):
    scala = f"{stamp(0)} INFO Loaded member MemberMetadata(x) in group g (kafka.coordinator.group.GroupMetadata$)".encode()
    runtime = f"{stamp(0)} INFO [{{}} id=1] Scheduling (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
    lines = [
        other(0),
        coordinator(0),
        coordinator(0)[:60],  # cut
        coordinator(0)[40:],  # its beginning lost
        scala,
        runtime.format("GroupCoordinator").encode(),
        runtime.format("ShareCoordinator").encode(),
        b"",
        stamp(1).encode() + b" INFO KafkaConfig values: ",
        b"\tadvertised.listeners = null",
        b"\tgroup.consumer.assignors = [org.apache.kafka.coordinator.group.assignor.UniformAssignor]",
        b" (kafka.server.KafkaConfig)",
        stamp(1).encode() + b" ERROR Unexpected (kafka.server.KafkaApis)",
        b"java.lang.IllegalStateException: no",
        b"\tat org.apache.kafka.coordinator.group.GroupMetadataManager.replay(GroupMetadataManager.java:12)",
        b"Caused by: org.apache.kafka.coordinator.group.GroupMetadataManager.Oops: no",
        b"\t... 12 more",
        request(1)[25:],
        b"[2026-11-21 06:09:61,000] INFO [GroupCoordinator 1]: x (kafka.coordinator.group.GroupCoordinator)",
    ]
    assert judged(tmp_path, lines) == [
        (2, ""), (3, ""), (4, faults.NO_TIMESTAMP), (5, ""), (6, ""), (18, faults.NO_TIMESTAMP), (19, faults.BAD_TIMESTAMP),
    ]  # fmt: skip


def test_one_file_for_all_loggers(tmp_path):
    """As a container writes it: nothing in it is damaged, though most of its lines are requests."""
    lines = [
        other(0),
        *[fetch(i) for i in range(5)],
        stamp(6).encode() + b" INFO KafkaConfig values: ",
        b"\tadvertised.listeners = null",
        b" (kafka.server.KafkaConfig)",
        request(7),
        coordinator(8),
        *[fetch(i) for i in range(9, 15)],
        other(15),
        b"java.lang.IllegalStateException: no",
        b"\tat kafka.Kafka.main(Kafka.scala:1)",
        fetch(16),
        b"junk",
    ]
    assert judged(tmp_path, lines) == [(10, ""), (11, ""), (len(lines), faults.NO_TIMESTAMP)]


def test_lines_are_kept_that_say_how_a_broker_comes_and_goes_and_only_the_first_of_a_connection_that_stays_lost(tmp_path):
    """As in the recording of 4.2.0 and in those of 0.9 to 2.7."""
    lost = b"[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Error sending fetch request (sessionId=14, epoch=%s) to node 3:"
    sentences = [
        (b"kafka.server.BrokerServer", b"[BrokerServer id=3] Transition from SHUTDOWN to STARTING", False),
        (b"kafka.log.LogManager", b"Recovering 74 logs from /var/lib/kafka since no clean shutdown file was found", True),
        (b"kafka.log.LogManager", b"Loading logs from log dirs ArrayBuffer(/var/lib/kafka)", False),
        (b"kafka.server.BrokerServer", b"[BrokerServer id=3] Transition from STARTING to STARTED", True),
        (b"org.apache.kafka.common.utils.internals.AppInfoParser", b"Kafka version: 4.4.0", True),
        (b"org.apache.kafka.common.utils.AppInfoParser", b"Kafka commitId: a18251bae0b825c6", False),
        (b"kafka.server.KafkaServer", b"starting", False),
        (b"kafka.server.KafkaServer", b"[KafkaServer id=1] started", True),
        (b"kafka.server.KafkaServer", b"[Kafka Server 1], shutting down", True),
        (b"BrokerServer", b"[BrokerServer id=3] Transition from STARTED to SHUTTING_DOWN", True),
        (b"org.apache.kafka.clients.FetchSessionHandler", lost % b"1891", True),
        (b"org.apache.kafka.clients.FetchSessionHandler", lost % b"INITIAL", False),
        (b"kafka.controller.KafkaController", b"[Controller id=1] Newly added brokers: 2, deleted brokers: , bounced brokers: ", False),
        (b"kafka.controller.KafkaController", b"[Controller id=1] Newly added brokers: , deleted brokers: 3, bounced brokers: ", True),
        (b"org.apache.kafka.controller.ReplicationControlManager",
         b"[QuorumController id=9] Fencing broker 3 at epoch 12 because its session has timed out.", True),
    ]  # fmt: skip
    lines = [b"%s INFO %s (%s)" % (stamp(number).encode(), text, logger) for number, (logger, text, _) in enumerate(sentences)]
    assert judged(tmp_path, lines) == [(number, "") for number, (_, _, kept) in enumerate(sentences, 1) if kept]


def versions(kept):
    return [position for position, text in zip(kept.positions, kept.texts, strict=True) if b'"API_VERSIONS"' in text]


def test_of_answers_to_api_versions_the_first_is_kept_and_each_that_tells_another_level(tmp_path):
    levels = [29, 29, None, 29, 33, 33, None, 33, 29]
    lines = [api_versions(number, level) for number, level in enumerate(levels)]
    assert judged(tmp_path, lines) == [(1, ""), (5, ""), (9, "")]


def test_each_broker_of_a_file_has_its_own_first_answer(tmp_path):
    """As `docker compose logs` gives them during a rolling upgrade: their lines alternate."""
    lines = [api_versions(0), *(make for n in range(1, 20) for make in (api_versions(n), api_versions(n, 33, OTHER)))]
    lines += [api_versions(30, 33), api_versions(31, 33, "0:0:0:0:0:0:0:1:9092"), api_versions(32, 33, "0:0:0:0:0:0:0:1:9092")]
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert versions(kept) == [1, 3, 40, 41]


def test_no_damaged_answer_counts_and_none_goes_to_quarantine(tmp_path):
    good = api_versions(2)
    lines = [
        good[:-9],  # cut
        good.replace(b'maxVersion":29', b'maxVersion":x9'),
        api_versions(2, 1_000_000),
        good,
        good.replace(b',"connection":"10.0.0.1:9092-', b',"connections":"-'),  # of a broker without an address
        good[:200] + request(2),  # two lines in one: the parser says what it is
    ]  # fmt: skip
    assert judged(tmp_path, lines) == [(4, ""), (5, ""), (6, "")]


def test_other_lines_are_judged_as_without_answers_to_api_versions(tmp_path):
    lines = [api_versions(0), fetch(1), request(2), b"junk", coordinator(4), api_versions(5), request(6)]
    assert judged(tmp_path, lines) == [(1, ""), (3, ""), (4, "NO_TIMESTAMP"), (5, ""), (7, "")]


def test_reading_on_from_a_mark_repeats_no_answer(tmp_path):
    path = write(tmp_path / "a.log", [api_versions(0), api_versions(1), api_versions(2, 33), api_versions(3, 33), api_versions(4, 29)])
    for begun in range(6):
        kept = KeptLines()
        first = reader(path)
        first.read(kept, max_lines=begun)
        stored = json.loads(json.dumps(asdict(first.mark)))
        second = reader(path, Mark(**stored))
        second.read(kept)
        assert versions(kept) == [1, 3, 5]
        assert second.mark.levels == {"10.0.0.1:9092": 29}
        assert first.mark.levels == stored["levels"]  # that of a reader is its own


@pytest.mark.parametrize("name", ["kafka-3.9.1", "kafka-4.2.0"])
def test_of_a_recorded_log_one_line_of_hundreds_is_kept(name):
    for path in sorted((DATA / "recordings" / name).glob("broker-*/kafka-request.log.gz")):
        assert gzip.decompress(path.read_bytes()).count(b'KeyName":"API_VERSIONS"') > 100
        assert len(versions(read(path)[0])) == 1


def test_a_recorded_upgrade_of_a_broker_shows_both_releases():
    kept, _ = read(UPGRADE)
    texts = dict(zip(kept.positions, kept.texts, strict=True))
    levels = [b'"minVersion":7,"maxVersion":33}' in texts[position] for position in versions(kept)]
    assert levels == [False, False, True, True]  # two listeners, twice
