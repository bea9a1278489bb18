"""Lines that were copied, or logged, without a time: words count without one.

Each line about a group that has no time gets a stamp, as if it had been copied with `docker logs --timestamps`: that of the nearest line
before it, else of the first that has one. Where no line has a time, the stamp is the number of the line (coordinator_model/events.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from coordinator_model.events import TIMES_FROM_MS
from jobs.common.text import many
from jobs.common.times import EPOCH
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.bytes import LogBytes
from jobs.logs.clients.envelopes import client_line
from jobs.logs.clients.judge import ClientJudge
from jobs.logs.envelopes import unwrapped
from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.mark import Mark
from jobs.logs.survey.block_times import blocks_of
from jobs.logs.times import EXACT, LENGTH, looks_like_time

MOST_BYTES: Final = 16 << 20  # of an excerpt
_DATED: Final = re.compile(rb"\d{4}[-/.]\d\d[-/.]\d\d|Completed request:")
"""What needs no closer look: it has a time, or one that is damaged. A request says nothing without its time."""
_SIGNS: Final = re.compile(rb"roup|thrd:|eartbeat|oll (?:interval|timeout)|ejoin|ommit")
_JUDGES: Final = tuple((judge(Mark()).untimed, bare) for judge, bare in ((BrokerJudge, unwrapped), (ClientJudge, client_line)))

_WITHOUT_TIMES: Final = (
    "these lines have no times (date, year and time of day), so they are explained in their order; when, how long and how often is unknown."
    " `kubectl logs --timestamps`, `docker logs --timestamps` and `journalctl -o short-iso` have them; else write what you know before each"
    " line: `sed 's/^/2026-01-31 /' FILE | rebalance explain -`"
)


def is_undated(line: bytes) -> bool:
    """Whether a line is about a group and has no time."""
    if _DATED.search(line) is not None or _SIGNS.search(line) is None:
        return False
    return any(judged(bare(line), "") == NO_TIMESTAMP for judged, bare in _JUDGES)


def stamped(log: LogBytes) -> Iterator[bytes]:
    """The lines of a log, each about a group with a time."""
    lines = [line for _, block in blocks_of(log) for line in block[1:-1].split(b"\n")]
    stamps = [_stamp(line) for line in lines]
    last = next(filter(None, stamps), b"")
    for number, (line, own) in enumerate(zip(lines, stamps, strict=True), 1):
        last = own or last
        yield (b"" if own or not is_undated(line) else last or _numbered(number)) + line + b"\n"


def told_of(lines: Sequence[bytes], *, alone: bool) -> str:
    """What people should know of lines, some without a time. Empty: none needs one, or they stay without, beside logs of unknown order."""
    undated = sum(map(is_undated, lines))
    if undated and any(map(_stamp, lines)):
        return f"{many(undated, 'line')} about groups without a time: each counts at the time of the line before"
    return _WITHOUT_TIMES if undated and alone else ""


def _stamp(line: bytes) -> bytes:
    """The time of a line, as text; empty if it has none."""
    found = next((text for bare in (unwrapped, client_line) if looks_like_time(text := bare(line))), None)
    return b"" if found is None else found[: LENGTH + (found[EXACT] == b"Z]")] + b" "


def _numbered(number: int) -> bytes:
    at = EPOCH + timedelta(milliseconds=min(number, TIMES_FROM_MS - 1))
    return f"[{at.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}Z] ".encode()
