"""One file with the lines of several containers: each is read as a log of its own, and each line counts once."""

import gzip
import re
from datetime import timedelta

import pytest

from jobs.logs.bytes import open_log
from jobs.logs.content.verdict import is_of_broker, is_of_client
from jobs.logs.spool import Spool, SpoolSettings
from jobs.logs.survey.block_times import blocks_of
from jobs.logs.survey.containers import Containers, Share, SharedBytes, container_of
from jobs.logs.survey.views import told_of_undated
from tests.logs.log_makers import coordinator, request, stamp, write
from tests.logs.spooling import Consumer, run
from tests.logs.survey.mixing import moved, shuffled

OWN = b"[2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group g generation 5 (kafka.coordinator.group.GroupCoordinator)"


@pytest.mark.parametrize(
    ("before", "name"),
    [
        (b"", ""),
        (b"kafka-1     | ", "kafka-1"),
        (b"\x1b[36mkafka-1  | \x1b[0m", "kafka-1"),
        (b"kafka_broker.1.x7f3@node-1    | ", "kafka_broker.1.x7f3@node-1"),
        (b"kafka-1  | 2026-11-21T06:09:19.456789012Z ", "kafka-1"),
        (b"[pod/kafka-0/kafka] ", "kafka-0/kafka"),
        (b"[pod/kafka-0/kafka] 2026-11-21T06:09:19.456789012Z ", "kafka-0/kafka"),
        (b"kafka-0 kafka ", "kafka-0/kafka"),
        (b"Nov 21 06:09:19 node-7 kafka-server-start.sh[812]: ", "node-7/kafka-server-start.sh"),
        (b"2026-11-21T06:09:19+0000 node-7 payments[9]: ", "node-7/payments"),
        (b"2026-11-21T06:09:19.123456+00:00 node-7 payments[10]: ", "node-7/payments"),
        (b"1795241359.456789 node-7 payments[10]: ", "node-7/payments"),
        (b"Sat 2026-11-21 06:09:19 UTC node-7 payments[10]: ", "node-7/payments"),
        (b"<134>1 2026-11-21T06:09:19.456Z node-7 kafka 812 - - ", "node-7/kafka"),
        (b"broker-1/server.log:", "broker-1/server.log"),
        (b"broker-1/server.log:812:", "broker-1/server.log"),
        (b"[main] ", ""),  # a thread
        (b"INFO | ", ""),  # a level
        (b"2026-11-21T06:09:19Z INFO kafka.consumer: ", ""),
        (b"2026-11-21T06:09:19Z kafka.consumer: ", ""),  # a logger
    ],
)
def test_who_wrote_a_line(before, name):
    assert container_of(before + OWN) == name


def test_the_pod_in_json():
    assert container_of(b'{"log":"x","kubernetes":{"pod_name":"kafka-0","container_name":"kafka"}}') == "kafka-0"
    assert container_of(b'{"kubernetes":{"pod":{"name":"pay-7"}},"message":"x"}') == "pay-7"
    assert container_of(b'{"message":"x"}') == ""


def joined(ms: int, generation: int, client: str = "c1") -> bytes:
    member = f"{client}-0a1b2c3d-0000-4000-8000-00000000abcd"
    sentence = f"Successfully joined group with generation Generation{{generationId={generation}, memberId='{member}', protocol='range'}}"
    logger = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
    return f"{stamp(ms)} INFO [Consumer clientId={client}, groupId=g] {sentence} ({logger})".encode()


def stabilized(ms: int, generation: int) -> bytes:
    sentence = f"Stabilized group g generation {generation} (__consumer_offsets-9) with 2 members"
    return f"{stamp(ms)} INFO [GroupCoordinator 1]: {sentence} (kafka.coordinator.group.GroupCoordinator)".encode()


def test_what_is_of_a_client_and_what_of_a_broker():
    native = b'%7|1795241359.456|CGRPJOIN|a#consumer-1| [thrd:main]: Group "g": join'
    assert is_of_client(joined(0, 5))
    assert is_of_client(native)
    assert not is_of_client(native, kept=True)  # a broker's log with such a line alone is one of a broker
    assert not is_of_client(OWN)
    assert is_of_broker(OWN)
    assert is_of_broker(OWN[4:])  # damaged
    assert not is_of_broker(b"[2026-11-21 06:09:19,456] INFO Kafka version: 4.2.0 (org.apache.kafka.common.utils.AppInfoParser)")


