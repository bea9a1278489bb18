"""Inputs that a disk, a download or a copy damaged, at random: what is packed, what is done to its bytes, and what of it can still be read.

What can be read is found out here by other means than those of the program: the compressions' own libraries byte by byte, and the places
at which the members of archives were packed.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from jobs.kafka.bundles import Sender, encoded
from jobs.kafka.topic_records import bundle_headers, clock_headers, line_headers, log_headers
from jobs.logs.heartbeats.beats import NO_INTERVAL, Group
from tests.logs.formats.packing import ARCHIVERS, PACKERS
from tests.logs.log_makers import START_MS, coordinator, other

HOUR = 3_600_000
LEAST = 10  # bytes by which a format is known
LIBRARIES = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}
SUFFIXES = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst", "LZ4": ".lz4"}
DOORS = ("file", "folder", *PACKERS, *ARCHIVERS, "packed in tar", "packed in zip")


@dataclass
class Damaged:
    """An input. `lines`: all that were written; `readable`: those of them that have to be read; `told`: whether a loss has to be."""

    path: Path
    lines: set[bytes] = field(default_factory=set)
    readable: set[bytes] = field(default_factory=set)
    shows_loss: bool = True  # what is lost can be seen: by a checksum, a header, an end
    what: str = ""  # for whoever looks into a failure


Damage = Callable[[bytes, Random], bytes]

# Texts.


def text(chance: Random, name: str) -> bytes:
    """A broker's log, in which damage of single lines may have happened before it was packed."""
    at = 0
    lines = []
    for number in range(chance.choice([1, 5, 40, 150])):
        at += chance.choice([0, 10, 1_000, 30_000])
        is_other = not chance.randrange(6)
        lines.append(other(at) if is_other else coordinator(at, f"Stabilized group {name}-{number} generation 1 with 3 members."))
        if not chance.randrange(200):
            at += chance.choice([-HOUR, HOUR, -24 * HOUR, 40 * HOUR])
    if not chance.randrange(3):
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(lines))
            lines[place:place] = chance.choice(LINE_DAMAGES)(lines[place], chance)
    if not chance.randrange(6):
        first, second = sorted(chance.randrange(len(lines)) for _ in range(2))
        lines[first], lines[second] = lines[second], lines[first]
    end = b"\r\n" if not chance.randrange(8) else b"\n"
    return b"".join(line + end for line in lines)[: None if chance.randrange(4) else -len(end)]


LINE_DAMAGES: list[Callable[[bytes, Random], list[bytes]]] = [
    lambda line, chance: [line[: int(len(line) * chance.random())]],
    lambda line, chance: [line[int(len(line) * chance.random()) :]],
    lambda line, chance: [line + bytes(chance.randrange(1, 9_000))],
    lambda line, chance: [bytes(chance.randrange(1, 300_000)) + line],
    lambda _, chance: [chance.randbytes(90).replace(b"\n", b"")],
    lambda line, chance: [line[:40] + b"x" * chance.choice([70_000, 1 << 20, 17 << 20 if not chance.randrange(20) else 5]) + line[40:]],
    lambda _, chance: [b"", b" ", b"\t\tat x.Y(Z.java:1)", b"{" * chance.choice([3, 3_000])],
    lambda line, chance: [line.replace(b"2026", chance.choice([b"9999", b"0000", b"1970", b"2O26"]), 1)],
]


# Damages of bytes.


def cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data))]


def lost_tail(data: bytes, chance: Random) -> bytes:
    return data[: -chance.randrange(1, min(len(data), 40) + 1)]


def flipped(data: bytes, chance: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def flipped_at_an_end(data: bytes, chance: Random) -> bytes:
    damaged = bytearray(data)
    place = chance.randrange(min(len(data), 40))
    damaged[place if chance.randrange(2) else -1 - place] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def overwritten(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data))
    size = min(chance.choice([1, 40, 512, 4_096]), len(data) - start)
    return data[:start] + (bytes(size) if chance.randrange(2) else chance.randbytes(size)) + data[start + size :]


def swapped(data: bytes, chance: Random) -> bytes:
    size = chance.choice([64, 512, 4_096])
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    first, second = (chance.randrange(len(blocks)) for _ in range(2))
    blocks[first], blocks[second] = blocks[second], blocks[first]
    return b"".join(blocks)


def without_a_block(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice([1, 100, 512, 4_096]) :]


def with_more(data: bytes, chance: Random) -> bytes:
    start = chance.choice([len(data), chance.randrange(len(data))])
    return data[:start] + chance.choice([bytes(1_024), chance.randbytes(50), b"\n", b"no packed data\n"]) + data[start:]


