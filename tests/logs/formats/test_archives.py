"""Archives are folders: their logs are found, read and found again, and hostile ones do no harm."""

import gzip
import io
import os
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from jobs.answers.evidence import LineTime, find_lines
from jobs.logs.bytes import open_log, signature_of
from jobs.logs.files import discover, left_out
from jobs.logs.formats import archives
from jobs.logs.formats.archives import MOST_NESTED
from jobs.logs.lines import numbered_lines
from jobs.logs.mark import KeptLines
from jobs.logs.spool import Spool
from tests.logs.formats.packing import ARCHIVERS, PACKERS, tar, zipped
from tests.logs.log_makers import coordinator, request
from tests.logs.reading import read, reader, rows
from tests.logs.spooling import run

SERVER = b"".join(coordinator(i * 10) + b"\n" for i in range(3_000))
REQUESTS = b"".join(request(i * 10) + b"\n" for i in range(500))
FILES = {
    "broker-1/server.log": SERVER,
    "broker-1/kafka-request.log.2026-11-21-06.gz": gzip.compress(REQUESTS),
    "broker-2/server.log.xz": PACKERS["xz"](SERVER),
    "broker-2/console.txt": SERVER.decode().encode("utf-16"),
    "README.md": b"# Logs",
}


def found(root: Path) -> list[tuple[str, str, str]]:
    return [(f.cluster, f.broker, f.origin) for f in discover(root)]


def kinds(root: Path) -> dict[str, int]:
    return {one.kind: one.number for one in left_out(root)}


def damage(path: Path) -> str:
    log, kept = reader(path), KeptLines()
    log.read(kept)
    assert log.tell_damage(kept)
    log.close()
    return kept.texts[-1].decode()


@pytest.mark.parametrize("name", ARCHIVERS)
def test_an_archive_is_a_folder(tmp_path, name):
    (tmp_path / "in").mkdir()
    archive = tmp_path / "in" / name
    archive.write_bytes(ARCHIVERS[name](FILES))
    cluster = name.partition(".")[0]
    assert found(tmp_path / "in") == [
        (cluster, "broker-1", f"{name}/broker-1/kafka-request.log.2026-11-21-06.gz"),
        (cluster, "broker-1", f"{name}/broker-1/server.log"),
        (cluster, "broker-2", f"{name}/broker-2/server.log.xz"),
    ]
    assert found(archive) == [(c, b, origin.removeprefix(f"{name}/")) for c, b, origin in found(tmp_path / "in")]
    assert kinds(archive) == {".md": 1, "logs that repeat server.log.xz": 1}
    for text, log in [(SERVER, "broker-1/server.log"), (SERVER, "broker-2/server.log.xz"), (SERVER, "broker-2/console.txt")]:
        (tmp_path / "plain").write_bytes(text)
        assert read(archive / log) == read(tmp_path / "plain")
    assert signature_of(archive / "broker-1/server.log") == (len(SERVER), archive.stat().st_mtime_ns)
    assert open_log(archive / "broker-1/server.log").signature == signature_of(archive / "broker-1/server.log")


