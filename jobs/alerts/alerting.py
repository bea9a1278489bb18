"""The senders of one process, one for each receiver, and their metrics."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs.alerts.sender import PAUSES, Pauses, Sender
from jobs.common.alert_settings import AlertSettings
from jobs.common.errors import UserError
from jobs.health.metrics import families
from jobs.lakehouse import locks
from jobs.lakehouse.folder import Lakehouse
from schemas.names import FINDINGS, REBALANCES_PROVISIONAL

_FIRST_REASONS = {"failed": ("timeout", "connection"), "left_out": ("old", "refused")}
"""Series that begin with 0, or Prometheus does not see their first step."""


class Alerts(Collector):
    """The senders of a process."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self.senders = senders

    def collect(self) -> Iterator[Metric]:
        """The metrics, as prometheus_client asks for them."""
        samples: defaultdict[str, dict[tuple[str, ...], float | None]] = defaultdict(dict)
        for one in self.senders:  # two of each receiver
            counts: dict[tuple[str, ...], float] = {("rebalance_alerts_sent_total",): one.sent, ("rebalance_alerts_waiting",): one.waiting}
            for what, reasons in _FIRST_REASONS.items():
                known = dict.fromkeys(reasons, 0) | dict(getattr(one, what))
                counts |= {(f"rebalance_alerts_{what}_total", reason): count for reason, count in known.items()}
            for (name, *labels), count in counts.items():
                key = (one.receiver.name, *labels)
                samples[name][key] = (samples[name].get(key) or 0) + count
        yield from families(samples)


@contextmanager
def alerting(house: Lakehouse, settings: AlertSettings, warn: Callable[[str], None], pauses: Pauses = PAUSES) -> Iterator[Alerts]:
    """Sends new findings of a lakehouse for as long as this lasts, and what was found last at its end.

    UserError: the file of a URL or of a token cannot be used, or another process sends to a receiver.
    """
    senders = [
        Sender(house.folder / table, notes / f"{receiver.name}.json", receiver, settings, warn=warn, pauses=pauses)
        for receiver in settings.receivers
        for table, notes in ((FINDINGS, house.alerts), (REBALANCES_PROVISIONAL, house.open_alerts))
    ]
    with ExitStack() as stack:
        if senders:
            try:
                house.open_alerts.mkdir(parents=True, exist_ok=True)
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
                sender.finish()
            deadline = time.monotonic() + pauses.farewell
            for sender in senders:
                sender.stop(deadline)