def containers(hours=0, lines=40):
    """A broker, two applications in another zone, and a database."""
    by = timedelta(hours=hours)
    return {
        "kafka": [b"kafka    | " + stabilized(1_000 * i, i) for i in range(lines)],
        "pay-1": [b"pay-1    | " + moved(joined(1_000 * i + 20, i, "pay-1"), by) for i in range(lines)],
        "pay-2": [b"pay-2    | " + moved(joined(1_000 * i + 30, i, "pay-2"), by) for i in range(lines)],
        "db": [b"db       | 2026-11-21 05:00:%02d.123 UTC [1] LOG:  checkpoint" % (i % 60) for i in range(lines)],
        "": [b"", b"Attaching to kafka, pay-1", b"\t"],
    }


@pytest.mark.parametrize("prefixed", [True, False])
def test_each_line_is_of_one_share_and_none_moves(tmp_path, prefixed):
    lines = shuffled(containers(), 1, 5)
    lines = lines if prefixed else [line.partition(b"| ")[2] or line for line in lines]
    text = b"\n".join(lines)
    (tmp_path / "all.log").write_bytes(text)
    found = Containers()
    for _, block in blocks_of(open_log(tmp_path / "all.log")):
        found.look_at(block)
    shares = [share for share, _ in found.shares()]
    assert [(share.container, share.clients) for share in shares] == (
        [("kafka", None), ("pay-1", None), ("pay-2", None), ("", True), ("", False)] if prefixed else [("", True), ("", False)]
    )
    shown = []
    for share in shares:
        log = SharedBytes(open_log(tmp_path / "all.log"), share)
        data = b"".join(iter(lambda log=log: log.read(997), b""))
        assert [len(line) for line in data.split(b"\n")] == [len(line) for line in lines]
        shown.append(data.split(b"\n"))
    for number, line in enumerate(lines):
        counted = [share for share, own in zip(shares, shown, strict=True) if not share.is_elsewhere(own[number])]
        assert len(counted) == 1, line
        assert all(own[number] == line or own[number].isspace() or not line for own in shown)


def test_a_file_of_one_writer_is_not_divided():
    found = Containers()
    for text in ([OWN] * 3, [b"kafka  | " + OWN] * 3, [joined(0, 1)] * 3, [b"  at kafka.X"]):
        found = Containers()
        found.look_at(b"\n" + b"\n".join(text) + b"\n")
        assert found.shares() == []


def rows_of(consumer: Consumer) -> set:
    return {(r["broker"], r["position"], r["at"], r["text"], r["fault"], r["context"]) for r in consumer.of("line")}


@pytest.mark.parametrize("chunk", [1, 7, 1_000])
@pytest.mark.parametrize("slice_lines", [3, 100_000])
def test_any_order_of_containers_in_any_slices(tmp_path, chunk, slice_lines):
    lines = shuffled(containers(hours=9), 2, chunk)
    write(tmp_path / "in/all.log", lines)
    consumer, reports = run(tmp_path / "in", tmp_path / "out", slice_lines=slice_lines)
    assert consumer.counts() == {"all.log": len(lines)}
    assert sum(report.lines_read for report in reports) == len(lines)
    found = rows_of(consumer)
    assert len(found) == 120
    assert {fault for _, _, _, _, fault, _ in found} == {None}
    assert all(lines[position - 1].endswith(text.encode()) for _, position, _, text, _, _ in found)
    at = sorted((at, broker) for broker, _, at, _, _, _ in found)
    assert [broker for _, broker in at] == ["broker-1", "clients", "clients"] * 40  # so their times fit
    assert {(row["broker"], row["record"]) for row in consumer.of("end")} == {("broker-1", "end"), ("clients", "end")}


def test_a_run_that_is_interrupted_goes_on_in_each_container(tmp_path):
    write(tmp_path / "in/all.log", shuffled(containers(hours=-3), 3, 4))
    whole, _ = run(tmp_path / "in", tmp_path / "whole")
    consumer = Consumer()
    for _ in range(20):
        spool = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(slice_lines=9))
        for _ in spool.slices():
            break
        consumer.take(tmp_path / "out")
    run(tmp_path / "in", tmp_path / "out", consumer, slice_lines=9)
    assert rows_of(consumer) == rows_of(whole)
    assert consumer.counts() == whole.counts()


def test_containers_that_come_later_are_read_by_what_they_say(tmp_path):
    parts = containers()
    write(tmp_path / "in/all.log", parts["kafka"] + parts["pay-1"])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    with (tmp_path / "in/all.log").open("ab") as file:
        file.write(b"\n".join(parts["pay-2"] + parts["db"]) + b"\n")
    run(tmp_path / "in", tmp_path / "out", consumer)
    assert len(rows_of(consumer)) == 120
    assert consumer.counts() == {"all.log": 160}


