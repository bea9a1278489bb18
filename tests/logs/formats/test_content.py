"""What is in a file decides whether it is a log, and whose; what is left out is told."""

import gzip
import json
import os
import socket
import struct
from pathlib import Path

import pytest

from jobs.logs.clients.judge import ClientJudge
from jobs.logs.content import tree
from jobs.logs.content.verdict import Writer, writer_of
from jobs.logs.files import discover, left_out_in
from jobs.logs.mark import Mark
from tests.logs.envelopes.wrapping import CLOUDWATCH, COLLECTORS, CONTAINERS, PATTERNS
from tests.logs.formats.test_archives import found, kinds
from tests.logs.log_makers import coordinator, other, request, stamp, write
from tests.logs.spooling import Consumer, run

WRAPPED = {**CONTAINERS, **COLLECTORS, **CLOUDWATCH, "colours": PATTERNS["%highlight"], "Strimzi": PATTERNS["strimzi-log4j1"]}
DATA = Path(__file__).parents[2] / "data"
JAVA_CLIENT = (
    b"2026-11-21 06:00:01,000 INFO [main] o.a.k.c.c.internals.ConsumerCoordinator - [Consumer clientId=c-1, groupId=payments]"
    b" Request joining group due to: group is already rebalancing"
)
LIBRDKAFKA = b"%4|1795240801.000|MAXPOLL|c-2#consumer-1| [thrd:main]: Application maximum poll interval (300000ms) exceeded by 12ms"
INNER_CLIENT = (
    f"{stamp(0)} INFO [NodeToControllerChannelManager id=1 name=heartbeat] Node 1 disconnected. (org.apache.kafka.clients.NetworkClient)"
)


def server(start=0, count=300, broker=1):
    return [coordinator(start + i * 1_000, f"Stabilized group g{broker} generation {i} with 3 members.") for i in range(count)]


@pytest.mark.parametrize(
    "name", ["kafkaServer.out", "kafka_logs.txt", "journal.txt", "export.json", "export.jsonl", "logs.csv", "messages", "a.2026-11-21"]
)
def test_a_log_of_any_name(tmp_path, name):
    write(tmp_path / "eu" / "b1" / name, [b"some text of a script", *server()])
    assert found(tmp_path) == [("eu", "b1", f"eu/b1/{name}")]
    consumer, [report] = run(tmp_path, tmp_path / "out")
    assert (report.lines_read, consumer.faults()) == (301, {})
    assert len(consumer.of("line")) == 300


@pytest.mark.parametrize("name", WRAPPED)
def test_a_log_in_any_envelope(name):
    for line in (coordinator(5), request(5), other(5)):
        assert writer_of(b"a line of something else\n" + WRAPPED[name](line) + b"\n") is Writer.BROKER


@pytest.mark.parametrize(("line", "writer"), [
    (JAVA_CLIENT, Writer.CLIENT),
    (b"app-1  | " + LIBRDKAFKA, Writer.CLIENT),
    (b"[2026-11-21 06:00:00,000] INFO [Worker clientId=connect-1, groupId=connect] Rebalance started (o.a.k.c.X)", Writer.CLIENT),
    (b"2026-11-21 06:00:00,000 INFO kafka.coordinator.consumer: Leaving consumer group (group).", Writer.CLIENT),  # of kafka-python
    (b"2026-11-21 06:00:00,000 INFO [main] com.acme.App - the consumers of this group are up", Writer.UNKNOWN),
    (b"[2026-11-21 06:00:00,000] INFO binding to port 2181 (org.apache.zookeeper.server.NIOServerCnxnFactory)", Writer.UNKNOWN),
    (b'    assert parse("[2026-11-21 06:00:00,000] INFO x (kafka.server.KafkaServer)")', Writer.UNKNOWN),
    (INNER_CLIENT.encode(), Writer.UNKNOWN),  # of a broker, by a class that consumers have too
    (b"[2026-11-21 06:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)", Writer.BROKER),
    (b"[2026-11-21 06:00:00,000] INFO Registered MBean (kafka.utils.Log4jControllerRegistration$)", Writer.BROKER),
])  # fmt: skip
def test_whose_line_it_is(line, writer):
    assert writer_of(b"\n" + line + b"\r\n") is writer


def test_a_broker_may_log_its_own_consumers():
    assert writer_of(b"\n".join([JAVA_CLIENT, LIBRDKAFKA, coordinator(0)])) is Writer.BROKER


def test_recordings_are_what_they_are():
    """Every log of the recordings is a broker's or a client's by its content alone."""
    logs = [*(DATA / "recordings").glob("*/*/*.log.gz"), *(DATA / "staged").glob("*/*/*.log.gz")]
    assert len(logs) > 100
    wrong = {}
    for path in logs:
        with gzip.open(path) as log:
            writer = writer_of(log.read(tree.SAMPLE_BYTES))
        if writer is not (Writer.CLIENT if path.parent.name == "clients" else Writer.BROKER):
            wrong[str(path.relative_to(DATA))] = writer
    assert wrong == {}