@pytest.mark.parametrize("name", ["logs.tar.gz", "logs.zip"])
def test_a_run_over_an_archive_is_one_over_the_folder(tmp_path, name):
    (tmp_path / name).write_bytes(ARCHIVERS[name](FILES))
    for path, data in FILES.items():
        (tmp_path / "logs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / path).write_bytes(data)
    packed, reports = run(tmp_path / name, tmp_path / "a", slice_lines=700)
    plain, _ = run(tmp_path / "logs", tmp_path / "b", slice_lines=700)
    assert packed.lines() == plain.lines()
    assert packed.counts() == plain.counts()
    assert len(packed.of("line")) == 6_500
    assert reports[-1].bytes_read == reports[-1].bytes_total
    assert run(tmp_path / name, tmp_path / "a", packed)[1] == []  # nothing new


def test_evidence_is_found_in_an_archive(tmp_path):
    (tmp_path / "logs.tar.gz").write_bytes(ARCHIVERS["logs.tar.gz"](FILES))
    archives._OPEN.clear()
    wanted = {7: LineTime(60), 3_000: LineTime(29_990)}
    places = find_lines("logs.tar.gz/broker-1/server.log", wanted, discover(tmp_path))
    assert places == {n: (tmp_path / "logs.tar.gz/broker-1/server.log", SERVER.split(b"\n")[n - 1]) for n in wanted}


@pytest.mark.parametrize(("members", "named"), [
    (["var/log/kafka/server.log"], [("in", "b1")]),
    (["./logs/server.log", "logs/old/server.log.1"], [("in", "b1")] * 2),
    (["b1/server.log"], [("in", "b1")]),
    (["prod/b7/server.log", "prod/b8/logs/server.log"], [("prod", "b7"), ("prod", "b8")]),
    (["eu/b1/server.log", "us/b1/server.log"], [("eu", "b1"), ("us", "b1")]),
])  # fmt: skip
def test_names_of_clusters_and_brokers(tmp_path, members, named):
    """Archives of one broker, of a cluster and of several, with the folders that `tar` was given."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b1.tar.gz").write_bytes(tar({name: f"{name}\n".encode() * 9 for name in members}, "w:gz"))
    assert [(c, b) for c, b, _ in found(tmp_path / "in")] == named


def test_archives_in_archives(tmp_path):
    brokers = {f"b{n}.tar.gz": tar({"var/log/kafka/server.log": SERVER + b"%d" % n}, "w:gz") for n in (1, 2)}
    (tmp_path / "bundle.zip").write_bytes(zipped({**brokers, "more.zip": zipped({"b3/server.log": SERVER})}))
    assert [(c, b) for c, b, _ in found(tmp_path)] == [("bundle", "b1"), ("bundle", "b2"), ("bundle", "more")]
    assert read(tmp_path / "bundle.zip/b2.tar.gz/var/log/kafka/server.log")[1] == 3_001
    assert read(tmp_path / "bundle.zip/more.zip/b3/server.log")[1] == 3_000


def test_an_archive_whose_files_lie_beside_it_is_left_out(tmp_path):
    (tmp_path / "logs.zip").write_bytes(zipped({"b1/server.log": SERVER, "b2/server.log": REQUESTS}))
    for folder in (tmp_path, tmp_path / "logs"):
        for name, data in {"b1": SERVER, "b2": REQUESTS}.items():
            (folder / name).mkdir(parents=True)
            (folder / name / "server.log").write_bytes(data)
        assert not any(".zip" in origin for *_, origin in found(tmp_path))
        assert kinds(tmp_path) == {"archives whose files lie beside them": 1}
        (folder / "b1" / "server.log").write_bytes(b"another log\n")
        assert sum(".zip" in origin for *_, origin in found(tmp_path)) == 2


def test_names_lead_nowhere_else(tmp_path):
    """Absolute names, ways up, and links: nothing is written, and nothing outside is read."""
    (tmp_path / "secret.log").write_bytes(SERVER)
    (tmp_path / "in").mkdir()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("../../secret.log", "/etc/passwd.log", "c/../../b.log", "...", "..", "a\nb/x.log"):
            member = tarfile.TarInfo(name)
            member.size = len(SERVER)
            archive.addfile(member, io.BytesIO(SERVER))
        for kind, name in ((tarfile.SYMTYPE, "link.log"), (tarfile.LNKTYPE, "hard.log"), (tarfile.FIFOTYPE, "pipe.log")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(tmp_path / "secret.log")
            archive.addfile(member)
    path = tmp_path / "in" / "x.tar.gz"
    path.write_bytes(buffer.getvalue())
    assert [origin for *_, origin in found(tmp_path / "in")] == [
        f"x.tar.gz/{name}" for name in ("a\nb/x.log", "c/b.log", "etc/passwd.log", "secret.log")
    ]
    assert kinds(path) == {
        "links in archives": 2,
        "special files in archives": 1,
        "hidden files and folders": 1,
        "files without a name in archives": 1,
    }
    for name in ("../secret.log", "link.log", "../../../../../../../../etc/passwd", "none.log"):
        with pytest.raises(FileNotFoundError):
            open_log(path / name)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["in", "secret.log", "x.tar.gz"]


def test_windows_writes_backslashes(tmp_path):
    info = zipfile.ZipInfo("a")
    info.filename = "C:\\logs\\b1\\server.log"
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, SERVER)
    assert found(tmp_path) == [("x", "b1", "x.zip/logs/b1/server.log")]
    assert read(tmp_path / "x.zip/logs/b1/server.log")[1] == 3_000


@pytest.mark.parametrize("name", ARCHIVERS)
def test_an_archive_that_was_cut_gives_what_is_there(tmp_path, name):
    path = tmp_path / name
    data = ARCHIVERS[name]({"b1/server.log": SERVER, "b2/server.log": os.urandom(200_000) + REQUESTS, "b3/server.log": SERVER})
    path.write_bytes(data[: len(data) // 2])
    logs = [origin for *_, origin in found(tmp_path)]
    if name == "logs.tar.bz2":  # one block, which is useless if it was cut
        assert (logs, kinds(tmp_path)) == ([], {"damaged files": 1})
        return
    assert name in logs or f"{name}/b2/server.log" in logs
    assert {damage(tmp_path / origin) for origin in logs if origin in (name, f"{name}/b2/server.log")}
    assert read(path / "b1/server.log")[1] == 3_000
    assert len(rows(read(path)[0])) == 0  # an archive has no lines of its own


def test_a_tar_that_was_cut_in_its_first_file_gives_what_is_there(tmp_path):
    path = tmp_path / "logs.tar"
    path.write_bytes(tar({"k/b1/server.log": SERVER})[: len(SERVER) // 2])
    assert [log.origin for log in discover(path)] == ["logs.tar", "k/b1/server.log"]
    assert damage(path / "k/b1/server.log") == "the archive ends in the middle"


def test_a_broken_tar_says_so(tmp_path):
    data = bytearray(tar({"b1/server.log": SERVER, "b2/server.log": SERVER, "b3/server.log": SERVER}))
    second = data.index(b"b2/server.log")
    data[second : second + 400] = b"x" * 400
    (tmp_path / "x.tar").write_bytes(bytes(data))
    assert [origin for *_, origin in found(tmp_path)] == ["x.tar", "x.tar/b1/server.log", "x.tar/b3/server.log"]
    assert read(tmp_path / "x.tar/b3/server.log")[1] == 3_000
    assert "no header where one has to be" in damage(tmp_path / "x.tar")


def test_a_broken_member_of_a_zip_says_so(tmp_path):
    data = bytearray(zipped({"b1/server.log": SERVER, "b2/server.log": SERVER}, zipfile.ZIP_STORED))
    data[50_000] ^= 1
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert "Bad CRC" in damage(tmp_path / "x.zip/b1/server.log")
    assert read(tmp_path / "x.zip/b2/server.log")[1] == 3_000


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_wrong_checksum_in_a_zip_costs_no_line(tmp_path, method):
    data = bytearray(zipped({"b1/server.log": SERVER}, method))
    data[14] ^= 1
    data[data.index(b"PK\x01\x02") + 16] ^= 1
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert read(tmp_path / "x.zip/b1/server.log")[1] == 3_000
    assert "Bad CRC" in damage(tmp_path / "x.zip/b1/server.log")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("lost", [1, 60, 400])
def test_a_zip_without_its_list_gives_its_members(tmp_path, streamed, method, lost):
    """A copy that was cut, of an archive whose sizes stand before the members, or behind them as Java's streams write them."""

    class Pipe(io.BytesIO):
        def seekable(self):
            return not streamed

    buffer = Pipe()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in ("b1/server.log", "b2/server.log"):
            archive.writestr(name, SERVER)
    (tmp_path / "x.zip").write_bytes(buffer.getvalue()[:-lost])
    assert [origin for *_, origin in found(tmp_path)] == ["x.zip", "x.zip/b1/server.log", "x.zip/b2/server.log"]
    assert damage(tmp_path / "x.zip").startswith("damaged zip, or one that was cut: ")
    for broker in ("b1", "b2"):
        assert read(tmp_path / f"x.zip/{broker}/server.log")[1] >= 2_900


@pytest.mark.parametrize(
    ("sign", "at", "left"),
    [
        (b"PK\x05\x06", 8, bytes(12)),
        (b"PK\x01\x02", 20, bytes(4)),
        (b"PK\x01\x02", 42, b"\5\0"),
        (b"PK\x01\x02", 46, b"c"),
        (b"PK\x01\x02", 8, b"\1"),
    ],
    ids=["no members", "another size", "another place", "another name", "encrypted"],
)
def test_a_zip_whose_list_does_not_fit_is_read_by_its_headers(tmp_path, sign, at, left):
    data = bytearray(zipped({"b1/server.log": SERVER}))
    start = data.rindex(sign) + at
    data[start : start + len(left)] = left
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert read(tmp_path / "x.zip/b1/server.log")[1] == 3_000
    assert damage(tmp_path / "x.zip") == "damaged zip: its list of members does not fit them"


def test_a_wrong_header_in_a_zip_costs_no_other_member(tmp_path):
    data = bytearray(zipped({"b1/server.log": SERVER, "b2/server.log": SERVER}))
    data[28:30] = b"\xff\xff"  # the length of what stands before the first one's bytes
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert damage(tmp_path / "x.zip/b1/server.log") == "the archive ends in the middle"
    assert read(tmp_path / "x.zip/b2/server.log")[1] == 3_000


def test_a_member_without_a_name_is_told(tmp_path):
    data = bytearray(zipped({"b1/server.log": SERVER}))[:-30]
    data[26:28] = bytes(2)
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert kinds(tmp_path) == {"files without a name in archives": 1}


def test_a_member_of_which_nothing_is_there_is_told(tmp_path):
    data = bytearray(zipped({"b1/server.log": SERVER}))
    data[43:60] = b"\xff" * 17
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert run(tmp_path, tmp_path / "out")[0].faults() == {"DAMAGED_FILE": 1}


def test_a_tar_whose_header_was_emptied_is_read_behind_it(tmp_path):
    data = bytearray(tar({f"b{n}/server.log": SERVER for n in (1, 2, 3)}))
    second = data.index(b"b2/server.log")
    data[second : second + 512] = bytes(512)
    (tmp_path / "x.tar").write_bytes(bytes(data))
    assert [origin for *_, origin in found(tmp_path)] == ["x.tar", "x.tar/b1/server.log", "x.tar/b3/server.log"]
    (tmp_path / "x.tar").write_bytes(tar({"b1/server.log": SERVER}) + tar({"b2/server.log": SERVER}))
    assert [origin for *_, origin in found(tmp_path)] == ["x.tar/b1/server.log", "x.tar/b2/server.log"]  # two, one after the other


def test_an_encrypted_zip_says_so(tmp_path):
    data = bytearray(zipped({"b1/server.log": SERVER, "b1/notes.txt": SERVER}))
    for start, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(start, at + 1)) >= 0:
            data[at + flag] |= 1
    (tmp_path / "x.zip").write_bytes(bytes(data))
    assert [origin for *_, origin in found(tmp_path)] == ["x.zip/b1/server.log"]
    assert damage(tmp_path / "x.zip/b1/server.log") == "the file is encrypted"
    assert kinds(tmp_path) == {"files in archives that are encrypted": 1}
    assert run(tmp_path, tmp_path / "out")[0].faults() == {"DAMAGED_FILE": 1}


