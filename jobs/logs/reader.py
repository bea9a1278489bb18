"""Reads one log in order: lines with their number, their UTC time, and what is wrong with them.

Everything here depends on the line, on what stood before it in the same log and on the few lines that follow,
never on how the log is cut into reads: reading on from a `Mark` gives what one read would have given.

What concerns no consumer group is only counted. What might, or is damaged, is kept.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from jobs.logs.bytes import LogBytes
from jobs.logs.times import LENGTH, MINUTE, NEVER, SECOND, SECONDS, LocalTimes, looks_like_time

# Faults: why a line cannot be trusted. A line has the first that applies.
TOO_LONG: Final = "TOO_LONG"  # longer than MAX_LINE_BYTES; the text is its beginning
NOT_TEXT: Final = "NOT_TEXT"  # not UTF-8, or control characters in it
BAD_TIMESTAMP: Final = "BAD_TIMESTAMP"  # has the form of a timestamp, but there is no such time
TIMESTAMP_OUTLIER: Final = "TIMESTAMP_OUTLIER"  # its time does not fit the lines around it
NO_TIMESTAMP: Final = "NO_TIMESTAMP"  # concerns a group, or stands in a request log, and does not tell when
NOT_A_REQUEST: Final = "NOT_A_REQUEST"  # a line of a request log that is none
BAD_API_NAME: Final = "BAD_API_NAME"  # its API's name is no name, or its number is that of another API
DAMAGED_FILE: Final = "DAMAGED_FILE"  # not a line: the rest of the file cannot be read; the text says why

MAX_LINE_BYTES: Final = 16 << 20
MAX_FAULTY_TEXT: Final = 4096  # characters kept of a faulty line
FOREVER: Final = 1 << 62  # after any time, ms

GROUP_APIS: Final = frozenset(
    {
        b"JOIN_GROUP",
        b"SYNC_GROUP",
        b"HEARTBEAT",
        b"LEAVE_GROUP",
        b"OFFSET_COMMIT",
        b"TXN_OFFSET_COMMIT",
        b"OFFSET_FETCH",
        b"DELETE_GROUPS",
        b"FIND_COORDINATOR",
        b"CONSUMER_GROUP_HEARTBEAT",
    }
)
_GROUP_API_KEYS: Final = frozenset({b"8", b"9", b"10", b"11", b"12", b"13", b"14", b"28", b"42", b"68"})
# The frequent ones of the others. A name that is not here is looked at twice, no more.
_OTHER_APIS: Final = frozenset(
    b"PRODUCE FETCH LIST_OFFSETS METADATA API_VERSIONS OFFSET_FOR_LEADER_EPOCH "
    b"BROKER_HEARTBEAT ADD_PARTITIONS_TO_TXN ADD_OFFSETS_TO_TXN END_TXN INIT_PRODUCER_ID WRITE_TXN_MARKERS "
    b"LEADER_AND_ISR STOP_REPLICA UPDATE_METADATA ALTER_PARTITION SASL_HANDSHAKE SASL_AUTHENTICATE "
    b"DESCRIBE_GROUPS LIST_GROUPS DESCRIBE_CONFIGS CONSUMER_GROUP_DESCRIBE".split()
)

_REQUEST: Final = b"Completed request:"
_API: Final = b'"requestApiKeyName":"'
_API_LENGTH: Final = len(_API)
_REQUEST_WITHIN: Final = 256  # bytes from the start of the line; level, thread and class may stand before it
_OLD_REQUEST: Final = re.compile(rb"Completed request:RequestHeader\(apiKey=([A-Z_0-9]+)[,)]")
_API_KEY: Final = re.compile(rb'"requestApiKey":(\d+)')
_API_NAME: Final = re.compile(rb"[A-Z_0-9]+")
_API_NAME_WITHIN: Final = 64

_COORDINATOR_LOGGERS: Final = (b"kafka.coordinator.group.", b"org.apache.kafka.coordinator.group.")
_STACK_TRACE: Final = re.compile(rb"\s*(?:at |Caused by: |Suppressed: |\.\.\. \d+ |[\w.$]+(?:Exception|Error)\b)")
_LOG_LINE: Final = re.compile(rb".{25} ?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b.*\(([\w.$\-]+)\)\Z", re.DOTALL)
_REQUEST_LOGGER: Final = b"kafka.request.logger"
_REQUEST_SIGNS: Final = (_REQUEST_LOGGER, b'"requestApi', b'"correlationId"', b'"errorCode"', b'"clientInformation"')

_CONTROL: Final = bytes(c for c in range(32) if c != 9) + b"\x7f"
_CONTROL_TEXT: Final = {c: f"\\x{c:02x}" for c in _CONTROL}
_WITHOUT_CONTROL_IN_BLOCK: Final = bytes(c for c in _CONTROL if c not in b"\n\r")

BLOCK_BYTES: Final = 256 * 1024  # read at once
_FIRST_LINES: Final = 64  # tell what kind of log it is
_WITNESSES: Final = 8  # timestamped lines that a jump in time must stand up to
_WITNESS_LINES: Final = 5_000  # looked through for them
_WITNESS_BYTES: Final = 8 << 20
_DAY_MS: Final = 86_400_000
_HORIZON_LINES: Final = 5


class Settle(enum.Enum):
    """What to do with a jump in time at the end of what can be read, when no line follows that would decide."""

    HOLD = "wait for the lines that follow"
    IDLE = "believe it if small; the log may go on"
    END = "believe it if small; nothing follows"


class Verdict(enum.Enum):
    """What a jump in time is."""

    TRUE = "the log was silent for that long"
    OUTLIER = "a damaged timestamp"
    OPEN = "not known yet"


@dataclass
class Mark:
    """A place in a log between two lines, and all that reading on from there needs to know."""

    offset: int = 0  # bytes, uncompressed
    line: int = 0  # lines before it
    newest_ms: int = NEVER  # time of the newest line before it, outliers aside
    inside_line: bool = False  # the last line had no end when it was read: what follows up to \n is its rest
    damage_told: bool = False
    # What kind of log it is: lines so far, by kind. The first block counts in advance.
    requests: int = 0
    others: int = 0
    other_loggers: int = 0  # of `others`: complete lines of other loggers
    after_other: bool = False  # the line before was one of another logger (or its continuation)
    groups: dict[str, str] = field(default_factory=dict)  # of a client log: the group that each client named last

    @property
    def is_request_log(self) -> bool:
        """Whether most lines so far were requests."""
        return self.requests > self.others


@dataclass
class Kept:
    """Lines kept, column by column, in the order read."""

    positions: list[int] = field(default_factory=list)
    ats: list[int | None] = field(default_factory=list)  # epoch ms
    texts: list[bytes] = field(default_factory=list)  # UTF-8
    faults: dict[int, str] = field(default_factory=dict)  # by index in the other lists
    contexts: dict[int, str] = field(default_factory=dict)  # what lines before say of this one, by index
    size: int = 0  # bytes of the texts

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, position: int, at_ms: int | None, text: bytes, fault: str = "", context: str = "") -> None:
        """Adds a line; one with a fault is kept as something to look at, not to parse."""
        if context:
            self.contexts[len(self.positions)] = context
        if fault:
            self.faults[len(self.positions)] = fault
            text = shown(text)
        self.positions.append(position)
        self.ats.append(at_ms)
        self.texts.append(text)


class LogReader:
    """Reads one log from a mark on. `mark` is always behind the last line that was handed out."""

    def __init__(
        self,
        open_bytes: Callable[[], LogBytes],
        times: LocalTimes,
        mark: Mark | None = None,
        *,
        final: bool = True,
        tolerance_ms: int = 60_000,
        believable_ms: int = 3_600_000,
    ) -> None:
        """Begins at `mark`, or at the start.

        `final`: a last line without its end is a line. `tolerance_ms`: how far a line may be ahead of those before it
        without question. `believable_ms`: a jump up to that is believed where no line is left to ask.
        """
        self.mark = replace(mark) if mark else Mark()
        self.final = final
        self._open_bytes = open_bytes
        self._times = times
        self._tolerance = tolerance_ms
        self._believable = believable_ms
        self._bytes: LogBytes | None = None
        self._heard: list[int] = []
        self._reset()

    def _reset(self) -> None:
        self._lines: list[bytes] = []
        self._next = 0  # index of the first line not handed out
        self._rest = b""  # of a line whose end was not read yet
        self._rest_dropped = 0  # bytes of it that were too many to keep
        self._dropped: dict[int, int] = {}  # the same for lines, by index
        self._odd = False  # some line of the block is not plain text, too long, or ends in \r\n
        self._unended = False  # the last line has no \n
        self._at_end = False  # of what can be read

    # Bytes to lines.

    def close(self) -> None:
        """Lets go of the file and of what was read ahead. Reading on opens it again."""
        if self._bytes is not None:
            self._bytes.close()
            self._bytes = None
        self._reset()

    def take_heard(self) -> list[int]:
        """Seconds (UTC epoch) in which lines stand that were read since the last call.

        As first, last, first, last, …: ascending stretches without a silent second.
        """
        seconds, self._heard = sorted(set(self._heard)), []
        stretches: list[int] = []
        for second in seconds:
            if stretches and second == stretches[-1] + 1:
                stretches[-1] = second
            else:
                stretches += (second, second)
        return stretches

    @property
    def source(self) -> LogBytes | None:
        """The open file, if it is open."""
        return self._bytes

    def _open(self) -> LogBytes | None:
        """Opens the file and moves to the mark; None if the file does not reach that far."""
        self._bytes = self._open_bytes()
        if not self._bytes.skip(self.mark.offset):
            self._at_end = True
            return None
        return self._bytes

    def _load(self) -> bool:
        """Appends at least one line to those read ahead; False at the end of what can be read."""
        source = self._bytes or (None if self._at_end else self._open())
        before = len(self._lines)
        kind_unknown = not (self.mark.line or self.mark.requests or self.mark.others)
        wanted = _FIRST_LINES if kind_unknown else before + 1
        while not self._at_end and source is not None and len(self._lines) < wanted:
            block = source.read(BLOCK_BYTES)
            if block:
                self._take_block(block)
                continue
            self._at_end = True
            if self.final and self._rest:
                self._take(self._rest, ended=False)
                self._rest = b""
        if kind_unknown:
            self._count_first_lines()
        return len(self._lines) > before

    def _take_block(self, block: bytes) -> None:
        """Cuts a block into lines, as far as they end in it."""
        if self.mark.inside_line:
            end = block.find(b"\n") + 1
            self.mark.offset += end or len(block)
            if not end:
                return
            self.mark.inside_line = False
            block = block[end:]
        first, last = block.find(b"\n"), block.rfind(b"\n")
        room = MAX_LINE_BYTES - len(self._rest)
        if first < 0:
            self._rest_dropped += max(0, len(block) - room)
            self._rest += block[:room]
            return
        too_many = self._rest_dropped + max(0, first - room)
        if too_many:
            self._dropped[len(self._lines)] = too_many
            whole = self._rest + block[: min(first, room)] + block[first:last]
        else:
            whole = self._rest + block[:last]
        self._rest, self._rest_dropped = block[last + 1 :], 0
        self._take(whole, ended=True)

    def _take(self, whole: bytes, *, ended: bool) -> None:
        """Appends the lines of a text; the last one's end is not part of it."""
        if not ended and self._rest_dropped:
            self._dropped[len(self._lines)] = self._rest_dropped
            self._rest_dropped = 0
        self._odd = self._odd or bool(self._dropped) or not _is_plain(whole)
        self._lines += whole.split(b"\n")
        self._unended = not ended

    def _advance(self, count: int) -> None:
        """Moves the mark behind the next `count` lines."""
        start, end = self._next, self._next + count
        size = sum(map(len, self._lines[start:end])) + count
        if self._dropped:
            size += sum(length for index, length in self._dropped.items() if start <= index < end)
        self.mark.line += count
        self._next = end
        if end == len(self._lines):
            if self._unended and count:
                size -= 1
                self.mark.inside_line = True
            self._lines, self._next, self._odd, self._unended = [], 0, False, False
            self._dropped.clear()
        self.mark.offset += size

    def _compact(self) -> None:
        """Forgets lines handed out, which pile up where reading ahead for witnesses never lets a block end."""
        if self._next > _WITNESS_LINES:
            del self._lines[: self._next]
            self._dropped = {i - self._next: n for i, n in self._dropped.items() if i >= self._next}
            self._next = 0

    def _count_first_lines(self) -> None:
        """Tells from a log's first lines what kind it is, so that the very first may be judged by it."""
        for line in self._lines[:_FIRST_LINES]:
            if _REQUEST in line[:_REQUEST_WITHIN]:
                self.mark.requests += 1
            elif line.strip():
                self.mark.others += 1
                self.mark.other_loggers += _is_other_logger(line)

    # Lines.

    @property
    def exhausted(self) -> bool:
        """Whether everything that can be read was handed out."""
        return self._at_end and self._next >= len(self._lines)

    @property
    def complete(self) -> bool:
        """Whether the whole file was handed out, up to its last byte, and nothing remains to be said about it."""
        return self.exhausted and not self._rest and (self.mark.damage_told or not self.damage)

    @property
    def damage(self) -> str:
        """Why the file ends where it does, if it should not."""
        return self._bytes.damage if self._bytes is not None and self._at_end else ""

    def peek(self, settle: Settle = Settle.HOLD, witness_ms: int = NEVER) -> tuple[int, Verdict]:
        """Time of the next line that has one, epoch ms, and whether it is certain.

        NEVER if it is not known without handing out others before it. Asked of a log with nothing left: FOREVER.
        """
        if self._next >= len(self._lines) and not self._load():
            return FOREVER, Verdict.TRUE
        newest = self.mark.newest_ms
        for index in range(self._next, len(self._lines)):
            at = self._times.read(self._lines[index], newest)
            if at is None:
                continue
            verdict = self._judge(index, at, settle, witness_ms)
            if verdict is not Verdict.OUTLIER:
                return at, verdict
        return NEVER, Verdict.TRUE

    def horizon(self) -> int:
        """Time up to which the log can be read without more of the file than is read ahead, about; epoch ms.

        NEVER if no line read ahead has a time. FOREVER if nothing is left.
        """
        if self._next >= len(self._lines) and not self._load():
            return FOREVER
        last: list[int] = []
        for line in reversed(self._lines[self._next :]):
            at = self._times.read(line, self.mark.newest_ms)
            if at is not None:
                last.append(at)
                if len(last) == _HORIZON_LINES:
                    break
        if not last:
            return NEVER
        last.sort()
        middle = last[len(last) // 2]
        return last[-1] if last[-1] - middle <= self._tolerance else middle  # one of them may be damaged

    def read(
        self,
        kept: Kept,
        *,
        until_ms: int = FOREVER,
        max_lines: int = FOREVER,
        max_bytes: int = FOREVER,
        settle: Settle = Settle.END,
        witness_ms: int = NEVER,
    ) -> int:
        """Hands out lines up to the first later than `until_ms`; the number of lines read.

        It also ends after `max_lines`, after the block in which `kept` grew beyond `max_bytes`, and before a jump in
        time that is not settled. `witness_ms`: a time known from elsewhere to have been reached; jumps up to it are
        believed where no line of this log is left to ask.
        """
        first_line = self.mark.line
        while kept.size < max_bytes:
            left = max_lines - (self.mark.line - first_line)
            if left <= 0 or (self._next >= len(self._lines) and not self._load()):
                break
            self._compact()
            end = min(len(self._lines), self._next + left)
            if self._read_block(kept, end, until_ms, settle, witness_ms):
                break
        return self.mark.line - first_line

    def tell_damage(self, kept: Kept) -> bool:
        """Keeps a record that says why the file ends where it does; False if it ends well or that was said before."""
        if not self.damage or self.mark.damage_told:
            return False
        self.mark.damage_told = True
        kept.add(self.mark.line + 1, None, self.damage.encode(), DAMAGED_FILE)
        return True

    def _read_block(  # noqa: PLR0912, PLR0915
        self, kept: Kept, end: int, until: int, settle: Settle, witness: int
    ) -> bool:
        """Hands out lines up to index `end`; True if it stopped before.

        The hot path, a microsecond or two for a line: hence one long function.
        """
        start = self._next
        lines = self._lines[start:end]
        mark, times, tolerance, odd = self.mark, self._times, self._tolerance, self._odd
        number = mark.line - start + 1  # of the line at index 0
        newest = mark.newest_ms
        bound = min(until, newest + tolerance)  # up to here a time needs no second look
        first_kept = len(kept.positions)
        keep_position, keep_at, keep_text = kept.positions.append, kept.ats.append, kept.texts.append
        seconds = SECONDS.get
        minute_text = b""
        minute: int | None = None
        heard, heard_second = self._heard.append, -1
        requests = 0
        reached = end
        for index, raw in enumerate(lines, start):
            line, fault = self._inspect(index, raw) if odd else (raw, "")
            text = line[MINUTE]
            if text != minute_text:
                minute_text = text
                minute = times.minute(text)
            millis = seconds(line[SECOND])
            if minute is not None and millis is not None:
                at: int | None = minute + millis
            else:
                at = times.read(line, newest)
            if at is None:
                if requests:
                    mark.requests += requests
                    mark.after_other = False
                    requests = 0
                fault = fault or self._untimed(line)
                if fault:
                    kept.add(number + index, None, line, fault)
                continue
            if at > bound:
                # Beyond `until` nothing has to be settled yet, and other logs are not read up to there.
                verdict = self._judge(index, at, settle if at <= until else Settle.HOLD, witness, newest)
                if verdict is Verdict.OUTLIER:
                    kept.add(number + index, None, line, fault or TIMESTAMP_OUTLIER)
                    continue
                if verdict is Verdict.OPEN or at > until:
                    reached = index
                    break
            second = at // 1_000
            if second != heard_second:
                heard_second = second
                heard(second)
            if at > newest:
                newest = at
                bound = min(until, at + tolerance)
            if fault:
                kept.add(number + index, at, line, fault)
                continue
            found = line.find(_REQUEST, LENGTH, _REQUEST_WITHIN)
            if found > 0:
                requests += 1
                name_at = line.find(_API, found) + _API_LENGTH
                name = line[name_at : line.find(b'"', name_at)]
                if name not in GROUP_APIS:
                    if name in _OTHER_APIS and line.find(_REQUEST, found + 1) < 0:
                        continue
                    verdict_text = _judge_request(line, found)
                    if verdict_text is None:
                        continue
                    if verdict_text:
                        kept.add(number + index, at, line, verdict_text)
                        continue
                keep_position(number + index)
                keep_at(at)
                keep_text(line)
                continue
            if requests:
                mark.requests += requests
                mark.after_other = False
                requests = 0
            other = self._timed(line)
            if other is not None:
                kept.add(number + index, at, line, other)
        if requests:
            mark.requests += requests
            mark.after_other = False
        mark.newest_ms = newest
        kept.size += sum(map(len, kept.texts[first_kept:]))
        self._advance(reached - start)
        return reached < end

    def _inspect(self, index: int, line: bytes) -> tuple[bytes, str]:
        """A line of an odd block without its carriage return, and what is wrong with its bytes."""
        if index in self._dropped:
            return line[: MAX_FAULTY_TEXT * 4], TOO_LONG
        if line.endswith(b"\r"):
            line = line[:-1]
        return line, "" if _is_text(line) else NOT_TEXT

    # Times.

    def _judge(self, index: int, at: int, settle: Settle, witness: int, newest: int | None = None) -> Verdict:
        """Whether the line at `index` really is that far ahead of the lines before it.

        A damaged digit throws a single line ahead: the lines after it go back to where the log was.
        """
        newest = self.mark.newest_ms if newest is None else newest
        if newest != NEVER and at - newest <= self._tolerance:
            return Verdict.TRUE
        followers, complete = self._followers(index, at if newest == NEVER else newest)
        if self._goes_back(at, newest, followers) or (complete and newest == NEVER and _is_long_ago(at, followers)):
            return Verdict.OUTLIER
        if complete or witness >= at - self._tolerance:
            return Verdict.TRUE
        if settle is Settle.HOLD:
            return Verdict.OPEN
        if followers or newest == NEVER or at - newest <= self._believable:
            return Verdict.TRUE
        return Verdict.OUTLIER if settle is Settle.END else Verdict.OPEN

    def _goes_back(self, at: int, newest: int, followers: list[int]) -> bool:
        """Whether the log, after a jump to `at`, goes on where it was before it.

        One line that fits to what was before proves it; of lines that fit to neither it takes a majority, for one of
        them may be damaged itself.
        """
        before = [b for b in followers if b < at - self._tolerance]
        if 2 * len(before) > len(followers):
            return True
        return newest != NEVER and any(b >= newest - self._tolerance for b in before)

    def _followers(self, index: int, near: int) -> tuple[list[int], bool]:
        """Times of the next timestamped lines after `index`, and whether there are as many as are asked."""
        followers: list[int] = []
        size = 0
        for count in range(1, _WITNESS_LINES + 1):
            if index + count >= len(self._lines) and not self._load():
                return followers, False
            line = self._lines[index + count]
            at = self._times.read(line, near)
            if at is not None:
                followers.append(at)
            size += len(line)
            if len(followers) == _WITNESSES or size > _WITNESS_BYTES:
                break
        return followers, True

    # What a line is about.

    def _timed(self, line: bytes) -> str | None:
        """Judges a line that has a time and is no request: None to skip it, "" to keep it, else its fault."""
        mark = self.mark
        if _is_coordinator(line):
            mark.others += 1
            mark.other_loggers += 1
            mark.after_other = True
            return ""
        if _is_other_logger(line):
            mark.others += 1
            mark.other_loggers += 1
            mark.after_other = True
            return None
        # In a log of requests alone such a line is damage; where other loggers write too, it may be the first line
        # of a longer message.
        pure = mark.is_request_log and not mark.other_loggers
        mark.others += 1
        if pure or any(sign in line for sign in _REQUEST_SIGNS):
            mark.after_other = False
            return NOT_A_REQUEST
        mark.after_other = True
        return None

    def _untimed(self, line: bytes) -> str:
        """Judges a line without a time: its fault, or "" to skip it."""
        if not line.strip():
            return ""
        if looks_like_time(line):
            return BAD_TIMESTAMP
        mark = self.mark
        is_request = _REQUEST in line or b'"requestApiKeyName"' in line
        if is_request or (mark.is_request_log and not mark.after_other):
            mark.others += not is_request
            return NO_TIMESTAMP
        mark.others += 1
        if _STACK_TRACE.match(line) is None and _is_coordinator(line):
            return NO_TIMESTAMP
        return ""


def _is_long_ago(at: int, followers: list[int]) -> bool:
    """Whether a log begins with a time of long ago and goes on in the present: a damaged first line."""
    ahead = [b > at + _DAY_MS for b in followers]
    return bool(ahead) and ahead[0] and 2 * sum(ahead) > len(ahead)


def _judge_request(line: bytes, found: int) -> str | None:
    """Judges a request of no known API; `found`: where it starts. None to skip it, "" to keep it, else its fault."""
    if line.find(_REQUEST, found + 1) > 0:
        return ""  # two lines in one: one of them was cut
    start = line.find(_API, found)
    if start < 0:
        old = _OLD_REQUEST.match(line, found)  # text, before Kafka 2.8
        return None if old is not None and old[1] not in GROUP_APIS else ""
    start += _API_LENGTH
    end = line.find(b'"', start, start + _API_NAME_WITHIN)
    if end < 0 or _API_NAME.fullmatch(line, start, end) is None:
        return BAD_API_NAME
    key = _API_KEY.search(line, found, start)
    if key is not None and key[1] in _GROUP_API_KEYS:
        return BAD_API_NAME
    return None


def _is_coordinator(line: bytes) -> bool:
    """Whether a line comes from the group coordinator. Two signs, for a cut line may have only one of them."""
    if b"[GroupCoordinator" in line or b"GroupMetadataManager" in line:
        return True
    if not line.endswith(b")"):
        return False
    return line.startswith(_COORDINATOR_LOGGERS, line.rfind(b"(") + 1)


def _is_other_logger(line: bytes) -> bool:
    """Whether this is a complete line of a logger other than the request logger."""
    match = _LOG_LINE.match(line)
    return match is not None and match[1] != _REQUEST_LOGGER


def _is_plain(block: bytes) -> bool:
    """Whether a block of lines is clean text with plain line ends: then none of its lines needs a look of its own."""
    if b"\r" in block or len(block.translate(None, _WITHOUT_CONTROL_IN_BLOCK)) != len(block):
        return False
    return block.isascii() or _is_utf8(block)


def _is_text(line: bytes) -> bool:
    return len(line.translate(None, _CONTROL)) == len(line) and (line.isascii() or _is_utf8(line))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(line: bytes) -> bytes:
    r"""A faulty line as text that any table can hold: what is no text as \xNN, cut after MAX_FAULTY_TEXT characters."""
    text = line[: MAX_FAULTY_TEXT * 4].decode("utf-8", "backslashreplace").translate(_CONTROL_TEXT)
    return text[:MAX_FAULTY_TEXT].encode()
