"""Files of other things under the names of logs, the same ones for the same seed: what a folder of logs also holds."""

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

START_S = 1_795_240_800
WORDS = ("connection", "closed", "user", "GET", "POST", "started", "in", "timeout", "queue", "worker", "cache", "miss", "retry")


def prose(chance: random.Random, words: int = 8) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def lines(chance: random.Random, line: Callable[[int], str], most: int = 60) -> bytes:
    return "".join(f"{line(number)}\n" for number in range(chance.randint(1, most))).encode()


def png(chance: random.Random) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(b"".join(b"\0" + chance.randbytes(48) for _ in range(16)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def jpeg(chance: random.Random) -> bytes:
    return (
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00" + chance.randbytes(chance.randint(500, 5_000)) + b"\xff\xd9"
    )


def zipped(chance: random.Random) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("notes.txt"), prose(chance, 200))
    return out.getvalue()


def tarred(chance: random.Random) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        data = prose(chance, 200).encode()
        info = tarfile.TarInfo("notes.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def gzipped_tar(chance: random.Random) -> bytes:
    return gzip.compress(tarred(chance), mtime=0)


def truncated_gzip(chance: random.Random) -> bytes:
    return gzip.compress(chance.randbytes(3_000), mtime=0)[: chance.randint(3, 2_000)]


def core_dump(chance: random.Random) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 4, 62) + bytes(44) + chance.randbytes(4_000) + bytes(60_000)


def data_segment(chance: random.Random) -> bytes:
    """Record batches, as in Kafka's own 00000000000000000000.log."""
    return b"".join(struct.pack(">qiibI", offset, 60, 0, 2, chance.getrandbits(32)) + chance.randbytes(51) for offset in range(40))


def json_document(chance: random.Random) -> bytes:
    return json.dumps({"items": [{"id": n, "text": prose(chance)} for n in range(chance.randint(1, 40))]}, indent=2).encode()


def json_lines(chance: random.Random) -> bytes:
    return lines(chance, lambda n: json.dumps({"ts": START_S + n, "level": "info", "msg": prose(chance)}))


def nginx(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f'10.0.0.{n} - - [21/Nov/2026:06:00:{n % 60:02} +0000] "GET /{chance.choice(WORDS)} HTTP/1.1" 200 {n}')


def postgres(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f"2026-11-21 06:00:{n % 60:02}.{n:03} UTC [{n}] LOG:  {prose(chance)}")


def syslog(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f"Nov 21 06:00:{n % 60:02} host sshd[{n}]: {prose(chance)}")


def garbage_collector(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f"[2026-11-21T06:00:{n % 60:02}.{n:03}+0000][gc] GC({n}) Pause Young {chance.randint(1, 99)}M->2M 3ms")


def stack_traces(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f"\tat com.example.{chance.choice(WORDS)}.Main.run(Main.java:{n})" if n % 5 else "java.lang.Error: x")


def utf16(chance: random.Random) -> bytes:
    return lines(chance, lambda n: f"2026-11-21 06:00:{n % 60:02} {prose(chance)}").decode().encode("utf-16")


def no_line_end(chance: random.Random) -> bytes:
    return (prose(chance) * 40_000).encode()  # 2 MB


def zeros(_: random.Random) -> bytes:
    return bytes(1 << 20)


def nothing(_: random.Random) -> bytes:
    return b""


def noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randint(1, 20_000))


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    png, jpeg, zipped, tarred, gzipped_tar, truncated_gzip, core_dump, data_segment, json_document, json_lines, nginx, postgres, syslog,
    garbage_collector, stack_traces, utf16, no_line_end, zeros, nothing, noise,
)  # fmt: skip
ENDINGS = (".log", ".log.1", ".log.2026-11-21-06", ".log.gz")


def make(folder: Path, count: int, seed: int = 1) -> Counter[str]:
    """Writes `count` files into subfolders; returns how many of each kind."""
    chance = random.Random(seed)
    made: Counter[str] = Counter()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        path = folder / f"b{number % 3}" / f"{kind.__name__}-{number}{chance.choice(ENDINGS)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kind(chance))
        made[kind.__name__] += 1
    return made
