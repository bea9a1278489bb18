"""`rebalance ship` as the command line runs it: until somebody stops it, or once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.common.interrupts import Interrupts
from jobs.kafka.clients import Cluster, check_cluster_name
from jobs.kafka.finder import Finder
from jobs.kafka.outbox import Outbox
from jobs.kafka.ship_state import ShipState, ShipTarget
from jobs.kafka.shipper import Shipper, settings_with_zone


def ship(
    inputs: Sequence[Path],
    target: ShipTarget,
    bootstrap: str,
    config: Path | None,
    state: Path | None,
    *,
    timezone: str,
    once: bool,
    complain: Callable[[str], None],
) -> int:
    """Ships; returns the exit code. What was done is told on stderr."""
    check_cluster_name("--cluster", target.cluster)
    if target.broker != "clients":
        check_cluster_name("--broker", target.broker)
    settings = settings_with_zone(timezone)
    path = state or Path(f"ship-{target.cluster}-{target.broker}.json")
    find = Finder(inputs, target, complain)
    with Interrupts() as interrupts, ShipState(path, target) as file:

        def stopped() -> bool:
            return interrupts.signal is not None

        outbox = Outbox(Cluster(bootstrap, config), target.topic, stopped=stopped, complain=complain, once=once)
        shipper = Shipper(find, file, outbox, settings)
        began = time.monotonic()
        try:
            if outbox.connect():
                complain(f"shipping to {target.topic} of {bootstrap}, {outbox.partitions} partitions; state in {path}")
                shipper.ship(once=once, stopped=stopped, complain=complain)
        finally:
            outbox.close()
    counts = shipper.counts
    complain(f"{counts.delivered:,} of {counts.read:,} lines delivered in {time.monotonic() - began:.0f} s; the others tell of no group")
    if once and interrupts.signal is not None:
        return 128 + interrupts.signal
    return 0