def test_logs_of_clients_anywhere(tmp_path):
    write(tmp_path / "server.log", server())
    write(tmp_path / "payments.out", [b"starting", JAVA_CLIENT])
    write(tmp_path / "stderr.log", [LIBRDKAFKA])
    assert found(tmp_path) == [
        ("default", "broker-0", "server.log"), ("default", "clients", "payments.out"), ("default", "clients", "stderr.log")
    ]  # fmt: skip
    assert found(tmp_path / "payments.out") == [("default", "clients", "payments.out")]
    consumer, _ = run(tmp_path, tmp_path / "out")
    client = [row for row in consumer.of("line") if row["broker"] == "clients"]
    # A line of librdkafka does not name its group, and no folder does: not even the one in which the log lies.
    assert {(row["origin"], row["context"]) for row in client} == {("payments.out", None), ("stderr.log", None)}


def test_a_folder_of_an_application_is_no_broker(tmp_path):
    write(tmp_path / "prod" / "b1" / "server.log", server())
    write(tmp_path / "prod" / "payments" / "deep" / "app.log", [LIBRDKAFKA])
    write(tmp_path / "prod" / "app.txt", [JAVA_CLIENT])
    write(tmp_path / "prod" / "all.txt", server(broker=2))
    assert found(tmp_path) == [
        ("prod", "b1", "prod/b1/server.log"), ("prod", "broker-0", "prod/all.txt"),
        ("prod", "clients", "prod/app.txt"), ("prod", "clients", "prod/payments/deep/app.log"),
    ]  # fmt: skip
    assert ClientJudge(Mark()).context(LIBRDKAFKA) == ""


def test_a_document_of_one_line_is_a_log_if_its_entries_are_lines(tmp_path):
    entries = [{"timestamp": 1_795_241_359_456, "message": line.decode()} for line in server()]
    (tmp_path / "array.json").write_text(json.dumps(entries))
    (tmp_path / "events.json").write_text(json.dumps({"nextToken": "x", "events": entries}) + "\n")
    (tmp_path / "other.json").write_text(json.dumps({"events": [{"message": "of something else"}]}))
    assert kinds(tmp_path) == {".json without a line of a broker or consumer": 1, "logs that repeat array.json": 1}
    assert [origin for _, _, origin in found(tmp_path)] == ["array.json"]


def test_a_file_becomes_a_log_when_it_has_lines_of_one(tmp_path):
    path = write(tmp_path / "out.txt", [b"starting"])
    assert found(tmp_path) == []
    assert kinds(tmp_path) == {".txt without a line of a broker or consumer": 1}
    write(path, [b"starting", *server()])
    assert len(found(tmp_path)) == 1
    path.unlink()
    assert (found(tmp_path), kinds(tmp_path)) == ([], {})


def test_what_is_left_out_is_told(tmp_path):
    core = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<H", 4) + bytes(99)
    files = {
        "README.md": b"\n".join(server()), "Main.class": b"\xca\xfe\xba\xbe\0\0", "libs/a.jar": b"PK\x03\x04", "libs/b.jar": b"PK\x03\x04",
        "core.812": core, "java_pid7.hprof": b"JAVA PROFILE 1.0.2\0", "shot": b"\x89PNG\r\n", "part-0": b"PAR1\x15\x04",
        "all.7z": b"7z\xbc\xaf\x27\x1c\0", "notes": b"text\n", "x.txt": b"text\n", "y.TXT": b"text\n", "empty.out": b"",
        "blob": bytes(range(256)), "orders-0/00000000000000000000.log": b"\0" * 99, "orders-0/00000000000000000000.timeindex": b"\0",
        "orders-0/leader-epoch-checkpoint": b"0\n0\n",
        ".hidden/server.log": b"x", "_part": b"x", "lake/findings/_delta_log/0.json": b"{}", "lake/findings/server.log": b"x",
        "spark/commits/0": b"v1", "spark/offsets/0": b"v1", "spark/metadata": b"{}", "web/node_modules/a/server.log": b"x",
    }  # fmt: skip
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "null.txt").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as server_socket:
        server_socket.bind(os.path.relpath(tmp_path / "s.sock"))
        assert found(tmp_path) == []
        assert kinds(tmp_path) == {
            ".md": 1, ".class": 1, ".jar": 2, "core dumps": 1, "heap dumps": 1, "images": 1, "Parquet files": 1,
            "7-Zip archives that have to be unpacked first": 1, "other text": 1, ".txt without a line of a broker or consumer": 2,
            "empty files": 1, "other binary files": 1, "Kafka's data segments and indexes": 3, "hidden files and folders": 2,
            "folders of Delta tables": 1, "folders of Spark checkpoints": 1, "folders named node_modules": 1,
            "named pipes": 1, "sockets": 1, "devices": 1, "dead links": 1,
        }  # fmt: skip
        told = left_out_in(tmp_path)
    assert told.startswith("Left out 26: Kafka's data segments and indexes 3 (such as orders-0/00000000000000000000.log), ")
    assert told.endswith(", others 13")


