"""Decides by its first lines whose log a file is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

from jobs.common.expressions import expression
from jobs.logs.clients.envelopes import SIGNED, SIGNED_WITHIN, client_line
from jobs.logs.clients.judge import is_consumer_line
from jobs.logs.envelopes import unwrapped
from jobs.sentences.client import PREFIX

SAMPLE_BYTES: Final = 64 << 10
MORE_BYTES: Final = 1 << 20  # of a file of several containers

_LIKELY: Final = expression(rb"kafka\.|Group(?:Coordinator|MetadataManager) |Completed request:|state\.change\.|\"coordinatorId\"")
"""What every line of a broker has. Looking at a line costs a hundred times as much."""
_LIKELY_CLIENT: Final = expression(rb"(?i)kafka|consumer|group|thrd:|heartbeat|metadata|crash|poll interval|stream-thread|member id")

_STAMP: Final = expression(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}Z?\] ")
_LOGGER: Final = expression(
    rb"kafka\.(?!tools\.)(?:[a-z]\w*\.)*(?:[A-Z][\w$]*|logger)|org\.apache\.kafka\.(?!clients\.|connect\.|streams\.|common\.|tools\.)[\w.$]+"
    rb"|state\.change\.logger"
)
"""Loggers that only a broker has. Those of kafka-python are in small letters; clients have `clients` and `common` too."""
_SENTENCE: Final = expression(rb"\[GroupCoordinator |\[GroupMetadataManager |Completed request:(?:\{|RequestHeader\()")
_MESSAGE: Final = expression(rb"(?<![\w`.])\[Group(?:Coordinator |MetadataManager brokerId=)(?:id=)?\d[^\]\n]*\]:? [A-Z\[]")
_ONLY_BROKERS: Final = expression(rb"\[Group(?:Coordinator|MetadataManager) |Completed request:|\[ReplicaFetcher |LoggingSignalHandler\)")
"""What only brokers write, in damaged lines and with loggers that clients have. Their releases both write in the same words."""
_CLIENT: Final = expression(
    PREFIX.encode() + rb"[^\]\n]{0,300}groupId=|\b(?:Consumer|Distributed)Config values:"
    rb"|%[0-7]\|\d{9,11}\.\d{3}\|[A-Z_0-9]{2,32}\|"
)


class Writer(Enum):
    """Who wrote a log."""

    BROKER = "broker"
    CLIENT = "client"
    UNKNOWN = "unknown"


def writer_of(sample: bytes) -> Writer:
    """Whose lines are in a sample, the first SAMPLE_BYTES of a log: a broker's if any is, else a client's if any is."""
    if any(map(own_line, _lines_with(_LIKELY, sample))):
        return Writer.BROKER
    if any(_CLIENT.search(line) is not None or is_consumer_line(client_line(line)) for line in _lines_with(_LIKELY_CLIENT, sample)):
        return Writer.CLIENT
    # Lines of a coordinator that cannot be read, such as those without a date, are counted, not left out.
    return Writer.BROKER if any(len(_MESSAGE.findall(line)) == 1 for line in _lines_with(_LIKELY, sample)) else Writer.UNKNOWN


def _lines_with(sign: re.Pattern[bytes], sample: bytes) -> Iterator[bytes]:
    end = 0
    while (match := sign.search(sample, end)) is not None:
        start, end = sample.rfind(b"\n", 0, match.start()) + 1, sample.find(b"\n", match.start())
        end = len(sample) if end < 0 else end
        yield sample[start:end]


def own_line(line: bytes) -> bytes:
    """A broker's own line, without what stands around it; empty if it is none."""
    bare = unwrapped(line.removesuffix(b"\r")).rstrip()
    if _STAMP.match(bare) is None:
        return b""
    is_own = bare.endswith(b")") and _LOGGER.fullmatch(bare, bare.rfind(b"(") + 1, len(bare) - 1) is not None
    return bare if is_own or _SENTENCE.search(bare) is not None else b""


def is_of_client(line: bytes, *, kept: bool = False) -> bool:
    """Whether a client wrote a line of a file in which brokers write, too. `kept`: and it is one that says why it joins or leaves."""
    if line.endswith(b")") and _LOGGER.fullmatch(line, line.rfind(b"(") + 1, len(line) - 1) is not None:
        return False
    if _LIKELY_CLIENT.search(line) is None:
        return False
    bare = client_line(line)
    said = is_consumer_line(bare) or (not kept and (_CLIENT.search(line) or SIGNED.match(bare, 0, SIGNED_WITHIN)) is not None)
    return said and not own_line(line)


def is_of_broker(line: bytes) -> bool:
    """Whether a line of a file in which clients write, too, is surely a broker's: also a damaged one."""
    return _ONLY_BROKERS.search(line) is not None or bool(own_line(line))
