"""Damaged copies of real lines: what disks, shippers and newer brokers do to a log."""

import json
import random
import re
from collections.abc import Callable, Sequence


def _cut(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randrange(1, len(line))]


def _headless(line: bytes, chance: random.Random) -> bytes:
    return line[chance.randrange(1, len(line)) :]


def _flipped(line: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(line)
    for _ in range(chance.randrange(1, 6)):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged).replace(b"\n", b"\x0b")


def _nested_wrong(line: bytes, chance: random.Random) -> bytes:
    bracket = chance.choice([b"{", b"}", b"[", b"]", b'"'])
    at = chance.randrange(line.find(b"{") + 1, len(line)) if b"{" in line else chance.randrange(len(line))
    return line[:at] + bracket * chance.randrange(1, 4) + line[at:]


def _a_megabyte(line: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(line))
    return line[:at] + bytes(chance.choice(b"abcxyz") for _ in range(64)) * (1 << 14) + line[at:]


def _binary(line: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(len(line)).replace(b"\n", b"\x00")


def _wrong_types(line: bytes, chance: random.Random) -> bytes:
    field = chance.choice([b"groupId", b"memberId", b"generationId", b"errorCode", b"totalTimeMs", b"correlationId"])
    value = chance.choice([b"[1,2]", b'{"a":1}', b"true", b"1e999", b'"x"', b"null", b"-1.5"])
    return re.sub(rb'"%s":("[^"]*"|[^,}\]]+)' % field, b'"%s":%s' % (field, value), line, count=1)


def _empty(line: bytes, chance: random.Random) -> bytes:
    return chance.choice([b"", b" ", b"\t\t", line[:26]])


def _future_version(line: bytes, chance: random.Random) -> bytes:
    version = json.dumps(chance.randrange(11, 40)).encode()
    newer = re.sub(rb'"requestApiVersion":\d+', b'"requestApiVersion":' + version, line)
    return newer.replace(b'"request":{', b'"request":{"newField":{"a":[1,2,{"b":null}]},', 1)


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": _cut, "headless": _headless, "bytes flipped": _flipped, "JSON nested wrong": _nested_wrong,
    "1 MB long": _a_megabyte, "binary": _binary, "wrong types": _wrong_types, "empty": _empty,
    "future versions": _future_version,
}  # fmt: skip


def mixed_in(lines: Sequence[bytes], count: int, seed: int) -> tuple[list[bytes], int]:
    """The lines with `count` damaged copies of some of them in between, half of them after the original, half anywhere.

    A kind of damage may leave a line as it was (a request's field in a coordinator line): such a copy is not mixed in.
    """
    chance = random.Random(seed)
    inserted: dict[int, list[bytes]] = {}
    made = 0
    while made < count:
        index = chance.randrange(len(lines))
        kind = chance.choice(list(KINDS))
        if kind == "1 MB long" and chance.random() > 0.1:
            continue  # a hundred of them would be most of the file
        damaged = KINDS[kind](lines[index], chance)
        if damaged == lines[index]:
            continue
        place = index if made % 2 else chance.randrange(len(lines))
        inserted.setdefault(place, []).append(damaged)
        made += 1
    mixed = []
    for index, line in enumerate(lines):
        mixed.append(line)
        mixed += inserted.get(index, [])
    return mixed, made