def wrong_length(data: bytes, chance: Random) -> bytes:
    """A number in a header says something else: those of zip and tar, and four bytes anywhere near the start or the end."""
    damaged = bytearray(data)
    signs = [at for sign in (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"ustar") for at in _places(data, sign)]
    if signs:
        at = chance.choice(signs)
        if data[at : at + 5] == b"ustar":  # the size, and a checksum that fits it
            at -= 257
            damaged[at + 124 : at + 135] = b"%011o" % chance.choice([0, 1, 511, 100_000, 8**11 - 1])
            damaged[at + 148 : at + 156] = b" " * 8
            damaged[at + 148 : at + 156] = b"%06o\0 " % sum(damaged[at : at + 512])
            return bytes(damaged)
        start = at + chance.choice([4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 42])
    else:
        start = chance.choice([chance.randrange(30), max(0, len(data) - 1 - chance.randrange(30))])
    value = chance.choice([0, 1, 255, 1 << 16, (1 << 31) - 1, (1 << 32) - 1]).to_bytes(4, "little")
    damaged[start : start + chance.choice([2, 4])] = value[: chance.choice([2, 4])]
    return bytes(damaged)


DAMAGES = (cut, cut, lost_tail, flipped, flipped, flipped_at_an_end, overwritten, swapped, without_a_block, with_more, wrong_length)


def _places(data: bytes, sign: bytes) -> Iterator[int]:
    at = -1
    while (at := data.find(sign, at + 1)) >= 0:
        yield at


# What can be read.

_OWN = re.compile(
    rb"\[2026-\d\d-\d\d [\d:]{8},\d{3}\] INFO \[GroupCoordinator id=1\] Stabilized group [a-z0-9-]+ generation 1 with 3 members\."
    rb" \(org\.apache\.kafka\.coordinator\.group\.GroupMetadataManager\)"
)


def own_lines(data: bytes) -> set[bytes]:
    """The lines about groups in a text that are whole."""
    return {line for line in (one.removesuffix(b"\r") for one in data.split(b"\n")) if _OWN.fullmatch(line)}


def unpacked(name: str, data: bytes) -> bytes:
    """What the library of a compression gives of it, byte by byte, before it fails."""
    made, member = bytearray(), LIBRARIES[name]()
    at = 0
    try:
        while at < len(data):
            made += member.decompress(data[at : at + 1])
            at += 1
            if member.eof:
                while data[at : at + 1] == b"\0":
                    at += 1
                member = LIBRARIES[name]()
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return bytes(made[: made.rfind(b"\n") + 1])  # a library may need the next byte to give the last one
    return bytes(made)


