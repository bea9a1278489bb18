"""Sends new findings to receivers, to each in a thread of its own, for as long as it takes.

A sender notes the end of a message before it posts the message, and that it is done once the receiver has it (jobs/alerts/queue.py): a
process that is killed in between posts the same message again, with the same keys.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.alerts.finding import Finding, with_incidents
from jobs.alerts.messages import message
from jobs.alerts.posting import Outcome, Webhook
from jobs.alerts.queue import IncidentQueue, Queue
from jobs.common.alert_settings import AlertSettings, ReceiverSettings
from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.common.text import many, printable
from jobs.common.times import duration
from jobs.health.metrics import families
from jobs.lakehouse import locks
from jobs.lakehouse.folder import Lakehouse
from schemas.names import FINDINGS, INCIDENTS, REBALANCES_PROVISIONAL

MOST_FINDINGS: Final = 500
"""Of one message. More wait for the next one."""
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
        self, house: Lakehouse, receiver: ReceiverSettings, alerts: AlertSettings, *, warn: Callable[[str], None], pauses: Pauses
    ) -> None:
        self.receiver = receiver
        self.sent = 0
        self.failed = Counter(timeout=0, connection=0)  # with 0, or Prometheus does not see the first step
        self.left_out = Counter(old=0, refused=0)
        self._lakehouse, self._alerts, self._warn, self._pauses = house.folder, alerts, warn, pauses
        of_findings = ((FINDINGS, house.alerts, Queue), (REBALANCES_PROVISIONAL, house.open_alerts, Queue))
        kinds: tuple[tuple[str, Place, type[Queue]], ...] = (*of_findings, (INCIDENTS, house.incident_alerts, IncidentQueue))
        self._queues = [kind(house.folder / table, notes, receiver, alerts.max_age_ms, warn) for table, notes, kind in kinds]
        self._webhook = Webhook(receiver)
        self._webhook.address()
        self._not_before = 0.0
        self._failures = 0  # in a row
        self._refusals = 0  # of one finding
        self._most = MOST_FINDINGS  # of the next message
        self._end = threading.Event()
        self.last_look = threading.Event()  # set: the thread sends what was found last, if the receiver takes it at once, and ends
        self._thread = threading.Thread(target=self._work, name=f"alerts-{receiver.name}", daemon=True)

    @property
    def waiting(self) -> int:
        """Findings that the receiver has not got yet."""
        return sum(queue.waiting for queue in self._queues)

    def start(self) -> None:
        """Notes where to begin, and starts the thread. LakehouseError: the note of an earlier process is damaged."""
        for queue in self._queues:
            queue.start()
        self._thread.start()

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
            last = self.last_look.is_set()
            try:
                self._look()
                if self.waiting and (time.monotonic() >= self._not_before or (last and not self._failures)):
                    self._send(next(queue for queue in self._queues if queue.waiting))
            except Exception as error:  # noqa: BLE001 - the thread must live on
                self._fail(Outcome(delivered=False, text=f"{type(error).__name__}: {printable(str(error), 300)}", reason="internal"))
            if last and (self._failures or not self.waiting):
                break
            pause = self._not_before - time.monotonic() if self.waiting else self._pauses.look
            self.last_look.wait(min(max(pause, 0.0), self._pauses.look))
        with suppress(OSError):
            for queue in self._queues:
                queue.pass_over(at_once=True)

    def _look(self) -> None:
        was_empty = not self.waiting
        for queue in self._queues:
            queue.look()
        self.left_out["old"] = sum(queue.old for queue in self._queues)
        if was_empty and self.waiting and not self._failures:
            self._not_before = time.monotonic() + self._pauses.gather

    def _send(self, queue: Queue) -> None:
        if not (batch := queue.take(self._most)):
            return
        findings = with_incidents(self._lakehouse, [finding for _, finding in batch])
        outcome = self._webhook.post(message(self.receiver, findings, self._alerts.dashboard_url))
        if outcome.delivered:
            self.sent += len(batch)
            if self._failures:
                self._warn(f"alerts: {self.receiver.name} takes alerts again")
            self._most = min(2 * self._most, MOST_FINDINGS)
        else:
            self._fail(outcome)
            if not outcome.refused or not self._is_left_out(findings):
                return
        self._failures = self._refusals = 0
        self._not_before = 0.0
        queue.done(batch)

    def _is_left_out(self, findings: list[Finding]) -> bool:
        """Whether a refused message is given up: one finding alone, after some attempts. More of them are sent in halves."""
        self._most = max(len(findings) // 2, 1)
        self._refusals = self._refusals + 1 if len(findings) == 1 else 0
        if self._refusals < _REFUSALS:
            return False
        self.left_out["refused"] += 1
        self._warn(f"alerts: {self.receiver.name} refused finding {findings[0].id} {_REFUSALS} times: left out")
        return True

    def _fail(self, outcome: Outcome) -> None:
        self.failed[outcome.reason] += 1
        pause = min(self._pauses.first * 2 ** min(self._failures, 16), self._pauses.longest)
        self._not_before = time.monotonic() + max(pause, min(outcome.pause_s, _LONGEST_ASKED))
        self._failures += 1
        if self._failures == 1:
            self._warn(f"alerts to {self.receiver.name}: {outcome.text}; they are kept and sent later")


def sample() -> Finding:
    """What `rebalance alert --test` posts."""
    message = "This is a test of `rebalance alert --test`. No consumer group is concerned."
    advice = "Nothing. Findings will look like this one."
    at_ms = time.time_ns() // 1_000_000
    return Finding("test", "rebalance-alert-test", at_ms, "TEST", "ERROR", message, advice, client_id="rebalance")


class Alerts(Collector):
    """The senders of a process."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self.senders = senders

    def collect(self) -> Iterator[Metric]:
        """The metrics, as prometheus_client asks for them."""
        samples: defaultdict[str, dict[tuple[str, ...], float | None]] = defaultdict(dict)
        for one in self.senders:
            name = one.receiver.name
            samples["rebalance_alerts_sent_total"][name,] = one.sent
            samples["rebalance_alerts_waiting"][name,] = one.waiting
            samples["rebalance_alerts_failed_total"] |= {(name, reason): count for reason, count in dict(one.failed).items()}
            samples["rebalance_alerts_left_out_total"] |= {(name, reason): count for reason, count in dict(one.left_out).items()}
        yield from families(samples)


@contextmanager
def alerting(house: Lakehouse, settings: AlertSettings, warn: Callable[[str], None], pauses: Pauses = PAUSES) -> Iterator[Alerts]:
    """Sends new findings of a lakehouse for as long as this lasts, and what was found last at its end.

    UserError: the file of a URL or of a token cannot be used, or another process sends to a receiver.
    """
    senders = [Sender(house, receiver, settings, warn=warn, pauses=pauses) for receiver in settings.receivers]
    with ExitStack() as stack:
        if senders:
            try:
                for notes in (house.open_alerts, house.incident_alerts):
                    notes.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f"cannot write to the lakehouse {house.folder}: {error.strerror}") from None
        for name in [receiver.name for receiver in settings.receivers]:
            busy = f"another process sends alerts of {house.folder} to {name}: stop it, or take {name} out of the settings"
            stack.enter_context(locks.held(house.alerts / f"{name}.lock", busy))
        for sender in senders:
            sender.start()
        try:
            yield Alerts(senders)
        finally:
            for sender in senders:
                sender.last_look.set()
            deadline = time.monotonic() + pauses.farewell
            for sender in senders:
                sender.stop(deadline)
