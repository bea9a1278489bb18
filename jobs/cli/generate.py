"""What the executable specification answers: `rebalance generate`, logs of a cluster that never was, and `rebalance trace`, a filter."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import click

from jobs.cli.output.terminal import stderr, stdout, warn
from jobs.common import options
from jobs.common.disks import is_full
from jobs.common.errors import DiskFullError, UserError
from jobs.common.text import printable
from jobs.common.times import duration, epoch_ms
from jobs.generate.sizes import SIZES

_STREAM = Path("-")
_BROKERS = 3
_PROGRESS_SECONDS = 1.0
_TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")


@options.command("rebalance trace < traces.jsonl > answers.jsonl")
@click.option("--kafka", metavar="VERSION", help="Follow this Kafka release, such as 4.4.0 or 3.9.1, not the trace's own.")
@click.option("--episodes", is_flag=True, help="Only tell the rebalances of consumer groups: rounds, causes, and who held partitions.")
def trace(*, kafka: str | None, episodes: bool) -> int:
    """Answer recorded requests with the executable specification.

    Reads one trace or case (JSON) per line from standard input and writes the same object with the outcome of every step replaced
    by the model's own, by the rules of the release in "measured_on". Classic groups: the format of tests/data/traces/FORMAT.md.
    Consumer groups (KIP-848, Kafka 4.2 and later): "format": "consumer-group-case/1", see tests/data/traces-consumer/FORMAT.md.
    """
    from coordinator_model.specification.releases import NEWEST
    from coordinator_model.specification.trace import run_lines

    newest = ".".join(map(str, NEWEST))

    def newer(release: str) -> None:
        warn(f"The rules of Kafka {release} are not known yet: its traces are answered by those of {newest}.")

    try:
        run_lines(sys.stdin, sys.stdout, kafka, newer, episodes=episodes)
    except ValueError as error:
        raise UserError(f"This is not a trace that the specification can follow: {error}") from error
    return 0


@options.command(
    "rebalance generate load/ --size M --lines 10000000",
    "rebalance run --input load/ --lakehouse lake/ --once",
    "rebalance generate - --size S --lines 100000 | gzip > broker.log.gz",
    before="\n".join(
        ["\b", "Sizes:", *(f"  {name:4} {size.text()}, {size.rebalances:.2g} rebalances a second" for name, size in SIZES.items()), ""]
    ),
)
@click.argument("folder", type=options.PATH, metavar="DIR")
@click.option("--size", type=click.Choice(list(SIZES)), default="S", help="Size of the cluster (see below).")
@click.option("--lines", type=click.IntRange(1), metavar="N", default=1_000_000, help="Lines of all logs together.")
@click.option("--seed", type=int, metavar="N", default=1, help="Seed of all random choices. The same seed gives the same lines.")
@click.option("--brokers", type=click.IntRange(1, 50), metavar="N", help=f"Number of brokers. [default: {_BROKERS}; 1 with -]")
@click.option("--release", type=click.Choice(["3.9.1", "4.2.0"]), default="4.2.0", help="Release of brokers and consumers.")
@click.option("--start", type=click.DateTime(_TIMES), default="2026-01-01", metavar="TIME", help="Time of the first lines, UTC.")
@click.option("--rebalances", type=click.FloatRange(0), metavar="N", help="About how many rebalances begin per second. [default: by size]")
@click.option("--cluster", default="generated", metavar="NAME", help="Name of the cluster: a folder in DIR.")
def generate(
    folder: Path,
    *,
    size: str,
    lines: int,
    seed: int,
    brokers: int | None,
    release: str,
    start: datetime,
    rebalances: float | None,
    cluster: str,
) -> None:
    """Write logs of a simulated cluster, to load a pipeline with.

    The logs begin while all groups are stable. Consumers restart, crash, stall, flap and are redeployed. With several brokers, groups
    move. The brokers answer as the specification of the group coordinator does.

    The files are DIR/NAME/broker-N/kafka-request.log and server.log, as `rebalance run --input DIR` reads them. With - for DIR
    the lines of one broker go to standard output.
    """
    from dataclasses import replace

    from jobs.generate.cluster import Cluster
    from jobs.generate.output import to_folder, to_stream, write

    is_stream = folder == _STREAM
    number = brokers or (1 if is_stream else _BROKERS)
    if is_stream and number != 1:
        raise UserError("standard output takes the lines of one broker: leave out --brokers, or write to a folder")
    if cluster in {"", ".", ".."} or "/" in cluster:
        raise UserError(f"--cluster {printable(cluster, 40)}: write the name of a folder")
    wanted = SIZES[size] if rebalances is None else replace(SIZES[size], rebalances=rebalances)
    start_ms = epoch_ms(start.replace(tzinfo=timezone.utc))
    made = Cluster(wanted, release=release, brokers=number, start_ms=start_ms, seed=seed)
    console = stderr() if is_stream else stdout()
    shown = begun = time.monotonic()
    try:
        with console.status("") as status, to_stream(sys.stdout.buffer) if is_stream else to_folder(folder / cluster, number) as put:
            for done in write(made, put, lines):
                if time.monotonic() - shown >= _PROGRESS_SECONDS:
                    shown = time.monotonic()
                    status.update(f"{done.lines:,} of {lines:,} lines")
    except OSError as error:
        if is_full(error) and not is_stream:
            raise DiskFullError(f"the disk is full: {folder}; the lines written so far stay there") from error
        raise
    seconds = max(time.monotonic() - begun, 0.001)
    click.echo(
        f"{done.lines:,} lines, {done.bytes / 1e6:,.0f} MB, {duration(made.now_ms)} of a cluster's life, "
        f"{made.book.rebalances:,} rebalances, in {seconds:.1f} s ({done.lines / seconds:,.0f} lines/s)",
        err=is_stream,
    )
