"""`rebalance dump-offsets` and `rebalance poll` as the command line runs them: until they are done or somebody stops them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.kafka import poll as polls
from jobs.kafka.clients import Cluster, check_cluster_name
from jobs.kafka.dump_offsets import dump_to_file
from jobs.logs.record_reader import is_record_file

Complain = Callable[[str], None]


def dump(bootstrap: str, config: Path | None, out: Path | None, *, follow: bool, everything: bool, complain: Complain) -> int:
    """Writes the dump; returns the exit code. What was done is told beside it, on stderr."""
    if out is not None and (not is_record_file(out.name) or out.suffix == ".gz"):
        raise UserError(f"--out {out}: name it *.jsonl, or `rebalance run` will pass it over")
    cluster = Cluster(bootstrap, config)
    with Interrupts() as interrupts:
        counts = dump_to_file(cluster, out, stopped=lambda: interrupts.signal is not None, everything=everything, follow=follow)
    complain(f"{counts.read:,} records of {counts.partitions} partitions read, {counts.written:,} written")
    if interrupts.signal is not None and not follow:
        return 128 + interrupts.signal
    return 0


def poll(
    bootstrap: str,
    config: Path | None,
    out: Path,
    *,
    cluster: str,
    every: str,
    groups: Collection[str],
    once: bool,
    complain: Complain,
) -> int:
    """Polls; returns the exit code."""
    seconds = polls.duration(every)
    check_cluster_name("--cluster", cluster)
    with Interrupts() as interrupts:
        poller = polls.Poller(Cluster(bootstrap, config), groups)
        folder = out / cluster / "poll"
        try:
            answered = polls.follow(
                poller, folder, every=seconds, once=once, stopped=lambda: interrupts.signal is not None, complain=complain
            )
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    complain(f"{answered:,} polls of {len(poller.last_lines):,} groups in {folder}")
    return 0
