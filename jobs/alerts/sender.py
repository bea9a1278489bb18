"""Sends new findings to one receiver, in a thread of its own, for as long as it takes.

The table is the queue. A sender notes the end of a message before it posts the message, and that it is done once the receiver has it: a
process that is killed in between posts the same message again, with the same keys. A sender that waits for its receiver reads on, to know
how many findings wait, but keeps only the next of them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jobs.alerts.finding import Finding, wanted_by
from jobs.alerts.messages import message
from jobs.alerts.new_findings import FindingsTable, NewFinding, Place, Progress, first_progress
from jobs.alerts.posting import Outcome, Webhook
from jobs.common.alert_settings import AlertSettings, ReceiverSettings
from jobs.common.text import many, printable
from jobs.common.times import duration

MOST_FINDINGS: Final = 500
"""Of one message. More wait for the next one."""
_KEPT: Final = 2 * MOST_FINDINGS
_NOTE_SECONDS: Final = 30.0  # between two notes of progress without a message
_REFUSALS: Final = 3  # of one finding, after which it is left out
_LONGEST_ASKED: Final = 3_600.0  # seconds: the longest Retry-After that is heeded


@dataclass(frozen=True)
class Pauses:
    """Seconds between two steps of a sender."""

    look: float = 1.0  # at the table
    gather: float = 3.0  # from the first finding to its message: others often follow at once
    first: float = 1.0  # after a post that failed; it doubles with each
    longest: float = 60.0
    farewell: float = 5.0  # for what was found last, at the end of the process


PAUSES: Final = Pauses()


class Sender:
    """Sends to one receiver. `warn` gets a line when the receiver takes no more, and one when it does again.

    `sent`, `failed` and `left_out` count findings that were delivered, posts that failed by reason, and findings that were not sent by
    reason, since the process began. `waiting`: findings that the receiver has not got yet.
    """

    def __init__(
        self, table: Path, progress: Path, receiver: ReceiverSettings, alerts: AlertSettings, *, warn: Callable[[str], None], pauses: Pauses
    ) -> None:
        self.receiver = receiver
        self.sent = 0
        self.failed: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._alerts = alerts
        self._warn = warn
        self._pauses = pauses
        self._file = progress
        self._table = FindingsTable(table)
        self._webhook = Webhook(receiver)
        self._webhook.check()
        self._progress: Progress | None = None
        self._read = Place(0)  # what is before it was read
        self._seen = 0  # commits before this one were read or at least counted
        self._waiting: deque[NewFinding] = deque()
        self._beyond: dict[int, int] = {}  # findings of counted commits
        self._noted_s = 0.0
        self._not_before = 0.0
        self._failures = 0  # in a row
        self._refusals = 0  # of one finding
        self._most = MOST_FINDINGS  # of the next message
        self._end = threading.Event()
        self._last_look = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"alerts-{receiver.name}", daemon=True)

    @property
    def waiting(self) -> int:
        """Findings that the receiver has not got yet."""
        return len(self._waiting) + sum(list(self._beyond.values()))

    def start(self) -> None:
        """Notes where to begin, and starts the thread. LakehouseError: the note of an earlier process is damaged."""
        self._progress = Progress.read(self._file)
        if not self._open() and self._progress is None:
            self._note(Progress("", Place(0)))  # the table that is made from now on is new as a whole
        self._thread.start()

    def finish(self) -> None:
        """Asks the thread to send what was found last, if the receiver takes it at once, and to end."""
        self._last_look.set()

    def stop(self, deadline_s: float) -> None:
        """Waits for the thread up to a time of the monotonic clock, and says what was not sent."""
        self._thread.join(max(deadline_s - time.monotonic(), 0.0))
        self._end.set()
        if self.waiting:
            self._warn(f"alerts: {many(self.waiting, 'finding')} not sent to {self.receiver.name} yet: the next run sends what waits")
        if old := self.left_out["old"]:
            age = duration(self._alerts.max_age_ms)
            self._warn(
                f"alerts: {many(old, 'finding')} not sent to {self.receiver.name}: found more than {age} after it happened (max_age_ms)"
            )

    def _work(self) -> None:
        while not self._end.is_set():
            last = self._last_look.is_set()
            try:
                self._look()
                if self._waiting and (time.monotonic() >= self._not_before or (last and not self._failures)):
                    self._send()
            except Exception as error:  # noqa: BLE001 - the thread must live on
                self._fail(Outcome(delivered=False, text=f"{type(error).__name__}: {printable(str(error), 300)}", reason="internal"))
            if last and (self._failures or not self._waiting):
                break
            pause = self._not_before - time.monotonic() if self._waiting else self._pauses.look
            self._last_look.wait(min(max(pause, 0.0), self._pauses.look))
        with suppress(OSError):
            self._pass_over(at_once=True)

    def _open(self) -> bool:
        """Opens the table, if there is one, and goes to the right place in it. False: there is no table yet."""
        if self._table.open():
            progress = first_progress(self._table, self._progress)
            if progress != self._progress:
                self._note(progress)
            self._read, self._seen = progress.done, progress.done.commit
            self._waiting.clear()
            self._beyond.clear()
            if self._read.commit < (oldest := self._table.oldest()):
                self._tell_gone()
                self._read = Place(oldest)
        return bool(self._table.id)

    def _look(self) -> None:
        """Reads the next findings, and counts those of later commits."""
        if not self._open():
            return
        was_empty = not self._waiting
        while len(self._waiting) < _KEPT and self._table.has(self._read.commit):
            self._read_commit()
        self._seen = max(self._seen, self._read.commit)
        while self._table.has(self._seen):
            with suppress(FileNotFoundError):
                self._beyond[self._seen] = self._count(Place(self._seen))
            self._seen += 1
        if was_empty and self._waiting and not self._failures:
            self._not_before = time.monotonic() + self._pauses.gather
        self._pass_over()

    def _read_commit(self) -> None:
        """Reads the rest of a commit, as far as there is room for it."""
        commit = self._read.commit
        known = self._beyond.pop(commit, None)
        before = len(self._waiting)
        try:
            for new in self._table.rows(self._read):
                if self._is_wanted(new, count=True):
                    self._waiting.append(new)
                self._read = new.after
                if len(self._waiting) >= _KEPT:
                    taken = len(self._waiting) - before
                    self._beyond[commit] = known - taken if known is not None else self._count(self._read)
                    self._seen = max(self._seen, commit + 1)
                    return
        except FileNotFoundError:
            self._tell_gone()
        self._read = Place(commit + 1)

    def _count(self, start: Place) -> int:
        """How many findings of the rest of a commit the receiver wants."""
        return sum(self._is_wanted(new) for new in self._table.rows(start))

    def _is_wanted(self, new: NewFinding, *, count: bool = False) -> bool:
        if not wanted_by(self.receiver, new.finding) or self._progress is None:
            return False
        at_ms = new.finding.occurred_ms
        if self._progress.told_until_ms and at_ms <= self._progress.told_until_ms:
            return False
        old = at_ms < new.written_ms - self._alerts.max_age_ms
        self.left_out["old"] += old and count
        return not old

    def _tell_gone(self) -> None:
        """`rebalance maintain` keeps what was not sent, unless the note of progress was not there."""
        self._warn(f"alerts: findings for {self.receiver.name} were deleted from the table before they were sent")

    def _pass_over(self, *, at_once: bool = False) -> None:
        """Notes, now and then or `at_once`, that nothing is to be sent up to here."""
        progress = self._progress
        if self._waiting or progress is None or not progress.table or progress.done >= self._read:
            return
        if at_once or time.monotonic() - self._noted_s > _NOTE_SECONDS:
            self._note(replace(progress, done=self._read, sending=None))

    def _send(self) -> None:
        progress = self._progress
        if progress is None:
            return
        batch = [new for new in self._waiting if progress.sending is None or new.after <= progress.sending][: self._most]
        if not batch:  # what was about to be sent is not wanted any more: the settings have changed
            self._note(replace(progress, sending=None))
            return
        end = batch[-1].after
        if progress.sending != end:
            self._note(replace(progress, sending=end))
        post = message(self.receiver, [new.finding for new in batch], self._alerts.dashboard_url, _now_ms())
        outcome = self._webhook.post(post.body, post.headers)
        if outcome.delivered:
            self.sent += len(batch)
            if self._failures:
                self._warn(f"alerts: {self.receiver.name} takes alerts again")
            self._most = min(2 * self._most, MOST_FINDINGS)
        else:
            self._fail(outcome)
            if not outcome.refused or not self._is_left_out(batch):
                return
        self._failures = 0
        self._not_before = 0.0
        for _ in batch:
            self._waiting.popleft()
        newest = max(progress.newest_ms, *(new.finding.occurred_ms for new in batch))
        self._note(replace(progress, done=end, sending=None, newest_ms=newest))

    def _is_left_out(self, batch: list[NewFinding]) -> bool:
        """Whether a refused message is given up: one finding alone, after some attempts. More of them are sent in halves."""
        self._most = max(len(batch) // 2, 1)
        if len(batch) > 1:
            if self._progress is not None:
                self._note(replace(self._progress, sending=None))
            return False
        self._refusals += 1
        if self._refusals < _REFUSALS:
            return False
        self._refusals = 0
        self.left_out["refused"] += 1
        self._warn(f"alerts: {self.receiver.name} refused finding {batch[0].finding.id} {_REFUSALS} times: left out")
        return True

    def _fail(self, outcome: Outcome) -> None:
        self.failed[outcome.reason] += 1
        pause = min(self._pauses.first * 2 ** min(self._failures, 16), self._pauses.longest)
        self._not_before = time.monotonic() + max(pause, min(outcome.pause_s, _LONGEST_ASKED))
        self._failures += 1
        if self._failures == 1:
            self._warn(f"alerts to {self.receiver.name}: {outcome.text}; they are kept and sent later")

    def _note(self, progress: Progress) -> None:
        self._progress = progress
        self._noted_s = time.monotonic()
        progress.write(self._file)


def sample() -> Finding:
    """What `rebalance alert --test` posts."""
    return Finding(
        cluster="test",
        group_id="rebalance-alert-test",
        occurred_ms=_now_ms(),
        code="TEST",
        severity="ERROR",
        member_id=None,
        client_id="rebalance",
        client_host=None,
        generation=None,
        message="This is a test of `rebalance alert --test`. No consumer group is concerned.",
        advice="Nothing. Findings will look like this one.",
        details="{}",
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
