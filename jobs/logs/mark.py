"""How far a log was read, and which of its lines were kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from jobs.logs.faults import around, faulty_text
from jobs.logs.heartbeats.beats import Beats, Repeats
from jobs.logs.jumps import LEAST_STEP_MS
from jobs.logs.times import NEVER

if TYPE_CHECKING:
    from jobs.logs.blocks import Block, Numbers
    from jobs.logs.fetches.rows import Fetches


_MOST_FALLS: Final = 32  # of a log whose time goes back for other reasons than its clock: its lines are not in their order


class ClockStep(NamedTuple):
    """A broker's clock was set back: lines later than a time (epoch ms), or of a time that goes back there, were written after that."""

    last_ms: int
    back_ms: int


class Mark(msgspec.Struct):
    """A place in a log between two lines, with everything that reading on from there needs."""

    offset: int = 0  # bytes, uncompressed
    line: int = 0  # lines before it
    first_line: int = 0  # lines before the log, in a file that holds several
    elsewhere: int = 0  # of `line`: those that other logs of the file account for
    newest_ms: int = NEVER  # time of the newest line before it, outliers aside
    last_ms: int = NEVER  # that of the last line, likewise
    steps: tuple[ClockStep, ...] = ()  # of the broker's clock, as far as they are known. What follows one counts as so much later
    passed: int = 0  # of them
    falls: int = 0  # places where the time went back, and that was no step
    inside_line: bool = False  # the last line had no end when it was read: what follows up to \n is its rest
    inside_pieces: str = ""  # streams of whose line later pieces follow the mark, and the time that stands alone in the line before it
    damage_told: bool = False
    # Which kind of log it is: lines so far, by kind. The first lines count in advance.
    requests: int = 0
    others: int = 0
    other_loggers: int = 0  # of `others`: complete lines of other loggers
    after_other: bool = False  # the line before was one of another logger (or its continuation)
    groups: dict[str, str] = {}  # of a client log: the group that each client names (clients/judge.py)
    levels: dict[str, int] = {}  # of a request log: the metadata.version that each address of a broker told last

    @property
    def ahead_ms(self) -> int:
        """How much later than written the next lines count."""
        return sum(step.back_ms for step in self.steps[: self.passed])

    @property
    def next_step_ms(self) -> int:
        """Later lines were written after the next step of the clock; after any time if none is known."""
        # Another log may have gone on a little longer than those that showed the step.
        return self.steps[self.passed].last_ms + LEAST_STEP_MS if self.passed < len(self.steps) else -NEVER

    def passes_step(self, at_ms: int, last_ms: int) -> bool:
        """Whether the next step of the clock that is known was before a line. `last_ms`: the time of the line before it."""
        if self.passed == len(self.steps):
            return False
        step, falls = self.steps[self.passed], at_ms < last_ms - LEAST_STEP_MS
        return at_ms > self.next_step_ms or (falls and at_ms >= step.last_ms - step.back_ms - LEAST_STEP_MS)

    def may_be_back(self, at_ms: int, last_ms: int) -> bool:
        """Whether the clock was set back before a line, or may have been. `last_ms`: the time of the line before it."""
        if self.passed < len(self.steps):
            return self.passes_step(at_ms, last_ms)
        return at_ms < last_ms - LEAST_STEP_MS and self.falls < _MOST_FALLS

    @property
    def own_lines(self) -> int:
        """Lines before it that this log accounts for."""
        return self.line - self.elsewhere

    @property
    def is_request_log(self) -> bool:
        """Whether most lines so far were requests."""
        return self.requests > self.others


@dataclass
class KeptLines:
    """Kept lines, column by column, in the order read."""

    positions: list[int] = field(default_factory=list)
    ats: list[int | None] = field(default_factory=list)  # epoch ms
    texts: list[bytes] = field(default_factory=list)  # UTF-8
    faults: dict[int, str] = field(default_factory=dict)  # by index in the other lists
    contexts: dict[int, str] = field(default_factory=dict)  # by index: what other lines say about this one
    around: dict[int, bytes] = field(default_factory=dict)  # by index: what stands around the line in its file (faults.py)
    beats: Beats = field(default_factory=Beats, compare=False)  # lines that stand for nothing but numbers, with one of the others
    fetches: Fetches | None = field(default=None, compare=False)  # lines of which numbers are all that is kept; None: they are skipped
    size: int = 0  # bytes of the texts

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def folded(self) -> int:
        """Lines that became numbers."""
        return self.beats.count + (0 if self.fetches is None else self.fetches.count)

    def note_written(self, first: int, number: int, written: Mapping[int, bytes]) -> int:
        """Notes how lines stand in the file that are kept from `first` on; returns their bytes. `number`: of that at index 0."""
        for row in range(first, len(self) if written else first):
            line = written.get(self.positions[row] - number)
            if line is None:
                continue
            if row in self.faults:
                self.texts[row] = faulty_text(line)
            else:
                self.around[row] = around(line, self.texts[row])
        return sum(map(len, self.texts[first:]))

    def repeats_in(self, log: object, mark: Mark) -> Repeats:
        """Takes lines of one log whose `mark` this is: heartbeats that repeat one of its lines in this slice."""
        take = self.beats.of_log(log, self.__len__)

        def repeats(line: bytes, position: int, at_ms: int) -> bool:
            if not take(line, position, at_ms):
                return False
            mark.requests += 1
            mark.after_other = False
            return True

        return repeats

    def new_in(self, log: object, block: Block, ats: Numbers, first_position: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """The lines of a block that repeat none which the log had before: their index in the block, start, end and time.

        The others are taken. `ats`: the times of its first lines, which alone are looked at. `first_position`: that of its first line.
        """
        others = self.beats.take_block(self.beats.log(log, self.__len__), block, ats, first_position)
        if self.fetches is not None:
            others = self.fetches.take_block(log, block, ats, first_position, others)
        return zip(others, block.places(others, ats), strict=True)

    def add(self, position: int, at_ms: int | None, text: bytes, fault: str = "", context: str = "") -> None:
        """Adds a line. One with a fault is kept to be looked at, not to be parsed."""
        if context:
            self.contexts[len(self.positions)] = context
        if fault:
            self.faults[len(self.positions)] = fault
            text = faulty_text(text)
        self.positions.append(position)
        self.ats.append(at_ms)
        self.texts.append(text)
