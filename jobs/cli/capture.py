"""`rebalance dump-offsets` and `rebalance poll` as the command line runs them: until they are done or somebody stops them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.kafka import dump_offsets
from jobs.kafka import poll as polls
from jobs.kafka.clients import Cluster, check_cluster_name
from jobs.logs.record_reader import is_record_file

Complain = Callable[[str], None]


def dump(bootstrap: str, config: Path | None, out: Path | None, *, follow: bool, everything: bool, complain: Complain) -> int:
    """Writes the dump; returns the exit code. What was done is told beside it, on stderr."""
    cluster = Cluster(bootstrap, config)
    with Interrupts() as interrupts, ExitStack() as files:
        after = None if out is None else dump_offsets.continued(out)
        file = sys.stdout if out is None else files.enter_context(_opened(out))

        def write(text: str) -> None:
            file.write(text + "\n")
            if follow:
                file.flush()

        done = dump_offsets.dump(
            cluster, write, stopped=lambda: interrupts.signal is not None, everything=everything, follow=follow, after=after
        )
    complain(f"{done.read:,} records of {done.partitions} partitions read, {done.written:,} written")
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
    complain(f"{answered:,} polls of {len(poller.known):,} groups in {folder}")
    return 0


def _opened(path: Path) -> IO[str]:
    if not is_record_file(path.name) or path.suffix == ".gz":
        raise UserError(f"--out {path}: name it *.jsonl, or `rebalance run` will pass it over")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="ascii")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