@pytest.mark.parametrize("most", [1, 2])
def test_many_archives_in_an_archive_are_not_open_at_once(tmp_path, monkeypatch, most):
    monkeypatch.setattr(archives, "_MOST_OPEN", most)
    brokers = {f"b{n}.tar.gz": tar({"server.log": SERVER + b"%d\n" % n}, "w:gz") for n in range(5)}
    (tmp_path / "x.zip").write_bytes(zipped({**brokers, "readme": b"text"}))
    assert [broker for _, broker, _ in found(tmp_path)] == [f"b{n}" for n in range(5)]
    for n in (0, 4, 1, 3, 0):
        assert dict(numbered_lines(tmp_path / f"x.zip/b{n}.tar.gz/server.log", [3_001])) == {3_001: b"%d" % n}
    archive = archives.archive_at(tmp_path / "x.zip")
    assert sum(nested is not None for nested in archive._nested.values()) == most


def test_archives_that_contain_each_other_end_somewhere(tmp_path):
    data = zipped({"server.log": SERVER})
    for _ in range(MOST_NESTED + 3):
        data = zipped({"deeper.zip": data, "server.log": SERVER})
    (tmp_path / "x.zip").write_bytes(data)
    assert len(found(tmp_path)) == MOST_NESTED


@pytest.mark.slow
def test_a_bomb_takes_neither_memory_nor_disk(tmp_path, monkeypatch):
    """100 MB of zeros in 100 kB, and a header that says it has a gigabyte."""
    written = []
    monkeypatch.setattr(os, "pread", lambda *args, real=os.pread: written.append(args[0]) or real(*args))
    zeros = tar({"b1/server.log": b"\0" * 100_000_000, "b2/server.log": SERVER})
    (tmp_path / "zeros.tar.gz").write_bytes(gzip.compress(zeros, 1))
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    good = tar({"b1/server.log": SERVER})[: 512 + (len(SERVER) + 511) // 512 * 512]
    (tmp_path / "header.tar.gz").write_bytes(gzip.compress(good + header.tobuf() + bytes(100_000_000), 1))
    del zeros
    tracemalloc.start()
    try:
        origins = [origin for *_, origin in found(tmp_path)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert origins == ["header.tar.gz", "header.tar.gz/b1/server.log", "zeros.tar.gz/b1/server.log", "zeros.tar.gz/b2/server.log"]
    assert peak < 30_000_000
    assert max(os.fstat(file).st_size for file in set(written) if _is_open(file)) < 2_000_000
    assert read(tmp_path / "zeros.tar.gz/b2/server.log")[1] == 3_000
    assert "in one piece" in damage(tmp_path / "header.tar.gz")


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_a_thousand_members(tmp_path, monkeypatch):
    (tmp_path / "x.tar.gz").write_bytes(tar({f"b{n % 7}/server.log.{n}": b"%d\n" % n for n in range(1_000)}, "w:gz"))
    assert len(found(tmp_path)) == 1_000
    opened = []
    monkeypatch.setattr(archives, "opened_archive", lambda *args, real=archives.opened_archive: opened.append(args) or real(*args))
    for n in range(0, 1_000, 100):
        assert read(tmp_path / f"x.tar.gz/b{n % 7}/server.log.{n}")[1] == 1
    assert opened == []  # the archive was unpacked once
    (tmp_path / "x.tar.gz").write_bytes(tar({"b0/server.log": SERVER}, "w:gz"))
    assert len(found(tmp_path)) == 1
    assert len(opened) == 1


def test_a_disk_that_takes_a_part_at_a_time_gets_all(tmp_path, monkeypatch):
    class Reluctant(io.FileIO):
        def write(self, data):
            return super().write(bytes(data)[:1_000])

    (tmp_path / "x.tar.gz").write_bytes(tar({"b0/server.log": SERVER}, "w:gz"))
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Reluctant(tmp_path / "unpacked", "w+b"))
    assert read(tmp_path / "x.tar.gz/b0/server.log")[1] == 3_000


def test_no_room_to_unpack(tmp_path, monkeypatch):
    (tmp_path / "x.tar.gz").write_bytes(tar({"b0/server.log": SERVER}, "w:gz"))
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115
    spool = Spool(tmp_path, tmp_path / "spool")
    assert list(spool.slices()) == []
    assert spool.troubles.summary() == [f"1 file not read: No space left on device: {tmp_path / 'x.tar.gz'}"]
