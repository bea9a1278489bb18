"""Compressions and encodings: what is read is what was packed, as far as it is there."""

import gzip
import lzma
import random
import tracemalloc
from functools import cache

import pytest

from jobs.logs.bytes import UNREADABLE, open_log
from jobs.logs.lines import numbered_lines
from jobs.logs.mark import KeptLines
from tests.logs.formats.packing import PACKERS
from tests.logs.log_makers import coordinator, request
from tests.logs.reading import read, reader, rows

LINES = [request(i, group=str(i * i)) if i % 3 else coordinator(i) for i in range(4_000)]
DATA = b"".join(line + b"\n" for line in LINES)
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
ENCODINGS = {"UTF-8 with a mark": "utf-8", "UTF-16 LE": "utf-16-le", "UTF-16 BE": "utf-16-be"}
MORE = {
    "UTF-16 in gzip": lambda: gzip.compress(form("UTF-16 LE")),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(DATA)),
    "gzip in xz": lambda: lzma.compress(gzip.compress(DATA)),
    "lzma": lambda: lzma.compress(DATA, lzma.FORMAT_ALONE),
    "UTF-16 LE without a mark": lambda: DATA.decode().encode("utf-16-le"),
    "UTF-16 BE without a mark": lambda: DATA.decode().encode("utf-16-be"),
}
FORMS = (*PACKERS, *ENCODINGS, *MORE)


@cache
def form(name):
    """The data in a form. Made when it is asked for: every test process imports this file."""
    if name in PACKERS:
        return PACKERS[name](DATA)
    if name in ENCODINGS:
        return (MARK + DATA.decode()).encode(ENCODINGS[name])
    return MORE[name]()


def content(path, size=10_000):
    """All that a log has, and why it ends."""
    log = open_log(path)
    head, data = log.head(), b"".join(iter(lambda: log.read(size), b""))
    assert data.startswith(head) or log.damage
    assert log.file_position() <= log.signature.size
    log.close()
    return data, log.damage


@pytest.mark.parametrize("name", FORMS)
def test_content_decides_what_a_file_is(tmp_path, name):
    path = tmp_path / "server.log"  # no suffix says so
    path.write_bytes(form(name))
    assert content(path) == (DATA, "")
    log = open_log(path)
    assert log.head() == DATA[:4096]
    assert log.skip(100_000)
    assert DATA[100_000:].startswith(log.read(50) or b"nothing")
    assert not log.skip(len(DATA))
    log.close()
    (tmp_path / "plain").write_bytes(DATA)
    assert read(path) == read(tmp_path / "plain")
    assert dict(numbered_lines(path, [1, 3_999])) == {1: LINES[0], 3_999: LINES[3_998]}