def test_a_root_that_is_a_table(tmp_path):
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    write(tmp_path / "lake" / "server.log", server())
    assert left_out_in(tmp_path / "lake") == "Left out 1: folders of Delta tables 1 (lake)"


def test_what_cannot_be_read_is_told(tmp_path, monkeypatch):
    """Either as left out or, if it may be a log, by who tries to read it."""
    for name in ("a.log", "b.log", "c.txt", "d.png"):
        write(tmp_path / name, server())
    (tmp_path / "locked").mkdir()
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "dead.log").symlink_to(tmp_path / "nowhere")
    real_open, real_list = os.open, os.scandir

    def refuse(real, *names):
        def opened(path, *args):
            if Path(path).name in names:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args)

        return opened

    monkeypatch.setattr(os, "open", refuse(real_open, "a.log", "c.txt", "d.png", "locked"))
    monkeypatch.setattr(os, "scandir", refuse(real_list, "locked"))
    assert [origin for *_, origin in found(tmp_path)] == ["a.log", "b.log", "c.txt", "dead.log", "locked", "pipe.log"]
    assert kinds(tmp_path) == {".png": 1}
    _, [report] = run(tmp_path, tmp_path / ".out")
    assert report.lines_read == 300
    monkeypatch.undo()
    assert [origin for *_, origin in found(tmp_path)] == ["a.log", "b.log", "dead.log", "pipe.log"]  # c.txt repeats one of them
    monkeypatch.setattr(os, "scandir", refuse(real_list, tmp_path.name))
    with pytest.raises(PermissionError):
        discover(tmp_path)


def test_only_what_changed_is_looked_at_again(tmp_path, monkeypatch):
    for n in range(20):
        write(tmp_path / f"b{n % 3}" / f"{n}.txt", server(broker=n) if n % 2 else [b"x"])
    first = found(tmp_path)
    assert len(first) == 10
    looked = []
    monkeypatch.setattr(tree, "writer_of", lambda sample, real=writer_of: looked.append(sample) or real(sample))
    assert found(tmp_path) == first
    assert looked == []
    write(tmp_path / "b0" / "0.txt", server(broker=99))
    assert len(found(tmp_path)) == 11
    assert len(looked) == 1


class TestTheConsoleRepeatsTheLog:
    """A broker writes the lines of server.log to its console too."""

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("wrap", ["docker compose logs", "journalctl", "colours"])
    def test_of_the_whole_time_or_its_end(self, tmp_path, wrap, packed):
        lines = server(count=4_000)
        console = [b"OpenJDK 64-Bit Server VM warning", *map(WRAPPED[wrap], lines[2_500:])]
        for name, data in (("server.log", lines), ("kafkaServer.out", console), ("kafka-request.log", [request(i) for i in range(50)])):
            path = write(tmp_path / "b1" / name, data)
            if packed:
                path.write_bytes(gzip.compress(path.read_bytes()))
        assert [origin for *_, origin in found(tmp_path)] == ["b1/kafka-request.log", "b1/server.log"]
        assert kinds(tmp_path) == {"logs that repeat server.log": 1}

    def test_of_another_broker_it_repeats_nothing(self, tmp_path):
        write(tmp_path / "server.log", server(count=2_000, broker=1))
        write(tmp_path / "other.txt", server(count=2_000, broker=2))
        assert len(found(tmp_path)) == 2

    def test_of_another_time_it_repeats_nothing(self, tmp_path):
        write(tmp_path / "server.log", server(count=2_000))
        write(tmp_path / "before.txt", server(start=-9_000_000, count=2_000))
        write(tmp_path / "after.txt", server(start=9_000_000, count=2_000))
        assert len(found(tmp_path)) == 3

    def test_one_file_of_all_brokers_repeats_none(self, tmp_path):
        write(tmp_path / "server.log", server(count=600, broker=1))
        three = [b"b%d  | " % broker + line for lines in zip(*(server(count=600, broker=b) for b in (1, 2, 3)), strict=True)
                 for broker, line in enumerate(lines)]  # fmt: skip
        write(tmp_path / "all.txt", three)
        assert len(found(tmp_path)) == 2

    def test_while_both_grow(self, tmp_path):
        """The console is a line behind or ahead of the log, and both begin with the broker."""
        lines = server(count=40)
        consumer = Consumer()
        for end in range(1, 40, 3):
            write(tmp_path / "in" / "b1" / "kafkaServer.out", [b"VM warning", *lines[: end + end % 2]])
            write(tmp_path / "in" / "b1" / "server.log", lines[:end])
            assert [origin for *_, origin in found(tmp_path / "in")] == ["b1/server.log"]
            run(tmp_path / "in", tmp_path / "out", consumer)
        assert [row["position"] for row in consumer.of("line")] == list(range(1, 38))