def same_until(one: bytes, other_: bytes) -> int:
    """The bytes with which both begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other_, strict=False)) if a != b), min(len(one), len(other_)))


def of_tar(before: bytes, after: bytes) -> set[bytes]:
    """The lines of members whose headers stand where they stood. Without the first header it is a text."""
    found: set[bytes] = set()
    if before[: tarfile.BLOCKSIZE] != after[: tarfile.BLOCKSIZE]:
        return own_lines(after)
    with tarfile.open(fileobj=io.BytesIO(before)) as archive:
        for member in archive:
            if before[member.offset : member.offset_data] == after[member.offset : member.offset_data]:
                found |= own_lines(after[member.offset_data : member.offset_data + member.size])
    return found


def of_zip(before: bytes, after: bytes) -> set[bytes]:
    """The lines of members whose headers stand where they stood, up to the first damage. Without the first bytes it is no zip."""
    found: set[bytes] = set()
    if before[:4] != after[:4]:
        return found
    with zipfile.ZipFile(io.BytesIO(before)) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30 + len(info.filename.encode())
            packed, left = before[start : start + info.compress_size], after[start : start + info.compress_size]
            if before[info.header_offset : start] != after[info.header_offset : start]:
                continue
            left = left[: same_until(packed, left)]
            plain = left if info.compress_type == zipfile.ZIP_STORED else zlib.decompressobj(-15).decompress(left)
            found |= own_lines(plain if left == packed else plain[: plain.rfind(b"\n") + 1])
    return found


# Inputs.


def damaged(chance: Random, folder: Path) -> Damaged:
    """One input at random, below a new folder."""
    door, damage = chance.choice(DOORS), chance.choice(DAMAGES)
    made = _MAKERS.get(door, _archive)(door, chance, folder, damage)
    made.what = f"{door}, {damage.__name__}"
    made.readable &= made.lines
    return made


def _file(_door: str, chance: Random, folder: Path, damage: Damage) -> Damaged:
    data = text(chance, folder.name)
    left = damage(data, chance)
    path = folder / "server.log"
    folder.mkdir(parents=True)
    path.write_bytes(left)
    return Damaged(path, own_lines(data), own_lines(left), shows_loss=False)


def _folder(_door: str, chance: Random, folder: Path, damage: Damage) -> Damaged:
    found = Damaged(folder / "in", shows_loss=False)
    for number in range(chance.randrange(1, 4)):
        one = _file("file", chance, folder / "in" / f"b{number}", damage if not number else lambda data, _: data)
        found.lines |= one.lines
        found.readable |= one.readable
    return found


def _packed(door: str, chance: Random, folder: Path, damage: Damage) -> Damaged:
    folder.mkdir(parents=True)
    texts = [text(chance, f"{folder.name}-{number}") for number in range(chance.randrange(1, 4))]
    members = [PACKERS[door](data) for data in texts]
    packed, data = b"".join(members), b"".join(texts)
    left = damage(packed, chance)
    path = folder / f"server.log{SUFFIXES[door]}"
    path.write_bytes(left)
    lines = own_lines(data)
    if door in LIBRARIES:
        return Damaged(path, lines, own_lines(unpacked(door, left)), shows_loss=len(left) > LEAST)
    same, whole_texts = same_until(packed, left), b""
    for member, one in zip(members, texts, strict=True):
        same -= len(member)
        whole_texts += one if same >= 0 else b""
    is_cut = packed.startswith(left)
    return Damaged(path, lines, own_lines(whole_texts), shows_loss=is_cut)


def _archive(door: str, chance: Random, folder: Path, damage: Damage) -> Damaged:
    folder.mkdir(parents=True)
    texts = {f"b{number}/server.log": text(chance, f"g{number}") for number in range(chance.randrange(1, 5))}
    packed = ARCHIVERS[door](texts)
    left = damage(packed, chance)
    path = folder / door
    path.write_bytes(left)
    lines = set().union(*map(own_lines, texts.values()))
    if door.endswith(".zip"):
        return Damaged(path, lines, of_zip(packed, left), shows_loss=len(left) > LEAST)
    if door == "logs.tar":
        same = left[: same_until(packed, left)] if damage is wrong_length else left  # a header with a checksum that fits is believed
        return Damaged(path, lines, of_tar(packed, same), shows_loss=packed.startswith(left))
    library = {".gz": "gzip", "bz2": "bzip2", ".xz": "xz"}.get(door[-3:])
    if library is None:
        return Damaged(path, lines, lines if left == packed else set(), shows_loss=False)
    return Damaged(path, lines, of_tar(unpacked(library, packed), unpacked(library, left)), shows_loss=len(left) > LEAST)


def _packed_in(door: str, chance: Random, folder: Path, damage: Damage) -> Damaged:
    """An archive that is whole, whose members are compressed and damaged."""
    files, found = {}, Damaged(folder / f"logs.{door[-3:]}")
    for number in range(chance.randrange(1, 4)):
        one = _packed(chance.choice([*LIBRARIES]), chance, folder / f"b{number}", damage)
        files[f"b{number}/{one.path.name}"] = one.path.read_bytes()
        found.lines |= one.lines
        found.readable |= one.readable
    found.path.write_bytes(ARCHIVERS[found.path.name](files))
    return found


# Records of the topic.

Record = tuple[list[tuple[str, "bytes | None"]], bytes]


def records(chance: Random) -> list[tuple[Record, bool]]:
    """What a shipper writes, each with whether something was done to it."""
    return [_record(chance, number) for number in range(chance.randrange(1, 7))]


def _record(chance: Random, number: int) -> tuple[Record, bool]:
    kind = chance.choice(["line", "line", "heartbeats", "clock"])
    shared = log_headers("c", "b", kind, "server@1")
    if kind == "line":
        value = coordinator(number, f"Stabilized group g{number} generation 1 with 3 members.")
        headers = line_headers(shared, "coordinator", number, START_MS + number)
    elif kind == "clock":
        value = b"[1795240800]"
        headers = clock_headers(shared, number, START_MS, 3, START_MS)
    else:
        sender = Sender(Group("g", 1, 4, 0, "java 4.2.0", NO_INTERVAL), "a-1", "a", None, "h:1-h:2-0-7", rank=0)
        value = encoded([sender] * 2, [number + 1, number + 9], [START_MS, START_MS + 1], [1, 2], [3, 4])
        headers = bundle_headers(shared, number, 950, value)
    if chance.randrange(2):
        return (headers, value), False
    place, damage = chance.randrange(len(headers) + 1), chance.choice([*DAMAGES, _gone])
    if place == len(headers):
        value = damage(value, chance)
        if not chance.randrange(3):  # and signed, as by another program
            headers = [(name, str(zlib.crc32(value)).encode() if name == "crc" else sign) for name, sign in headers]
    else:
        name, sign = headers[place]
        named = flipped(name.encode(), chance).decode("utf-8", "replace") if not chance.randrange(4) else name
        headers = [*headers[:place], (named, damage(sign, chance)), *headers[place + 1 :]]
    return (headers, value), True


def _gone(_data: bytes, chance: Random) -> bytes:
    return chance.choice([b"", b"-1", b"99999999999999999999", b"1e9", b"null", b"clock", b"heartbeats", b"line"])


_MAKERS = {
    "file": _file,
    "folder": _folder,
    **dict.fromkeys(PACKERS, _packed),
    **dict.fromkeys(("packed in tar", "packed in zip"), _packed_in),
}
