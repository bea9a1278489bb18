r"""Exports and pastes that are read in another order, or with other line ends, than they have.

* An export that lists the newest line first is read from its end, record by record. A record begins with a line that has a time.
* A terminal that wraps lines breaks each line that is longer than its width, and a paste keeps the breaks. They are joined again: the whole
  line stands where its first piece did, and empty lines in the place of the others, so bytes and numbers of lines stay as they are.
* Words count without a time. A line about a group that has none gets a stamp, as if it had been copied with `docker logs --timestamps`:
  that of the nearest line before it, else of the first that has one. Where no line has a time, the stamp is the number of the line
  (coordinator_model/events.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from coordinator_model.events import TIMES_FROM_MS
from jobs.common.text import many
from jobs.common.times import EPOCH
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.bytes import LogBytes, ShownBytes, anywhere
from jobs.logs.clients.envelopes import client_line
from jobs.logs.clients.judge import ClientJudge, is_consumer_line
from jobs.logs.envelopes import unwrapped
from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.mark import Mark
from jobs.logs.survey.block_times import blocks_of
from jobs.logs.survey.containers import Share, SharedBytes, behind_name
from jobs.logs.times import EXACT, LENGTH, looks_like_time

_BLOCK_BYTES: Final = 1 << 20
_RECORD_BYTES: Final = 16 << 20
_PASTE_BYTES: Final = 16 << 20
_NARROWEST: Final = 40  # characters of a terminal
_WIDEST: Final = 1_000
_UTF8_BYTES: Final = 4  # of a character, at most
_LEAST_PIECES: Final = 3
_RECORD: Final = re.compile(rb"^[^\n]{0,200}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", re.MULTILINE)
_WHOLE: Final = re.compile(rb"\([\w.$]+\)\s*\Z")
_STACK_TRACE: Final = re.compile(rb"\s+at |\s*(?:Caused by: |Suppressed: |\.\.\. \d+ more|[\w.$]+(?:Exception|Error)\b|\Z)")

_DATED: Final = re.compile(rb"\d{4}[-/.]\d\d[-/.]\d\d|Completed request:")
"""What needs no closer look: it has a time, or one that is damaged. A request says nothing without its time."""
_SIGNS: Final = re.compile(rb"roup|thrd:|eartbeat|oll (?:interval|timeout)|ejoin|ommit|static consumer|ncountered the|provided|Member ID")

_WITHOUT_TIMES: Final = (
    "these lines have no times (date, year and time of day), so they are explained in their order; when, how long and how often is unknown."
    " `kubectl logs --timestamps`, `docker logs --timestamps` and `journalctl -o short-iso` have them; else write what you know before each"
    " line: `sed 's/^/2026-01-31 /' FILE | rebalance explain -`"
)


class View(NamedTuple):
    """How a file is to be read."""

    newest_first: bool = False
    width: int = 0  # of the terminal that wrapped its lines; 0: none did
    undated: bool = False  # some of its lines have no time
    share: Share | None = None  # which of its lines; None: all

    @property
    def container(self) -> str:
        """The container whose lines they are, in a file that has lines of several."""
        return self.share.container if self.share is not None else ""


AS_IT_IS: Final = View()


def viewed(log: LogBytes, view: View) -> LogBytes:
    """A file as a view shows it."""
    if view.newest_first:
        log = _Seen(log, _reversed_records)
    elif view.width:
        log = _Seen(log, lambda own: _joined_lines(own, view.width))
    if view.undated:
        log = _Seen(log, _stamped)
    return log if view.share is None else SharedBytes(log, view.share)


def told_of_undated(log: LogBytes, *, alone: bool) -> str:
    """What people should know of lines some of which have no time, and get one. Empty: none needs one, or none gets one.

    Pieces of lines that a terminal wrapped need no time. Lines stay without beside logs of unknown order, if no line has a time.
    """
    wraps, lines = Wraps(), list[bytes]()
    for offset, block in blocks_of(log):
        if offset > _PASTE_BYTES:
            return ""
        wraps.look_at(block)
        lines += block[1:-1].split(b"\n")
    undated = sum(_undated(lines))
    if not undated or wraps.width()[0]:
        return ""
    if any(map(_stamp, lines)):
        return f"{many(undated, 'line')} about groups without a time: each counts at that of the line before, or of the first that has one"
    return _WITHOUT_TIMES if alone else ""


class _Seen(ShownBytes):
    """Bytes that a generator makes of those of a file."""

    def __init__(self, log: LogBytes, make: Callable[[LogBytes], Iterator[bytes]]) -> None:
        super().__init__(log)
        self._made = make(log)
        self._rest = b""
        self._position = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        if not self._rest:
            self._rest = next(filter(None, self._made), b"")
            self.damage = "" if self._rest else self._log.damage
        data, self._rest = self._rest[:size], self._rest[size:]
        self._position += len(data)
        return data

    def file_position(self) -> int:
        """About as much as was read."""
        return self._position


def _reversed_records(log: LogBytes) -> Iterator[bytes]:
    """The records of a log, the last one first. Memory is needed for a block and a record."""
    whole = anywhere(log)
    end = whole.length()
    later = b""  # the end of a record, whose beginning lies before
    while end:
        start = max(0, end - _BLOCK_BYTES)
        text = whole.at(start, end - start) + later
        first = 0 if start == 0 else text.find(b"\n") + 1  # the line before it may begin in the block before
        starts = [match.start() for match in _RECORD.finditer(text, first)] if first or not start else []
        cuts = [*starts, len(text)]
        yield b"".join(_ended(text[begin:stop]) for begin, stop in zip(reversed(starts), reversed(cuts[1:]), strict=True))
        later = text[: cuts[0]]
        if len(later) > _RECORD_BYTES:
            yield _ended(later)
            later = b""
        end = start
    if later:
        yield _ended(later)


def _ended(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _joined_lines(log: LogBytes, width: int) -> Iterator[bytes]:
    pieces: list[bytes] = []
    for line in (line.removesuffix(b"\r") for _, block in blocks_of(log) for line in block[1:-1].split(b"\n")):
        goes_on = pieces and _characters(pieces[-1]) == width and _RECORD.match(line) is None
        if goes_on and sum(map(len, pieces)) < _RECORD_BYTES:
            pieces.append(line)
            continue
        if pieces:
            yield b"".join(pieces) + b"\n" * len(pieces)
        pieces = [line]
    if pieces:
        yield b"".join(pieces) + b"\n" * len(pieces)


def _characters(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


@dataclass
class Wraps:
    """Finds out whether a terminal wrapped the lines of a file."""

    _lines: list[bytes] = field(default_factory=list)
    _size: int = 0

    def look_at(self, text: bytes) -> None:
        """Looks at a block of lines."""
        if self._size <= _PASTE_BYTES:
            lines = text.split(b"\n")[1:-1]
            is_wide = max(map(len, lines), default=0) > _UTF8_BYTES * _WIDEST
            self._size += _PASTE_BYTES + 1 if is_wide else len(text)
            self._lines = self._lines + lines if self._size <= _PASTE_BYTES else []

    def width(self) -> tuple[int, bool]:
        """The width of the terminal, and whether that is sure; 0 if none wrapped the lines.

        It is sure if each line without a time, other than of a stack trace, follows one that has exactly the width, none is longer, and
        the lines that are joined then end with their loggers.
        """
        lines = [line.removesuffix(b"\r") for line in self._lines]
        self._lines = []
        width = max(map(_characters, lines), default=0)
        if not _NARROWEST <= width <= _WIDEST:
            return 0, False
        full = stray = 0
        joined: list[bytes] = []
        for before, line in zip([b"", *lines], lines, strict=False):
            if _RECORD.match(line) is not None:
                joined.append(line)
            elif _characters(before) == width:
                full += 1
                joined[-1:] = [b"".join([*joined[-1:], line])]
            elif _STACK_TRACE.match(line) is None:
                stray += 1
        long = [line for line in joined if _characters(line) > width]
        whole = sum(1 for line in long if _WHOLE.search(line))
        if full < _LEAST_PIECES or not whole:
            return 0, False
        return width, not stray and 2 * whole > len(long)


def is_undated(line: bytes) -> bool:
    """Whether a line is about a group and has no time."""
    if _DATED.search(line) is not None or _SIGNS.search(line) is None:
        return False
    return BrokerJudge(Mark()).untimed(unwrapped(line), "") == NO_TIMESTAMP or is_consumer_line(client_line(line))


def _undated(lines: Iterable[bytes]) -> Iterator[bool]:
    """Whether each line is such a one; of a stack trace the first, and none where the line before the trace says the same."""
    head, name, is_told = b"", b"", False
    for line in lines:
        bare = behind_name(line.removeprefix(name))  # some names are known by the time behind them, which a trace has not
        is_trace = _STACK_TRACE.match(bare) is not None
        is_trace = is_trace and not (_SIGNS.search(line) and ClientJudge(Mark()).untimed(client_line(line), ""))
        if not is_trace:
            head, name, is_told = line, line.removesuffix(bare), False
        is_one = is_undated(line) and not (is_trace and (is_told or is_consumer_line(client_line(head))))
        is_told = is_told or is_one
        yield is_one


def _stamped(log: LogBytes) -> Iterator[bytes]:
    """The lines of a log, each about a group with a time."""
    lines = [line for _, block in blocks_of(log) for line in block[1:-1].split(b"\n")]
    stamps = [_stamp(line) for line in lines]
    last = next(filter(None, stamps), b"")
    for number, (line, own, is_one) in enumerate(zip(lines, stamps, _undated(lines), strict=True), 1):
        last = own or last
        yield (b"" if own or not is_one else last or _numbered(number)) + line + b"\n"


def _stamp(line: bytes) -> bytes:
    """The time of a line, as text; empty if it has none."""
    found = next((text for bare in (unwrapped, client_line) if looks_like_time(text := bare(line))), None)
    return b"" if found is None else found[: LENGTH + (found[EXACT] == b"Z]")] + b" "


def _numbered(number: int) -> bytes:
    at = EPOCH + timedelta(milliseconds=min(number, TIMES_FROM_MS - 1))
    return f"[{at.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}Z] ".encode()
