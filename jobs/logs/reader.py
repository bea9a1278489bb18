"""Reads one log in order: lines with their number, their UTC time, and what is wrong with them.

The verdict on a line depends on the line, on the lines before it in the same log and on the few lines that follow, never on how the log is
cut into reads: reading on from a `Mark` gives what a single read would have given.

Lines that concern no consumer group are only counted. Lines that may concern one, and damaged lines, are kept; a `LineJudge` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.bytes import LogBytes
from jobs.logs.faults import DAMAGED_FILE, TIMESTAMP_OUTLIER
from jobs.logs.fetches.lines import BY_NUMBERS
from jobs.logs.judge import LineJudge
from jobs.logs.jumps import LEAST_STEP_MS, TOLERANCE_MS, Jump, LogEnd, judge_jump
from jobs.logs.lines import LINE_LIMITS, LineBuffer, LineLimits
from jobs.logs.mark import ClockStep, KeptLines, Mark
from jobs.logs.times import MINUTE, NEVER, SECOND, SECONDS, LaterTimes, LocalTimes

if TYPE_CHECKING:
    from jobs.logs.blocks import Block

FOREVER: Final = 1 << 62  # after any time, ms

_FIRST_LINES: Final = 64  # tell which kind of log it is
_WITNESSES: Final = 8  # timestamped lines that a jump in time must stand up to
_WITNESS_LINES: Final = 5_000  # searched for them
_WITNESS_BYTES: Final = 8 << 20
_HORIZON_LINES: Final = 5


class LogReader:
    """Reads one log from a mark on. `mark` is always behind the last line that was handed out."""

    def __init__(
        self,
        open_bytes: Callable[[], LogBytes],
        times: LocalTimes,
        mark: Mark | None = None,
        *,
        judge: Callable[[Mark], LineJudge] = BrokerJudge,
        final: bool = True,
        half_lines: bool = True,
        tolerance_ms: int = TOLERANCE_MS,
        may_step: bool = False,
        limits: LineLimits = LINE_LIMITS,
        is_elsewhere: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Begins at `mark`, or at the start. `final`, `half_lines`: of a last line without its end. `is_elsewhere`: see Share (survey).

        `may_step`: the log waits where its time goes back, since its clock may have been set back.
        """
        self.mark = replace(mark, groups=dict(mark.groups), levels=dict(mark.levels)) if mark else Mark()
        self._clock = times
        self._times = _later(times, self.mark)
        self._may_step = may_step and not times.exact
        self._fall_ms = LEAST_STEP_MS if self._may_step else FOREVER
        self._open = open_bytes
        self._judge = judge(self.mark)
        self._tolerance_ms = tolerance_ms
        self._fold = False
        self.buffer = LineBuffer(
            open_bytes, self.mark, final=final, half_lines=half_lines, limits=limits, judge=self._judge, is_elsewhere=is_elsewhere
        )
        self.seconds: list[int] = []  # UTC epoch, of the lines that were read: some several times

    def close(self) -> None:
        """Closes the file and forgets what was read ahead. Reading on opens the file again."""
        self.buffer.close()

    @property
    def complete(self) -> bool:
        """Whether the whole file was handed out, up to its last byte, and no damage remains to be recorded."""
        return self.buffer.complete and not self.has_damage_to_tell

    @property
    def has_damage_to_tell(self) -> bool:
        """Whether the file ends early, and `tell_damage` has not recorded it."""
        return bool(self.buffer.damage) and not self.mark.damage_told

    def skip_to(self, mark: Mark, seconds: Iterable[int]) -> None:
        """Goes on at another mark of the log. `seconds`: those of the lines that are skipped, as if they had been read."""
        self.buffer.close()
        for name in Mark.__struct_fields__:
            setattr(self.mark, name, getattr(mark, name))
        self._times = _later(self._clock, self.mark)
        self.seconds += seconds

    def take_step(self, step: ClockStep) -> None:
        """Learns that the clock of the log's broker was set back."""
        self.mark.steps += (step,)

    def pass_over(self) -> None:
        """Goes on where the log waits: its time goes back for another reason."""
        self.mark.falls += 1
        self.mark.last_ms = NEVER

    def take_seconds(self) -> list[int]:
        """Seconds (UTC epoch) of the lines that were read since the last call.

        As first, last, first, last, …: ascending stretches without a silent second.
        """
        seconds, self.seconds = sorted(set(self.seconds)), []
        stretches: list[int] = []
        for second in seconds:
            if stretches and second == stretches[-1] + 1:
                stretches[-1] = second
            else:
                stretches += (second, second)
        return stretches

    def peek(self) -> tuple[int, Jump]:
        """Time of the next line that has one, epoch ms, and whether it is certain.

        NEVER if it is not known without handing out others before it. FOREVER if nothing is left.
        """
        if not self._has_lines():
            return FOREVER, Jump.TRUE
        newest, is_next = self.mark.newest_ms, True
        for index in range(self.buffer.next, len(self.buffer.lines)):
            at = self._times.read(self.buffer.lines[index], newest)
            if at is None:
                continue
            jump = self._judge_time(index, at, newest, self.mark.last_ms, LogEnd.HOLD, NEVER)
            if jump is Jump.BACK and not is_next:
                break  # what is decided about it would hold for the outliers before it: they are handed out first
            if jump is Jump.BACK:
                return self.peek() if self._pass_step() else (newest, jump)
            if jump is not Jump.OUTLIER:
                return at, jump
            is_next = False
        return NEVER, Jump.TRUE

    def horizon(self) -> int:
        """About the time up to which the log can be read without reading more of the file; epoch ms.

        NEVER if no line read ahead has a time. FOREVER if nothing is left.
        """
        if not self._has_lines():
            return FOREVER
        last: list[int] = []
        for line in reversed(self.buffer.lines[self.buffer.next :]):
            at = self._times.read(line, self.mark.newest_ms)
            if at is not None:
                last.append(at)
                if len(last) == _HORIZON_LINES:
                    break
        if not last:
            return NEVER
        last.sort()
        middle = last[len(last) // 2]
        return last[-1] if last[-1] - middle <= self._tolerance_ms else middle  # one of them may be damaged

    def read(
        self,
        kept: KeptLines,
        *,
        until_ms: int = FOREVER,
        max_lines: int = FOREVER,
        max_bytes: int = FOREVER,
        log_end: LogEnd = LogEnd.END,
        witness_ms: int = NEVER,
        fold: bool = False,
    ) -> int:
        """Hands out lines up to the first later than `until_ms`; returns the number of lines read.

        It also ends after `max_lines`, after the block in which `kept` grew beyond `max_bytes`, and before a jump in
        time that stays open. `witness_ms`: a time that other logs have reached; jumps up to it are believed where no
        line of this log follows. `fold`: heartbeats that repeat others become numbers.
        """
        self._fold = fold and self._judge.repeats
        self.buffer.block_of = self._block_maker(kept) if self._fold else None
        first_line = self.mark.line
        while kept.size < max_bytes:
            left = max_lines - (self.mark.line - first_line)
            if left <= 0 or not self._has_lines():
                break
            self.buffer.forget()
            if self.buffer.block is not None and self._read_at_once(kept, self.buffer.block, left, until_ms):
                continue
            if self._read_block(kept, left, until_ms, log_end, witness_ms) and not self._pass_step():
                break
        return self.mark.line - first_line

    def tell_damage(self, kept: KeptLines) -> bool:
        """Keeps a record of why the file ends early; False if it does not, or if that record was kept before."""
        if not self.has_damage_to_tell:
            return False
        self.mark.damage_told = True
        kept.add(self.mark.line + 1, None, self.buffer.damage.encode(), DAMAGED_FILE)
        return True

    def _has_lines(self) -> bool:
        return self.buffer.next < self.buffer.count or self._load()

    def _load(self) -> bool:
        """Reads ahead by at least one line; False at the end of what can be read."""
        if self.mark.line > self.mark.first_line or self.mark.requests or self.mark.others:
            return self.buffer.load()
        loaded = self.buffer.load(_FIRST_LINES)
        self._judge.begin(self.buffer.lines[:_FIRST_LINES], self._open)
        return loaded

    def _block_maker(self, kept: KeptLines) -> Callable[[bytes], Block | None] | None:
        """Makes blocks of lines that can be looked at all at once, if any can."""
        make, bare, local = kept.beats.block_of, self._judge.bare, self._times
        if make is None or local.exact or (bare is not None and not self._judge.leaves_own):
            return None

        def made(text: bytes) -> Block | None:
            block = make(text)
            stands_alone = block is not None and (bare is None or all(bare(line) is line for line in block.foreign()))
            return block if stands_alone else None

        return made

    def _read_at_once(self, kept: KeptLines, block: Block, most: int, until: int) -> int:
        """Hands out the first lines of a block, as `_read_block` does it line by line. Returns how many; 0 if one needs a closer look."""
        mark, judge, text = self.mark, self._judge, block.text
        bound = min(until, mark.next_step_ms)
        ats = block.calm(self._times, mark.newest_ms, self._tolerance_ms, bound, mark.last_ms, self._fall_ms)[:most]
        count, number, done = len(ats), mark.line + 1, 0
        if not self._fold or not count:
            return 0
        repeats, first_kept, take = kept.repeats_in(self, mark), len(kept), self._taker(kept)
        for index, (start, end, at) in kept.new_in(self, block, ats, number):
            if index > done:
                mark.requests += index - done
                mark.after_other = False
            done = index + 1
            line = text[start:end]
            if at == NEVER:
                if fault := judge.untimed(line, ""):
                    kept.add(number + index, None, line, fault)
                continue
            verdict = None if repeats(line, number + index, at) else judge.timed(line, "")
            if verdict is not None:
                take(verdict, line, number + index, at)
        if count > done:
            mark.requests += count - done
            mark.after_other = False
        self.seconds += block.seconds(ats)
        mark.newest_ms = max(mark.newest_ms, int(ats.max()))
        mark.last_ms = next((int(at) for at in ats[::-1] if at != NEVER), mark.last_ms)
        kept.size += sum(map(len, kept.texts[first_kept:]))
        self.buffer.advance(count)
        return count

    def _read_block(self, kept: KeptLines, most: int, until: int, log_end: LogEnd, witness: int) -> bool:
        """Hands out at most `most` of the lines read ahead; True if it stopped before a line.

        The hot path, two or three microseconds for a line: hence one long function.
        """
        buffer, mark, times = self.buffer, self.mark, self._times
        timed, untimed, odd, has_context = self._judge.timed, self._judge.untimed, buffer.odd, self._judge.has_context
        repeats, take = kept.repeats_in(self, mark) if self._fold else lambda *_: False, self._taker(kept)
        start, first_kept = buffer.next, len(kept)
        end = reached = min(len(buffer.lines), start + most)
        number = mark.line - start + 1  # of the line at index 0
        newest, last, tolerance = mark.newest_ms, mark.last_ms, self._tolerance_ms
        # Up to `bound`, and from `last - fall` on, a time needs no second look; beyond `last_free`, `limit` is the bound.
        limit, fall = min(until, mark.next_step_ms), self._fall_ms
        bound, last_free = min(limit, newest + tolerance), limit - tolerance
        keep_position, keep_at, keep_text = kept.positions.append, kept.ats.append, kept.texts.append
        seconds, add_second, last_second = SECONDS.get, self.seconds.append, -1
        minute_text, minute = b"", None
        for index, raw in enumerate(buffer.lines[start:end], start):
            line, fault = buffer.inspect(index) if odd else (raw, "")
            text = line[MINUTE]
            if text != minute_text:
                minute_text, minute = text, times.minute(text)
            millis = seconds(line[SECOND])
            at = minute + millis if minute is not None and millis is not None else times.read(line, newest)
            if at is None:
                if fault := untimed(line, fault) if fault or not line.isspace() else "":
                    kept.add(number + index, None, line, fault)
                continue
            if at > bound or at < last - fall:
                # Beyond `until` nothing has to be settled yet, and other logs are not read up to there.
                jump = self._judge_time(index, at, newest, last, log_end if at <= until else LogEnd.HOLD, witness)
                if jump is Jump.OUTLIER:
                    if self._judge.concerns(line):
                        kept.add(number + index, None, line, fault or TIMESTAMP_OUTLIER)
                    continue
                if jump in (Jump.OPEN, Jump.BACK) or at > until:
                    reached = index
                    break
            second = at // 1_000
            if second != last_second:
                last_second = second
                add_second(second)
            if at > newest:
                newest = at
                bound = at + tolerance if at < last_free else limit
            last = at
            verdict = None if not fault and repeats(line, number + index, at) else timed(line, fault)
            if verdict == "" and not has_context:
                keep_position(number + index)
                keep_at(at)
                keep_text(line)
            elif verdict is not None:
                take(verdict, line, number + index, at)
        mark.newest_ms, mark.last_ms = newest, last
        kept.size += kept.note_written(first_kept, number, buffer.written)
        buffer.advance(reached - start)
        return reached < end

    def _taker(self, kept: KeptLines) -> Callable[[str, bytes, int, int], None]:
        """Takes a line that is not skipped, or its numbers, if they are wanted: by its verdict, its text, its number and its time."""
        fetches, context = kept.fetches, self._judge.context

        def take(verdict: str, line: bytes, position: int, at_ms: int) -> None:
            if verdict not in BY_NUMBERS:
                kept.add(position, at_ms, line, verdict, context(line))
            elif fetches is not None:
                fetches.take(self, verdict, line, position, at_ms)

        return take

    def _pass_step(self) -> bool:
        """Goes on behind a step of the clock, if the next line is the first behind one that is known."""
        mark, ahead = self.mark, self.buffer.lines[self.buffer.next :]
        at = next((at for line in ahead if (at := self._times.read(line, mark.newest_ms)) is not None), None)
        if at is None or not mark.passes_step(at, mark.last_ms):
            return False
        mark.passed += 1
        mark.last_ms = NEVER
        self._times = _later(self._clock, mark)
        return True

    def _judge_time(self, index: int, at: int, newest: int, last: int, log_end: LogEnd, witness: int) -> Jump:
        """Whether the line at `index` really is that far ahead of the lines before it, or behind the last of them."""
        if self._may_step and self.mark.may_be_back(at, last):
            return Jump.BACK
        if self._times.exact or at - newest <= self._tolerance_ms:
            return Jump.TRUE
        followers, complete = self._followers(index, at, at if newest == NEVER else newest)
        before = last if last != NEVER else newest
        return judge_jump(at, newest, before, followers, self._tolerance_ms, complete=complete, log_end=log_end, witness_ms=witness)

    def _followers(self, index: int, last: int, near: int) -> tuple[list[int], bool]:
        """Times of the next timestamped lines after `index`, whose time is `last`, and whether there are as many as are wanted."""
        followers: list[int] = []
        size = later = 0
        for count in range(1, _WITNESS_LINES + 1):
            if index + count >= self.buffer.count and not self._load():
                return followers, False
            line = self.buffer.lines[index + count]
            at = self._times.read(line, near)
            if at is not None:
                if not later and self.mark.passes_step(at, last):
                    later = self.mark.steps[self.mark.passed].back_ms
                last = at + later
                followers.append(last)
            size += len(line)
            if len(followers) == _WITNESSES or size > _WITNESS_BYTES:
                break
        return followers, True


def _later(times: LocalTimes, mark: Mark) -> LocalTimes:
    """The times of a log from a mark on."""
    return LaterTimes(times, mark.ahead_ms) if mark.ahead_ms else times
