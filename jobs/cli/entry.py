"""The command `rebalance`.

Exit codes: 0 done, 1 a stage failed, 2 the command cannot work as it was called, 128+N ended by signal N.
"""

# Every command imports what it needs when it runs: help and the report start without Spark.

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from jobs.kafka.offsets_capture import OffsetsFrom
    from jobs.pipeline.run import RunResult
    from jobs.pipeline.topic_input import TopicInput

FAILED: Final = 1
UNUSABLE: Final = 2
_LONGEST: Final = 2_000  # characters of a line for the user


def _version() -> str:
    try:
        return version("kafka-rebalance")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `rebalance demo`: it needs no Kafka and no options.",
)
@click.version_option(_version(), prog_name="rebalance")
def cli() -> None:
    """Tells why a Kafka consumer group rebalanced, who caused it and what it cost.

    Reads the logs that brokers write anyway, and writes what happened to every consumer group into Delta tables.
    """


@cli.command(
    epilog="""\b
Examples:
  rebalance run --input logs/ --lakehouse lake/ --once
  rebalance run --input logs/ --lakehouse lake/ --once --timezone Europe/Berlin
  rebalance run --input /var/log/kafka --lakehouse lake/          follows the logs until Ctrl-C
  rebalance run --kafka broker:9092 --lakehouse lake/             reads what `rebalance ship` writes to a topic
  rebalance run --offsets-from broker:9092 --lakehouse lake/      without any logs: reads __consumer_offsets
""",
)
@click.option(
    "--input",
    "source",
    type=click.Path(path_type=Path),
    help="Folder <cluster>/<broker>/*.log[.gz] (server.log, kafka-request.log), beside the brokers clients/, offsets/ and poll/; "
    "or any folder or single log file.",
)
@click.option("--kafka", metavar="HOST:PORT", help="Read log lines from a topic of this cluster, where `rebalance ship` writes them.")
@click.option("--topic", default="group-protocol-logs", metavar="TOPIC", help="That topic. [default: group-protocol-logs]")
@click.option(
    "--starting",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    help="Where to begin in a topic that this lakehouse was not fed from before. [default: earliest]",
)
@click.option(
    "--max-offsets", type=click.IntRange(min=1), metavar="N", help="Records of the topic per micro-batch. [default: --slice-lines]"
)
@click.option(
    "--kafka-config", type=click.Path(path_type=Path), help="Settings of the client that reads the topic, as of `rebalance ship --config`."
)
@click.option("--accept-loss", is_flag=True, help="Go on although the topic dropped records before they were read.")
@click.option(
    "--lakehouse",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of the tables. A new one is made; one of an earlier run is continued, and nothing in it doubles.",
)
@click.option("--once", is_flag=True, help="Stop at the end of the input. Without it: follow new lines and files.")
@click.option(
    "--timezone",
    "timezones",
    metavar="ZONE",
    multiple=True,
    help="Time zone of the log timestamps, which carry none: ZONE for all clusters, cluster=ZONE for one. Repeatable. [default: UTC]",
)
@click.option("--config", type=click.Path(path_type=Path), help="TOML file of settings, as conf/pipeline.toml.")
@click.option("--slice-lines", type=int, metavar="N", help="Input lines per micro-batch. [default: 100000]")
@click.option(
    "--lateness-ms",
    type=int,
    metavar="N",
    help="How far the lines of one broker may be out of order. [default: 5000]",
)
@click.option(
    "--offsets-from", metavar="HOST:PORT", help="Read __consumer_offsets of this cluster too, or alone (docs/capture-managed.md)."
)
@click.option("--offsets-cluster", default="default", metavar="NAME", help="Name of that cluster in the tables. [default: default]")
@click.option(
    "--client-config", type=click.Path(path_type=Path), help="Settings of the client that reads it, as of `rebalance dump-offsets`."
)
@click.option(
    "--metrics-port", type=click.IntRange(1, 65_535), metavar="N", help="Serve metrics for Prometheus at this port, such as 9404."
)
@click.option("--metrics-host", default="127.0.0.1", metavar="HOST", help="Address to serve them at. [default: 127.0.0.1]")
def run(
    source: Path | None,
    lakehouse: Path,
    *,
    kafka: str | None,
    topic: str,
    starting: str,
    max_offsets: int | None,
    kafka_config: Path | None,
    accept_loss: bool,
    once: bool,
    timezones: Sequence[str],
    config: Path | None,
    slice_lines: int | None,
    lateness_ms: int | None,
    offsets_from: str | None,
    offsets_cluster: str,
    client_config: Path | None,
    metrics_port: int | None,
    metrics_host: str,
) -> int:
    """Work through broker logs: ingest and track together.

    Stop it at any time, in any way; the same command continues where it was. `rebalance report` shows what it found.
    """
    from jobs.common import settings

    chosen = settings.load(config, timezones=timezones, slice_lines=slice_lines, lateness_ms=lateness_ms)
    offsets = None
    if offsets_from is not None:
        from jobs.kafka.offsets_capture import OffsetsFrom

        offsets = OffsetsFrom(offsets_from, offsets_cluster, client_config)
    read = None
    if kafka is not None:
        from jobs.pipeline.topic_input import TopicInput

        read = TopicInput(kafka, topic, starting, kafka_config, max_offsets, accept_loss)
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    return run_and_tell(source, lakehouse, chosen, once=once, offsets=offsets, topic=read, metrics=metrics)


