"""Cuts the bytes of a log into lines, some of which are read ahead of a mark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from jobs.logs.bytes import LogBytes, open_log
from jobs.logs.envelopes.pieces import join_pieces, may_have_pieces
from jobs.logs.faults import MAX_FAULTY_TEXT, NOT_TEXT, TOO_LONG, is_clean
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark
from jobs.logs.survey.views import AS_IT_IS, View, viewed

if TYPE_CHECKING:
    from jobs.logs.blocks import Block

_Note = TypeVar("_Note")

_FORGET_AFTER: Final = 5_000  # lines handed out
_LOGGER: Final = re.compile(rb"\((?:[\w$]+\.)+[\w$]+\)\r?\Z")
"""What a line of Kafka's own pattern ends with. Such a line is whole, though its line end is missing."""


class LineLimits(msgspec.Struct, frozen=True):
    """How much is read at a time, and how much of a line is kept."""

    block_bytes: int = 256 << 10
    line_bytes: int = 16 << 20


LINE_LIMITS: Final = LineLimits()
_NUMBERED_LIMITS: Final = LineLimits(1 << 20, 1 << 20)


class LineBuffer:
    """Lines of one log from a mark on. `mark` is always behind the last line that was handed out."""

    def __init__(
        self,
        open_bytes: Callable[[], LogBytes],
        mark: Mark,
        *,
        final: bool,
        limits: LineLimits,
        half_lines: bool = True,
        judge: LineJudge | None = None,
        is_elsewhere: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`final`: a last line without its end is a line; without `half_lines` only a whole one is, or one in a file that cannot grow.

        `judge`: knows what stands around lines. `is_elsewhere`: see Share.
        """
        self.mark = mark
        self.final = final
        self._half_lines = half_lines
        self._open_bytes = open_bytes
        self._limits = limits
        self._judge = judge
        self._is_elsewhere = is_elsewhere
        self.block_of: Callable[[bytes], Block | None] | None = None  # makes a block of lines around which nothing stands
        self.source: LogBytes | None = None  # the file, if it is open
        self._reset()

    def _reset(self) -> None:
        self._lines: list[bytes] = []
        self.block: Block | None = None  # the last lines, while nobody has asked for one of them; it is all that is read ahead then
        self.next = 0  # index of the first line not handed out
        self.odd = False  # some line is not plain text, too long, or ends in \r\n: `inspect` tells
        self._rest = b""  # of a line whose end was not read yet
        self._rest_dropped = 0  # bytes of it that were too many to keep
        self._dropped: dict[int, int] = {}  # the same for lines, by index
        self.written: dict[int, bytes] = {}  # by index, lines as they stand in the file, where that differs
        self._inside: dict[int, str] = {}  # by index: as `Mark.inside_pieces` is before this line
        self._pieces = self.mark.inside_pieces  # ... behind the last line
        self._ahead = 0  # bytes of the lines not handed out
        self._unended = False  # the last line has no \n
        self._at_end = False  # of what can be read

    def close(self) -> None:
        """Closes the file and forgets what was read ahead. Reading on opens the file again."""
        if self.source is not None:
            self.source.close()
            self.source = None
        self._reset()

    @property
    def lines(self) -> list[bytes]:
        """The lines read ahead, and some of those handed out."""
        if self.block is not None:
            self._lines += self.block.lines()
            self.block = None
        return self._lines

    @property
    def count(self) -> int:
        """The number of `lines`."""
        return len(self._lines) + (0 if self.block is None else len(self.block))

    @property
    def complete(self) -> bool:
        """Whether the whole file was handed out, up to its last byte."""
        return self._at_end and self.next >= self.count and not self._rest

    @property
    def damage(self) -> str:
        """Why the file ends where it does, if it should not."""
        return self.source.damage if self.source is not None and self._at_end else ""

    @property
    def waits(self) -> bool:
        """Whether the file ends with a line that is handed out when its end is there."""
        return self._at_end and bool(self._rest)

    def _is_whole(self, source: LogBytes) -> bool:
        return not source.can_grow or _LOGGER.search(self._rest) is not None

    def load(self, wanted: int = 0) -> bool:
        """Reads ahead until there are `wanted` lines, and at least one more than before; False at the end of what can be read."""
        if self.source is None and not self._at_end:
            self.source = self._open_bytes()
            self._at_end = not self.source.skip(self.mark.offset)
        before = self.count
        while not self._at_end and self.source is not None and self.count < max(wanted, before + 1):
            block = self.source.read(self._limits.block_bytes)
            if block:
                self._take_block(block)
                continue
            self._at_end = True
            if self.final and self._rest and self.source.is_there() and (self._half_lines or self._is_whole(self.source)):
                if self._rest_dropped:
                    self._dropped[len(self.lines)] = self._rest_dropped
                rest, self._rest, self._rest_dropped = self._rest, b"", 0
                self._take(rest.removesuffix(b"\n"), last=True)
                self._unended = not rest.endswith(b"\n")
        return self.count > before

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
        room = self._limits.line_bytes - len(self._rest)
        if first < 0:
            self._rest_dropped += max(0, len(block) - room)
            self._rest += block[:room]
            return
        too_many = self._rest_dropped + max(0, first - room)
        if too_many:
            self._dropped[len(self.lines)] = too_many
            whole = self._rest + block[: min(first, room)] + block[first:last]
        else:
            whole = b"".join((self._rest, memoryview(block)[:last]))  # copies once
        self._rest, self._rest_dropped = block[last + 1 :], 0
        self._take(whole)

    def _take(self, whole: bytes, *, last: bool = False) -> None:
        """Appends the lines of a text, which does not include the end of the last one. `last`: no lines follow."""
        if self.block_of is not None and not (last or self.count or self._dropped or self._pieces):
            self.block = self.block_of(whole)
            if self.block is not None:
                self._ahead += len(whole) + 1
                self._unended = False
                return
        self.odd = self.odd or bool(self._dropped) or not is_clean(whole)
        taken, size = whole.split(b"\n"), len(whole) + 1
        if self._judge is not None and self._judge.bare is not None:
            candidates = self._judge.candidates(whole, taken) if self._judge.candidates is not None else range(len(taken))
            first = next((taken[index] for index in candidates if taken[index]), b"")
            written, base, bare = list(taken), len(self.lines), self._judge.bare
            if self._pieces or may_have_pieces(whole, taken, first):
                inside, held = join_pieces(taken, self._pieces, 0 if last else max(0, self._limits.line_bytes - len(self._rest)))
                self._rest = held + self._rest
                size -= len(held)
                candidates = range(len(taken))
                self._pieces = inside.pop(len(taken), "")
                self._inside |= {base + index: streams for index, streams in inside.items()}
            for index in candidates:
                line = taken[index]
                taken[index] = line if not line or line.isspace() else bare(line)
                if taken[index] is not written[index]:
                    self.written[base + index] = written[index]
        self.lines.extend(taken)
        self._ahead += size
        self._unended = False

    def advance(self, count: int) -> None:
        """Moves the mark behind the next `count` lines."""
        start, end = self.next, self.next + count
        whole = end == self.count
        size = self._ahead
        if not whole:
            size = sum(map(len, self.lines[start:end])) + count
            for index in range(start, end) if self.written else ():
                size += len(self.written[index]) - len(self.lines[index]) if index in self.written else 0
        self._ahead -= size
        size += sum(self._dropped.get(index, 0) for index in range(start, end)) if self._dropped else 0
        if self._is_elsewhere is not None:
            self.mark.elsewhere += sum(map(self._is_elsewhere, self.lines[start:end]))
        self.mark.line += count
        self.mark.inside_pieces = self._pieces if whole else self._inside.get(end, "")
        self.next = end
        if whole:
            if self._unended and count:
                size -= 1
                self.mark.inside_line = True
            self._lines, self.block, self.next, self.odd, self._unended = [], None, 0, False, False
            self._dropped.clear()
            self.written.clear()
            self._inside.clear()
        self.mark.offset += size

    def forget(self) -> None:
        """Forgets lines handed out, which pile up where reading ahead never lets a block end."""
        if self.next > _FORGET_AFTER:
            del self.lines[: self.next]
            self._dropped = _from(self.next, self._dropped)
            self.written = _from(self.next, self.written)
            self._inside = _from(self.next, self._inside)
            self.next = 0

    def inspect(self, index: int) -> tuple[bytes, str]:
        """A line without its carriage return, and what is wrong with its bytes."""
        line = self.lines[index]
        if index in self._dropped:
            return line[: MAX_FAULTY_TEXT * 4], TOO_LONG
        line = line.removesuffix(b"\r")
        return line, "" if is_clean(line) else NOT_TEXT


def _from(first: int, notes: dict[int, _Note]) -> dict[int, _Note]:
    """What is noted by index, once the lines before `first` are forgotten."""
    return {index - first: note for index, note in notes.items() if index >= first}


def numbered_lines(
    path: Path, numbers: Iterable[int], limits: LineLimits = _NUMBERED_LIMITS, view: View = AS_IT_IS
) -> Iterator[tuple[int, bytes]]:
    """These lines of a log, plain or gzip, without their ends, cut by `limits`. None if the file cannot be opened."""
    wanted = set(numbers)
    last = max(wanted, default=0)
    try:
        log = viewed(open_log(path), view)
    except OSError:
        return
    buffer = LineBuffer(lambda: log, Mark(), final=True, limits=limits)
    with log:
        while buffer.mark.line < last and buffer.load():
            first = buffer.mark.line + 1
            yield from ((number, line.rstrip(b"\r")) for number, line in enumerate(buffer.lines, first) if number in wanted)
            buffer.advance(len(buffer.lines))