@pytest.mark.parametrize(("first", "lines"), [("pay-1", 600), ("db", 2_400)])
def test_a_client_or_a_database_first_and_the_broker_far_behind(tmp_path, first, lines):
    before, parts = containers(lines=lines)[first], containers()
    assert sum(map(len, before)) > 64 << 10  # which is looked at to tell whose the file is
    write(tmp_path / "in/all.txt", before + parts["pay-1"] + parts["kafka"])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"broker-1", "clients"}


def test_one_file_of_several_clients(tmp_path):
    parts = containers()
    native = [
        b"pay-3 | %%4|1795241%d.456|MAXPOLL|pay-3#consumer-1| [thrd:main]: Application maximum poll interval (1ms) exceeded by 1ms" % i
        for i in range(360, 400)
    ]
    write(tmp_path / "in/clients/all.log", shuffled({"1": parts["pay-1"], "2": parts["pay-2"], "3": native}, 4, 50))
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"clients"}
    assert [row["fault"] for row in consumer.of("line")] == [None] * 120
    assert consumer.counts() == {"clients/all.log": 120}


def test_a_container_whose_lines_do_not_show_its_broker_names_it(tmp_path):
    lines = shuffled({"kafka": [b"kafka-b | " + request(1_000 * i) for i in range(9)], "app": [b"app | " + joined(0, 1)]}, 5, 3)
    write(tmp_path / "in.log", lines)
    consumer, _ = run(tmp_path / "in.log", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"kafka-b", "clients"}


def test_brokers_of_several_containers_keep_the_names_of_their_nodes(tmp_path):
    one, two = coordinator(0), coordinator(500).replace(b"id=1", b"id=2")
    write(tmp_path / "in/all.log", shuffled({"1": [b"a | " + one] * 9, "2": [b"b | " + two] * 9}, 6, 2))
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert {row["broker"] for row in consumer.of("line")} == {"broker-1", "broker-2"}


def test_a_share_knows_its_lines():
    share = Share("a/b", None, ("a/b",))
    assert share.has(b"a b " + OWN)
    assert not share.has(b"c b " + OWN)
    assert Share("", None, ("a/b",)).shown(b"c b " + OWN).isspace()


def test_a_file_that_is_cut_off_is_told_once(tmp_path):
    path = write(tmp_path / "in/all.log", shuffled(containers(), 8, 5))
    whole = gzip.compress(path.read_bytes())
    path.unlink()
    (tmp_path / "in/all.log.gz").write_bytes(whole[: len(whole) // 2])
    spool = Spool(tmp_path / "in", tmp_path / "out")
    consumer = Consumer()
    for _ in spool.slices():
        consumer.take(tmp_path / "out")
    assert [row["fault"] for row in consumer.of("line") if row["fault"]] == ["DAMAGED_FILE"]
    assert len(spool.troubles.summary()) == 1


def test_an_export_of_several_pods_that_lists_its_newest_line_first(tmp_path):
    lines = sorted(
        (line for name, part in containers(hours=9).items() if name in ("kafka", "pay-1", "pay-2") for line in part),
        key=lambda line: line[11:36],
    )
    both = sorted(lines, key=lambda line: int(re.search(rb"eneration (?:Generation{generationId=)?(\d+)", line)[1]), reverse=True)
    write(tmp_path / "in/all.log", both)
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert len(rows_of(consumer)) == 120
    assert {fault for _, _, _, _, fault, _ in rows_of(consumer)} == {None}
    assert consumer.counts() == {"all.log": 120}


FENCED = (
    b"The broker rejected this static consumer since another consumer with the same group.instance.id has registered with a different"
    b" member.id."
)


@pytest.mark.parametrize("name", [b"", b"app-1         | ", b"app-1 main "])
def test_a_stack_trace_behind_a_name_needs_no_time_of_its_own(tmp_path, name):
    """docker compose and stern write the name before each line of it, too; stern's is known by the time behind it."""
    said = (
        b"[2026-11-21 06:26:45,171] ERROR [Consumer clientId=app-1, groupId=g] fenced (x.Y)",
        b"org.apache.kafka.common.errors.FencedInstanceIdException: " + FENCED,
        b"\tat x.Y.run(Y.java:1)",
    )
    with open_log(write(tmp_path / "out.txt", [name + line for line in said])) as log:
        assert told_of_undated(log, alone=True) == ""