@pytest.mark.parametrize("name", PACKERS)
def test_packed_files_that_were_joined(tmp_path, name):
    path = tmp_path / "a.log"
    path.write_bytes(PACKERS[name](DATA[:50_000]) + PACKERS[name](b"") + PACKERS[name](DATA[50_000:]))
    assert content(path) == (DATA, "")


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz"])
def test_zeros_after_packed_data_are_padding(tmp_path, name):
    path = tmp_path / "a.log"
    path.write_bytes(PACKERS[name](DATA) + b"\0" * 4096)
    assert content(path) == (DATA, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_file_that_ends_in_the_middle_gives_what_is_there(tmp_path, name, share):
    path = tmp_path / "a.log"
    path.write_bytes(form(name)[: int(len(form(name)) * share)])
    data, damage = content(path)
    assert damage == f"the {name} data ends in the middle"
    assert DATA.startswith(data)
    assert content(path, 37) == (data, damage)  # however it is read
    if name != "bzip2":  # which packs 900 kB at a time
        assert len(data) > len(DATA) * (share - 0.3)


@pytest.mark.parametrize("name", PACKERS)
def test_a_broken_file_ends_early_and_says_why(tmp_path, name):
    path = tmp_path / "a.log"
    packed = form(name)
    path.write_bytes(packed + b"this is no packed data")
    assert content(path)[1].startswith(f"damaged {name} data: ")
    path.write_bytes(packed[:3_000] + random.Random(3).randbytes(3_000) + packed[6_000:])
    kept, log = KeptLines(), reader(path)
    log.read(kept)
    told = log.tell_damage(kept)
    log.close()
    # Arrow writes no checksum: then only the lines show that something is wrong.
    assert told or name in ("zstd", "LZ4")
    assert not told or rows(kept)[-1][3] == "DAMAGED_FILE"


@pytest.mark.parametrize("name", PACKERS)
def test_what_lies_before_a_damage_is_read_however_it_is_read(tmp_path, name):
    path = tmp_path / "a.log"
    packed = bytearray(form(name))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = random.Random(3).randbytes(40)
    path.write_bytes(packed)
    assert content(path) == content(path, 37) == content(path, 1 << 20)


@pytest.mark.parametrize(("name", "place"), [("gzip", -8), ("bzip2", -4), ("xz", -10)])
def test_a_wrong_checksum_at_the_end_costs_no_line(tmp_path, name, place):
    path = tmp_path / "a.log"
    packed = bytearray(form(name))
    packed[place] ^= 1
    path.write_bytes(packed)
    data, damage = content(path)
    assert (data.splitlines(), damage.startswith(f"damaged {name} data: ")) == (LINES, True)


@pytest.mark.parametrize("name", ["gzip", "xz", "zstd", "LZ4", "UTF-16 LE", "UTF-8 with a mark"])
def test_a_file_that_grows_is_read_on(tmp_path, name):
    path = tmp_path / "a.log"
    packed = form(name)
    mark, found = None, []
    for share in (0.2, 0.5, 0.50001, 1):
        path.write_bytes(packed[: int(len(packed) * share)])
        log, kept = reader(path, mark, final=share == 1), KeptLines()
        log.read(kept)
        mark = log.mark
        log.close()
        found += rows(kept)
    (tmp_path / "plain").write_bytes(DATA)
    assert found == rows(read(tmp_path / "plain")[0])


def test_frames_without_data_come_first_in_files_of_pzstd(tmp_path):
    empty = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    path = tmp_path / "a.log"
    path.write_bytes(empty + PACKERS["zstd"](DATA[:9_000]) + empty + PACKERS["zstd"](DATA[9_000:]))
    assert content(path) == (DATA, "")


def test_a_lone_surrogate_costs_no_line(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"\xff\xfe" + "one\n".encode("utf-16-le") + b"\x00\xd8" + "two\n".encode("utf-16-le"))
    assert content(path) == ("one\n\N{REPLACEMENT CHARACTER}two\n".encode(), "")


@pytest.mark.parametrize(("start", "name"), UNREADABLE)
def test_what_cannot_be_unpacked_is_named(tmp_path, start, name):
    path = tmp_path / "a.log"
    path.write_bytes(start + b"\n" * 100)
    log, kept = reader(path), KeptLines()
    assert log.read(kept) == 0
    assert log.tell_damage(kept)
    assert name.encode() in kept.texts[0]


@pytest.mark.parametrize("name", PACKERS)
def test_memory_does_not_depend_on_what_a_file_unpacks_to(tmp_path, name):
    path = tmp_path / "bomb.log"
    path.write_bytes(PACKERS[name](b"\0" * 1_000_000) * 60)
    tracemalloc.start()
    try:
        log = open_log(path)
        size = 0
        while block := log.read(100_000):
            size += len(block)
            assert len(block) <= 1_000_000
        log.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == 60_000_000
    assert peak < 16_000_000  # xz alone remembers 8 MB


def test_a_file_may_not_ask_for_gigabytes_of_memory(tmp_path):
    path = tmp_path / "a.log"
    greedy = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3, "nice_len": 8}]
    packed = bytearray(lzma.compress(DATA[:1_000], filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}]))
    compressor = lzma.LZMACompressor(filters=greedy)
    del packed[:]
    packed += compressor.compress(DATA[:1_000]) + compressor.flush()
    path.write_bytes(bytes(packed))
    data, damage = content(path)
    assert data == b""
    assert "Memory usage limit" in damage
