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