@cli.command(
    epilog="""\b
Examples:
  rebalance report --lakehouse lake/
  rebalance report --lakehouse lake/ --group payments
  rebalance report --lakehouse lake/ --format json | jq '.rebalances[] | select(.cause == "SESSION_TIMEOUT")'
""",
)
@click.option("--lakehouse", type=click.Path(path_type=Path), required=True, help="Folder that `rebalance run` wrote.")
@click.option("--group", metavar="GROUP", help="Only this consumer group.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="For people or for programs. [default: text]",
)
def report(lakehouse: Path, *, group: str | None, form: str) -> int:
    """Show groups, rebalances and findings. Times are UTC."""
    from jobs.answers import report as reports

    found = reports.read_report(lakehouse, group)
    if form == "json":
        click.echo(reports.to_json(found))
        return 0
    from jobs.cli.report_text import render

    render(found, _console())
    return 0


def _asked_for(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Options of `ask` that are parameters of questions."""
    metavars = {"since": "TIME", "until": "TIME", "at": "TIME", "around": "SPAN", "limit": "N"}

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        for name in reversed(names):
            command = click.option(f"--{name}", metavar=metavars.get(name, "NAME"), help=_MEANINGS[name])(command)
        return command

    return decorate


_MEANINGS: Final = {
    "cluster": "Only this cluster.",
    "group": "Only this consumer group.",
    "client": "Only this client.id.",
    "member": "Only members with this in their member id.",
    "since": "From this time on: ISO 8601 in UTC, or a duration back from --until (90s, 15m, 24h, 7d).",
    "until": "Up to this time. [default: the newest time in the tables]",
    "at": "The time in question. [default: that of --until]",
    "around": "How far around --at.",
    "limit": "Rows at most.",
}


@cli.command(
    epilog="""\b
Examples:
  rebalance ask                                             which questions there are
  rebalance ask why --lakehouse lake/ --group payments
  rebalance ask worst --lakehouse lake/ --since 7d
  rebalance ask changes --lakehouse lake/ --at 2026-11-21T06:16 --around 5m
  rebalance ask storms --lakehouse lake/ --set least=10 --format json
  rebalance ask why --show                                  the SQL, for DuckDB and for Spark
""",
)
@click.argument("name", required=False)
@click.option("--lakehouse", type=click.Path(path_type=Path), help="Folder that `rebalance run` wrote.")
@_asked_for(*_MEANINGS)
@click.option("--set", "others", metavar="NAME=VALUE", multiple=True, help="Another parameter of the question. Repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="For people, spreadsheets or programs. [default: table]",
)
@click.option("--show", is_flag=True, help="Print the SQL of the question, and ask nothing.")
def ask(name: str | None, *, lakehouse: Path | None, others: Sequence[str], form: str, show: bool, **typed: str | None) -> int:
    """Ask a named question of the lakehouse; without a name, list the questions.

    Every question is a file of SQL that DuckDB and Spark run alike. Times are UTC.
    """
    from jobs.cli import ask

    given = {parameter: value for parameter, value in typed.items() if value is not None}
    return ask.run(name, lakehouse, given, others, form, _console(), show=show)


@cli.command(
    epilog="""\b
Examples:
  rebalance evidence f3a91c0d27be --lakehouse lake/
  rebalance evidence r5410 --lakehouse lake/ --input logs/ --format json
""",
)
@click.argument("row_id", metavar="ID")
@click.option("--lakehouse", type=click.Path(path_type=Path), required=True, help="Folder that `rebalance run` wrote.")
@click.option(
    "--input",
    "source",
    type=click.Path(path_type=Path),
    help="The logs, as `rebalance run` was given them. [default: where they were read from]",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="For people or for programs. [default: text]")
@click.option("--chars", type=click.IntRange(80, 1_000_000), default=2_000, metavar="N", help="Of a line at most. [default: 2000]")
def evidence(row_id: str, *, lakehouse: Path, source: Path | None, form: str, chars: int) -> int:
    """Show the log lines that prove a finding or a rebalance.

    `rebalance ask findings` and `rebalance ask rebalances` have the ids; so have the report and the answers of other questions.
    The beginning of an id will do.
    """
    from jobs.answers import evidence as proofs
    from jobs.lakehouse.folder import known_inputs

    found = proofs.prove(lakehouse, row_id, [source] if source else known_inputs(lakehouse))
    if form == "json":
        click.echo(proofs.to_json(found))
    else:
        from jobs.cli.evidence_text import render

        render(found, _console(), most=chars)
    missing = sum(len(proof.missing) for proof in found)
    if missing:
        _complain(
            f"{missing} of {sum(len(proof.lines) for proof in found)} lines were not found; give --input DIR with the logs that were read"
        )
    return UNUSABLE if missing else 0


@cli.command(
    epilog="""\b
Examples:
  rebalance maintain --lakehouse lake/
  rebalance maintain --lakehouse lake/ --keep 90d
  rebalance maintain --lakehouse lake/ --keep 365d --keep-events 30d --dry-run
""",
)
@click.option("--lakehouse", type=click.Path(path_type=Path), required=True, help="Folder that `rebalance run` writes, now or otherwise.")
@click.option("--keep", metavar="TIME", help="Delete rows that are older than this: 90d, 26w. [default: keep everything]")
@click.option("--keep-events", metavar="TIME", help="The same for group_events, what `rebalance replay` begins with. [default: as --keep]")
@click.option(
    "--grace",
    default="7d",
    metavar="TIME",
    help="Delete files that were replaced this long ago, when no query can be reading them any more. 7d at most. [default: 7d]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def maintain(lakehouse: Path, *, keep: str | None, keep_events: str | None, grace: str, dry_run: bool) -> int:
    """Keep a lakehouse fast and small: larger files in the order of groups, no outdated ones, no outdated rows.

    May run at any time, beside `rebalance run` too, and be stopped in any way. Once a day is often enough. Ages are counted from the newest
    event in the tables.
    """
    from jobs.cli import maintain

    return maintain.run(lakehouse, keep, keep_events, grace, _console(), dry_run=dry_run)


@cli.command(
    epilog="""\b
Examples:
  rebalance replay --from lake/ --lakehouse lake-new/             while `rebalance run` goes on in lake/
  rebalance replay --from lake/ --lakehouse lake-new/ --swap      after it was stopped
  rebalance run --input logs/ --lakehouse lake/                   goes on where it was, in the new one
""",
)
@click.option("--from", "old", type=click.Path(path_type=Path), required=True, help="Lakehouse whose events are taken.")
@click.option("--lakehouse", type=click.Path(path_type=Path), required=True, help="Folder of the new one, beside it.")
@click.option("--swap", is_flag=True, help="Then let the two change places. Nothing may be working in the old one.")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file of settings, as for `rebalance run`.")
@click.option("--lateness-ms", type=int, metavar="N", help="As for `rebalance run`. [default: 5000]")
def replay(old: Path, lakehouse: Path, *, swap: bool, config: Path | None, lateness_ms: int | None) -> int:
    """Run this version's model over the events of a lakehouse, into a new one: for an upgrade, or with other settings.

    Stop it at any time, in any way; the same command continues, and takes up what came since. The upgrade step by step: docs/operations.md.
    """
    from jobs.cli import replay
    from jobs.common import settings

    chosen = settings.load(config, lateness_ms=lateness_ms)
    return replay.run(old, lakehouse, chosen, _console(), _complain, swap=swap)


_bootstrap = click.option(
    "--bootstrap", metavar="HOST:PORT", required=True, help="Brokers to connect to first, as every client of Kafka takes them."
)
_client_config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Settings of the client, a line each: security.protocol=SASL_SSL, sasl.username=… (librdkafka's names).",
)


@cli.command(
    epilog="""\b
Examples:
  rebalance health --lakehouse lake/
  rebalance health --lakehouse lake/ --max-lag 5m --window 15m
  rebalance health --lakehouse lake/ --format json | jq '.problems[].code'

Exit codes: 0 all is well, 1 something is wrong, 2 it cannot be told.
""",
)
@click.option("--lakehouse", type=click.Path(path_type=Path), required=True, help="Folder that `rebalance run` works in.")
@click.option("--max-lag", default="60s", metavar="TIME", help="How old the newest event may be when it is tracked. [default: 60s]")
@click.option("--max-stall", default="5m", metavar="TIME", help="How long input may wait while nothing is finished. [default: 5m]")
@click.option("--max-batch", default="60s", metavar="TIME", help="What a micro-batch may take (median). [default: 60s]")
@click.option(
    "--max-quarantined", type=click.FloatRange(0, 100), default=1.0, metavar="PERCENT", help="Lines that cannot be read. [default: 1]"
)
@click.option("--max-late", type=click.FloatRange(0, 100), default=0.1, metavar="PERCENT", help="Events that come too late. [default: 0.1]")
@click.option("--max-divergences", type=click.IntRange(0), default=0, metavar="N", help="Findings MODEL_DIVERGENCE. [default: 0]")
@click.option("--window", default="1h", metavar="TIME", help="How far back micro-batches are looked at, 24h at most. [default: 1h]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="For people or for programs. [default: text]")
def health(
    lakehouse: Path,
    *,
    max_lag: str,
    max_stall: str,
    max_batch: str,
    max_quarantined: float,
    max_late: float,
    max_divergences: int,
    window: str,
    form: str,
) -> int:
    """Say whether the pipeline is well, and if not, what is wrong and what to do, a line each.

    Reads what `rebalance run` writes of itself. Times are written 500ms, 60s, 5m, 24h.
    """
    import time

    from jobs.cli import health

    times = {"max_lag": max_lag, "max_stall": max_stall, "max_batch": max_batch, "window": window}
    limits = health.limits_of(times, quarantined=max_quarantined, late=max_late, divergences=max_divergences)
    return health.run(lakehouse, limits, form, time.time_ns() // 1_000_000, click.echo)


@cli.command(
    "dump-offsets",
    epilog="""\b
Examples:
  rebalance dump-offsets --bootstrap broker:9092 --out logs/production/offsets/offsets.jsonl
  rebalance dump-offsets --bootstrap broker:9092 | gzip > logs/production/offsets/offsets.jsonl.gz
  rebalance dump-offsets --bootstrap broker:9092 --follow --out logs/production/offsets/offsets.jsonl
  rebalance run --input logs/ --lakehouse lake/ --once
""",
)
@_bootstrap
@_client_config
@click.option("--out", type=click.Path(path_type=Path), help="File to write; a dump that is there is continued. [default: standard output]")
@click.option("--follow", is_flag=True, help="Go on with new records until Ctrl-C.")
@click.option(
    "--all", "everything", is_flag=True, help="Also the records that say nothing of classic groups: committed offsets and others."
)
def dump_offsets(bootstrap: str, *, config: Path | None, out: Path | None, follow: bool, everything: bool) -> int:
    """Write the records of __consumer_offsets that say what groups are: what `rebalance run` reads where it has no logs.

    Needs to read that topic, and nothing else. Put the file into INPUT/<cluster>/offsets/.
    """
    from jobs.cli import capture

    return capture.dump(bootstrap, config, out, follow=follow, everything=everything, complain=_complain)


@cli.command(
    epilog="""\b
Examples:
  rebalance poll --bootstrap broker:9092 --out logs/ --cluster production
  rebalance poll --bootstrap broker:9092 --out logs/ --group payments --group orders --every 2s
  rebalance poll --bootstrap broker:9092 --out logs/ --config client.properties --once
  rebalance run --input logs/ --lakehouse lake/
""",
)
@_bootstrap
@_client_config
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder: lines go to OUT/<cluster>/poll/*.jsonl.")
@click.option("--cluster", default="default", metavar="NAME", help="Name of the cluster in the tables. [default: default]")
@click.option("--every", default="5s", metavar="TIME", help="How often: 500ms, 5s, 1m. [default: 5s]")
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="Only this consumer group. Repeatable.")
@click.option("--once", is_flag=True, help="Ask once.")
def poll(bootstrap: str, *, config: Path | None, out: Path, cluster: str, every: str, groups: Sequence[str], once: bool) -> int:
    """Ask a cluster what its groups are, again and again, where neither its logs nor __consumer_offsets can be read.

    Needs to list and describe groups, and nothing else. Ctrl-C ends it.
    """
    from jobs.cli import capture

    return capture.poll(bootstrap, config, out, cluster=cluster, every=every, groups=groups, once=once, complain=_complain)


@cli.command(
    epilog="""\b
Examples:
  rebalance ship --input /opt/kafka/logs --cluster production --broker broker-1 --bootstrap other:9092
  rebalance ship --input server.log --input kafka-request.log --cluster production --broker broker-1 --bootstrap other:9092
  rebalance ship --input app-logs/ --cluster production --broker clients --bootstrap other:9092
  rebalance ship --input archive/ --cluster production --broker broker-1 --bootstrap other:9092 --once
""",
)
@click.option(
    "--input",
    "inputs",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="A broker's folder of logs, or a log file, whose rotated ones beside it count. Repeatable.",
)
@click.option("--cluster", required=True, metavar="NAME", help="Name of the cluster that the logs tell of, in the tables.")
@click.option("--broker", required=True, metavar="NAME", help="Name of the broker that wrote them; `clients`: logs of applications.")
@_bootstrap
@click.option("--topic", default="group-protocol-logs", metavar="TOPIC", help="Topic to write to. [default: group-protocol-logs]")
@_client_config
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that remembers how far each log was shipped. [default: ship-<cluster>-<broker>.json]",
)
@click.option("--timezone", default="UTC", metavar="ZONE", help="Time zone of the log timestamps, which carry none. [default: UTC]")
@click.option("--once", is_flag=True, help="Ship what is there, and end.")
def ship(
    inputs: Sequence[Path],
    *,
    cluster: str,
    broker: str,
    bootstrap: str,
    topic: str,
    config: Path | None,
    state: Path | None,
    timezone: str,
    once: bool,
) -> int:
    """Follow the logs beside a broker and send the lines that tell of consumer groups to a Kafka topic.

    Stop it at any time, in any way; the same command continues where it was. A cluster that is away is waited for.
    """
    from jobs.cli import ship as ships
    from jobs.kafka.ship_state import ShipTarget

    target = ShipTarget(cluster, broker, topic)
    return ships.ship(inputs, target, bootstrap, config, state, timezone=timezone, once=once, complain=_complain)


@cli.command(
    epilog="""\b
Examples:
  rebalance broker
  rebalance broker --dir kafka/ --port 9092 --topic orders:6 --topic group-protocol-logs:3
  rebalance broker --dir kafka/ --brokers 3
""",
)
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Folder for all that it writes; may be started again. [default: a new one]"
)
@click.option("--brokers", type=click.Choice(["1", "3"]), default="1", help="How many. [default: 1]")
@click.option("--version", default="4.2.0", metavar="VERSION", help="Release of Kafka: 4.2.0, 3.9.1. [default: 4.2.0]")
@click.option(
    "--port", type=click.IntRange(1, 65_000), metavar="N", help="Port on 127.0.0.1; of three brokers the first. [default: a free one]"
)
@click.option("--topic", "topics", metavar="NAME[:PARTITIONS]", multiple=True, help="Make a topic, unless it is there. Repeatable.")
def broker(folder: Path | None, *, brokers: str, version: str, port: int | None, topics: Sequence[str]) -> int:
    """Run a real Kafka on this machine, with the request log of consumer groups switched on: to try things out.

    Prints the bootstrap address and where its logs are. Ctrl-C stops it.
    """
    from jobs.cli import broker

    wanted = [broker.topic_of(text) for text in topics]

    def say(text: str) -> None:
        click.echo(text)
        sys.stdout.flush()

    return broker.run(folder, brokers=int(brokers), port=port or 0, version=version, topics=wanted, say=say)


@cli.command()
def demo() -> int:
    """The main job on a bundled recording of a real Kafka cluster.

    Two brokers, 16 consumer groups and 230 seconds of incidents: sessions that ran out, slow pollers, rolling restarts.
    """
    from jobs.cli.demo import run_demo

    return run_demo(_console())


@cli.command("demo-live")
def demo_live() -> int:
    """A real Kafka on this machine, real consumers that stall, die and fence each other, and what is told of it as it happens.

    Takes two minutes and touches nothing outside of the project's folder. Needs `make .jars-kafka/resolved.txt`.
    """
    from jobs.demo.live import run_demo_live

    return run_demo_live(_console())


@cli.command()
@click.option("--kafka", metavar="VERSION", help="Follow this Kafka release, not the trace's own: 4.2.0, 3.9.1, 0.10.2.2, 0.10.0.1.")
def trace(*, kafka: str | None) -> int:
    r"""Answer recorded requests with the executable specification.

    Reads one trace or case (JSON, the format of tests/data/traces/FORMAT.md) per line from standard input and writes the same
    object with the outcome of every step replaced by the model's own.

    \b
        rebalance trace < traces.jsonl > answers.jsonl
    """
    from coordinator_model.specification.trace import run_lines

    run_lines(sys.stdin, sys.stdout, kafka)
    return 0


def run_and_tell(
    source: Path | None,
    lakehouse: Path,
    settings: Any,
    *,
    once: bool,
    short_run: bool = False,
    offsets: OffsetsFrom | None = None,
    topic: TopicInput | None = None,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Runs the pipeline and tells what it came to; returns the exit code."""
    from jobs.cli.progress import Progress
    from jobs.pipeline import run

    console = _console()
    with Progress(console) as progress:
        outcome = run.run(
            source,
            lakehouse,
            settings=settings,
            once=once,
            short_run=short_run,
            offsets=offsets,
            topic=topic,
            metrics=metrics,
            show=progress.show,
            warn=_complain,
        )
    names = [str(source) if source else None, f"topic {topic.topic}" if topic else None, offsets.bootstrap if offsets else None]
    _tell(console, outcome, " and ".join(name for name in names if name))
    if outcome.signal is None:
        return 0
    if once:
        _complain("stopped before the end of the input; the same command continues")
        return 128 + outcome.signal
    return 0


def _tell(console: Console, outcome: RunResult, source: str) -> None:
    """The account: where every line went, and what came of it."""
    from rich.text import Text

    def line(text: str) -> None:
        console.print(Text(printable(text, _LONGEST)), soft_wrap=True)

    if outcome.nothing_new and outcome.signal is None:
        line(f"Nothing new in {source}.")
    else:
        line(f"{'Done' if outcome.signal is None else 'Stopped'} after {outcome.seconds:.0f} s: {_account(outcome.added)}")
    if any(outcome.before.values()):
        line(f"The lakehouse: {_account(outcome.after)}")
    if outcome.late_events:
        line(
            f"{outcome.late_events:,} events came too late to be counted in: a greater --lateness-ms and a new "
            "lakehouse would take them in."
        )


def _account(totals: Any) -> str:
    return (
        f"{totals['lines_read']:,} lines = {totals['skipped']:,} of other matters + {totals['events']:,} events"
        f" + {totals['quarantined']:,} unreadable; {totals['rebalances']:,} rebalances, {totals['findings']:,} findings"
    )


def _console() -> Console:
    from rich.console import Console

    # Bound when made: a test, or a pipe that was put in between, may have replaced stdout.
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def _complain(message: str) -> None:
    """One line on stderr, whatever the names are that it speaks of: of files, topics, settings, and what a broker answered."""
    click.echo(f"rebalance: {printable(message, _LONGEST)}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, and explains it in one line on stderr if it is not 0."""
    try:
        result = cli.main(arguments, prog_name="rebalance", standalone_mode=False)
    except click.ClickException as error:  # a wrong option: Click says it best
        error.show()
        return UNUSABLE
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # `rebalance report | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - raised again unless it is for the user
        return _explain(error)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """Errors that are for the user, in one line; anything else is a bug and shows all of itself."""
    if isinstance(error, UserError):
        _complain(str(error))
        return UNUSABLE
    if isinstance(error, QueryFailedError):
        _complain(f"{error} (more in {error.log})")
        return FAILED
    raise error


if __name__ == "__main__":
    sys.exit(main())
