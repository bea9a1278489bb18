"""Files that cannot be read, or not to their ends: they are named, and all others are read."""

import gzip
import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.common.errors import UserError
from jobs.logs import slicer
from jobs.logs.faults import DAMAGED_FILE
from jobs.logs.spool import Spool, SpoolSettings
from jobs.logs.troubles import by_reason
from tests.logs.log_makers import coordinator, other, request, write
from tests.logs.spooling import Consumer

LINES = [coordinator(second * 1_000) for second in range(20)]


@contextmanager
def without_privileges():
    """Root may read everything: as root, works as another user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def spool_of(logs, folder, *, told=None, **settings):
    spool = Spool(logs, folder, settings=SpoolSettings(**settings))
    spool.troubles.tell = (told if told is not None else []).append
    return spool


def read(spool, folder):
    consumer = Consumer()
    for _ in spool.slices():
        consumer.take(folder)
    return consumer


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path):
    logs = tmp_path / "logs"
    write(logs / "server.log", LINES)
    os.mkfifo(logs / "pipe.log")
    (logs / "device.log").symlink_to("/dev/full")
    (logs / "dead.log").symlink_to(tmp_path / "nowhere")
    (logs / "broken.log").symlink_to("/proc/self/mem")  # its first byte cannot be read: an I/O error
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(logs / "socket.log"))
    write(logs / "folder.log" / "server.log", [other(1)])
    told = []
    spool = spool_of(logs, tmp_path / "spool", told=told)
    with listener:
        consumer = read(spool, tmp_path / "spool")
    assert consumer.counts() == {"server.log": 20, "folder.log/server.log": 1}
    assert sorted(told) == [
        f"1 file not read: Input/output error: {logs / 'broken.log'}",
        f"1 file not read: a link to a missing file: {logs / 'dead.log'}",
        f"1 file not read: it is a device, not a file: {logs / 'device.log'}",
        f"1 file not read: it is a named pipe, not a file: {logs / 'pipe.log'}",
        f"1 file not read: it is a socket, not a file: {logs / 'socket.log'}",
    ]
    assert spool.troubles.summary() == sorted(told)
    spool.scan()
    assert len(told) == 5  # each is told once


def test_files_and_folders_that_this_user_may_not_read():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        with without_privileges():
            logs = folder / "logs"
            write(logs / "server.log", LINES)
            write(logs / "secret.log", LINES).chmod(0)
            write(logs / "locked" / "server.log", LINES).parent.chmod(0)
            spool = spool_of(logs, folder / "spool")
            consumer = read(spool, folder / "spool")
            assert spool.troubles.summary() == [f"2 files not read: Permission denied: {logs / 'locked'}, {logs / 'secret.log'}"]
            (logs / "locked").chmod(0o700)
            (logs / "secret.log").chmod(0o600)
            again = spool_of(logs, folder / "spool")
            consumer = read(again, folder / "spool")
    assert consumer.counts() == {"locked/server.log": 20}  # secret.log has the content of server.log
    assert again.troubles.summary() == []


def test_a_log_that_cannot_be_read_to_its_end_is_read_on_when_it_can(tmp_path, monkeypatch):
    write(tmp_path / "logs" / "server.log", LINES)
    reads = os.pread

    def fail_after(file, size, offset):
        if offset >= 1_000:
            raise OSError(5, "Input/output error")
        return reads(file, min(size, 1_000), offset)

    spool = spool_of(tmp_path / "logs", tmp_path / "spool")
    monkeypatch.setattr(os, "pread", fail_after)
    consumer = read(spool, tmp_path / "spool")
    (damage,) = [row for row in consumer.of("line") if row["fault"] == DAMAGED_FILE]
    assert damage["text"] == "reading failed: Input/output error"
    assert spool.troubles.summary() == [
        f"1 file damaged, read up to there: reading failed: Input/output error: {tmp_path / 'logs' / 'server.log'}"
    ]
    monkeypatch.undo()
    spool = spool_of(tmp_path / "logs", tmp_path / "spool")
    rest = read(spool, tmp_path / "spool")
    assert consumer.counts()["server.log"] - 1 + rest.counts()["server.log"] == 20
    assert spool.troubles.summary() == []


def test_a_log_that_is_gone_before_its_end_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr(slicer, "_MOST_OPEN", 0)  # it is closed until its turn comes, as one of thousands
    logs = tmp_path / "logs"
    later = [other(3_600_000 + ms) for ms in range(100)]
    write(logs / "server.log", later)
    write(logs / "kafka-request.log", [request(ms * 100) for ms in range(3_000)])
    told = []
    spool = spool_of(logs, tmp_path / "spool", told=told, slice_lines=1_000)
    slices = spool.slices()
    next(slices)
    (logs / "server.log").unlink()
    for _ in slices:
        pass
    spool.scan()
    assert told == spool.troubles.summary() == [f"1 file not read: gone before the end was read: {logs / 'server.log'}"]
    write(logs / "server.log.1", later)  # it was only moved
    spool.scan()
    assert spool.troubles.summary() == []


def test_a_truncated_archive_is_told_in_a_row_and_in_the_summary(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "server.log.1.gz").write_bytes(gzip.compress(b"\n".join(LINES))[:-20])
    spool = spool_of(logs, tmp_path / "spool")
    consumer = read(spool, tmp_path / "spool")
    assert [row["text"] for row in consumer.of("line") if row["fault"] == DAMAGED_FILE] == ["the gzip data ends in the middle"]
    said = [f"1 file damaged, read up to there: the gzip data ends in the middle: {logs / 'server.log.1.gz'}"]
    assert spool.troubles.summary() == said
    assert (spool.troubles.unread, len(spool.troubles)) == ({}, 1)
    again = spool_of(logs, tmp_path / "spool")
    assert read(again, tmp_path / "spool").of("line") == []
    assert again.troubles.summary() == said  # a later run has nothing new, and the file is as damaged as before


def test_a_damage_stays_told_where_an_earlier_part_of_the_file_is_read_last(tmp_path):
    """Several logs one after the other are read by time: the end of this file comes first."""
    late, early = ([coordinator(second * 1_000 + day * 86_400_000) for second in range(200)] for day in (3, 0))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log.gz").write_bytes(gzip.compress(b"\n".join([*late, *early]))[:-20])
    spool = spool_of(tmp_path / "logs", tmp_path / "spool")
    read(spool, tmp_path / "spool")
    assert spool.notes == ["server.log.gz holds 2 logs, one after the other, of broker-1"]
    assert len(spool.troubles) == 1


def test_many_files_of_one_reason_are_one_line():
    files = {Path(f"{number:03}.log"): "Permission denied" for number in range(1_000)}
    assert by_reason("not read", files) == ["1,000 files not read: Permission denied: 000.log, 001.log, 002.log and 997 more"]


@pytest.mark.parametrize(
    ("name", "lines", "understood"),
    [
        ("server.log", [other(1)], True),
        ("kafka-request.log", [request(1, "METADATA", 3)], True),
        ("clients/app.log", [b"2026-11-21 06:00:00,000 INFO [Consumer clientId=c, groupId=g] Request joining group due to: x"], True),
        ("clients/app.log", [b"2026-11-21 06:00:00,000 INFO done"], False),
        ("offsets/dump.jsonl", [b'{"timestamp":1795242559456,"key":"AAEABm9yZGVycw==","value":"AAMACGNv"}'], True),
        ("server.log", [b"Nov 21 06:00:00 host sshd[1]: Accepted publickey", b"nothing"], False),
        ("server.log", [], True),
        ("server.log.zst", [b"\x28\xb5\x2f\xfd" + bytes(50)], False),  # none can be read
    ],
)
def test_whether_anything_was_understood(tmp_path, name, lines, understood):
    write(tmp_path / "logs" / name, lines)
    spool = spool_of(tmp_path / "logs", tmp_path / "spool")
    read(spool, tmp_path / "spool")
    assert spool.understood is understood
    again = spool_of(tmp_path / "logs", tmp_path / "spool")
    read(again, tmp_path / "spool")
    assert again.understood is understood  # nothing new was read


def test_another_time_zone_than_that_of_the_lines_read_is_refused(tmp_path):
    write(tmp_path / "logs" / "prod" / "b1" / "server.log", LINES)
    read(spool_of(tmp_path / "logs", tmp_path / "spool", timezone="Europe/Berlin"), tmp_path / "spool")
    same = spool_of(tmp_path / "logs", tmp_path / "spool", timezone="UTC", timezones={"prod": "Europe/Berlin"})
    same.check_zones("")
    for settings in ({"timezone": "UTC"}, {"timezone": "Europe/Berlin", "timezones": {"prod": "UTC"}}):
        with pytest.raises(UserError, match="cluster prod were read with time zone Europe/Berlin, not UTC"):
            spool_of(tmp_path / "logs", tmp_path / "spool", **settings).check_zones("give a new lakehouse")
