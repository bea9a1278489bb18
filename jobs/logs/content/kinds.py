"""What files are that are no logs: by name, else by their first bytes."""

from __future__ import annotations

import re
from typing import Final

from jobs.common.expressions import expression
from jobs.logs.faults import is_clean

KAFKA_DATA: Final = "Kafka's data segments and indexes"
EMPTY: Final = "empty files"

_DATA: Final = expression(
    r"\d{20}\.(?:log|index|timeindex|txnindex|snapshot)(?:\.\w+)*|.*-checkpoint|partition\.metadata|\d{20}-\d{10}\.checkpoint(?:\.\w+)*"
)
"""Kafka calls the files that hold its records .log too."""

_NO_LOG: Final = expression(
    r"\.(?:md|rst|adoc|html?|css|properties|ya?ml|xml|toml|ini|conf|cfg|lck|lock|pid|sw[op]|tmp|part|crc|md5|sha\d+|sig|asc|pem|crt|key"
    r"|jks|p12|py|pyc|ipynb|java|class|scala|kt|groovy|gradle|[ch]|cc|cpp|hpp|go|rs|js|mjs|ts|jsx|tsx|rb|pl|php|sh|bash|bat|ps1|sql|proto"
    r"|jar|war|ear|whl|egg|apk|nupkg|deb|rpm|iso|exe|dll|so|dylib|a|o|docx?|xlsx?|pptx?|od[tsp]|pdf|epub|parquet|orc|avro"
    r"|png|jpe?g|gif|svg|ico|webp|bmp|tiff?|mp[34]|mov|webm|ttf|woff2?)\Z",
    re.IGNORECASE,
)
"""What is never a log, though it may quote one, or be a zip inside."""

_LOG_NAME: Final = expression(r"\.log(?:$|[.\-_\d])")
_BESIDE_LOGS: Final = expression(r"\.jsonl?$", re.IGNORECASE)

_MAGIC: Final = (
    (b"PAR1", "Parquet files"), (b"ORC", "ORC files"), (b"Obj\x01", "Avro files"), (b"\xca\xfe\xba\xbe", "Java class files"),
    (b"JAVA PROFILE", "heap dumps"), (b"FLR\x00", "JFR recordings"), (b"\x89PNG", "images"), (b"\xff\xd8\xff", "images"),
    (b"GIF8", "images"), (b"%PDF", "PDF documents"), (b"SQLite format 3", "databases"), (b"\xd4\xc3\xb2\xa1", "network captures"),
    (b"\x0a\x0d\x0d\x0a", "network captures"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archives that have to be unpacked first"),
    (b"Rar!\x1a\x07", "RAR archives that have to be unpacked first"),
    (b"\x1f\x9d", "files of compress (.Z) that have to be unpacked first"),
)  # fmt: skip
_ELF: Final = b"\x7fELF"
_CORE: Final = 4  # the type of a core dump, at byte 16
_TEXT_BYTES: Final = 4096
_SUFFIX: Final = expression(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z")


def is_log_name(name: str) -> bool:
    """Whether a file of this name is a log: `server.log`, `server.log.1`, `kafka-request.log.2026-11-21-06.gz`."""
    return bool(_LOG_NAME.search(name)) and not kind_by_name(name) and not _BESIDE_LOGS.search(name) and not is_hidden(name)


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is not looked at."""
    return name.startswith((".", "_"))


def kind_by_name(name: str) -> str:
    """What a file of this name is if it cannot be a log; empty if that has to be seen."""
    if _DATA.fullmatch(name):
        return KAFKA_DATA
    match = _NO_LOG.search(name)
    return match[0].lower() if match is not None else ""


def kind_by_content(name: str, begin: bytes) -> str:
    """What a file is that has no line of a log."""
    if not begin:
        return EMPTY
    for magic, kind in _MAGIC:
        if begin.startswith(magic):
            return kind
    if begin.startswith(_ELF):
        return "core dumps" if begin[16:17] == bytes([_CORE]) else "programs"
    head = begin[:_TEXT_BYTES]
    cut = head.rfind(b"\n") + 1 or len(head)
    if b"\0" in head or not is_clean(head[:cut].replace(b"\r", b"")):
        return "other binary files"
    suffix = _SUFFIX.search(name)
    return f"{suffix[0].lower()} without a line of a broker or consumer" if suffix is not None else "other text"
