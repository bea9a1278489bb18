"""`rebalance ship`, `dump-offsets` and `poll`: capture log lines and groups from a cluster until they are done or stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from jobs.cli.output.terminal import tell, warn
from jobs.common import exit_codes, options
from jobs.common.disks import told_if_full
from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.common.settings import Settings
from jobs.common.times import parse_span


@options.command(
    "rebalance ship --input /opt/kafka/logs --cluster production --broker broker-1 --bootstrap other:9092",
    "rebalance ship --input server.log --input kafka-request.log --cluster production --broker broker-1 --bootstrap other:9092",
    "rebalance ship --input app-logs/ --cluster production --broker clients --bootstrap other:9092",
    "rebalance ship --input /var/log/pods --pods 'kafka/production-kafka-*' --cluster production --bootstrap other:9092",
    "rebalance ship --input archive/ --cluster production --broker broker-1 --bootstrap other:9092 --once",
)
@click.option(
    "--input",
    "inputs",
    type=options.PATH,
    metavar="PATH",
    required=True,
    multiple=True,
    help="A broker's folder of logs, or a log file with its rotated files. Repeatable.",
)
@click.option("--cluster", required=True, metavar="NAME", help="Name of the broker's cluster in the tables.")
@click.option("--broker", metavar="NAME", help="Name of the broker that wrote the logs; `clients` for logs of applications.")
@click.option(
    "--pods",
    metavar="NAMESPACE/POD[/CONTAINER]",
    help="Instead of --broker: the input is a kubelet's folder of logs, /var/log/pods. Ships the logs of matching pods; each pod is a "
    "broker of its name.",
)
@options.bootstrap
@options.topic
@options.client_settings("--config", "the client")
@click.option(
    "--state",
    type=options.PATH,
    metavar="FILE",
    help="File that remembers how far each log was shipped. [default: ship-<cluster>-<broker>.json, ship-<cluster>-pods.json]",
)
@click.option("--timezone", default="UTC", metavar="ZONE", help="Time zone of the log timestamps, which carry none.")
@click.option(
    "--log-format",
    metavar="NAME",
    help="Pattern of the broker's log lines: kafka, strimzi, strimzi-log4j1, ttcc, or the pattern itself, such as '%d %p [%t] %c - %m%n'. "
    "[default: auto]",
)
@click.option("--raw", is_flag=True, help="Send heartbeats as lines. By default they go in bundles, which take a twentieth of the bytes.")
@options.once("Ship what the logs hold now, and stop.")
def ship(
    inputs: Sequence[Path],
    *,
    cluster: str,
    broker: str | None,
    pods: str | None,
    bootstrap: str,
    topic: str,
    config: Path | None,
    state: Path | None,
    timezone: str,
    log_format: str | None,
    raw: bool,
    once: bool,
) -> int:
    """Send the log lines about consumer groups to a Kafka topic.

    Runs beside a broker and follows its logs. Stop it at any time, in any way; the same command continues where it stopped. It waits for a
    cluster that does not answer.
    """
    from jobs.kafka.clients import Cluster, check_cluster_name
    from jobs.kafka.finder import Finder, Pods
    from jobs.kafka.outbox import Outbox
    from jobs.kafka.ship_state import ShipState, ShipTarget
    from jobs.kafka.shipper import Shipper, ShipSettings

    if (broker is None) == (pods is None):
        raise UserError("give either --broker or --pods")
    chosen = Pods.parse(pods) if pods is not None else None
    target = ShipTarget(cluster, str(chosen or broker), topic)
    check_cluster_name("--cluster", cluster)
    if broker is not None and broker != "clients":
        check_cluster_name("--broker", broker)
    settings = ShipSettings.of(Settings(timezone=timezone, log_format=log_format or "auto"), fold=not raw)
    path = state or Path(f"ship-{cluster}-{broker or 'pods'}.json")
    find = Finder(inputs, target, warn, pods=chosen)
    if chosen is not None and not find():
        warn(f"no logs of {chosen} in {', '.join(map(str, inputs))} yet: a node without brokers, or another --pods is needed")
    with told_if_full(path.parent), Interrupts() as interrupts, ShipState(path, target) as file:
        # Bundles are numbers, in which LZ4 finds nothing: it knows no frequent bytes.
        compression = "lz4" if raw else "zstd"
        outbox = Outbox(Cluster(bootstrap, config), topic, stopped=interrupts.happened, complain=warn, once=once, compression=compression)
        shipper = Shipper(find, file, outbox, settings)
        began = time.monotonic()
        try:
            if outbox.connect():
                warn(f"shipping to {topic} of {bootstrap}, {outbox.partitions} partitions; state in {path}")
                shipper.ship(once=once, stopped=interrupts.happened, complain=warn)
        finally:
            outbox.close()
    counts = shipper.counts
    warn(f"{counts.delivered:,} of {counts.read:,} lines delivered in {time.monotonic() - began:.0f} s; the others are about no group")
    if once and interrupts.signal is not None:
        return exit_codes.ENDED_BY_SIGNAL + interrupts.signal
    return 0


_SHORTEST: Final = timedelta(milliseconds=100)
_LONGEST: Final = timedelta(hours=1)


@options.command(
    "rebalance dump-offsets --bootstrap broker:9092 --out logs/production/offsets/offsets.jsonl",
    "rebalance dump-offsets --bootstrap broker:9092 | gzip > logs/production/offsets/offsets.jsonl.gz",
    "rebalance dump-offsets --bootstrap broker:9092 --follow --out logs/production/offsets/offsets.jsonl",
    "rebalance run --input logs/ --lakehouse lake/ --once",
)
@options.bootstrap
@options.client_settings("--config", "the client")
@click.option("--out", type=options.PATH, metavar="FILE", help="File to write. An existing dump is continued. [default: standard output]")
@click.option("--follow", is_flag=True, help="Wait for new records until Ctrl-C.")
@click.option(
    "--commits",
    is_flag=True,
    help="Also write committed offsets. They show how far each group was when it rebalanced, and are most of the topic: a consumer that "
    "commits every 5 s, the default, writes 17,280 of them a day for each of its partitions, 3 MB in the file.",
)
@click.option("--all", "everything", is_flag=True, help="Also write all other records: committed offsets, share groups and streams groups.")
def dump_offsets(bootstrap: str, *, config: Path | None, out: Path | None, follow: bool, commits: bool, everything: bool) -> int:
    """Write the group records of __consumer_offsets to a file.

    `rebalance run` reads them, with logs or without. The client needs permission to read that topic. Put the file into
    INPUT/<cluster>/offsets/.
    """
    from jobs.kafka.clients import Cluster
    from jobs.kafka.dump_offsets import dump_to_file
    from jobs.logs.record_judge import is_record_file

    if out is not None and (not is_record_file(out.name) or out.suffix == ".gz"):
        raise UserError(f"--out {out}: name it *.jsonl, or `rebalance run` will ignore it")
    if everything:
        tell("with --all, which has them", "commits")
    cluster = Cluster(bootstrap, config)
    with told_if_full(out.parent) if out is not None else nullcontext(), Interrupts() as interrupts:
        counts = dump_to_file(cluster, out, stopped=interrupts.happened, commits=commits, everything=everything, follow=follow)
    warn(f"{counts.read:,} records of {counts.partitions} partitions read, {counts.written:,} written")
    if interrupts.signal is not None and not follow:
        return exit_codes.ENDED_BY_SIGNAL + interrupts.signal
    return 0


@options.command(
    "rebalance poll --bootstrap broker:9092 --out logs/ --cluster production",
    "rebalance poll --bootstrap broker:9092 --out logs/ --group payments --group orders --every 2s",
    "rebalance poll --bootstrap broker:9092 --out logs/ --config client.properties --once",
    "rebalance run --input logs/ --lakehouse lake/",
)
@options.bootstrap
@options.client_settings("--config", "the client")
@click.option("--out", type=options.PATH, metavar="DIR", required=True, help="Folder: lines go to OUT/<cluster>/poll/*.jsonl.")
@click.option("--cluster", default="default", metavar="NAME", help="Name of the cluster in the tables.")
@click.option("--every", default="5s", metavar="TIME", help="Time between two polls: 500ms, 5s, 1m.")
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="Only this consumer group. Repeatable.")
@click.option(
    "--offsets/--no-offsets",
    default=True,
    help="Also ask for committed offsets and the ends of partitions. They show how far behind each group was when it rebalanced.",
)
@click.option(
    "--offsets-every",
    metavar="TIME",
    help="Time between two requests for offsets, in whole polls. [default: --every, so that a change of a group comes with its offsets]",
)
@options.once("Poll once.")
def poll(
    bootstrap: str,
    *,
    config: Path | None,
    out: Path,
    cluster: str,
    every: str,
    groups: Sequence[str],
    offsets: bool,
    offsets_every: str | None,
    once: bool,
) -> int:
    """Ask a cluster for its groups at regular intervals.

    For clusters whose logs and __consumer_offsets you cannot read. The client needs permission to list and describe groups, and for
    offsets to describe their topics. Ctrl-C ends it.
    """
    from jobs.kafka.clients import Cluster, check_cluster_name
    from jobs.kafka.poll import Poller, follow

    interval = _interval("--every", every)
    rarely = _interval("--offsets-every", offsets_every) if offsets_every is not None else interval
    if once:
        tell("with --once", "every", "offsets_every")
    elif not offsets:
        tell("with --no-offsets", "offsets_every")
    elif rarely < interval:
        raise UserError(f"--offsets-every {offsets_every}: offsets are asked for with a poll, and polls are {every} apart: change --every")
    check_cluster_name("--cluster", cluster)
    with told_if_full(out), Interrupts() as interrupts:
        poller = Poller(Cluster(bootstrap, config), groups, offsets_each=round(rarely / interval) if offsets else 0)
        folder = out / cluster / "poll"
        try:
            answered = follow(poller, folder, every=interval.total_seconds(), once=once, stopped=interrupts.happened, complain=warn)
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from None
        if not poller.last_lines and answered and not poller.may_see_all():
            raise UserError("no group was seen, and the client may not describe the cluster: let it DESCRIBE the groups (docs/security.md)")
    warn(f"{answered:,} polls of {len(poller.last_lines):,} groups in {folder}")
    return 0


def _interval(option: str, text: str) -> timedelta:
    """A duration, or a number of seconds."""
    interval = parse_span(text if text[-1:].isalpha() else f"{text}s", name=option)
    if not _SHORTEST <= interval <= _LONGEST:
        raise UserError(f"{option} {text}: write a duration from 100ms to 60m, such as 5s")
    return interval
